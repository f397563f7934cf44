"""A model behind an OpenAI-compatible server: one attempt, streamed.

Theory of operation. The bytes come through the HttpClient and go into the pure AnswerReader; this module adds time.
Two limits hold at once: `idle_timeout` between two reads, which keep-alive comments reset, and `timeout` for the
attempt, which nothing resets. Once the answer is proven complete, a failure of the connection changes nothing.

The rule that must not be broken: an attempt is never repeated here. The one exception is a server that refuses the
field `stream_options` by name, before any answer: the request is sent once more without it.

Source: OpenAI API reference, "Chat completions".
"""

from __future__ import annotations

import base64
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from math import inf
from typing import Any, Final

import trio
from attrs import evolve

from hermes_trio.http import HttpClient, NothingLeft, StreamedResponse, Uncertain, load_json
from hermes_trio.model.assembly import AnswerReader, FinishRule
from hermes_trio.model.base import Event, Image, Message, ModelError, ToolCall, ToolSpec, Truncated
from hermes_trio.model.errors import classify, error_in

CONNECT_TIMEOUT: Final = 5.0
"""Seconds for a free connection, for TCP and for TLS."""
LINGER: Final = 5.0
"""Seconds that a finished answer waits for its usage and `[DONE]`; after that it is taken without them."""
REUSE_GRACE: Final = 0.25
"""Seconds that a whole answer waits for the end of its body, so that the connection can be used again."""
MAX_ERROR_BYTES: Final = 64 * 1024
"""The longest refusal that is read; of a longer one only the status counts."""


class OpenAIModel:
    """A Model that speaks chat completions to one server."""

    def __init__(
        self,
        client: HttpClient,
        base_url: str,
        name: str,
        api_key: str | None,
        *,
        timeout: float = 600.0,
        idle_timeout: float = 60.0,
        finish: FinishRule = "required",
        images: bool = True,
    ) -> None:
        """`base_url`: up to and without `/chat/completions`. `timeout`, `idle_timeout`: seconds, above 0.

        `images`: whether the model takes them; if not, the request says in words that there are some.
        `finish`: `optional` only for a server that never names a finish reason. Raises ValueError for a base URL or a
        key that no request could carry.
        """
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("the base URL of a model begins with http:// or https://")
        if api_key is not None and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
            raise ValueError("the API key holds a character that no key can hold, such as a line break")
        self._client = client
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._name = name
        self._headers = {"accept": "text/event-stream"} | ({"authorization": f"Bearer {api_key}"} if api_key else {})
        self._secret = api_key
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self._finish: FinishRule = finish
        self._images = images
        self._ask_usage = True
        """Until the server refuses `stream_options`."""

    @property
    def name(self) -> str:
        """The model's name as the server knows it."""
        return self._name

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        """Makes one attempt; see `model.base.Model`.

        Entering returns with the first byte of the answer's head. Cancelled: the connection is closed, which stops
        most servers. Raises ModelError, Truncated (also for a connection that broke after text had come) and
        ContextOverflow.
        """
        deadline = trio.current_time() + self._timeout
        if not self._images:
            messages = tuple(_in_words(message) for message in messages)
        async with AsyncExitStack() as stack:
            answer = await self._ask(stack, messages, tools, deadline)
            events = _Events(answer, AnswerReader(self._finish), deadline, self._idle_timeout, self._redacted)
            yield events
            await events.drain()

    async def _ask(
        self, stack: AsyncExitStack, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], deadline: float
    ) -> StreamedResponse:
        """The head of an answer that was not refused, its connection owned by `stack`."""
        while True:
            body = request_body(self._name, messages, tools, ask_usage=self._ask_usage)
            opening = self._client.stream(
                "POST",
                self._url,
                json=body,
                headers=self._headers,
                connect_timeout=CONNECT_TIMEOUT,
                read_timeout=self._idle_timeout,
            )
            with _wire_errors(), _time_limit(deadline):
                # The client holds no cancel scope across its `yield`, so this limit may end before the stream does.
                answer = await stack.enter_async_context(opening)
            if 200 <= answer.status < 300:
                return answer
            refusal, words = await self._refusal(answer, deadline)
            if not (self._ask_usage and answer.status in (400, 422) and b"stream_options" in words):
                raise refusal
            self._ask_usage = False
            await stack.aclose()

    async def _refusal(self, answer: StreamedResponse, deadline: float) -> tuple[ModelError, bytes]:
        """The error that a refusal means, and its body."""
        body, payload = b"", None
        with trio.move_on_at(min(deadline, trio.current_time() + self._idle_timeout)):
            # A body that breaks off, is too long or is a page leaves the status to decide.
            with suppress(Uncertain, ValueError):
                body = await answer.read(MAX_ERROR_BYTES)
                payload = load_json(body)
        error = classify(answer.status, error_in(payload) or _loose_error(payload), answer.headers)
        return self._redacted(error), body

    def _redacted(self, error: ModelError) -> ModelError:
        """The same error without the key, should the server have echoed it."""
        if self._secret:
            error.args = (str(error).replace(self._secret, "[key]"),)
        return error


class _Events:
    """The events of one answer (a class: it needs no closing of its own)."""

    def __init__(
        self,
        answer: StreamedResponse,
        reader: AnswerReader,
        deadline: float,
        idle_timeout: float,
        redacted: Callable[[ModelError], ModelError],
    ) -> None:
        self._chunks = answer.chunks()
        self._reader = reader
        self._deadline = deadline
        self._idle_timeout = idle_timeout
        self._redacted = redacted
        self._ready: deque[Event] = deque()
        self._linger_until = inf
        """When a finished answer no longer waits for the rest of its body."""
        self._body_over = False
        self._over = False
        """The reader has given its last event, or failed."""

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            try:
                await self._read_on()
            except ModelError as error:
                self._over = True
                raise self._redacted(error) from None
        return self._ready.popleft()

    async def drain(self) -> None:
        """Reads what is left of a whole answer, for a moment: a body read to its end keeps its connection usable."""
        if not self._reader.done:
            return
        with trio.move_on_after(REUSE_GRACE), suppress(Uncertain):
            async for _ in self._chunks:
                pass

    async def _read_on(self) -> None:
        if self._body_over or self._reader.done:
            self._over = True
            self._ready.extend(self._reader.end())
        elif (chunk := await self._next_chunk()) is not None:
            self._ready.extend(self._reader.feed(chunk))
        else:
            self._body_over = True

    async def _next_chunk(self) -> bytes | None:
        """The next read; None at the end of the body, and for whatever ends it once the answer is proven complete."""
        now = trio.current_time()
        finished = self._reader.finished
        if finished:
            self._linger_until = min(self._linger_until, now + LINGER)
        with trio.move_on_at(min(self._deadline, now + self._idle_timeout, self._linger_until)):
            try:
                return await anext(self._chunks)
            except StopAsyncIteration:
                return None
            except Uncertain as error:
                if finished:
                    return None
                raise self._broken_off(str(error)) from None
        if finished:
            return None
        if trio.current_time() >= self._deadline:
            raise self._broken_off("the answer was not complete in time")
        raise self._broken_off(f"the model sent nothing for {self._idle_timeout:g} s")

    def _broken_off(self, text: str) -> ModelError:
        kind = Truncated if self._reader.begun else ModelError
        return kind(text, retryable=True)


def request_body(
    name: str, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], *, ask_usage: bool = True
) -> dict[str, Any]:
    """The JSON body of a request. The longest answer is left to the server: no field for it is known to all."""
    body: dict[str, Any] = {"model": name, "messages": [_message(message) for message in messages], "stream": True}
    if ask_usage:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in tools
        ]
    return body


def _in_words(message: Message) -> Message:
    """The message for a model that takes no images."""
    if not message.images:
        return message
    number = len(message.images)
    told = f"[{number} image{'s' if number > 1 else ''} came with this; you cannot see images]"
    return evolve(message, content=f"{message.content}\n{told}".strip(), images=())


def _message(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.images:
        out["content"] = [{"type": "text", "text": message.content}] if message.content else []
        out["content"] += [{"type": "image_url", "image_url": {"url": _data_url(image)}} for image in message.images]
    if message.tool_calls:
        out["content"] = message.content or None
        out["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
    if message.role == "tool":
        out["tool_call_id"] = message.tool_call_id
    elif message.name and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", message.name):
        out["name"] = message.name
    return out


def _data_url(image: Image) -> str:
    return f"data:{image.mime};base64,{base64.b64encode(image.data).decode()}"


def _tool_call(call: ToolCall) -> dict[str, Any]:
    """An earlier call. Servers that parse its arguments refuse the request over malformed ones: these go empty."""
    try:
        well_formed = isinstance(load_json(call.arguments), dict)
    except ValueError:
        well_formed = False
    arguments = call.arguments if well_formed else "{}"
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _loose_error(payload: Any) -> dict[str, Any] | None:
    """The words of a refusal that has no error object: some servers say `message` or `detail` at the top."""
    if not isinstance(payload, dict):
        return None
    return {"message": payload.get("message") or payload.get("detail"), "code": payload.get("code")}


@contextmanager
def _wire_errors() -> Iterator[None]:
    """Turns the two failures of the wire, before the head of an answer, into a ModelError."""
    try:
        yield
    except (NothingLeft, Uncertain) as error:
        raise ModelError(f"the model was not reached: {error}", retryable=True) from None


@contextmanager
def _time_limit(deadline: float) -> Iterator[None]:
    try:
        with trio.fail_at(deadline):
            yield
    except trio.TooSlowError:
        raise ModelError("the model did not answer in time", retryable=True) from None
