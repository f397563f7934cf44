"""What the model shall answer: a Script is a sequence of steps, written as a chain of verbs.

    model.says("One moment. ").holds(go_on).says("Here it is: 42.", chunks=5, interval=0.1)

Steps are performed in order. A script that does not end itself (`cuts`, `stalls`, `errors`, `fails`) ends as the
real API does: finish_reason "tool_calls" if it called any, else "stop", the usage if it was asked for, and [DONE].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field, frozen

if TYPE_CHECKING:
    from hermes_fakes.model.requests import ModelRequest

JSON = dict[str, Any]


@frozen
class Text:
    """One delta of content."""

    text: str
    channel: str = "content"
    """The field of the delta; reasoning models have others."""


@frozen
class ToolCall:
    """One whole call of a tool; its arguments stream in `pieces`."""

    id: str
    name: str
    pieces: tuple[str, ...]


@frozen
class Wait:
    """Seconds."""

    seconds: float


@frozen
class Hold:
    """Goes on when the event is set."""

    event: trio.Event


@frozen
class Do:
    """Calls a plain function."""

    action: Callable[[], Any]


@frozen
class Raw:
    """Bytes of the stream as they are."""

    data: bytes


@frozen
class Finish:
    """The finish chunk; what follows a finish is the usage and [DONE]."""

    reason: str


@frozen
class Stall:
    """Nothing more, until the client goes."""


@frozen
class Cut:
    """The connection ends here."""


@frozen
class Fail:
    """An answer with an error status instead of the stream."""

    status: int
    body: JSON | bytes | None
    headers: tuple[tuple[str, str], ...]


@frozen
class StreamError:
    """An error object in the middle of a stream, after which it ends."""

    error: JSON


Step = Text | ToolCall | Wait | Hold | Do | Raw | Finish | Stall | Cut | Fail | StreamError


class Verbs:
    """The verbs, each of which adds steps and returns the script for the next verb."""

    def script(self) -> Script:
        """The script that the verbs write to."""
        raise AssertionError("a scripted thing says where its scripts go")

    def says(
        self,
        text: str,
        *,
        chunks: int | Sequence[str] | None = None,
        interval: float = 0.0,
        first_delay: float = 0.0,
    ) -> Script:
        """Text, in one delta, or in deltas of `chunks` characters, or in exactly those of the sequence `chunks`.

        `first_delay` seconds pass before the first delta, `interval` seconds between two.
        """
        if chunks is None:
            pieces: Sequence[str] = [text] if text else []
        elif isinstance(chunks, int):
            pieces = [text[start : start + chunks] for start in range(0, len(text), chunks)]
        else:
            pieces = chunks
        script = self.script().waits(first_delay)
        for index, piece in enumerate(pieces):
            script.waits(interval if index else 0.0).add(Text(piece))
        return script

    def thinks(self, text: str, *, field: str = "reasoning") -> Script:
        """A delta of reasoning, as several servers send it beside the content."""
        return self.script().add(Text(text, field))

    def calls(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        id: str | None = None,
        *,
        text: str = "",
        chunks: int = 8,
    ) -> Script:
        """Calls a tool; several `calls` in one script are parallel. `arguments` may be a string, also one that is no
        JSON.

        `text` comes before it as content. The arguments stream in pieces of `chunks` characters. Without an id one is
        made that is unique in this process of the fake.
        """
        script = self.script()
        if text:
            script.add(Text(text))
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        pieces = tuple(raw[start : start + chunks] for start in range(0, len(raw), chunks))
        return script.add(ToolCall(id or "", name, pieces))

    def waits(self, seconds: float) -> Script:
        """Seconds of nothing."""
        return self.script().add(Wait(seconds)) if seconds > 0 else self.script()

    def holds(self, event: trio.Event) -> Script:
        """Does not go on before the event is set. The stream stays open meanwhile."""
        return self.script().add(Hold(event))

    def does(self, action: Callable[[], Any]) -> Script:
        """Calls a plain function at this point, e.g. to set an event, or to make the platform unreachable."""
        return self.script().add(Do(action))

    def fails(
        self,
        status: int,
        body: JSON | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        code: str | None = None,
        message: str = "",
    ) -> Script:
        """An answer with this status and an OpenAI error body (or your own body); nothing is streamed."""
        if body is None and (code is not None or message):
            kind = "server_error" if status >= 500 else "invalid_request_error"
            text = message or f"The fake fails with {status}."
            body = {"error": {"message": text, "type": kind, "param": None, "code": code}}
        return self.script().add(Fail(status, body, tuple((headers or {}).items())))

    def errors(self, message: str = "The server had an error", kind: str = "server_error") -> Script:
        """An error object in the middle of the stream, under HTTP 200; the stream ends with it."""
        return self.script().add(StreamError({"message": message, "type": kind, "param": None, "code": None}))

    def stalls(self, after: int | None = None) -> Script:
        """Silent for ever at this point, or after that many deltas of the whole script; the connection stays open."""
        return self.script().end(Stall(), after)

    def cuts(self, after: int | None = None, finish: str | None = None) -> Script:
        """The stream ends without [DONE], at this point or after that many deltas of the whole script.

        With `finish` the finish chunk with that reason still comes before the end.
        """
        script = self.script()
        if finish is not None and after is None:
            script.add(Finish(finish))
        return script.end(Cut(), after, finish)

    def finishes(self, reason: str) -> Script:
        """Another finish_reason than the usual one: length, content_filter, ..."""
        return self.script().add(Finish(reason))

    def finish_length(self) -> Script:
        """finish_reason "length": the answer hit its token limit."""
        return self.finishes("length")

    def raw(self, pieces: Sequence[bytes], interval: float = 0.0) -> Script:
        """Bytes of the stream as they are, one HTTP chunk each. What follows is yours as well: finish and [DONE] are
        not added to a script that has raw pieces.
        """
        script = self.script()
        for index, piece in enumerate(pieces):
            script.waits(interval if index else 0.0).add(Raw(piece))
        return script


@define(eq=False)
class Script(Verbs):
    """The answer to one request."""

    home: list[Script] = field(factory=list, repr=False)
    """Where `then` puts the next one."""
    steps: list[Step] = field(factory=list)
    limit: tuple[int, Stall | Cut, str | None] | None = None
    """After so many deltas: what happens, and the finish reason before it."""

    def script(self) -> Script:
        return self

    @property
    def failure(self) -> Fail | None:
        """What it answers instead of a completion."""
        return next((step for step in self.steps if isinstance(step, Fail)), None)

    def then(self) -> Script:
        """The answer to the request that follows in the same turn: the one that carries the tools' results."""
        follower = Script(self.home)
        self.home.append(follower)
        return follower

    def add(self, step: Step) -> Script:
        self.steps.append(step)
        return self

    def end(self, step: Stall | Cut, after: int | None, finish: str | None = None) -> Script:
        if after is None:
            return self.add(step)
        self.limit = (after, step, finish)
        return self


Pattern = str | Callable[["ModelRequest"], bool]


@define(eq=False)
class Rule(Verbs):
    """Scripts for the requests that match: the k-th when k answers already stand after the last user message."""

    pattern: Pattern
    """A part of the last user text, or a predicate on the request."""
    once: bool = False
    scripts: list[Script] = field(factory=list)
    spent: bool = False
    uses: int = 0

    def script(self) -> Script:
        first = Script(self.scripts)
        self.scripts.append(first)
        return first

    def choose(self, request: ModelRequest) -> Script | None:
        """The script for the request, if this rule has one."""
        if self.spent or not self._matches(request) or request.answers_so_far >= len(self.scripts):
            return None
        self.uses += 1
        self.spent = self.once and request.answers_so_far == len(self.scripts) - 1
        return self.scripts[request.answers_so_far]

    def _matches(self, request: ModelRequest) -> bool:
        if callable(self.pattern):
            return self.pattern(request)
        return self.pattern in request.last_user_text
