"""hermes_trio: a bot runtime on trio in which every message gets exactly one complete visible reply."""

__version__ = "0.1.0"
