"""What all tests share: the soak marker, two workers for the process tests, and how hypothesis behaves here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

SOAK = os.environ.get("SOAK") == "1"
PROCESS = Path(__file__).parent / "process"
AT_ONCE = 2
"""Process tests that run at the same time at most, however many workers there are: their times are real."""
HANGING = 240
"""Seconds after which a test is taken for hanging: a task that waits for ever spins under a clock that jumps."""

# What several test files share stands in tests/support and is imported by its plain name.
sys.path.insert(0, str(Path(__file__).parent / "support"))

# No deadline: the machine may be busy. Every run tries the same examples, except in a soak. The explain phase is left
# out because it slows asynchronous tests four times.
settings.register_profile(
    "project", deadline=None, derandomize=not SOAK, phases=[phase for phase in Phase if phase is not Phase.explain]
)
settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the project's marker."""
    config.addinivalue_line("markers", "soak: a long random campaign, run by `make soak` only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the campaigns out unless SOAK=1, and deals the process tests out to two workers."""
    campaigns = [item for item in items if item.get_closest_marker("soak")]
    if campaigns and not SOAK:
        config.hook.pytest_deselected(items=campaigns)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    dealt = [item for item in items if item.path.is_relative_to(PROCESS) and not item.get_closest_marker("xdist_group")]
    for number, item in enumerate(dealt):  # in turn, because slow tests stand together
        item.add_marker(pytest.mark.xdist_group(f"process {number % AT_ONCE}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that hangs, so that one of them does not cost the whole run. A campaign may take its time."""

    def interrupt(number: int, frame: object) -> None:
        pytest.fail(f"the test hangs: {HANGING} s", pytrace=True)

    if item.get_closest_marker("soak"):
        return (yield)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(HANGING)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
