"""The kit is tested itself: bots that are wrong in one place are found, and the right one is not accused."""

from __future__ import annotations

import pytest
import trio
from small_bot import WAYS, small_bot

from hermes_trio.testing import Broken, Fault, World, run_world, verify_crashes
from hermes_trio.testing.weather import find_weather


async def story(world: World) -> None:
    """Alice asks twice, the second time while the first answer comes onto the screen."""
    alice = world.telegram.user("alice")
    world.model.when("one").says("The first answer.").waits(1)
    world.model.when("two").says("The second answer.")
    await alice.says("one")
    with trio.move_on_after(60):
        await world.telegram.fake.wait_for(alice.sees)
    await alice.says("two")
    await world.quiet()


LOST = Fault("ack_lost", "wire? sendMessage")
FAULTS = {"blind_retry": [LOST], "new_key": [LOST]}
"""What it takes besides a crash."""


def test_the_right_bot_is_right() -> None:
    """The small bot that keeps every promise is not accused, wherever it is killed."""
    verify_crashes(story, bot=small_bot("right"))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "right"])
def test_a_wrong_bot_is_found(way: str) -> None:
    """The mistake shows in the story itself, under one named fault, or under one crash."""
    try:
        run_world(story, bot=small_bot(way), faults=FAULTS.get(way, ()))
    except Broken:
        return
    with pytest.raises(AssertionError, match="broke a promise"):
        verify_crashes(story, bot=small_bot(way))


@pytest.mark.parametrize("way", ["blind_retry", "ack_first", "module_global"])
def test_random_weather_shrinks_to_one_fault(way: str) -> None:
    """Random weather finds the mistake and shrinks to at most one fault."""
    found = find_weather(story, bot=small_bot(way), tries=60)
    assert found is not None
    assert len(found) <= 1
