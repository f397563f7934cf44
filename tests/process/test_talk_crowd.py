"""B7: many chats at once against the real program. Each message has its one end, and no chat waits for another."""

from __future__ import annotations

import pytest
import trio

from hermes_fakes.faults import NeverSeen
from hermes_fakes.model import ModelRequest, Script

from .answers import answer
from .harness import BotWorld, open_bot_world
from .talk import talk_verdict

MESSAGES = 3


def label(chat: int, number: int) -> str:
    """What stands in a message and in its answer, and in no other."""
    return f"A-{chat}x{number}"


async def impatient(world: BotWorld, chat: int) -> None:
    """Each message comes as soon as the answer to the one before it begins to show."""
    for number in range(MESSAGES):
        name = label(chat, number)
        world.asks(f"please {name}", f"user{chat}")
        await world.wait_shown(f"<<{name}>>", f"user{chat}")


async def patient(world: BotWorld, chat: int) -> None:
    """Each message waits in the queue for the one before it."""
    for number in range(MESSAGES):
        world.asks(f"{'/queue ' if number else ''}please {label(chat, number)}", f"user{chat}")


async def crowd(size: int) -> None:
    """Of chat 0 the model says nothing until everybody else is done, and chat 1 loses its first two requests."""
    go_on = trio.Event()

    def says(request: ModelRequest) -> Script:
        name = request.last_user_text.split()[-1]
        script = Script()
        if name == label(0, 0):
            script.holds(go_on)
        return script.says(answer(name), chunks=60, interval=0.1)

    async with open_bot_world(chat={"busy": "interrupt"}, telegram={"edit_interval": 0.5}) as world:
        world.model.default = says
        unlucky = world.telegram.user("user1").id
        world.faults(NeverSeen(), "sendMessage", when=lambda call: call.args["chat_id"] == unlucky, count=2)
        await world.start()
        await patient(world, 0)
        async with trio.open_nursery() as nursery:
            for chat in range(1, size):
                nursery.start_soon(patient if chat % 2 else impatient, world, chat)
        for chat in range(1, size):
            await world.wait_shown(f"<</{label(chat, MESSAGES - 1)}>>", f"user{chat}")
        assert "<<" not in world.shown("user0")
        go_on.set()
        await world.wait_settled()
        talk_verdict(world)
        states = {inbound.text.split()[-1]: inbound.state for inbound in world.ledger.inbounds()}
        for chat in range(size):
            waited = chat % 2 or chat == 0
            first = {states[label(chat, number)] for number in range(MESSAGES - 1)}
            assert first <= ({"answered"} if waited else {"answered", "interrupted"}), states
            assert states[label(chat, MESSAGES - 1)] == "answered"


async def test_b7_a_crowd() -> None:
    """B7, in short: 30 chats, each 3 messages, half of them interrupted."""
    await crowd(30)


@pytest.mark.soak
async def test_b7_the_whole_crowd() -> None:
    """B7: 200 chats."""
    await crowd(200)
