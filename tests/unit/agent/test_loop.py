"""The model-and-tool loop, with small real models, tools and journals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import define, field

from hermes_trio.agent import Agent, Answer, NoAnswer, NoAnswerKind
from hermes_trio.agent.loop import MAX_RESULT, MAX_STEPS
from hermes_trio.model.base import (
    Completion,
    ContextOverflow,
    Event,
    Message,
    ModelError,
    TextDelta,
    ToolCall,
    ToolSpec,
    Truncated,
    Usage,
)
from hermes_trio.tools.base import ToolContext, ToolError
from hermes_trio.values import Address

QUESTION = (Message("system", "be good"), Message("user", "hello"))
FLAKY = ModelError("the line is bad", retryable=True)
REFUSED = ModelError("no", retryable=False)
NOTE = ToolSpec("note", "Notes.", {"type": "object"})
CUT = Truncated("it broke off", retryable=True)

Step = Event | ModelError | Callable[[], None]


def text(words: str, usage: Usage | None = None) -> tuple[Step, ...]:
    """A stream that ends with this answer."""
    deltas = (TextDelta(words),) if words else ()
    return (*deltas, Completion(words, (), "", "stop", usage))


def calls(*wanted: ToolCall | str, words: str = "") -> tuple[Step, ...]:
    """A stream that ends with these calls."""
    made = tuple(ToolCall(each, "note", "{}") if isinstance(each, str) else each for each in wanted)
    deltas = (TextDelta(words),) if words else ()
    return (*deltas, Completion(words, made, "", "tool_calls"))


@define(eq=False)
class Events:
    """The events of one request."""

    steps: list[Step]

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        await trio.lowlevel.checkpoint()
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, ModelError):
                raise step
            if not callable(step):
                return step
            step()
            await trio.lowlevel.checkpoint()
        raise StopAsyncIteration


@define(eq=False)
class Played:
    """A model that plays one script for each request, the last one again and again."""

    scripts: list[tuple[Step, ...]]
    name: str = "played"
    requests: list[tuple[Message, ...]] = field(factory=list)
    tools: tuple[ToolSpec, ...] = ()
    open: int = 0

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        self.requests.append(messages)
        self.tools = tools
        self.open += 1
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        try:
            yield Events(list(script))
        finally:
            self.open -= 1


@define(eq=False)
class Notebook:
    """A journal that keeps everything in order, and what the user saw."""

    entries: list[str] = field(factory=list)
    previews: list[str] = field(factory=list)
    said: list[str] = field(factory=list)
    """What the user says, to be taken at the next look."""
    results: dict[str, str] = field(factory=dict)

    async def calls(self, text: str, calls: Sequence[ToolCall]) -> None:
        await trio.lowlevel.checkpoint()
        self.entries.append(f"asks {' '.join(call.id for call in calls)}")

    async def start(self, call: ToolCall) -> None:
        await trio.lowlevel.checkpoint()
        self.entries.append(f"starts {call.id}")

    async def result(self, call: ToolCall, content: str) -> None:
        await trio.lowlevel.checkpoint()
        self.entries.append(f"ends {call.id}")
        self.results[call.id] = content

    async def steered(self) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        taken, self.said = self.said, []
        return taken

    def show(self, preview: Callable[[], str]) -> None:
        self.previews.append(preview())


@define(eq=False)
class Note:
    """A tool that writes into the notebook that it ran, and does what it is told."""

    notebook: Notebook
    does: Callable[[Mapping[str, Any], ToolContext], str] = lambda arguments, context: "noted"
    spec: ToolSpec = NOTE

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        await trio.lowlevel.checkpoint()
        self.notebook.entries.append("runs")
        return self.does(arguments, context)


CONTEXT = ToolContext(Address("tg", "1"), "alice", 0.0, lambda text: None)


@define(eq=False)
class Bench:
    """An agent with all that it needs."""

    model: Played
    notebook: Notebook = field(factory=Notebook)
    tool: Note = field(init=False)
    retries: int = 2

    def __attrs_post_init__(self) -> None:
        self.tool = Note(self.notebook)

    async def run(self, messages: Sequence[Message] = QUESTION, **more: Any) -> Answer | NoAnswer:
        agent = Agent(self.model, {"note": self.tool}, self.retries, lambda: 0.0)
        return await agent.run(messages, self.notebook, CONTEXT, **more)


def bench(*scripts: tuple[Step, ...], **more: Any) -> Bench:
    return Bench(Played(list(scripts)), **more)


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_an_answer() -> None:
    """One request, one answer, with what it cost; the model knows the tools; the stream is closed."""
    here = bench(text("Hello!", Usage(10, 2, 3, 1)))
    assert await here.run() == Answer("Hello!", Usage(10, 2, 3, 1, context=10))
    assert here.model.requests == [QUESTION]
    assert here.model.tools == (here.tool.spec,)
    assert here.model.open == 0
    assert here.notebook.previews == ["Hello!"]
    assert here.notebook.entries == []


async def test_the_preview_grows() -> None:
    """The user sees the text as it comes."""
    here = bench((TextDelta("Hel"), TextDelta("lo"), Completion("Hello", (), "", "stop")))
    await here.run()
    assert here.notebook.previews == ["Hel", "Hello"]


async def test_usage_adds_up(autojump_clock: trio.testing.MockClock) -> None:
    """What all requests of a run used is added up; the context is what the latest of them read."""
    asking = Completion("", (ToolCall("a", "note", "{}"),), "", "tool_calls", Usage(10, 1))
    here = bench((asking,), text("", Usage(5, 5)), text("Done"))
    answer = await here.run()
    assert answer == Answer("Done", Usage(15, 6, context=5))


@pytest.mark.parametrize("blank", ["", " \n\t ", "\u200b"])
async def test_an_empty_answer_is_asked_for_again(blank: str) -> None:
    """P-09, D-09: one empty answer is asked for again, with the same request."""
    here = bench(text(blank), text("Now"))
    assert await here.run() == Answer("Now", Usage())
    assert here.model.requests == [QUESTION, QUESTION]


async def test_only_empty_answers() -> None:
    """P-09: the second empty answer ends it, with a kind that becomes a notice."""
    here = bench(text(" "))
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert (result.kind, len(here.model.requests)) == (NoAnswerKind.EMPTY, 2)


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_failure_is_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    """What may succeed later is tried again, after a pause that grows."""
    here = bench((FLAKY,), (FLAKY,), text("Hello"))
    before = trio.current_time()
    assert await here.run() == Answer("Hello", Usage())
    assert len(here.model.requests) == 3
    assert trio.current_time() - before > 1


async def test_failures_end(autojump_clock: trio.testing.MockClock) -> None:
    """After the last retry there is no answer, and the operator learns why."""
    here = bench((FLAKY,))
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert (result.kind, result.detail, result.partial) == (NoAnswerKind.FAILED, "the line is bad", "")
    assert len(here.model.requests) == 1 + here.retries


@pytest.mark.parametrize(
    ("error", "kind"),
    [(REFUSED, NoAnswerKind.FAILED), (ContextOverflow("too long", retryable=False), NoAnswerKind.TOO_LONG)],
)
async def test_what_cannot_succeed_is_not_tried_again(error: ModelError, kind: NoAnswerKind) -> None:
    """A refusal is one request."""
    here = bench((error,))
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert (result.kind, len(here.model.requests)) == (kind, 1)


async def test_a_later_attempt_replaces_the_preview(autojump_clock: trio.testing.MockClock) -> None:
    """P-08: the second attempt's words stand alone: nothing of the first is before them."""
    here = bench((TextDelta("Half of"), CUT), text("Something else"))
    assert await here.run() == Answer("Something else", Usage())
    assert here.notebook.previews == ["Half of", "Something else"]


async def test_a_cut_answer_is_never_an_answer(autojump_clock: trio.testing.MockClock) -> None:
    """P-01: what broke off in the last attempt is a partial, of that attempt only."""
    here = bench((TextDelta("First"), CUT), (TextDelta("Second"), TextDelta(" half"), CUT), retries=1)
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert (result.kind, result.partial) == (NoAnswerKind.CUT, "Second half")


async def test_a_stream_without_an_end_is_cut(autojump_clock: trio.testing.MockClock) -> None:
    """A model that stops without a word of completion has not answered."""
    here = bench((TextDelta("Half"),), retries=0)
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert (result.kind, result.partial) == (NoAnswerKind.CUT, "Half")


# --- tools ------------------------------------------------------------------------------------------------------------


async def test_everything_is_recorded_before_it_has_an_effect() -> None:
    """The message with its calls is recorded first, each start before its effect, each result behind it, in order."""
    here = bench(calls("a", "b", words="I look."), text("Done"))
    await here.run()
    assert here.notebook.entries == ["asks a b", "starts a", "runs", "ends a", "starts b", "runs", "ends b"]


async def test_results_stand_behind_their_calls() -> None:
    """The next request holds the message with its calls and their results, in order."""
    here = bench(calls("a", "b", words="I look."), text("Done"))
    await here.run()
    assistant, first, second = here.model.requests[1][2:]
    assert (assistant.role, assistant.content, [c.id for c in assistant.tool_calls]) == (
        "assistant",
        "I look.",
        ["a", "b"],
    )
    assert [(m.role, m.tool_call_id, m.content) for m in (first, second)] == [
        ("tool", "a", "noted"), ("tool", "b", "noted"),
    ]  # fmt: skip


async def test_words_before_a_call_stay_in_the_preview() -> None:
    """S-10: what was said before a call stays visible while it runs and behind it; progress goes when it ended."""

    def run(arguments: Mapping[str, Any], context: ToolContext) -> str:
        context.progress("half way")
        return "done"

    here = bench(calls("a", words="I look."), text("Done"))
    here.tool.does = run
    answer = await here.run()
    assert here.notebook.previews == [
        "I look.", "I look.\n\n⚙ note …", "I look.\n\n⚙ note: half way", "I look.\n\nDone",
    ]  # fmt: skip
    assert answer == Answer("Done", Usage())


def broken(arguments: Mapping[str, Any], context: ToolContext) -> str:
    raise RuntimeError("a secret detail")


def refusing(arguments: Mapping[str, Any], context: ToolContext) -> str:
    raise ToolError("no such file")


@pytest.mark.parametrize(
    ("call", "does", "told"),
    [
        (ToolCall("a", "nose", "{}"), None, "error: there is no tool named 'nose'; there are: note"),
        (ToolCall("a", "note", "{"), None, "error: the arguments are not valid JSON"),
        (ToolCall("a", "note", "[1]"), None, "error: the arguments must be a JSON object"),
        (ToolCall("a", "note", "null"), None, "error: the arguments must be a JSON object"),
        (ToolCall("a", "note", "{}"), refusing, "error: no such file"),
        (ToolCall("a", "note", "{}"), broken, "error: the tool note failed"),
    ],
)
async def test_what_goes_wrong_with_a_call(call: ToolCall, does: Any, told: str) -> None:
    """The model reads what was wrong and may go on; a tool's own fault is no detail for it, and ends nothing."""
    here = bench(calls(call), text("I see"))
    if does is not None:
        here.tool.does = does
    assert await here.run() == Answer("I see", Usage())
    assert here.notebook.results["a"].startswith(told)
    assert "secret" not in here.notebook.results["a"]
    ran = "runs" in here.notebook.entries
    assert ran == (does is not None)


async def test_arguments_reach_the_tool() -> None:
    """A tool gets its arguments decoded; no arguments at all are an empty object."""
    seen: list[Mapping[str, Any]] = []

    def see(arguments: Mapping[str, Any], context: ToolContext) -> str:
        seen.append(arguments)
        return ""

    here = bench(calls(ToolCall("a", "note", '{"x": 1}'), ToolCall("b", "note", "")), text("Done"))
    here.tool.does = see
    await here.run()
    assert seen == [{"x": 1}, {}]


async def test_a_long_result_is_cut() -> None:
    """A request stays bounded: of a long result the model reads the beginning and how much is missing."""
    here = bench(calls("a"), text("Done"))
    here.tool.does = lambda arguments, context: "x" * (MAX_RESULT + 7)
    await here.run()
    assert here.notebook.results["a"] == "x" * MAX_RESULT + "\n[cut here: 7 more characters]"


async def test_a_loop_ends() -> None:
    """A model that never stops calling is stopped."""
    here = bench(calls("a"))
    result = await here.run()
    assert isinstance(result, NoAnswer)
    assert result.kind is NoAnswerKind.ENDLESS
    assert len(here.model.requests) == MAX_STEPS


async def test_steered() -> None:
    """What the user says while a tool runs is read behind its result, once."""
    here = bench(calls("a"), calls("b"), text("Done"))
    here.notebook.said = ["softly"]
    await here.run()
    assert here.model.requests[1][-1] == Message("user", "softly")
    assert [m.content for m in here.model.requests[2] if m.role == "user"] == ["hello", "softly"]


# --- after a restart --------------------------------------------------------------------------------------------------


async def test_open_calls_run_first() -> None:
    """D8: calls that never started run before the model is asked, and the request ends with the note."""
    call = ToolCall("b", "note", "{}")
    before = (
        *QUESTION,
        Message("assistant", "", tool_calls=(ToolCall("a", "note", "{}"), call)),
        Message("tool", "42"),
    )
    here = bench(text("Done"))
    await here.run(before, open_calls=(call,), note="go on")
    assert here.notebook.entries == ["starts b", "runs", "ends b"]
    assert here.model.requests[0][:-1] == before
    assert here.model.requests[0][-1] == Message("tool", "noted\n\ngo on", tool_call_id="b", name="note")


async def test_the_note_stands_behind_the_last_message() -> None:
    """Without open calls the note stands behind the question itself, in the first request only."""
    here = bench(calls("a"), text("Done"))
    await here.run(note="go on")
    assert here.model.requests[0][-1] == Message("user", "hello\n\ngo on")
    assert "go on" not in here.model.requests[1][-1].content


# --- cancellation -----------------------------------------------------------------------------------------------------


async def test_cancelled_in_a_stream() -> None:
    """Cancelled while the model speaks: the stream is closed, nothing is recorded."""
    with trio.CancelScope() as scope:
        here = bench((TextDelta("Half"), scope.cancel, TextDelta("more")))
        await here.run()
    assert scope.cancelled_caught
    assert here.model.open == 0
    assert here.notebook.entries == []


async def test_cancelled_in_a_tool() -> None:
    """Cancelled while a tool runs: its start is recorded, no result, and no further call begins."""
    ended: list[str] = []

    class Sleeper(Note):
        async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
            try:
                await trio.sleep_forever()
            finally:
                ended.append("cleaned up")
            raise AssertionError

    here = bench(calls("a", "b"), text("Done"))
    here.tool = Sleeper(here.notebook)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert here.notebook.entries == ["asks a b", "starts a"]
    assert ended == ["cleaned up"]
