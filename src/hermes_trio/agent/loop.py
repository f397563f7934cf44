"""The model-and-tool loop: ask, show, run the tools that the model calls, ask again, until there is an answer.

The loop keeps nothing of its own that matters: whatever must survive goes to its Journal before the next step. The
rule that must not be broken: a call is marked as started in the journal before its effect, and a message with calls
is in the journal before any of them starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import structlog
import trio
from attrs import evolve, frozen

from hermes_trio.model.base import (
    Completion,
    ContextOverflow,
    Message,
    Model,
    ModelError,
    TextDelta,
    ToolCall,
    Truncated,
    Usage,
)
from hermes_trio.model.errors import retry_delay
from hermes_trio.text.markdown import is_blank
from hermes_trio.text.repair import repair
from hermes_trio.tools.base import Tool, ToolContext, ToolError

MAX_STEPS = 60
"""Requests to the model in one turn: a loop of calls that never answers must end before it costs a fortune."""
MAX_RESULT = 60_000
"""Characters of a tool's result that the model reads; the rest is cut with a note, to keep the request bounded."""
PROGRESS = "⚙ "
"""Begins a line that shows a tool at work."""
EMPTY_RETRIES = 1
"""How often an empty answer is asked for again."""

log = structlog.get_logger(__name__)


class Journal(Protocol):
    """Where the loop records what must survive. Each coroutine returns when it is durable."""

    async def calls(self, text: str, calls: Sequence[ToolCall]) -> None:
        """The model said `text` (it may be empty) and asks for these calls."""

    async def start(self, call: ToolCall) -> None:
        """The call is about to take effect."""

    async def result(self, call: ToolCall, content: str) -> None:
        """The call ended."""

    async def steered(self) -> Sequence[str]:
        """What the user has said to the running turn since the last look; it is in the transcript from now on."""

    def show(self, preview: Callable[[], str]) -> None:
        """What the user may see now, as Markdown; the latest replaces the earlier ones. Never blocks.

        `preview` is called when a preview is really made, which may be long after and for few of many.
        """


@frozen
class Answer:
    """What the model finally said."""

    text: str
    """Never blank."""
    usage: Usage


class NoAnswerKind(StrEnum):
    """Why there is none."""

    FAILED = "failed"
    EMPTY = "empty"
    CUT = "cut"
    TOO_LONG = "too long"
    ENDLESS = "endless"


@frozen
class NoAnswer:
    """The turn ends without an answer, but with a word to the user."""

    kind: NoAnswerKind
    detail: str
    """For the operator; without secrets."""
    partial: str
    """What the model had said of an answer that broke off."""
    usage: Usage


@frozen
class Agent:
    """A model, its tools, and how patient to be with it."""

    model: Model
    tools: Mapping[str, Tool]
    retries: int
    """How often a request that failed is made again."""
    jitter: Callable[[], float]
    """A number from 0 to 1."""

    async def run(
        self,
        messages: Sequence[Message],
        journal: Journal,
        context: ToolContext,
        *,
        open_calls: Sequence[ToolCall] = (),
        note: str = "",
    ) -> Answer | NoAnswer:
        """Works until there is an answer, or none can be had.

        messages: the whole request, ending with what is to be answered. open_calls: calls of its last assistant
        message that have not started and still must run, as after a restart. note: words of the runtime that the first
        request ends with, behind the results of those calls. Cancelled: the stream is closed and running tools are
        cancelled; the journal holds what was done.
        """
        request = list(messages)
        run = _Run(self, journal, context)
        if open_calls:
            request += await run.perform(open_calls)
            request += await run.listen()
        if note:
            request[-1] = evolve(request[-1], content=f"{request[-1].content}\n\n{note}".strip())
        for _ in range(MAX_STEPS):
            completion = await run.ask(tuple(request))
            if isinstance(completion, NoAnswer):
                return completion
            if not completion.tool_calls:
                return Answer(completion.text, run.usage)
            await journal.calls(completion.text, completion.tool_calls)
            run.keep(completion.text)
            request.append(Message("assistant", completion.text, tool_calls=completion.tool_calls))
            request += await run.perform(completion.tool_calls)
            request += await run.listen()
        return NoAnswer(NoAnswerKind.ENDLESS, f"no answer after {MAX_STEPS} requests", "", run.usage)


class _Run:
    """One run of the loop: what it has said so far and what it has used."""

    def __init__(self, agent: Agent, journal: Journal, context: ToolContext) -> None:
        self._agent = agent
        self._journal = journal
        self._context = context
        self._said: list[str] = []
        self._progress: dict[str, str] = {}
        self.usage = Usage()

    def keep(self, text: str) -> None:
        """Text before a tool call stays in the preview."""
        if not is_blank(text):
            self._said.append(text)

    def _show(self, current: Sequence[str] = ()) -> None:
        def preview() -> str:
            pieces = [*self._said, *self._progress.values(), "".join(current)]
            return "\n\n".join(piece for piece in pieces if not is_blank(piece))

        self._journal.show(preview)

    async def ask(self, request: tuple[Message, ...]) -> Completion | NoAnswer:
        """One message of the model, with retries; a later attempt replaces what an earlier one showed."""
        attempt = empty = 0
        while True:
            said: list[str] = []
            try:
                completion = await self._attempt(request, said)
            except ModelError as error:
                delay = (
                    retry_delay(attempt, error, jitter=self._agent.jitter()) if attempt < self._agent.retries else None
                )
                log.warning("the model failed", error=str(error), retry_in=delay)
                if delay is None:
                    return self._failure(error, "".join(said))
                attempt += 1
                await trio.sleep(delay)
                continue
            self._count(completion.usage)
            if completion.tool_calls or not is_blank(completion.text):
                return _repaired(completion)
            if empty >= EMPTY_RETRIES:
                return NoAnswer(NoAnswerKind.EMPTY, "the model answered nothing", "", self.usage)
            empty += 1

    async def _attempt(self, request: tuple[Message, ...], said: list[str]) -> Completion:
        specs = tuple(tool.spec for tool in self._agent.tools.values())
        async with self._agent.model.stream(request, specs) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    said.append(event.text)
                    self._show(said)
                elif isinstance(event, Completion):
                    return event
        raise Truncated("the model's stream ended without an answer", retryable=True)

    def _failure(self, error: ModelError, partial: str) -> NoAnswer:
        if isinstance(error, ContextOverflow):
            return NoAnswer(NoAnswerKind.TOO_LONG, str(error), "", self.usage)
        if isinstance(error, Truncated):
            return NoAnswer(NoAnswerKind.CUT, str(error), repair(partial), self.usage)
        return NoAnswer(NoAnswerKind.FAILED, str(error), "", self.usage)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = Usage(
                self.usage.prompt + usage.prompt,
                self.usage.completion + usage.completion,
                self.usage.cached + usage.cached,
                self.usage.reasoning + usage.reasoning,
                usage.prompt,
            )

    async def perform(self, calls: Sequence[ToolCall]) -> list[Message]:
        """Runs the calls in order, one at a time, and returns their results as messages."""
        results = []
        for call in calls:
            self._progress = {call.id: f"{PROGRESS}{call.name} …"}
            self._show()
            await self._journal.start(call)
            content = repair(await self._call(call))
            await self._journal.result(call, content)
            results.append(Message("tool", content, tool_call_id=call.id, name=call.name))
        self._progress = {}
        return results

    async def listen(self) -> list[Message]:
        """What the user has said meanwhile."""
        return [Message("user", text) for text in await self._journal.steered()]

    async def _call(self, call: ToolCall) -> str:
        """The result of one call, whatever happens."""
        tool = self._agent.tools.get(call.name)
        if tool is None:
            return f"error: there is no tool named {call.name!r}; there are: {', '.join(self._agent.tools) or 'none'}"
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError as error:
            return f"error: the arguments are not valid JSON ({error})"
        if not isinstance(arguments, dict):
            return "error: the arguments must be a JSON object"
        return await self._run_tool(tool, call, arguments)

    async def _run_tool(self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any]) -> str:
        def progress(text: str) -> None:
            self._progress[call.id] = f"{PROGRESS}{call.name}: {text}"
            self._show()

        try:
            result = await tool.run(arguments, evolve(self._context, progress=progress))
        except ToolError as error:
            return f"error: {error}"
        except Exception:  # a supervision border: a tool's own fault must not end the turn
            log.exception("a tool failed", tool=call.name)
            return f"error: the tool {call.name} failed"
        if len(result) > MAX_RESULT:
            return f"{result[:MAX_RESULT]}\n[cut here: {len(result) - MAX_RESULT} more characters]"
        return result


def _repaired(completion: Completion) -> Completion:
    """Without lone surrogates, which no row and no wire can hold."""
    calls = tuple(
        evolve(call, name=repair(call.name), arguments=repair(call.arguments)) for call in completion.tool_calls
    )
    return evolve(completion, text=repair(completion.text), tool_calls=calls)
