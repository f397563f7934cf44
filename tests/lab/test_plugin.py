"""The pytest plugin: stories of ten lines, and what a failure says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes_trio.testing import World
from hermes_trio.testing.faults import Fault


async def test_a_story_of_ten_lines(world: World) -> None:
    """The story of the documentation works as it is written."""
    alice = world.telegram.user("alice")
    world.model.says("Hello, Alice.")
    await alice.says("hi")
    await world.quiet()
    assert alice.sees() == ["Hello, Alice."]


@pytest.mark.world(faults=[Fault("ack_lost", "wire? editMessageText")], seeds=2, crashes=True)
async def test_a_marked_story(world: World, tmp_path: Path) -> None:
    """A mark adds faults, schedules and crashes; other fixtures work beside the world."""
    assert tmp_path.name
    alice = world.telegram.user("alice")
    world.model.says("Hello, Alice.")
    await alice.says("hi")
    await world.quiet()
    assert alice.reads() == ["Hello, Alice."]


STORY = """
import pytest
from hermes_trio.testing.faults import Fault

async def test_story(world):
    alice = world.telegram.user("alice")
    world.model.says("Hello, Alice.")
    await alice.says("hi")
    await world.quiet()
    assert alice.sees() == ["Goodbye."]

@pytest.mark.world(faults=[Fault("ack_lost", "wire? deleteMessage")])
async def test_missed(world):
    await world.telegram.user("alice").says("hi")

def test_wrong(world):
    pass
"""


def run_pytest(folder: Path, *options: str, story: str = STORY) -> str:
    """What pytest prints for a story in a folder of its own, and its exit status."""
    (folder / "test_story.py").write_text(story)
    arguments = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    return f"{done.stdout}\nexit status {done.returncode}"


@pytest.mark.parametrize("options", [(), ("-p", "no:trio")], ids=["with pytest-trio", "without"])
def test_a_failure_explains_itself(tmp_path: Path, options: tuple[str, ...]) -> None:
    """It names the seed and the faults, tells the story, and says which fault never struck."""
    said = run_pytest(tmp_path, *options, "--hermes-seed", "7")
    assert "3 failed" in said or "2 failed, 1 error" in said, said
    assert "seed=7" in said
    assert "alice says 'hi'" in said
    assert "now says 'Hello, Alice.'" in said
    assert "never struck: Fault('ack_lost', 'wire? deleteMessage')" in said
    assert "only an `async def` test" in said


def test_a_crash_can_be_chosen(tmp_path: Path) -> None:
    """`--hermes-crash-at` kills the bot there, and the failure says so."""
    said = run_pytest(tmp_path, "--hermes-crash-at", "12", "-k", "story")
    assert "CRASH of life 1 at #12" in said, said


BRANCHES = """
import pytest
from hermes_trio.testing import sometimes

@pytest.mark.parametrize("number", range(4))
async def test_story(world, number):
    sometimes("the first", number == 0)
    sometimes("the last", number == {last})
    world.model.says("Yes.")
    await world.telegram.user("alice").says("hi")
    await world.restart()
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_branch_that_is_never_reached_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Declared in every test and reached in one is enough, in whichever worker; never reached fails the whole run."""
    good = run_pytest(tmp_path, *options, story=BRANCHES.format(last=3))
    assert "exit status 0" in good, good
    assert "simulated worlds: 4 crash-restarts (4 bytes)" in good
    bad = run_pytest(tmp_path, *options, story=BRANCHES.format(last=4))
    assert "exit status 1" in bad, bad
    assert "sometimes('the last') was never true" in bad
    assert "sometimes('the first')" not in bad


def test_a_part_of_a_suite_may_miss_a_branch(tmp_path: Path) -> None:
    """Whoever runs one file or one test of a suite is not told of branches that others reach."""
    assert "exit status 0" in run_pytest(tmp_path, "test_story.py", story=BRANCHES.format(last=4))
    assert "exit status 0" in run_pytest(tmp_path, "-k", "story", story=BRANCHES.format(last=4))
