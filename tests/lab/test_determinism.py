"""The same seed gives the same trace: in a row, in other processes, and whatever hash seed Python drew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rows import a1_clean, a10_ack_lost, two_questions

from hermes_trio.testing import World, direct_bot, run_world, verify_crashes

PROGRAM = """
import sys
sys.path.insert(0, {here!r})
from test_determinism import everything
print(everything())
"""
KILLED = (20, 60)
RUNS = 100


def digest(world: World) -> str:
    """Everything that happened, with its times."""
    history = [(change.time, change.method, change.message_id) for change in world.telegram.fake.history]
    return repr(([(passed.label, passed.time) for passed in world.boundaries.trace], history, world.steps))


def test_the_same_seed_gives_the_same_trace() -> None:
    """Ten runs in a row are one run."""
    assert len({digest(run_world(two_questions, 3)) for _ in range(10)}) == 1


def everything() -> str:
    """A run through bytes, one the short way, and one that is killed twice."""
    worlds = [
        run_world(two_questions, 5),
        run_world(two_questions, 5, bot=direct_bot),
        run_world(two_questions, 5, bot=direct_bot, crash_at=KILLED),
    ]
    return "".join(map(digest, worlds))


@pytest.mark.parametrize("killed", [(), KILLED], ids=["undisturbed", "killed"])
def test_a_hundred_of_a_hundred_runs_are_one(killed: tuple[int, ...]) -> None:
    """The same, a hundred times, also when it is killed twice in each run."""
    found = {digest(run_world(two_questions, 3, bot=direct_bot, crash_at=killed)) for _ in range(RUNS)}
    assert len(found) == 1


def test_another_seed_gives_another_schedule() -> None:
    """Ten seeds are ten different runs."""
    assert len({digest(run_world(two_questions, seed)) for seed in range(10)}) == 10


def test_no_process_and_no_hash_seed_changes_a_trace() -> None:
    """Three processes with other hash seeds, and this one, agree."""
    here = str(Path(__file__).parent)
    found = {everything()}
    for hash_seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", PROGRAM.format(here=here)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_a_crash_changes_nothing_before_it() -> None:
    """Up to its crash a run is the reference."""
    reference = run_world(a1_clean).boundaries.trace
    for number in range(1, len(reference) + 1, 5):
        assert run_world(a1_clean, crash_at=[number]).boundaries.trace[:number] == reference[:number]


def test_forked_runs_end_alike() -> None:
    """A sample of the runs, made in processes of their own, has the same verdicts."""
    verify_crashes(a10_ack_lost, forked=5)
