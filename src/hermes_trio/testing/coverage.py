"""`sometimes`: branches that a suite of faults must reach, or it has shown nothing; and how often a bot was killed.

    sometimes("retried", len(world.model.requests) > 1)      # in a test

The pytest plugin fails a run at whose end a declared branch was never true; under `pytest -n` the workers' counts are
added up first. The rule that must not be broken: a branch is counted by name, so two tests that declare the same one
help each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

_times: Counter[str] = Counter()
_restarts: Counter[str] = Counter()


def sometimes(name: str, reached: bool = True) -> None:
    """Declares a branch, and notes whether it was reached this time."""
    _times[name] += reached


def declare(names: Iterable[str]) -> None:
    """Declares branches that nothing may have reached yet."""
    for name in names:
        sometimes(name, False)


def reached(name: str) -> int:
    """How often it was reached in this process, and in the workers that have ended."""
    return _times[name]


def never() -> list[str]:
    """The branches that were declared and never reached."""
    return sorted(name for name, times in _times.items() if not times)


def restarted(way: str, times: int) -> None:
    """Notes that a bot was killed and started again so often; way: how it reached its world, in words."""
    if times:
        _restarts[way] += times


def restarts() -> Mapping[str, int]:
    """How often bots were killed and started again, by way."""
    return dict(_restarts)


def notes() -> dict[str, dict[str, int]]:
    """Everything that was counted here, for the process that adds it up."""
    return {"times": dict(_times), "restarts": dict(_restarts)}


def add(notes: Mapping[str, Mapping[str, int]]) -> None:
    """Adds what another process has counted."""
    for counter, found in ((_times, notes["times"]), (_restarts, notes["restarts"])):
        for name, times in found.items():
            counter[name] += times


def forget() -> None:
    """Begins anew."""
    _times.clear()
    _restarts.clear()
