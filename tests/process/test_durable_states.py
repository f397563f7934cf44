"""What belongs together becomes durable together: judged on every state that the database file ever had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hermes_fakes.faults import AckLost

from .answers import answer, long_answer
from .audit import Ledger
from .harness import BotWorld, open_bot_world
from .history import durable_states


async def play(world: BotWorld, killed: bool) -> None:
    """Four people ask; a tool is called, an answer is long, an acknowledgement is lost, the program is killed."""
    await world.start()
    world.answers("A-1")
    world.model.when("A-2").calls("clock", {}).then().says(answer("A-2"))
    world.answers("A-3", long_answer("A-3"), chunks=300, interval=0.02)
    world.model.when("A-4").fails(400)
    world.faults(AckLost(), contains="<</A-1>>")
    for number in range(1, 5):
        world.asks(f"please A-{number}", f"user{number}")
    if killed:
        await world.wait_rows(lambda ledger: ledger.committed("A-3"))
    else:
        await world.wait_settled()
    await world.kill()


def broken(ledger: Ledger, world: BotWorld) -> Iterator[str]:
    """What cannot be true of any state that a crash may leave."""
    replies = {row["turn"]: row for row in ledger.obligations() if row["kind"] == "reply"}
    stored = {(inbound.chat, inbound.native_id) for inbound in ledger.inbounds()}
    for inbound in ledger.inbounds():
        if inbound.state == "queued":
            continue
        reply = replies.get(inbound.turn)
        if inbound.users != 1 or reply is None:
            yield f"{inbound.text}: {inbound.users} user rows, and a reply is {'not ' * (reply is None)}owed"
        elif inbound.state == "running":
            if inbound.answers or reply["state"] != "streaming":
                yield f"{inbound.text} runs with {len(inbound.answers)} answers; its reply is {reply['state']}"
        elif reply["state"] == "streaming" or reply["parts"] == "[]":
            yield f"{inbound.text} is {inbound.state}, and nothing is owed for it"
        elif inbound.state == "answered" and inbound.answers != (reply["content"],):
            yield f"{inbound.text} is answered by {inbound.answers}, and what is owed is {reply['content']!r}"
    for row in ledger.query("SELECT value FROM cursors") if ledger.ready() else ():
        for number, update in world.telegram.updates.all.items():
            message = update["message"]
            if number < int(row["value"]) and (str(message["chat"]["id"]), str(message["message_id"])) not in stored:
                yield f"update {number} counts as received and is not stored"


@pytest.mark.parametrize("killed", [False, True], ids=["whole", "killed"])
async def test_each_durable_state_is_whole(killed: bool) -> None:
    """I1, I2: whatever commit a crash falls behind, an answer and its debt, a message and its cursor are both there."""
    async with open_bot_world() as world:
        await play(world, killed)
        looked = 0
        with durable_states(world.ledger.path) as states:
            for state in states:
                complaints = list(broken(state, world))
                assert not complaints, f"after commit {looked}: {complaints}"
                looked += 1
        assert looked > 20
