"""A group becomes a supergroup while the bot works for it: its id changes under everything."""

from __future__ import annotations

import pytest
import trio

from hermes_trio.testing import World, run_world

ANSWER = "<<A-1>> first half, and the second half <</A-1>>"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("interfere", ["nobody", "a command from the new place", "a question from the new place"])
def test_a_chat_that_moves_during_a_turn(seed: int, interfere: str) -> None:
    """The answer reaches the new place once, its turn runs once, and who writes from there meanwhile is heard."""

    async def story(world: World) -> None:
        alice, telegram = world.telegram.user("alice"), world.telegram.fake
        group, go_on = telegram.group("team"), trio.Event()
        world.model.when("first").says(ANSWER[:20]).holds(go_on).says(ANSWER[20:])
        world.model.when("second").says("<<A-2>> another <</A-2>>")
        await alice.says("@hermes_bot first", chat=group)
        await telegram.wait_for(lambda: any("A-1" in text for text in telegram.bot_texts(group)))
        new = telegram.migrate(group)
        if interfere == "a command from the new place":
            await alice.says("/status@hermes_bot", chat=new)
        if interfere == "a question from the new place":
            await alice.says("/queue@hermes_bot second", chat=new)
        await trio.sleep(3)
        go_on.set()
        await world.quiet()
        shown = telegram.bot_texts(new)
        assert shown.count(ANSWER) == 1, shown
        assert sum("<<A-2>>" in text for text in shown) == (interfere == "a question from the new place"), shown
        asked = [request for request in world.model.requests if "first" in request.last_user_text]
        assert len(asked) == 1, "the turn ran twice"

    run_world(story, seed)
