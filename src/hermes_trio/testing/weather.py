"""Random weather: schedules of named faults that hypothesis draws and shrinks to the one or two that matter.

    @given(weather(story))
    def test_any_weather(faults): run_world(story, faults=faults)

    find_weather(story)          # the smallest schedule that breaks a promise, or None

Faults are drawn from the boundaries that the story really passes, so that most of them strike. The explain phase of
hypothesis is left out, because it slows asynchronous runs four times. The rule that must not be broken: a schedule
that is printed is the schedule that fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from hermes_trio.testing.explore import run_world
from hermes_trio.testing.faults import Fault, Missed, names_of
from hermes_trio.testing.world import Scenario

ON_WIRE: dict[str, dict[str, Any]] = {
    "ack_lost": {},
    "reset_before": {},
    "never_seen": {},
    "error_before": {},
    "error_after": {},
    "rate_limited": {"retry_after": 2},
    "late_accept": {"after": 20},
    "delay": {"seconds": 3},
    "garbage": {},
    "refuse": {"seconds": 5},
}
"""What strikes requests, and how; in the order in which shrinking prefers it."""
ANYWHERE: dict[str, dict[str, Any]] = {
    "crash": {},
    "hold": {"seconds": 5},
    "clock_step": {"seconds": -600},
    "disk_full": {"seconds": 4},
    "duplicate": {},
    "deaf": {"seconds": 40},
}
SETTINGS = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def places(scenario: Scenario, seed: int = 0, **world: Any) -> list[tuple[str, int]]:
    """The addresses that the story passes: each label, and how often."""
    counts: dict[str, int] = {}
    for passed in run_world(scenario, seed, **world).boundaries.trace:
        for name in names_of(passed.label):
            counts[name] = counts.get(name, 0) + 1
    return list(counts.items())


def weather(
    scenario: Scenario, *, most: int = 3, seed: int = 0, names: Sequence[str] | None = None, **world: Any
) -> st.SearchStrategy[list[Fault]]:
    """Schedules of at most `most` faults at the boundaries of a story. names: only these faults. world: of World."""
    found = places(scenario, seed, **world)
    wanted = [name for name in (*ANYWHERE, *ON_WIRE) if names is None or name in names]

    def faults_at(place: tuple[str, int]) -> st.SearchStrategy[Fault]:
        label, count = place
        fitting = [name for name in wanted if name in ANYWHERE or label.startswith("wire? ")]
        return st.builds(
            lambda name, nth: Fault(name, label, nth=nth, **{**ANYWHERE, **ON_WIRE}[name]),
            st.sampled_from(fitting or ["crash"]),
            st.integers(1, count),
        )

    return st.lists(st.sampled_from(found).flatmap(faults_at), max_size=most)


def find_weather(
    scenario: Scenario,
    *,
    tries: int = 200,
    most: int = 3,
    seed: int = 0,
    names: Sequence[str] | None = None,
    **world: Any,
) -> list[Fault] | None:
    """The smallest schedule of faults under which the story breaks a promise; None when no try of `tries` does."""

    def breaks(faults: list[Fault]) -> bool:
        try:
            run_world(scenario, seed, faults=faults, **world)
        except Missed:
            return False
        except AssertionError:
            return True
        return False

    strategy = weather(scenario, most=most, seed=seed, names=names, **world)
    try:
        return find(strategy, breaks, settings=settings(SETTINGS, max_examples=tries))
    except NoSuchExample:
        return None
