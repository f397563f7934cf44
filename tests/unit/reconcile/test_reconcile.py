"""Random schedules against a model of a platform: whatever goes wrong, the promises hold.

One failing schedule prints its timeline. `SCHEDULES` sets how many are tried on each wire.
"""

from __future__ import annotations

import os

import pytest

from . import core
from .run import WIRES, Run, judge

SCHEDULES = int(os.environ.get("SCHEDULES", "1500"))


@pytest.mark.parametrize("wire", WIRES)
def test_no_schedule_breaks_a_promise(wire: str) -> None:
    """Lost requests and answers, late acceptance, refusals, kills, deletions, clock steps: no verdict is broken."""
    broken = {seed: found for seed in range(SCHEDULES) if (found := judge(seed, wire, core.real()))}
    if broken:
        seed, (what, timeline) = min(broken.items(), key=lambda item: len(item[1][1]))
        pytest.fail("\n".join([*timeline, f"{len(broken)} of {SCHEDULES} wrong; seed {seed}: {what}"]), pytrace=False)


@pytest.mark.parametrize("wire", WIRES)
def test_a_schedule_is_the_same_each_time(wire: str) -> None:
    """A seed that failed can be looked at again."""
    for seed in range(5):
        assert timeline(seed, wire) == timeline(seed, wire)


def timeline(seed: int, wire: str) -> list[str]:
    """What happens in a schedule."""
    run = Run(seed, wire, core.real())
    run.live()
    return run.platform.log
