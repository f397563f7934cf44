"""Tests of the agent's loop."""
