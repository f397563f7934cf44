"""What a model is: the Model protocol, the messages that it reads and the events that it streams. Pure values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from attrs import frozen


@frozen
class ToolCall:
    """A call that the model asks for."""

    id: str
    name: str
    arguments: str
    """A JSON object as the model wrote it; it may be malformed."""


@frozen
class Image:
    """An image in a user's message."""

    mime: str
    data: bytes


@frozen
class Message:
    """One message of a request."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message; each is answered by one tool message directly behind it."""
    tool_call_id: str | None = None
    """Of a tool's message."""
    name: str | None = None
    images: tuple[Image, ...] = ()


@frozen
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""


@frozen
class Usage:
    """Tokens, as the server counted them."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    context: int = 0
    """Of several requests that were added up: what the latest of them read."""


@frozen
class TextDelta:
    """A further piece of the visible answer. Never empty."""

    text: str


@frozen
class ReasoningDelta:
    """A further piece of the model's reasoning, which is not part of the answer."""

    text: str


@frozen
class Completion:
    """The last event of a stream that provably ended: the whole answer."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    reasoning: str
    finish: str
    """stop, tool_calls, or what else the server says ended it properly."""
    usage: Usage | None = None


Event = TextDelta | ReasoningDelta | Completion


class ModelError(Exception):
    """The model did not answer. The text is for the operator and holds no secret."""

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        """Whether the same request may succeed later."""
        self.retry_after = retry_after
        """Seconds, where the server said so."""


class Truncated(ModelError):
    """The answer broke off: no finish, or the length limit. What came is not an answer."""


class ContextOverflow(ModelError):
    """The request is longer than the model's context."""


class Model(Protocol):
    """A language model.

    `stream` makes one attempt. Its events end with exactly one Completion, or it raises ModelError; there is no
    Completion without proof that the answer is complete. Cancelled: the connection is closed.
    """

    @property
    def name(self) -> str: ...

    def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]: ...
