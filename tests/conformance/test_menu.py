"""The menu of commands on Telegram: offered once a start, never in the way of anything."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from hermes_fakes.faults import AckLost, Delay, Effect, ErrorBefore, NeverSeen, RateLimited
from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.testing import World, run_world


def calls(world: World, method: str) -> list[Any]:
    return [call for call in world.telegram.fake.requests if call.method == method]


async def talk(world: World) -> None:
    """One question and its answer."""
    alice = world.telegram.user("alice")
    await alice.says("hi")
    await world.quiet()
    assert len(alice.reads()) == 1


def test_the_menu_shows_what_everyone_may_use() -> None:
    """After the first round trip the platform shows the registry's menu; a restart says it once more, no more."""

    async def story(world: World) -> None:
        await talk(world)
        assert world.telegram.fake.commands() == dict(REGISTRY.menu())
        assert "help" in world.telegram.fake.commands()
        assert len(calls(world, "setMyCommands")) == 1
        world.telegram.fake.outage(20)
        await trio.sleep(60)
        await world.quiet()
        assert len(calls(world, "setMyCommands")) == 1
        await world.restart()
        await world.quiet()
        assert len(calls(world, "setMyCommands")) == 2

    run_world(story)


@pytest.mark.parametrize("effect", [RateLimited(30), ErrorBefore(500), ErrorBefore(400), AckLost(), NeverSeen()])
def test_a_failure_is_left_at_that(effect: Effect) -> None:
    """Whatever becomes of the request, the bot talks as ever and does not insist."""

    async def story(world: World) -> None:
        world.kill()
        asked = len(calls(world, "setMyCommands"))
        world.telegram.fake.faults.add(effect, "setMyCommands")
        await world.up()
        await talk(world)
        await trio.sleep(300)
        await world.quiet()
        assert len(calls(world, "setMyCommands")) == asked + 1

    run_world(story)


def test_the_first_poll_does_not_wait_for_it() -> None:
    """A menu that takes ten seconds to set keeps no message waiting."""

    async def story(world: World) -> None:
        world.kill()
        world.telegram.fake.faults.add(Delay(8.0), "setMyCommands")
        alice = world.telegram.user("alice")
        await alice.says("hi")
        await world.up()
        began = trio.current_time()
        await world.telegram.fake.wait_for(lambda: alice.reads())
        assert trio.current_time() - began < 5
        await world.quiet()
        assert world.telegram.fake.commands() == dict(REGISTRY.menu())

    run_world(story)


def test_in_a_group_a_command_of_the_menu_needs_no_name() -> None:
    """The bot knows its own commands and their aliases; another bot's are not taken."""

    async def story(world: World) -> None:
        await talk(world)
        group = world.telegram.fake.group("friends")
        alice = world.telegram.user("alice")
        await alice.says("/help", chat=group)
        await alice.says("/weather", chat=group)
        await alice.says("/cancel", chat=group)
        await world.quiet()
        [helped, stopped] = world.telegram.fake.bot_texts(group)
        assert "/help" in helped
        assert "/weather" not in stopped

    run_world(story)
