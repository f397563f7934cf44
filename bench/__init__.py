"""Measurements of the project, run by `make bench`."""
