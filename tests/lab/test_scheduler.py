"""The canary: the private names of trio that the scheduler uses are still there and still mean the same."""

from __future__ import annotations

import random

import trio
import trio._core._run as run

from hermes_trio.testing.scheduler import StallGuard, all_tasks, run_seeded, seeded


def test_the_private_names_exist() -> None:
    """trio still has its random source, its flag, and the parents of cancel scopes."""
    assert isinstance(run._r, random.Random)
    assert isinstance(run._ALLOW_DETERMINISTIC_SCHEDULING, bool)
    assert {"_scope", "_parent"} <= {field.name for field in run.CancelStatus.__attrs_attrs__}


def order(seed: int) -> list[int]:
    """In which order ten tasks run under a seed."""
    found: list[int] = []

    async def note(number: int) -> None:
        await trio.lowlevel.checkpoint()
        found.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(note, number)

    run_seeded(main, seed, StallGuard())
    return found


def test_the_seed_decides_the_order() -> None:
    """The same seed gives the same order of tasks, and other seeds other ones."""
    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(10)}) > 5


def test_seeding_leaves_no_trace() -> None:
    """Behind the block chance is what it was before."""
    before = (random.getstate(), run._r.getstate(), run._ALLOW_DETERMINISTIC_SCHEDULING)
    with seeded(7):
        random.random()
    assert before == (random.getstate(), run._r.getstate(), run._ALLOW_DETERMINISTIC_SCHEDULING)


def test_a_stall_ends_and_a_task_is_placed() -> None:
    """A run in which nothing can go on ends, and names the line at which its task waits."""
    guard = StallGuard()

    async def main() -> None:
        assert all_tasks()
        await trio.Event().wait()

    run_seeded(main, 0, guard)
    assert any("test_scheduler.py" in place for place in guard.stalled)
