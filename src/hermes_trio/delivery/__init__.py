"""Delivery: what should be visible, what we made, and the steps between."""
