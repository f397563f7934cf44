"""Servers that imitate the other side of the wire. They know nothing of hermes_trio."""
