"""Long, streamed, limited and partly refused answers against the real program: section A of the conformance list on
Telegram, as far as more than one message, or the pace of a platform, is in play; and C3.

What is scaled down, and why: times are real here. The platform's limits are ten times as fast as the list's (an edit
in 0.1 s, a minute of 6 s, a ban of 0.5 s), like the program's distance between previews, so that their proportions
stay. Where the list waits between two events, a test waits until the first has been seen: that is shorter, and holds
on a busy machine too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
from attrs import evolve

from hermes_fakes.faults import AckLost, ErrorAfter, ErrorBefore, RateLimited, ResetBefore
from hermes_fakes.telegram import Limits
from hermes_fakes.telegram.values import Accepted, ScreenMessage

from .answers import answer, long_answer
from .audit import LIMIT, PLACEHOLDER, read_screen
from .harness import BotWorld, open_bot_world
from .talk import talk_verdict

FOOTER = "<</A-1>>"
THREE_PARTS = 12_000
IN_PART_2 = "Paragraph 90 "
"""Stands in the second of three parts only."""
FLOOD = 20_000
LIMITS = Limits(edit_interval=0.1, messages_per_minute=20, ban=0.5, minute=6.0)
PLAIN: dict[str, Any] = {"delivery": {"reserve": "off"}, "chat": {"stream": False}}


def pieces(text: str, count: int) -> Sequence[str]:
    """The text in so many chunks of about the same length."""
    size = -(-len(text) // count)
    return [text[start : start + size] for start in range(0, len(text), size)]


def messages(world: BotWorld) -> tuple[ScreenMessage, ...]:
    """The messages of the one copy that alice sees."""
    (copy,) = read_screen(world.telegram.screen(world.telegram.user("alice"))).copies
    return copy.messages


def edits(world: BotWorld, message: ScreenMessage) -> list[Accepted]:
    """What was written into a message, in order."""
    history = world.telegram.history
    return [entry for entry in history if entry.method == "editMessageText" and entry.message_id == message.message_id]


async def finish(world: BotWorld, *, strays: int = 0) -> None:
    """Waits for the end of everything, and judges."""
    await world.wait_settled()
    world.verdict(strays=strays)


async def test_a4_long_streamed() -> None:
    """A4: 8,100 characters in chunks: while the model still streams, the first message is full and stays as it is, and
    the second grows. Twice as fast as the list's 2,500 a second: the previews come ten times as often."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        *first, last = pieces(long_answer("A-1"), 80)
        world.model.when("A-1").says("", chunks=first, interval=0.02).holds(go_on).says(last)
        world.asks("please A-1")
        await world.wait_shown("Paragraph 90 ")
        full, tail = messages(world)
        assert len(full.text) > LIMIT / 2
        go_on.set()
        await finish(world)
        assert messages(world)[0] == full
        grown = [entry.args["text"] for entry in edits(world, tail)]
        assert len(grown) >= 3, "the second message did not grow"
        assert sorted(grown, key=len) == grown


async def test_a5_burst_overflow() -> None:
    """A5: two bursts of 4,500 characters: the first overflows its message at once, long before the second comes."""
    async with open_bot_world() as world:
        await world.start()
        text = long_answer("A-1", 9000)
        second = trio.Event()
        world.model.when("A-1").says(text[:4500]).holds(second).says(text[4500:])
        world.asks("please A-1")
        await world.wait(world.telegram, lambda: len(world.telegram.bot_texts(world.telegram.user("alice"))) == 2)
        await world.wait(world.telegram, lambda: PLACEHOLDER not in [message.text for message in messages(world)])
        second.set()
        await finish(world)


async def test_a11_stream_429_final() -> None:
    """A11: the edit that completes a streamed answer is told to wait: nothing is asked for in that time, and then the
    same message is completed."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(RateLimited(0.5), "editMessageText", contains=FOOTER)
        go_on = trio.Event()
        *first, last = pieces(answer("A-1"), 6)
        world.model.when("A-1").says("", chunks=first, interval=0.02).holds(go_on).says(last)
        world.asks("please A-1")
        await world.wait_shown("Bold words")
        go_on.set()
        await finish(world)
        calls = [call for call in world.telegram.requests if call.method in ("sendMessage", "editMessageText")]
        (refused,) = [number for number, call in enumerate(calls) if call.fault is not None]
        assert calls[refused + 1].time >= calls[refused].time + 0.5
        assert len(calls) == refused + 2
        assert world.count_accepted("sendMessage") == 1


@pytest.mark.parametrize(
    ("effect", "strays"), [(ErrorBefore(502), 0), (ErrorAfter(500), 1)], ids=["502_before", "500_after"]
)
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a17_server_error(method: str, effect: Any, strays: int) -> None:
    """A17: whether a 5xx hid an effect or not, at the first request or at the one with the footer: one copy, unmarked.
    Only a create that took effect leaves an empty placeholder."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(effect, method, contains=FOOTER if method == "editMessageText" else "")
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world, strays=strays if method == "sendMessage" else 0)


@pytest.mark.parametrize(
    "effect",
    [RateLimited(0.3), ErrorBefore(503), ResetBefore(), AckLost()],
    ids=["rate_limit", "503", "reset", "ack_lost"],
)
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a18_second_part(method: str, effect: Any) -> None:
    """A18, D-04: whatever happens to the second of three parts, every part is there once and in order."""
    async with open_bot_world() as world:
        await world.start()
        if method == "sendMessage":
            world.faults(effect, method, nth=2)
        else:
            world.faults(effect, method, contains=IN_PART_2)
        world.answers("A-1", long_answer("A-1", THREE_PARTS))
        world.asks("please A-1")
        await finish(world, strays=int(method == "sendMessage" and isinstance(effect, AckLost)))
        assert len(messages(world)) == 3


@pytest.mark.parametrize("settings", [{}, PLAIN], ids=["reserved", "plain"])
async def test_a18r_refused_part(settings: Mapping[str, Any]) -> None:
    """A18r, D-04: a part that is refused for its content, as plain text too, is a short note; the others stand once and
    in order. Nothing but the missing text is wrong, and a restart does not try again."""
    async with open_bot_world(**settings) as world:
        await world.start()
        refusal = ErrorBefore(400, "Bad Request: text must be non-empty")
        fault = world.faults(refusal, contains=IN_PART_2, count=None)
        whole = long_answer("A-1", THREE_PARTS)
        world.answers("A-1", whole)
        world.asks("please A-1")
        await world.wait_settled()
        first, note, last = messages(world)
        assert "part 2" in note.text
        assert len(note.text) < 100
        assert first.text.startswith("<<A-1>>")
        assert last.text.endswith(FOOTER)
        assert fault.hits >= 2, "it was not tried as plain text"
        assert fault.hits <= 4
        hits = fault.hits
        await world.restart()
        await world.wait_quiet()
        assert fault.hits == hits
        (complaint,) = world.complaints()
        assert complaint.startswith("A-1 is not its stored text"), complaint


def asks_for_a_flood(world: BotWorld) -> None:
    """Alice asks; 20,000 characters stream for about two seconds."""
    world.model.when("A-1").says("", chunks=pieces(long_answer("A-1", FLOOD), 60), interval=0.03)
    world.asks("please A-1")


def previews_refused(world: BotWorld) -> list[str]:
    """The texts of the refused edits that are no final text of a message."""
    final = {message.text for message in messages(world)}
    refused = [violation for violation in world.telegram.violations if violation.method == "editMessageText"]
    return [violation.text for violation in refused if violation.text not in final]


def asked_for_in_a_ban(world: BotWorld) -> list[str]:
    """The requests that would have changed the screen while the platform had said to wait."""
    bans = [(each.time, each.time + each.retry_after - LIMITS.slack) for each in world.telegram.violations]
    return [
        f"{call.method} {call.text[:40]!r}"
        for call in world.telegram.requests
        if call.method in ("sendMessage", "editMessageText", "deleteMessage")
        and any(start < call.time < end for start, end in bans)
    ]


async def test_a20_flood() -> None:
    """A20, L-03: 20,000 streamed characters within the platform's limits: one complete copy, no preview is too many or
    says what is there already, and only the final, which does not wait for the pace of previews, is refused once at
    most."""
    async with open_bot_world(limits=LIMITS) as world:
        await world.start()
        asks_for_a_flood(world)
        await finish(world)
        assert len(messages(world)) >= 5
        assert previews_refused(world) == []
        assert len(world.telegram.violations) <= 1
        assert asked_for_in_a_ban(world) == []
        for message in messages(world):
            said = [entry.args["text"] for entry in edits(world, message)]
            assert all(before != after for before, after in pairwise(said))


async def test_a20_a_hasty_program() -> None:
    """A20, L-03: where previews are configured three times as fast as the platform allows, each that is refused makes
    them rarer: two at most in a stream of four seconds, and the ban is waited out every time. (The fake says whole
    seconds to wait, so there is time for four refusals where the distance stays as it was.)"""
    limits = evolve(LIMITS, edit_interval=0.3, ban=0.3)
    async with open_bot_world(limits=limits, telegram={"edit_interval": 0.1}) as world:
        await world.start()
        world.model.when("A-1").says("", chunks=pieces(long_answer("A-1", 3000), 100), interval=0.04)
        world.asks("please A-1")
        await finish(world)
        refused = previews_refused(world)
        assert refused != [], "the limit was never met"
        assert len(refused) <= 2
        assert len(world.telegram.violations) <= 3
        assert asked_for_in_a_ban(world) == []


async def test_a20_flood_behind_others() -> None:
    """A20: commands have used up most of the 20 messages of a minute when 20,000 characters stream: the rest of them
    waits, each message is refused once at most, and all are there in the end."""
    async with open_bot_world(limits=LIMITS) as world:
        await world.start()
        for _ in range(17):
            world.asks("/whoami")
        asks_for_a_flood(world)
        await world.wait_settled()
        talk_verdict(world)
        refused = [violation.method for violation in world.telegram.violations]
        assert "sendMessage" in refused, "the limit was never met"
        assert refused.count("sendMessage") <= 3
        assert previews_refused(world) == []
        assert asked_for_in_a_ban(world) == []


async def test_c3_again_after_a_reconnect() -> None:
    """C3, I-01: in the middle of a turn and after it the adapter loses its connection and comes back by itself, and the
    same message is delivered again: nothing new."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        text = answer("A-1")
        world.model.when("A-1").says(text[:200]).holds(go_on).says(text[200:])
        asked = world.asks("please A-1")
        await world.wait_shown("Bold words")
        await lose_the_connection(world)
        await world.redeliver(asked)
        go_on.set()
        await world.wait_settled()
        await lose_the_connection(world)
        await world.redeliver(asked)
        await world.wait_quiet()
        world.verdict()
        assert len(world.lives) == 1


async def lose_the_connection(world: BotWorld) -> None:
    """Everything that is open ends, new connections are refused for a moment; returns when the program is back."""
    greetings = world.count("getMe")
    world.telegram.outage(0.5)
    await world.wait(world.telegram, lambda: world.count("getMe") > greetings)
