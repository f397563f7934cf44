"""The runtime in somebody's own program: ask, send, resend, drop, on a real database file."""

from __future__ import annotations

import errno
import io
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
import trio
from embedded import MemoryChat, ScriptedModel, calls, config_in, said

from hermes_trio import (
    Accepted,
    AskFailed,
    AskInterrupted,
    LedgerClosed,
    LedgerLocked,
    Message,
    ModelError,
    Outcome,
    Reason,
    Refused,
    RequestRefused,
    Runtime,
    SendInterrupted,
    Tool,
    ToolContext,
    Unknown,
    open_runtime,
    tool,
)
from hermes_trio.delivery.view import Wire


@asynccontextmanager
async def running(
    tmp_path: Path,
    model: ScriptedModel | None = None,
    service: MemoryChat | None = None,
    tools: tuple[Tool, ...] = (),
    **tables: Mapping[str, Any],
) -> AsyncIterator[Runtime]:
    """One life of a runtime; it ends without a drain, as by a crash. Fails after ten seconds."""
    platforms = {"memory": service or MemoryChat()}
    with trio.fail_after(10):
        async with open_runtime(
            config_in(tmp_path, **tables), model=model or ScriptedModel(), tools=tools, platforms=platforms
        ) as runtime:
            yield runtime


def rows(tmp_path: Path, statement: str) -> list[tuple[Any, ...]]:
    """What the database holds."""
    connection = sqlite3.connect(f"file:{tmp_path / 'state.db'}?mode=ro", uri=True)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


# --- ask --------------------------------------------------------------------------------------------------------


async def test_ask_is_a_turn_like_any_other(tmp_path: Path) -> None:
    """The answer comes back, and the ledger holds the message, its turn, the answer and its delivery, once each."""
    async with running(tmp_path) as runtime:
        assert await runtime.ask("one **bold** question", key="k") == "answer to one **bold** question"
        await runtime.wait_idle()
    assert rows(tmp_path, "SELECT account, native_id, text, state FROM inbox") == [
        ("@script", "k", "one **bold** question", "answered")
    ]
    assert rows(tmp_path, "SELECT state FROM turns") == [("answered",)]
    assert rows(tmp_path, "SELECT role, content FROM messages") == [
        ("user", "one **bold** question"),
        ("assistant", "answer to one **bold** question"),
    ]
    assert rows(tmp_path, "SELECT kind, content, state FROM delivery_obligations") == [
        ("reply", "answer to one **bold** question", "delivered")
    ]


async def test_a_key_is_asked_once(tmp_path: Path) -> None:
    """The same key has the same answer, at once, later, and after a restart; the model is asked one time."""
    model = ScriptedModel()
    answers = []
    async with running(tmp_path, model) as runtime:

        async def ask(text: str) -> None:
            answers.append(await runtime.ask(text, key="k"))

        async with trio.open_nursery() as nursery:
            for text in ("q", "q", "other words"):
                nursery.start_soon(ask, text)
        await ask("later")
    async with running(tmp_path, model) as runtime:
        await ask("after a restart")
    assert len(model.requests) == 1
    assert len(set(answers)) == 1
    assert len(answers) == 5


async def test_an_answer_survives_a_crash(tmp_path: Path) -> None:
    """Killed while the model answers, the next life finishes the turn by itself, and the key has its answer."""
    model = ScriptedModel()
    model.gate = trio.Event()
    async with running(tmp_path, model) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.ask, "q")
            await model.asked.wait()
            nursery.cancel_scope.cancel()  # the question stays asked, and its turn goes on
    second = ScriptedModel(lambda messages: said(f"{len(messages)} messages"))
    async with running(tmp_path, second) as runtime:
        # The system's, the first question, its answer, and this one: so the first was answered before.
        assert await runtime.ask("p", key="p") == "4 messages"
    assert len(second.requests) == 2
    assert "interrupted by a restart" in second.requests[0][-1].content
    assert rows(tmp_path, "SELECT text, state FROM inbox ORDER BY id") == [("q", "answered"), ("p", "answered")]


async def test_a_crash_before_the_delivery_costs_no_second_turn(tmp_path: Path) -> None:
    """What was answered and not delivered is not answered again: the next life only delivers it."""
    model = ScriptedModel()
    async with running(tmp_path, model) as runtime:
        await runtime.ask("q", key="k")
        await runtime.wait_idle()
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("UPDATE delivery_obligations SET state = 'attempting', due_at = 0")
    connection.execute(
        "UPDATE posts SET state = 'intended', message_id = NULL, shown = NULL, body = '{\"text\": \"answer to q\"}'"
    )
    connection.commit()
    connection.close()
    async with running(tmp_path, model) as runtime:
        assert await runtime.ask("q", key="k") == "answer to q"
        await runtime.wait_idle()
    assert len(model.requests) == 1
    assert rows(tmp_path, "SELECT state FROM delivery_obligations") == [("delivered",)]
    assert rows(tmp_path, "SELECT state, marked FROM posts") == [("live", 0)]


async def test_sessions_remember_themselves_only(tmp_path: Path) -> None:
    """Questions of one session see those before them; another session sees nothing of it."""
    model = ScriptedModel(lambda messages: said(f"{sum(m.role == 'user' for m in messages)} so far"))
    async with running(tmp_path, model) as runtime:
        assert await runtime.ask("a") == "1 so far"
        assert await runtime.ask("b") == "2 so far"
        assert await runtime.ask("a", session="other", key="k") == "1 so far"
        assert await runtime.ask("a", session="third", key="k") == "1 so far"
    assert len(model.requests) == 4


async def test_questions_of_a_session_wait_for_each_other(tmp_path: Path) -> None:
    """A second question never interrupts the first, whatever the busy mode: each has its own answer."""
    model = ScriptedModel()
    answers: dict[str, str] = {}
    async with running(tmp_path, model, chat={"busy": "interrupt"}) as runtime:

        async def ask(text: str) -> None:
            answers[text] = await runtime.ask(text)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(ask, f"q{number}")
    assert answers == {f"q{number}": f"answer to q{number}" for number in range(5)}


@pytest.mark.parametrize("text", ["/new", "/stop", "!help", "/unknown words", "/queue x"])
async def test_a_question_is_never_a_command(tmp_path: Path, text: str) -> None:
    """What a program asks reaches the model as it is, also when it begins as a command would."""
    async with running(tmp_path) as runtime:
        assert await runtime.ask(text) == f"answer to {text}"


async def test_a_question_needs_no_access_rule(tmp_path: Path) -> None:
    """The program itself may ask where nobody else may; and nobody else may because of that."""
    chat = MemoryChat()
    model = ScriptedModel()
    async with running(tmp_path, model, chat, access={"allow": []}) as runtime:
        assert await runtime.ask("q") == "answer to q"
        await chat.hears("q", 1)
        await runtime.wait_idle()
    assert len(model.requests) == 1
    assert chat.shown == []


async def test_a_failed_turn_is_an_error(tmp_path: Path) -> None:
    """No answer raises AskFailed with the words that a user would have seen, the same again for the same key."""

    def fail(messages: tuple[Message, ...]) -> Any:
        raise ModelError("no credit left", retryable=False)

    model = ScriptedModel(fail)
    async with running(tmp_path, model) as runtime:
        for _ in range(2):
            with pytest.raises(AskFailed, match="could not be reached or refused") as caught:
                await runtime.ask("q", key="k")
            assert "no credit left" in caught.value.detail
        model.say = lambda messages: said("well again")
        assert await runtime.ask("q", key="k2") == "well again"
    assert len(model.requests) == 2


async def test_a_drain_lets_answers_come_and_then_says_that_it_ends(tmp_path: Path) -> None:
    """A question that runs is answered within the drain; one that does not is interrupted, and goes on later."""
    model = ScriptedModel()
    model.gate = trio.Event()
    outcome: list[object] = []
    async with running(tmp_path, model) as runtime:

        async def ask(key: str) -> None:
            try:
                outcome.append(await runtime.ask(key, key=key))
            except AskInterrupted as error:
                outcome.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "slow")
            await model.asked.wait()
            await runtime.drain(0.1)
        with pytest.raises(AskInterrupted):
            await runtime.ask("late", key="late")
    assert [type(each) for each in outcome] == [AskInterrupted]
    async with running(tmp_path) as runtime:
        assert (await runtime.ask("slow", key="slow")).startswith("answer to slow")
        assert await runtime.ask("late", key="late") == "answer to late"
    assert rows(tmp_path, "SELECT text, state FROM inbox ORDER BY id") == [("slow", "answered"), ("late", "answered")]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"text": " \n"}, "the text is blank"),
        ({"text": "q", "session": "a b"}, "'a b' is not a session"),
        ({"text": "q", "session": "a/b"}, "'a/b' is not a session"),
        ({"text": "q", "session": ""}, "'' is not a session"),
        ({"text": "q", "key": ""}, "'' is not a key"),
        ({"text": "q", "key": "k" * 201}, "is not a key"),
    ],
)
async def test_what_cannot_be_asked_is_refused(tmp_path: Path, how: dict[str, str], words: str) -> None:
    """A blank question, a session or a key that is none: RequestRefused with the reason, and nothing is stored."""
    async with running(tmp_path) as runtime:
        with pytest.raises(RequestRefused, match=words):
            await runtime.ask(**how)
    assert rows(tmp_path, "SELECT * FROM inbox") == []


async def test_own_tools_are_used(tmp_path: Path) -> None:
    """A tool of one's own is offered to the model, runs with its context, and its result is what the model reads."""

    @tool
    async def lookup(name: str, context: ToolContext) -> str:
        """Looks a name up."""
        return f"{name} for {context.address}"

    def say(messages: tuple[Message, ...]) -> Any:
        if messages[-1].role == "tool":
            return said(f"found: {messages[-1].content}")
        return calls("lookup", '{"name": "x"}' if "good" in messages[-1].content else '{"nam": 1}')

    model = ScriptedModel(say)
    async with running(tmp_path, model, tools=(lookup,)) as runtime:
        assert await runtime.ask("good") == "found: x for @script:default"
        assert "name is missing" in await runtime.ask("bad", session="other")
    assert [spec.name for spec in model.tools] == ["lookup"]


async def test_after_the_block_nothing_is_asked(tmp_path: Path) -> None:
    """A runtime that has ended says so."""
    async with running(tmp_path) as runtime:
        pass
    with pytest.raises(LedgerClosed):
        await runtime.ask("q")
    with pytest.raises(LedgerClosed):
        await runtime.send("memory:room", "x")


async def test_two_runtimes_do_not_share_a_database(tmp_path: Path) -> None:
    """The second one on the same directory is refused, as itself and not wrapped; the first is not harmed."""
    async with running(tmp_path) as runtime:
        with pytest.raises(LedgerLocked):
            async with running(tmp_path):
                pass
        assert await runtime.ask("q") == "answer to q"


# --- send -------------------------------------------------------------------------------------------------------


async def test_send_once_for_a_key(tmp_path: Path) -> None:
    """However often and however concurrently a key is sent, also after a restart, one message is seen."""
    chat = MemoryChat()
    async with running(tmp_path, service=chat) as runtime:

        async def send(wait: bool) -> None:
            assert (await runtime.send("memory:room", "**green**", key="b1", wait=wait)).id == "send.memory:room.b1"

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(send, number % 2 == 0)
        sent = await runtime.send("memory:room", "other words", key="b1", wait=True)
        assert (sent.state, sent.text, sent.ended) == ("delivered", "**green**", True)
    async with running(tmp_path, service=chat) as runtime:
        assert (await runtime.send("memory:room", "green", key="b1")).state == "delivered"
        await runtime.wait_idle()
    assert chat.shown == [("room", "green")]


async def test_a_key_counts_at_its_address(tmp_path: Path) -> None:
    """The same key at two addresses is two messages; without a key every call is a message of its own."""
    chat = MemoryChat()
    async with running(tmp_path, service=chat) as runtime:
        await runtime.send("memory:a", "x", key="k", wait=True)
        await runtime.send("memory:b", "x", key="k", wait=True)
        await runtime.send("memory:a", "y", wait=True)
        await runtime.send("memory:a", "y", wait=True)
    assert chat.shown == [("a", "x"), ("b", "x"), ("a", "y"), ("a", "y")]


async def test_send_is_durable_when_it_returns(tmp_path: Path) -> None:
    """What send returned for is delivered by the next life when this one dies before anything left."""
    chat = MemoryChat()
    chat.outcome = lambda text: Refused(Reason.NOTHING_LEFT)
    async with running(tmp_path, service=chat) as runtime:
        sent = await runtime.send("memory:room", "precious", key="k")
        assert not sent.ended
        with trio.move_on_after(0.3):
            await runtime.send("memory:room", "precious", key="k", wait=True)
            raise AssertionError("it cannot have ended")
    chat = MemoryChat()
    async with running(tmp_path, service=chat) as runtime:
        assert (await runtime.send("memory:room", "precious", key="k", wait=True)).state == "delivered"
    assert chat.shown == [("room", "precious")]


async def test_a_long_text_is_sent_in_parts(tmp_path: Path) -> None:
    """A text beyond the wire's limit arrives whole, in order."""
    chat = MemoryChat()
    text = " ".join(f"word{number}" for number in range(500))
    async with running(tmp_path, service=chat) as runtime:
        assert (await runtime.send("memory:room", text, wait=True)).state == "delivered"
    assert len(chat.shown) > 3
    assert " ".join(part for _, part in chat.shown) == text


@pytest.mark.parametrize(
    ("address", "text", "key", "words"),
    [
        ("room", "x", None, "'room' is not an address"),
        ("memroy:room", "x", None, "there is no account 'memroy'; there are: memory"),
        ("@script:default", "x", None, "there is no account '@script'"),
        ("memory:a b", "x", None, "is not an address"),
        ("memory:a\x00", "x", None, "is not an address"),
        ("memory:room", "", None, "the text is blank"),
        ("memory:room", "\x00 \n", None, "the text is blank"),
        ("memory:room", "x" * 100_001, None, "100001 characters"),
        ("memory:room", "x", "a\nb", "is not a key"),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    tmp_path: Path, address: str, text: str, key: str | None, words: str
) -> None:
    """An address, account, text or key that is none: RequestRefused with the reason, and nothing is stored."""
    async with running(tmp_path) as runtime:
        with pytest.raises(RequestRefused, match=words):
            await runtime.send(address, text, key=key)
    assert rows(tmp_path, "SELECT * FROM delivery_obligations") == []


async def test_a_cancelled_wait_changes_nothing(tmp_path: Path) -> None:
    """Who stops waiting stops only that: the message arrives, and the key finds it."""
    chat = MemoryChat()
    gate: list[Outcome] = [Refused(Reason.RATE_LIMITED, retry_after=0.3)]
    chat.outcome = lambda text: gate.pop() if gate else Accepted("1")
    async with running(tmp_path, service=chat) as runtime:
        with trio.move_on_after(0.05) as scope:
            await runtime.send("memory:room", "x", key="k", wait=True)
        assert scope.cancelled_caught
        assert (await runtime.send("memory:room", "x", key="k", wait=True)).state == "delivered"
    assert chat.shown == [("room", "x")]


# --- the operator -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def with_held(tmp_path: Path, chat: MemoryChat) -> AsyncIterator[tuple[Runtime, str]]:
    """A runtime with one held delivery, of which a copy may be on screen."""
    accepted, chat.outcome = chat.outcome, lambda text: Unknown("lost")
    async with running(tmp_path, service=chat, delivery={"on_uncertain": "hold"}) as runtime:
        await chat.connected.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_show_life, chat)
            held = await runtime.send("memory:room", "maybe", key="k", wait=True)
            nursery.cancel_scope.cancel()
        assert held.state == "held"
        chat.outcome = accepted
        yield runtime, held.id


async def _show_life(chat: MemoryChat) -> None:
    assert chat.receiver is not None
    while True:
        chat.receiver.alive()
        await trio.sleep(0.01)


async def test_a_held_delivery_is_resent_with_a_mark(tmp_path: Path) -> None:
    """The operator's release makes one more copy, which says that it may be one."""
    chat = MemoryChat()
    async with with_held(tmp_path, chat) as (runtime, held):
        assert [each.id for each in await runtime.deliveries()] == [held]
        again = await runtime.resend(held, wait=True)
        assert (again.id, again.state) == (held, "delivered")
        assert await runtime.deliveries() == ()
        with pytest.raises(RequestRefused, match="is delivered; only what is held or abandoned can be resent"):
            await runtime.resend(held)
    assert chat.shown == [("room", "[may be a duplicate] maybe")]


async def test_a_held_delivery_is_dropped(tmp_path: Path) -> None:
    """What is dropped is never sent, leaves the list, and stands among everything with its reason."""
    chat = MemoryChat()
    async with with_held(tmp_path, chat) as (runtime, held):
        assert (await runtime.drop(held)).state == "abandoned"
        assert await runtime.deliveries() == ()
        assert [each.reason for each in await runtime.deliveries(everything=True)] == ["dropped by the operator"]
        await runtime.wait_idle()
    assert chat.shown == []


async def test_an_abandoned_delivery_is_resent_as_a_new_one(tmp_path: Path) -> None:
    """What was refused for good is owed anew by its stored text, unmarked, under an id that says what it repeats."""
    chat = MemoryChat()
    chat.outcome = lambda text: Refused(Reason.DEAD_ADDRESS)
    async with running(tmp_path, service=chat) as runtime:
        first = await runtime.send("memory:room", "**news**", key="k", wait=True)
        assert (first.state, first.reason) == ("abandoned", "dead address")
        again = await runtime.resend(first.id, wait=True)
        assert (again.id, again.state) == (f"resend.{first.id}.1", "abandoned")
        assert [each.id for each in await runtime.deliveries()] == [again.id]
        chat.outcome = lambda text: Accepted("1")
        third = await runtime.resend(first.id, wait=True)
        assert (third.id, third.state, third.text) == (f"resend.{first.id}.2", "delivered", "**news**")
        await runtime.drop(again.id)
        assert await runtime.deliveries() == ()
    assert chat.shown == [("room", "news")]


async def test_a_resend_of_what_may_be_visible_is_marked(tmp_path: Path) -> None:
    """An abandoned delivery of which a copy may be on screen is repeated with the mark, on each part."""
    chat = MemoryChat()
    async with with_held(tmp_path, chat) as (runtime, held):
        await runtime.drop(held)
        assert (await runtime.resend(held, wait=True)).state == "delivered"
    assert chat.shown == [("room", "[may be a duplicate] maybe")]


async def test_a_resend_under_way_is_not_doubled(tmp_path: Path) -> None:
    """Asked twice while the first resend has not ended, the second is refused and names the first."""
    chat = MemoryChat()
    chat.outcome = lambda text: Refused(Reason.DEAD_ADDRESS)
    async with running(tmp_path, service=chat) as runtime:
        first = await runtime.send("memory:room", "news", key="k", wait=True)
        chat.outcome = lambda text: Refused(Reason.NOTHING_LEFT)
        again = await runtime.resend(first.id)
        with pytest.raises(RequestRefused, match=f"is being resent already, as {again.id}"):
            await runtime.resend(first.id)


@pytest.mark.parametrize("act", [Runtime.resend, Runtime.drop])
async def test_only_what_waits_for_the_operator_is_acted_on(tmp_path: Path, act: Callable[..., Any]) -> None:
    """An unknown id, and a delivery that is on its way, are refused with the reason."""
    chat = MemoryChat()
    chat.outcome = lambda text: Refused(Reason.NOTHING_LEFT)
    async with running(tmp_path, service=chat) as runtime:
        with pytest.raises(RequestRefused, match="there is no delivery 'nothing'"):
            await act(runtime, "nothing")
        sent = await runtime.send("memory:room", "x")
        with pytest.raises(RequestRefused, match="only what is held or abandoned"):
            await act(runtime, sent.id)


# --- the end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["left", "drained", "broken", "cancelled"])
async def test_whoever_waits_when_the_runtime_ends_is_told(tmp_path: Path, how: str) -> None:
    """However the block ends, waits outside it end at once with what they waited for, and the next life goes on."""
    model, chat = ScriptedModel(), MemoryChat()
    model.gate = trio.Event()
    tried = trio.Event()

    def refuse(text: str) -> Outcome:
        tried.set()
        return Refused(Reason.NOTHING_LEFT)

    chat.outcome = refuse
    ended: dict[str, str] = {}

    async def wait(name: str, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except (AskInterrupted, SendInterrupted) as error:
            ended[name] = type(error).__name__
        else:
            ended[name] = "returned"

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            with suppress(Broken, ExceptionGroup):
                with trio.CancelScope() as scope:
                    async with running(tmp_path, model, chat) as runtime:
                        nursery.start_soon(wait, "ask", partial(runtime.ask, "q", key="k"))
                        nursery.start_soon(wait, "send", partial(runtime.send, "memory:room", "x", key="k", wait=True))
                        nursery.start_soon(wait, "idle", runtime.wait_idle)
                        await model.asked.wait()
                        await tried.wait()
                        await end(how, runtime, scope)
    assert ended == {"ask": "AskInterrupted", "send": "SendInterrupted", "idle": "returned"}
    chat = MemoryChat()
    async with running(tmp_path, service=chat) as runtime:
        assert (await runtime.ask("q", key="k")).startswith("answer to q")
        assert (await runtime.send("memory:room", "x", key="k", wait=True)).state == "delivered"
    # Leaving and cancelling equal a crash: the request may have been in flight, and then its copy says so.
    marks = [""] if how == "drained" else ["", Wire(edits=False).marker]
    assert chat.shown in [[("room", f"{mark}x")] for mark in marks]


class Broken(Exception):
    """Of the program around the runtime."""


async def end(how: str, runtime: Runtime, scope: trio.CancelScope) -> None:
    """Ends the block around the call in one of the ways that a block ends."""
    if how == "drained":
        await runtime.drain(0.1)
    if how == "broken":
        raise Broken
    if how == "cancelled":
        scope.cancel()
        await trio.sleep_forever()


async def test_a_wait_after_a_drain_is_told(tmp_path: Path) -> None:
    """Inside the block, behind a drain, nothing is delivered any more, so a wait for it does not hang."""
    chat = MemoryChat()
    async with running(tmp_path, service=chat) as runtime:
        await runtime.drain(1)
        with pytest.raises(SendInterrupted):
            await runtime.send("memory:room", "x", key="k", wait=True)
    async with running(tmp_path, service=chat) as runtime:
        assert (await runtime.send("memory:room", "x", key="k", wait=True)).state == "delivered"
    assert chat.shown == [("room", "x")]


# --- the log ----------------------------------------------------------------------------------------------------


class FullDisk(io.StringIO):
    """A standard error behind which there is no room."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def structlog_untouched() -> Iterator[None]:
    """No program has configured structlog yet; afterwards it is as it was."""
    before, was = structlog.get_config(), structlog.is_configured()
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if was:
        structlog.configure(**before)


@pytest.mark.parametrize("kind", ["full", "closed", "none"])
async def test_a_log_that_cannot_be_written_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, structlog_untouched: None, kind: str
) -> None:
    """A standard error that is full, closed or not there loses log lines, and neither the runtime nor an answer."""
    stream = {"full": FullDisk(), "closed": io.StringIO(), "none": None}[kind]
    if kind == "closed":
        cast(io.StringIO, stream).close()
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdout", output)
    async with running(tmp_path) as runtime:
        assert await runtime.ask("q") == "answer to q"
    assert output.getvalue() == ""


async def test_the_log_goes_to_standard_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, structlog_untouched: None
) -> None:
    """A program that has not configured structlog has the log on its standard error, also on one that it replaces."""
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    async with running(tmp_path / "a"):
        pass
    monkeypatch.setattr(sys, "stderr", second)
    async with running(tmp_path / "b"):
        pass
    assert first.getvalue().count("started") == second.getvalue().count("started") == 1
