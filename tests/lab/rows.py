"""The rows of the conformance list on the Telegram wire, each as a story that ends when the world is quiet.

A story says what people do and what goes wrong; its last lines say what a person reads then, in every run: also in one
that was killed at any boundary. The promises themselves are judged by the checker, behind each story.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from branches import noted

from hermes_trio.model.base import ToolSpec
from hermes_trio.testing import World
from hermes_trio.testing.faults import Fault
from hermes_trio.testing.people import Person

LONG = 8100
"""Characters of a long answer: two messages and a half of a wire with 4096."""


def foot(row: str) -> str:
    """What a complete answer ends with."""
    return f"<</A-{row}>>"


def answer(row: str, size: int = 0) -> str:
    """A scripted answer: header, markup, filling up to a size, footer."""
    head = f"<<A-{row}>> **bold** and `code`."
    filling = " ".join(f"word{number:03}" for number in range(max(0, size - len(head) - len(foot(row))) // 8))
    return f"{head} {filling} {foot(row)}"


def shown(row: str, size: int = 0) -> str:
    """The same as a person reads it."""
    return answer(row, size).replace("*", "").replace("`", "").replace("  ", " ")


def words(texts: Sequence[str]) -> str:
    """What the messages say together, without white space."""
    return "".join("".join(texts).split())


class Probe:
    """A tool that counts how often it took effect, whatever became of the bot."""

    spec = ToolSpec("probe", "Takes a second.", {"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, arguments: Mapping[str, Any], context: object) -> str:
        """Takes a second."""
        self.runs += 1
        await trio.sleep(1)
        return "probed"


async def ask(world: World, row: str, size: int = 0, **how: Any) -> Person:
    """Alice asks, the model answers in its way, and the world comes to rest; what she reads is the answer, once."""
    alice = world.telegram.user("alice")
    world.model.when(row).says(answer(row, size), **how)
    await alice.says(f"{row}, please")
    await world.quiet()
    reads_once(alice, row, size)
    return alice


def reads_once(person: Person, row: str, size: int = 0) -> None:
    """The answer of this row is on the screen, complete and once."""
    assert words(person.reads()) == words([shown(row, size)]), person.sees()


async def a1_clean(world: World) -> None:
    """A short answer, and nothing goes wrong."""
    await ask(world, "A1")


async def a2_tool_then_answer(world: World) -> None:
    """A call of a tool comes before the answer."""
    alice = world.telegram.user("alice")
    world.model.when("A2").calls("clock", {}, id="call-1").then().says(answer("A2"))
    await alice.says("A2, please")
    await world.quiet()
    reads_once(alice, "A2")


async def a3_long_split(world: World) -> None:
    """A long answer in one chunk is split within the limit."""
    alice = await ask(world, "A3", LONG)
    assert all(len(text) <= 4096 for text in alice.sees())


async def a6_slow_stream(world: World) -> None:
    """Small chunks for two seconds."""
    await ask(world, "A6", chunks=2, interval=0.1)


async def a7_rate_limit(world: World) -> None:
    """The first request with the footer is told to wait."""
    world.inject(Fault("rate_limited", EDIT, contains=foot("A7"), retry_after=0.3))
    await ask(world, "A7")


async def a8_conn_refused(world: World) -> None:
    """Kept connections are closed while idle and new ones refused when the answer is to be shown."""
    alice = world.telegram.user("alice")
    world.model.when("A8").says(answer("A8"), chunks=5, interval=0.3).does(lambda: world.telegram.fake.refuse(2))
    await alice.says("A8, please")
    await world.quiet()
    reads_once(alice, "A8")


async def a9_send_timeout(world: World) -> None:
    """The request with the footer is never seen, and the client times out."""
    world.inject(Fault("never_seen", EDIT, contains=foot("A9")))
    await ask(world, "A9")


async def a10_ack_lost(world: World) -> None:
    """The request with the footer is accepted and its answer lost."""
    world.inject(Fault("ack_lost", EDIT, contains=foot("A10")))
    await ask(world, "A10")


async def a12_stream_timeout_final(world: World) -> None:
    """The final edit of a streamed answer is never seen."""
    world.inject(Fault("never_seen", EDIT, contains=foot("A12")))
    await ask(world, "A12", chunks=4, interval=0.3)


async def a13_stream_ack_lost_final(world: World) -> None:
    """The final edit of a streamed answer is accepted and its answer lost."""
    world.inject(Fault("ack_lost", EDIT, contains=foot("A13")))
    await ask(world, "A13", chunks=4, interval=0.3)


async def a14_stream_timeout_first(world: World) -> None:
    """The first request of the reply is never seen."""
    world.inject(Fault("never_seen", CREATE))
    await ask(world, "A14", chunks=4, interval=0.3)


async def a15_ack_lost_first(world: World) -> None:
    """The first request of the reply is accepted and its answer lost: one stray empty placeholder at most."""
    world.inject(Fault("ack_lost", CREATE))
    alice = await ask(world, "A15", chunks=4, interval=0.3)
    assert len(alice.sees()) <= 2 + world.lives - 1


async def a16_late_accept(world: World) -> None:
    """The request with the footer is accepted 12 s after the client gave up."""
    world.inject(Fault("late_accept", EDIT, contains=foot("A16"), after=22))
    await ask(world, "A16")


async def a18m_black_hole(world: World) -> None:
    """For 60 s every create is accepted and every answer lost."""
    world.telegram.fake.faults.black_hole(60, "sendMessage")
    await ask(world, "A18m")


async def a18d_deleted(world: World) -> None:
    """The user deletes the confirmed answer, the bot restarts: it stays deleted."""
    alice = await ask(world, "A18d")
    for message in alice.screen():
        if message.from_bot:
            await alice.deletes(message)
    await world.restart()
    await world.quiet()
    assert alice.sees() == []


async def a19_outage(world: World) -> None:
    """The platform cannot be reached for 60 s; the answer is there within 10 s of its return."""
    alice = world.telegram.user("alice")
    world.model.when("A19").says(answer("A19"), chunks=9, interval=0.2).does(lambda: world.telegram.fake.outage(60))
    await alice.says("A19, please")
    await trio.sleep(90)
    reads_once(alice, "A19")
    assert world.telegram.fake.history[-1].time < 75 + 10


async def a19_outage_with_restarts(world: World) -> None:
    """The same across three restarts."""
    alice = world.telegram.user("alice")
    world.model.when("A19").says(answer("A19"), chunks=9, interval=0.2).does(lambda: world.telegram.fake.outage(60))
    await alice.says("A19, please")
    for _ in range(3):
        await trio.sleep(12)
        await world.restart()
    await world.quiet()
    reads_once(alice, "A19")
    assert world.telegram.fake.history[-1].time < 75 + 10


async def late_preview(world: World) -> None:
    """A preview lands after the final text: the final text is said once more."""
    world.inject(Fault("late_accept", EDIT, after=22))
    await ask(world, "AL", chunks=4, interval=0.5)


async def uncertain_control(world: World) -> None:
    """The answer of a command is accepted and its acknowledgement lost: a second copy carries the marker."""
    world.inject(Fault("ack_lost", CREATE))
    alice = world.telegram.user("alice")
    await alice.says("/help")
    await world.quiet()
    texts = alice.reads()
    assert sum(not text.startswith("[may be") for text in texts) <= 1, texts
    assert 1 <= len(texts) <= 3, texts


async def two_questions(world: World) -> None:
    """Two people, and one of them asks twice: each is answered, in order."""
    alice, bob = world.telegram.user("alice"), world.telegram.user("bob")
    for row in ("Q1", "Q2", "Q3"):
        world.model.when(row).says(answer(row), chunks=6, interval=0.2)
    await alice.says("Q1, please")
    await bob.says("Q2, please")
    await world.quiet()
    await alice.says("Q3, please")
    await world.quiet()
    assert words(alice.reads()) == words([shown("Q1"), shown("Q3")]), alice.sees()
    reads_once(bob, "Q2")


async def stranger(world: World) -> None:
    """Somebody who may not speak leaves no trace."""
    mallory = world.telegram.user("mallory")
    await mallory.says("let me in")
    await ask(world, "ST")
    assert mallory.sees() == []


async def c1_again_during_the_turn(world: World) -> None:
    """The same update comes again while it is being answered."""
    alice = world.telegram.user("alice")
    world.model.when("C1").says(answer("C1"), chunks=4, interval=0.3)
    update = await alice.says("C1, please")
    await trio.sleep(1)
    await world.telegram.redeliver(update)
    await world.quiet()
    reads_once(alice, "C1")


async def c2_again_after_the_turn(world: World) -> None:
    """The same update comes again when it was answered."""
    alice = world.telegram.user("alice")
    world.model.when("C2").says(answer("C2"))
    update = await alice.says("C2, please")
    await world.quiet()
    await world.telegram.redeliver(update)
    await world.quiet()
    reads_once(alice, "C2")


async def c4_again_after_a_restart(world: World) -> None:
    """The same update comes again after a kill, before and after the reply was delivered."""
    alice = world.telegram.user("alice")
    world.model.when("C4").says(answer("C4"), chunks=4, interval=0.3)
    update = await alice.says("C4, please")
    await trio.sleep(1)
    world.kill()
    await world.telegram.redeliver(update)
    await world.up()
    await world.quiet()
    world.kill()
    await world.telegram.redeliver(update)
    await world.up()
    await world.quiet()
    reads_once(alice, "C4")


async def c5_written_while_down(world: World) -> None:
    """The bot was down while people wrote: each is answered once."""
    alice, bob = world.telegram.user("alice"), world.telegram.user("bob")
    world.model.when("C5a").says(answer("C5a"))
    world.model.when("C5b").says(answer("C5b"))
    world.kill()
    await alice.says("C5a, please")
    await bob.says("C5b, please")
    await trio.sleep(30)
    await world.up()
    await world.quiet()
    reads_once(alice, "C5a")
    reads_once(bob, "C5b")


async def d1_completed_not_committed(world: World) -> None:
    """Killed when the model has finished and the answer is not in the ledger: resumed, with the interruption note."""
    world.inject(Fault("crash", "commit? answer"))
    await ask(world, "D1", chunks=4, interval=0.3)
    assert "interrupted by a restart" in world.model.requests[-1].text


async def d2_committed_not_attempted(world: World) -> None:
    """Killed when the answer is committed and not attempted."""
    world.inject(Fault("crash", "commit! answer"))
    await ask(world, "D2", chunks=4, interval=0.3)


async def d3_send_in_flight(world: World) -> None:
    """Killed when the final request has left and the platform has not seen it."""
    world.inject(Fault("crash", EDIT, contains=foot("D3")))
    await ask(world, "D3", chunks=4, interval=0.3)


async def d4_sent_ack_lost(world: World) -> None:
    """Killed when the platform has accepted the final request."""
    world.inject(Fault("crash", "wire~ editMessageText", contains=foot("D4")))
    await ask(world, "D4", chunks=4, interval=0.3)


async def d5_streamed_not_committed(world: World) -> None:
    """Killed when the screen shows the complete text and the model's stream is still open."""
    world.inject(Fault("crash", "wire~ editMessageText", contains=foot("D5")))
    alice = world.telegram.user("alice")
    world.model.when("D5").says(answer("D5"), chunks=20, interval=0.2).waits(5)
    await alice.says("D5, please")
    await world.quiet()
    reads_once(alice, "D5")


async def d6_placeholder_accepted_id_unknown(world: World) -> None:
    """Killed when the placeholder is accepted and its id unknown: one stray empty placeholder."""
    world.inject(Fault("crash", "wire~ sendMessage"))
    await ask(world, "D6", chunks=4, interval=0.3)


async def d10_quiet_restart(world: World) -> None:
    """A restart with nothing in flight brings no new message and no request to the model."""
    await ask(world, "D10")
    screens = {chat: world.telegram.fake.screen(chat) for chat in world.telegram.fake.chats}
    asked = len(world.model.requests)
    await world.restart()
    await trio.sleep(30)
    await world.quiet()
    assert screens == {chat: world.telegram.fake.screen(chat) for chat in world.telegram.fake.chats}
    assert asked == len(world.model.requests)


CREATE, EDIT = "wire? sendMessage", "wire? editMessageText"

ROWS = {
    story.__name__: noted(story)
    for story in (
        a1_clean,
        a2_tool_then_answer,
        a3_long_split,
        a6_slow_stream,
        a7_rate_limit,
        a8_conn_refused,
        a9_send_timeout,
        a10_ack_lost,
        a12_stream_timeout_final,
        a13_stream_ack_lost_final,
        a14_stream_timeout_first,
        a15_ack_lost_first,
        a16_late_accept,
        a18m_black_hole,
        a18d_deleted,
        a19_outage,
        a19_outage_with_restarts,
        late_preview,
        uncertain_control,
        two_questions,
        c1_again_during_the_turn,
        c2_again_after_the_turn,
        c4_again_after_a_restart,
        c5_written_while_down,
        d1_completed_not_committed,
        d2_committed_not_attempted,
        d3_send_in_flight,
        d4_sent_ack_lost,
        d5_streamed_not_committed,
        d6_placeholder_accepted_id_unknown,
        d10_quiet_restart,
    )
}
