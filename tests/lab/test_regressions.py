"""What once went wrong in the simulated world, each as the shortest story that showed it."""

from __future__ import annotations

import pytest
import trio

from hermes_trio.testing import Fault, World, run_world

ANSWER = "<<A-1>> first half, and the second half <</A-1>>"


@pytest.mark.parametrize("at", ["commit! admit", "commit? answer"])
def test_what_is_overheard_during_a_turn_is_not_its_question(at: str) -> None:
    """Somebody talks in the group while a turn runs, and the bot dies: the turn that resumes answers its own question,
    and what was overheard is there for the next one."""

    async def story(world: World) -> None:
        alice, bob = world.telegram.user("alice"), world.telegram.user("bob")
        group = world.telegram.fake.group("friends")
        world.model.when("one").says(ANSWER, chunks=8, interval=0.5)
        world.model.when("two").says("<<A-2>> another <</A-2>>")
        await alice.says("@hermes_bot one, please", chat=group)
        await trio.sleep(1)
        world.inject(Fault("crash", at))
        await bob.says("how is the weather?", chat=group)
        await world.quiet()
        assert ANSWER in world.telegram.fake.bot_texts(group), world.telegram.fake.bot_texts(group)
        assert not any("weather" in request.text for request in world.model.requests)
        await bob.says("@hermes_bot two, please", chat=group)
        await world.quiet()
        assert "bob: how is the weather?" in str(world.model.requests[-1].messages)

    run_world(story)
