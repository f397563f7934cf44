"""Cases of the sections "split+format", "inbound dedup", "rate-limit", "platform protocol" and "security"."""

from __future__ import annotations

import logging

import pytest
import trio
from stories import EDIT, MARKED, answer, ask, read, words

from hermes_fakes.faults import AnswerWith, ErrorBefore, Garbage, HtmlError, NeverSeen, RateLimited
from hermes_fakes.http import Reply
from hermes_trio.testing import World, run_world, verify_crashes
from hermes_trio.testing.faults import Fault

TOKEN = "fake-token"

AWKWARD = [
    "one_underscore only",
    "**bold** then (>*_*)> and /path/to",
    "bare ( ) { } . ! - # + = | outside of code",
    "[x])",
    "<?php echo 1; ?>",
    "<!DOCTYPE html>\n<b>no</b>",
    "a & b < c > d",
    "*a _b* c_ crossing",
    "```python\nprint('x')",
    "`unclosed",
    "vector<int> and List[str]",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_arrives_as_it_is(text: str) -> None:
    """F-05: nothing that a model writes is refused by the platform's parser, lost or doubled."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.says(text)
        await alice.says("F5, please")
        await world.quiet()
        assert len(alice.reads()) == 1
        for word in (
            "underscore",
            "path",
            "outside",
            "x",
            "php",
            "html",
            "crossing",
            "print",
            "unclosed",
            "vector<int>",
        ):
            assert (word in alice.reads()[0]) == (word in text)
        assert not [
            c for c in world.telegram.fake.requests if c.method == "editMessageText" and c.outcome != "accepted"
        ]

    run_world(story)


def test_refused_formatting_is_sent_once_as_plain_text() -> None:
    """F-05: a parser that refuses the entities gets the same text without them, in the same message."""

    async def story(world: World) -> None:
        refusal = ErrorBefore(400, "Bad Request: can't parse entities: unsupported start tag")
        world.telegram.fake.faults.add(
            refusal, "editMessageText", when=lambda call: "entities" in call.args, count=None
        )
        alice = await ask(world, "F5")
        assert all(message.entities == () for message in alice.screen() if message.from_bot)

    verify_crashes(story)


def test_astral_text_keeps_every_limit() -> None:
    """F-04: 4,500 characters of two UTF-16 units each: every message is within the limit, and nothing is torn."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        text = "x" + "\N{PARTY POPPER}" * 4500
        world.model.says(text)
        await alice.says("F4, please")
        await world.quiet()
        assert "".join(alice.reads()) == text
        assert all(len(part.encode("utf-16-le")) // 2 <= 4096 for part in alice.reads())

    run_world(story)


def test_a_wait_is_kept_and_concerns_nobody_else() -> None:
    """L-01: 429 with 30 s: not asked again before, the others are answered at once, one copy, unmarked."""

    async def story(world: World) -> None:
        alice, bob = world.telegram.user("alice"), world.telegram.user("bob")
        await alice.says("hello")
        await bob.says("hello")
        await world.quiet()
        world.telegram.fake.faults.add(
            RateLimited(30), "sendMessage", when=lambda c: c.args["chat_id"] == alice.user.chat
        )
        began = trio.current_time()
        world.model.when("L1").says(answer("L1"))
        await alice.says("L1, please")
        await trio.sleep(1)
        await bob.says("L1, please")
        await world.telegram.fake.wait_for(lambda: words(bob.reads()[1:]) == read("L1"))
        assert trio.current_time() - began < 5
        await world.quiet()
        assert words(alice.reads()[1:]) == read("L1")
        times = [c.time for c in world.telegram.fake.requests if c.method == "sendMessage" and c.time > began]
        mine = [
            c.time
            for c in world.telegram.fake.requests
            if c.method == "sendMessage" and c.time > began and c.args["chat_id"] == alice.user.chat
        ]
        assert times
        assert mine[1] - mine[0] >= 30

    run_world(story)


@pytest.mark.parametrize("retry_after", [0.3, 900.0])
def test_short_and_long_waits(retry_after: float) -> None:
    """L-01: a fraction of a second, and a quarter of an hour: the answer comes when it may."""

    async def story(world: World) -> None:
        world.inject(Fault("rate_limited", EDIT, retry_after=retry_after))
        began = trio.current_time()
        await ask(world, "L1")
        assert trio.current_time() - began >= retry_after

    run_world(story)


def test_a_wait_that_names_no_time() -> None:
    """L-01: a 429 without any number is waited out by some pause, and is no loss."""

    async def story(world: World) -> None:
        world.telegram.fake.faults.add(AnswerWith(Reply(429, b"<html>slow down</html>")), "editMessageText")
        await ask(world, "L1")

    run_world(story)


def test_a_deaf_poll_is_replaced() -> None:
    """T-01: polls are taken and never answered for two minutes: what was written meanwhile is answered once each."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        await ask(world, "first")
        world.telegram.fake.faults.add(NeverSeen(), "getUpdates", count=None, seconds=120)
        world.model.when("T1").says(answer("T1"))
        await alice.says("T1, please")
        await world.quiet()
        assert words(alice.reads()) == read("first") + read("T1")

    run_world(story)


def test_a_second_poller_is_given_way() -> None:
    """T-02: when another program polls with the token, this one steps back, and answers what it then gets, once."""

    async def story(world: World) -> None:
        await ask(world, "before")
        conflict = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
        world.telegram.fake.faults.add(ErrorBefore(409, conflict), "getUpdates", count=3)
        polls = len([call for call in world.telegram.fake.requests if call.method == "getUpdates"])
        await trio.sleep(60)
        more = [call for call in world.telegram.fake.requests if call.method == "getUpdates"][polls:]
        assert len(more) <= 8, "it fights"
        alice = world.telegram.user("alice")
        world.model.when("T2").says(answer("T2"))
        await alice.says("T2, please")
        await world.quiet()
        assert words(alice.reads()) == read("before") + read("T2")

    run_world(story)


FILES = [
    "MEDIA:/etc/passwd",
    "![x](file:///etc/passwd)",
    "see /home/me/.ssh/id_rsa",
    "`/etc/shadow` and ../../secret",
    "[file](https://example.com/a.png)",
    "attach://state.db",
]


@pytest.mark.parametrize("text", FILES)
def test_model_text_attaches_no_file(text: str) -> None:
    """X-02: whatever path a model names, it stays text: nothing is uploaded and nothing of the machine is read."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.says(f"here: {text}")
        await alice.says("X2, please")
        await world.quiet()
        assert alice.reads()[0].startswith("here:")
        assert "root:" not in alice.reads()[0]
        used = {call.method for call in world.telegram.fake.requests}
        assert used <= {"getMe", "getUpdates", "sendMessage", "editMessageText", "sendChatAction", "setMyCommands"}
        assert all(message.kind == "text" for message in alice.screen())

    run_world(story)


def test_the_token_is_nowhere(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """X-04: under every kind of trouble neither a log, the database nor a chat holds the token."""
    caplog.set_level(logging.DEBUG)

    async def story(world: World) -> None:
        faults = world.telegram.fake.faults
        for effect in (
            NeverSeen(),
            Garbage(),
            Garbage(http=True),
            HtmlError(404),
            HtmlError(502),
            AnswerWith(Reply(302, b"", (("location", f"http://elsewhere/bot123456:{TOKEN}/x"),))),
            ErrorBefore(400, f"Bad Request: no such path /bot123456:{TOKEN}/editMessageText"),
        ):
            faults.add(effect, "editMessageText", nth=2)
            faults.add(effect, "getUpdates", nth=2)
        alice = world.telegram.user("alice")
        for number in range(3):
            world.model.when(f"X4-{number}").says(answer(f"X4-{number}"), chunks=6, interval=0.5)
            await alice.says(f"X4-{number}, please")
            await trio.sleep(200)
            world.telegram.fake.outage(10)
            await world.quiet()
        assert TOKEN not in "\n".join(world.disk.connection.iterdump())
        assert TOKEN not in "\n".join(alice.sees())
        assert TOKEN not in repr(world.errors)

    run_world(story)
    out, err = capfd.readouterr()
    assert TOKEN not in out + err
    assert not [record for record in caplog.records if TOKEN in f"{record.getMessage()} {record.__dict__}"]


def test_what_may_have_arrived_is_marked() -> None:
    """D-01: a create with its text is answered 502, which says nothing: the only copy carries the marker."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.inject(Fault("error_before", "wire? sendMessage", status=502))
        await alice.says("/whoami")
        await world.quiet()
        [text] = alice.reads()
        assert text.startswith(MARKED)

    run_world(story)
