"""From the bytes of an OpenAI-compatible answer to the events of `model.base`. Pure.

Theory of operation. `AnswerReader` takes reads as they arrive. The first byte that is no white space tells what the
body is: a stream of events, a JSON object (an error, or an answer of a server that does not stream) or a page. Each
chunk of a stream is folded into an `Assembly`: text and reasoning come out at once, tool calls are gathered until the
end, because only a whole call can be run.

The rule that must not be broken: no Completion without proof. The proof is a finish reason; `[DONE]` alone is one
only for a provider that is configured with `finish = "optional"`, and the end of the connection never is.

Source: OpenAI API reference, "Chat completions, streaming"; the documents of Ollama, vLLM, llama.cpp and OpenRouter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from attrs import define, frozen

from hermes_trio.model.base import (
    Completion,
    Event,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Truncated,
    Usage,
)
from hermes_trio.model.errors import classify, error_in
from hermes_trio.model.sse import ServerEvent, SseParser

FinishRule = Literal["required", "optional"]
"""Whether a stream must name its finish reason, or `[DONE]` alone may end it."""

MAX_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""The longest body of one answer, keep-alive comments included; a longer one is an error."""
MAX_TOOL_CALLS: Final = 128
"""The most calls in one answer; more are an error."""

_PROPER: Final = frozenset({"stop", "tool_calls", "function_call", "end_turn", "stop_sequence", "tool_use", "eos"})
"""Finish reasons that mean: this is the whole answer."""

Deltas = tuple[TextDelta | ReasoningDelta, ...]


class _Garbled(ModelError):
    """A chunk is not JSON."""


class AnswerReader:
    """Reads the body of one answer: `feed` until `done` or the end of the body, then `end` once."""

    def __init__(self, finish: FinishRule = "required") -> None:
        self._assembly = Assembly(finish)
        self._sse = SseParser()
        self._kind: Literal["unknown", "stream", "json", "page"] = "unknown"
        self._whole = bytearray()
        """The body so far, while its kind is unknown or if it is no stream."""
        self._size = 0

    @property
    def done(self) -> bool:
        """Nothing more will come: `[DONE]` was read."""
        return self._assembly.done

    @property
    def finished(self) -> bool:
        """The answer is proven complete; what still comes is usage at most."""
        return self._assembly.finish != "" or self._assembly.done

    @property
    def begun(self) -> bool:
        """Something of an answer has arrived: text, reasoning or a call. Comments and roles do not count."""
        return self._assembly.begun

    def feed(self, read: bytes) -> Deltas:
        """The deltas in this read. Raises ModelError if it says that the answer failed."""
        self._size += len(read)
        if self._size > MAX_ANSWER_BYTES:
            raise ModelError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes", retryable=False)
        if self._kind == "unknown":
            self._whole += read
            if not (start := self._whole.lstrip()):
                return ()
            self._kind = "json" if start[:1] == b"{" else "page" if start[:1] == b"<" else "stream"
            read = bytes(self._whole)
        elif self._kind != "stream":
            self._whole += read
        return self._fold(self._sse.feed(read)) if self._kind == "stream" else ()

    def end(self) -> tuple[Event, ...]:
        """The last events; the very last is the Completion. Raises Truncated or ModelError if there is none."""
        deltas: Deltas = ()
        if self._kind == "page":
            raise ModelError("the server answered with a page instead of a model's answer", retryable=False)
        if self._kind == "json":
            deltas = self._assembly.fold_whole(self._whole.decode("utf-8", "replace"))
        elif not self.done:
            # If the last event was cut, whether the answer is complete was said before it, or not at all.
            with suppress(_Garbled):
                deltas = self._fold(self._sse.end())
        return (*deltas, *self._assembly.end())

    def _fold(self, events: list[ServerEvent]) -> Deltas:
        deltas: list[TextDelta | ReasoningDelta] = []
        for event in events:
            if not self.done:
                deltas += self._assembly.fold(event.data, failed=event.kind == "error")
        return tuple(deltas)


class Assembly:
    """One answer, as it is put together from chunks."""

    def __init__(self, finish: FinishRule = "required") -> None:
        self._rule = finish
        self._text = _Channel()
        self._reasoning = _Channel()
        self._calls = _Calls()
        self._usage: Usage | None = None
        self._answer_id = ""
        self.finish = ""
        """The finish reason; empty while there is none."""
        self.done = False
        """`[DONE]` was read."""

    @property
    def begun(self) -> bool:
        """Some text, reasoning or call has arrived."""
        return bool(self._text.pieces or self._reasoning.pieces or self._calls.slots)

    def fold(self, data: str, *, failed: bool = False) -> Deltas:
        """The deltas of one event's data. `failed`: the event itself is called an error."""
        data = data.strip()
        if data == "[DONE]":
            self.done = True
            return ()
        try:
            chunk = _load(data)
        except _Garbled:
            if self.finish in _PROPER:
                return ()
            raise
        if failed and self.finish not in _PROPER:
            raise classify(None, error_in(chunk) or (chunk if isinstance(chunk, Mapping) else None))
        return self.fold_chunk(chunk)

    def fold_chunk(self, chunk: Any) -> Deltas:
        """The deltas of one decoded chunk, or of a whole answer that was not streamed."""
        if chunk is None:
            return ()
        # A failure behind a proven finish changes nothing: the answer is whole, and must not be asked for again.
        if self.finish not in _PROPER and (error := error_in(chunk)) is not None:
            raise classify(None, error)
        if not isinstance(chunk, Mapping):
            raise ModelError("a chunk of the answer is not an object", retryable=True)
        self._answer_id = self._answer_id or _text(chunk.get("id"))
        self._usage = _usage(chunk.get("usage")) or self._usage
        deltas: list[TextDelta | ReasoningDelta] = []
        for choice in _objects(chunk.get("choices")):
            if choice.get("index") in (0, None):
                deltas += self._fold_choice(choice)
        return tuple(deltas)

    def fold_whole(self, body: str) -> Deltas:
        """The deltas of a body that is one JSON object; afterwards nothing more may come."""
        deltas = self.fold_chunk(_load(body))
        self.done = True
        return deltas

    def end(self) -> tuple[Event, ...]:
        """What was held back, and the Completion. Raises Truncated, or ModelError for a finish that is a failure."""
        finish = self._proven_finish()
        events: list[Event] = []
        if reasoning := self._reasoning.flush():
            events.append(ReasoningDelta(reasoning))
        if text := self._text.flush():
            events.append(TextDelta(text))
        calls = self._calls.finish(self._answer_id)
        events.append(Completion(self._text.whole, calls, self._reasoning.whole, finish, self._usage))
        return tuple(events)

    def _fold_choice(self, choice: Mapping[str, Any]) -> Deltas:
        delta = choice.get("delta") or choice.get("message")
        deltas: list[TextDelta | ReasoningDelta] = []
        if isinstance(delta, Mapping):
            if reasoning := self._reasoning.feed(_reasoning_of(delta)):
                deltas.append(ReasoningDelta(reasoning))
            if text := self._text.feed(_text(delta.get("content")) + _text(delta.get("refusal"))):
                deltas.append(TextDelta(text))
            for fragment in _objects(delta.get("tool_calls")):
                self._calls.fold(fragment)
            if isinstance(legacy := delta.get("function_call"), Mapping):
                self._calls.fold({"index": 0, "function": legacy})
        self.finish = _text(choice.get("finish_reason")) or self.finish
        return tuple(deltas)

    def _proven_finish(self) -> str:
        if self.finish in _PROPER:
            # Some servers say `stop` although they called tools; what is there decides.
            return "tool_calls" if self._calls.slots else self.finish
        if self.finish == "length":
            raise Truncated("the answer reached the length limit", retryable=False)
        if self.finish == "content_filter":
            raise ModelError("the server's content filter ended the answer", retryable=False)
        if self.finish == "error":
            raise ModelError("the server broke off the answer", retryable=True)
        if self.done and self._rule == "optional":
            return "tool_calls" if self._calls.slots else self.finish or "stop"
        if self.finish:
            raise Truncated(f"the answer ended for an unknown reason: {self.finish[:40]!r}", retryable=True)
        raise Truncated("the answer broke off without a finish reason", retryable=True)


class _Channel:
    """A text that arrives in pieces, repaired: surrogate pairs that were cut are joined, lone ones replaced."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._held = ""
        """A high surrogate at the end, whose second half may follow."""

    @property
    def whole(self) -> str:
        return "".join(self.pieces)

    def feed(self, piece: str) -> str:
        """The piece as it may be shown; a high surrogate at its end waits for the next one."""
        if not piece:
            return ""
        piece = self._held + piece
        self._held = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        return self._keep(piece[: len(piece) - len(self._held)])

    def flush(self) -> str:
        """What was still held back."""
        held, self._held = self._held, ""
        return self._keep(held)

    def _keep(self, piece: str) -> str:
        piece = _repair(piece)
        if piece:
            self.pieces.append(piece)
        return piece


@define
class _Slot:
    """A tool call in the making."""

    index: int | None
    id: str
    name: str
    arguments: list[str]


class _Calls:
    """The tool calls of one answer, from fragments that servers number, name and cut in different ways."""

    def __init__(self) -> None:
        self.slots: list[_Slot] = []

    def fold(self, fragment: Mapping[str, Any]) -> None:
        """Adds one fragment, which may be a whole call."""
        raw = fragment.get("function")
        function: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        index = fragment.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        slot = self._slot(index, call_id, name)
        slot.id = slot.id or call_id
        if name != slot.name:
            # A name may come in pieces; one that is said again with every fragment is not a further piece.
            slot.name += name
        slot.arguments.append(_arguments(function.get("arguments")))

    def finish(self, answer_id: str) -> tuple[ToolCall, ...]:
        """The whole calls, each with a name and an id of its own. Raises ModelError for a call without a name."""
        calls: list[ToolCall] = []
        taken: set[str] = set()
        for ordinal, slot in enumerate(self.slots):
            name, arguments = _repair(slot.name).strip(), _repair("".join(slot.arguments))
            if not name:
                raise ModelError("the answer holds a tool call without a name", retryable=True)
            call_id = _repair(slot.id)
            if not call_id or call_id in taken:
                call_id = _made_up_id(answer_id, ordinal, name, arguments)
            taken.add(call_id)
            calls.append(ToolCall(call_id, name, arguments))
        return tuple(calls)

    def _slot(self, index: int | None, call_id: str, name: str) -> _Slot:
        """The call that a fragment belongs to: by index, by id, else the last one, unless it begins a new one."""
        for slot in reversed(self.slots):
            if index is not None and slot.index == index:
                if call_id and name and slot.id and call_id != slot.id:
                    break  # Some servers give all their calls the index 0.
                return slot
            if index is None and call_id and slot.id == call_id:
                return slot
        if index is None and not call_id and not name and self.slots:
            return self.slots[-1]
        if len(self.slots) >= MAX_TOOL_CALLS:
            raise ModelError(f"the answer holds more than {MAX_TOOL_CALLS} tool calls", retryable=True)
        self.slots.append(_Slot(index, call_id, "", []))
        return self.slots[-1]


@frozen
class _Counter:
    """Reads one number of a usage object."""

    usage: Mapping[str, Any]

    def __call__(self, *path: str) -> int:
        value: Any = self.usage
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping) or not usage:
        return None
    count = _Counter(usage)
    return Usage(
        prompt=count("prompt_tokens"),
        completion=count("completion_tokens"),
        cached=count("prompt_tokens_details", "cached_tokens"),
        reasoning=count("completion_tokens_details", "reasoning_tokens"),
    )


def _reasoning_of(delta: Mapping[str, Any]) -> str:
    """The reasoning under either of its two names; a server that sends both says the same twice."""
    return _text(delta.get("reasoning")) or _text(delta.get("reasoning_content"))


def _text(value: Any) -> str:
    """A string as it is, the text of a list of text parts; empty for all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in _objects(value) if part.get("type", "text") == "text")
    return ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _arguments(value: Any) -> str:
    """Arguments as the string that they should be; some servers send the object itself."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else ""


def _made_up_id(answer_id: str, ordinal: int, name: str, arguments: str) -> str:
    """An id for a call that came without one: the same for the same answer, and hardly ever that of another."""
    cause = "\x1f".join((_repair(answer_id), str(ordinal), name, arguments))
    return "call_" + hashlib.blake2b(cause.encode(), digest_size=12).hexdigest()


_BROKEN: Final = re.compile("[\x00\ud800-\udfff]")


def _repair(text: str) -> str:
    """The same text with surrogate pairs joined, lone surrogates replaced and NUL left out."""
    if not _BROKEN.search(text):
        return text
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _load(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _Garbled("a part of the answer is not JSON", retryable=True) from None
