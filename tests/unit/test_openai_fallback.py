"""Models in order: who is asked, and whose words are shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes_trio.model.base import (
    Completion,
    ContextOverflow,
    Event,
    Message,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolSpec,
    Truncated,
)
from hermes_trio.model.fallback import FallbackModel

DEAD = ModelError("dead", retryable=True)
REFUSED = ModelError("refused", retryable=False)


class Scripted:
    """A model that yields these events and then raises, if it shall; it notes when it is open."""

    def __init__(self, name: str, *script: Event | ModelError, on_entry: ModelError | None = None) -> None:
        self.name = name
        self.script = script
        self.on_entry = on_entry
        self.asked = 0
        self.open = 0

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        self.asked += 1
        self.open += 1
        try:
            if self.on_entry:
                raise self.on_entry
            yield Script(list(self.script))
        finally:
            self.open -= 1


class Script:
    def __init__(self, steps: list[Event | ModelError]) -> None:
        self.steps = steps

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if not self.steps:
            raise StopAsyncIteration
        step = self.steps.pop(0)
        if isinstance(step, ModelError):
            raise step
        return step


def answer(text: str, *calls: ToolCall) -> tuple[Event, ...]:
    done = Completion(text, calls, "", "stop")
    return (TextDelta(text), done) if text else (done,)


async def ask(*models: Scripted, into: list[Event] | None = None) -> list[Event]:
    events: list[Event] = [] if into is None else into
    async with FallbackModel(models).stream((Message("user", "x"),), ()) as stream:
        assert sum(model.open for model in models) == 1
        async for event in stream:
            events.append(event)
    return events


async def test_the_first_answers() -> None:
    """Nobody else is asked while the first one works."""
    first, second = Scripted("a", *answer("hi")), Scripted("b", *answer("no"))
    assert await ask(first, second) == list(answer("hi"))
    assert (first.asked, second.asked) == (1, 0)


@pytest.mark.parametrize(
    "first",
    [
        Scripted("a", on_entry=DEAD),
        Scripted("a", on_entry=REFUSED),
        Scripted("a", DEAD),
        Scripted("a", ReasoningDelta("hm"), DEAD),
        Scripted("a", TextDelta(" \n"), Truncated("cut", retryable=True)),
    ],
    ids=["unreachable", "refused", "no event", "reasoning only", "white space only"],
)
async def test_the_next_is_asked_when_nothing_was_shown(first: Scripted) -> None:
    """A model that fails unseen is replaced, and nothing of it is passed on."""
    assert await ask(first, Scripted("b", *answer("hi"))) == list(answer("hi"))
    assert first.open == 0


async def test_what_was_shown_is_not_continued_by_another() -> None:
    """A failure behind visible text fails the attempt."""
    second = Scripted("b", *answer("no"))
    seen: list[Event] = []
    with pytest.raises(Truncated):
        await ask(Scripted("a", TextDelta("hi"), Truncated("cut", retryable=True)), second, into=seen)
    assert (seen, second.asked) == ([TextDelta("hi")], 0)


async def test_reasoning_and_calls_of_the_chosen_one_are_kept() -> None:
    """What was held back until the choice comes out in order; an answer of calls alone is an answer."""
    whole = (ReasoningDelta("hm"), *answer("", ToolCall("c", "f", "{}")))
    assert await ask(Scripted("a", *whole)) == list(whole)


async def test_all_fail() -> None:
    """The error that leaves hope is raised; without hope the first one."""
    with pytest.raises(ModelError, match="dead"):
        await ask(Scripted("a", REFUSED), Scripted("b", DEAD))
    with pytest.raises(ModelError, match="refused"):
        await ask(Scripted("a", REFUSED), Scripted("b", on_entry=ModelError("other", retryable=False)))


async def test_overflow_is_not_handed_on() -> None:
    """A request that is too long is to be made shorter, not sent elsewhere."""
    second = Scripted("b", *answer("no"))
    with pytest.raises(ContextOverflow):
        await ask(Scripted("a", ContextOverflow("long", retryable=False)), second)
    assert second.asked == 0


def test_names() -> None:
    """The name tells the order; no model at all is a mistake."""
    assert FallbackModel((Scripted("a"), Scripted("b"))).name == "a, b"
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel(())
