"""Several models in order: when one fails before it has shown anything, the next is asked.

Theory of operation. An attempt is held back until its first visible text, or until its whole answer where that has no
text. So a model that fails before it can be given up unseen; one that fails later fails the attempt, because what was
shown must not be continued by another voice.

The rule that must not be broken: the events of one attempt come from one model.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from hermes_trio.model.base import Completion, ContextOverflow, Event, Message, Model, ModelError, TextDelta, ToolSpec


class FallbackModel:
    """A Model that asks the first of `models`, and the others in turn when those before failed."""

    def __init__(self, models: tuple[Model, ...]) -> None:
        if not models:
            raise ValueError("a fallback needs at least one model")
        self._models = models

    @property
    def name(self) -> str:
        """The names in the order in which they are asked."""
        return ", ".join(model.name for model in self._models)

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        """Makes one attempt with each model until one shows text or completes; see `model.base.Model`.

        Entering waits for that. Cancelled: the open connection is closed. Raises ContextOverflow at once, since a
        shorter request is the better remedy; when all fail, a retryable error if there was one, else the first.
        """
        failures: list[ModelError] = []
        for model in self._models:
            chosen = False
            try:
                async with model.stream(messages, tools) as events:
                    held = await _until_visible(events)
                    chosen = True
                    yield _Resumed(held, events)
                    return
            except ContextOverflow:
                raise
            except ModelError as error:
                if chosen:
                    raise
                failures.append(error)
        raise next((error for error in failures if error.retryable), failures[0])


async def _until_visible(events: AsyncIterator[Event]) -> deque[Event]:
    """The events up to the first that a user would see or that ends the answer."""
    held: deque[Event] = deque()
    async for event in events:
        held.append(event)
        if isinstance(event, Completion) or (isinstance(event, TextDelta) and event.text.strip()):
            break
    return held


class _Resumed:
    """The events that were held back, then the rest."""

    def __init__(self, held: deque[Event], rest: AsyncIterator[Event]) -> None:
        self._held = held
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return self._held.popleft() if self._held else await anext(self._rest)
