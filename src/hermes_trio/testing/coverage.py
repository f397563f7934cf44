"""`sometimes`: branches that a suite of faults must reach, or it has shown nothing.

    sometimes("retried", len(world.model.requests) > 1)      # in a test

The pytest plugin fails a run at whose end a declared branch was never true. The rule that must not be broken: a branch
is counted by name, so two tests that declare the same one help each other.
"""

from __future__ import annotations

from collections import Counter

_times: Counter[str] = Counter()


def sometimes(name: str, reached: bool = True) -> None:
    """Declares a branch, and notes whether it was reached this time."""
    _times[name] += reached


def reached(name: str) -> int:
    """How often it was reached in this process."""
    return _times[name]


def never() -> list[str]:
    """The branches that were declared in this process and never reached."""
    return sorted(name for name, times in _times.items() if not times)


def forget() -> None:
    """Begins anew."""
    _times.clear()
