"""An HTTP/1.1 server over any trio stream, with the ways in which a real one fails.

One connection is one task that runs `serve_http`. A handler turns each Request into an Answer: an ordinary `Reply`, a
`StreamReply` that writes pieces as they come, a `Hangup` (the connection ends without a proper answer) or `Silence`
(it stays open and says nothing). While the handler works, the connection is watched, so `Request.gone` tells at once
that the client has left.

The rule: whatever a client does, `serve_http` returns; only a mistake in the handler raises.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import h11
import trio
from attrs import define, field, frozen

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request body; a longer one is answered with 413 and the end of the connection."""

T = TypeVar("T")
MAX_HEAD = 256 * 1024
"""Bytes of a request's head; a text in the query of a GET is part of it."""

Headers = tuple[tuple[str, str], ...]
Send = Callable[[bytes], Awaitable[None]]


@frozen(eq=False)
class Request:
    """One complete request."""

    method: str
    target: str
    """Path and query as they stood in the request line."""
    headers: Mapping[str, str] = field(factory=dict)
    """Names in lower case."""
    body: bytes = b""
    gone: trio.Event = field(factory=trio.Event)
    """Set when the client closes the connection before its answer is complete."""

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def json(self) -> Any:
        """The body as JSON; ValueError if it is none."""
        return json.loads(self.body.decode("utf-8"))


@frozen
class Reply:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    headers: Headers = ()


@frozen
class StreamReply:
    """An answer in pieces: `feed` is called with a function that sends one piece as one HTTP chunk.

    When `feed` returns the answer is complete; when it raises CutOff the connection ends in the middle. It is
    cancelled when the client goes.
    """

    feed: Callable[[Send], Awaitable[None]]
    status: int = 200
    headers: Headers = ()


@frozen
class Hangup:
    """The connection is closed; before that `first` is written as it is, without any HTTP around it."""

    first: bytes = b""


@frozen
class Silence:
    """No answer: the connection stays open until the client goes."""


Answer = Reply | StreamReply | Hangup | Silence
Handler = Callable[[Request], Awaitable[Answer]]
Answered = Callable[[Request], Awaitable[None]]
"""Is told of a request whose answer was written, or will never be."""


class CutOff(Exception):
    """Raised by the feed of a StreamReply: the connection ends here, without the end of the answer."""


async def unless_gone(gone: trio.Event, work: Callable[[], Awaitable[T]]) -> T | None:
    """The result of the work; it is cancelled, and the result None, when the client goes first."""
    result: T | None = None
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            await gone.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        result = await work()
        nursery.cancel_scope.cancel()
    return result


def json_reply(value: Any, status: int = 200, headers: Headers = ()) -> Reply:
    """The value as an application/json answer."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Reply(status, body, (("content-type", "application/json"), *headers))


def encode_reply(reply: Reply) -> bytes:
    """The reply as the bytes that a server would write, with its content-length."""
    head = "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
    return f"HTTP/1.1 {reply.status} x\r\n{head}content-length: {len(reply.body)}\r\n\r\n".encode() + reply.body


@define(eq=False)
class Connection:
    """One open connection, as a Door sees it."""

    stream: trio.abc.Stream
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    kept: bool = False
    """It has answered a request and waits for the next one."""
    last: bool = False
    """It ends after the answer that is under way."""

    def close(self) -> None:
        """Ends the connection; nothing that the client has not yet sent will be read."""
        self.scope.cancel()

    def arm_reset(self) -> None:
        """The coming close is a reset (RST) where the stream is a socket; on other streams it stays a plain close."""
        if isinstance(self.stream, trio.SocketStream):
            self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def serve_http(
    handler: Handler,
    stream: trio.abc.Stream,
    connections: set[Connection] | None = None,
    answered: Answered | None = None,
) -> None:
    """Answers requests on the stream until either side ends it, and closes it.

    `connections` holds the connection while it is open. `answered` runs after each answer. Cancelled: the stream is
    closed, an open answer stays incomplete. Raises only what the handler raises.
    """
    connection = Connection(stream)
    known = set() if connections is None else connections
    known.add(connection)
    try:
        with connection.scope:
            async with stream:
                await _Exchange(handler, connection, answered).run()
    finally:
        known.discard(connection)


class _Refused(Exception):
    """A request that no handler sees."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@define(eq=False)
class _Exchange:
    """The sequence of requests on one connection."""

    handler: Handler
    connection: Connection
    answered: Answered | None = None
    http: h11.Connection = field(factory=lambda: h11.Connection(h11.SERVER, MAX_HEAD))
    playing: trio.CancelScope | None = None
    """The scope of the running feed."""

    async def run(self) -> None:
        while True:
            try:
                request = await self._read()
            except _Refused as refused:
                await self._last_words(refused.status)
                return
            except h11.RemoteProtocolError as error:
                await self._last_words(error.error_status_hint)
                return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if request is None or not await self._serve(request) or self.connection.last:
                return
            self.http.start_next_cycle()
            self.connection.kept = True

    async def _event(self) -> Any:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._write(self.http.send(go_on))
            self.http.receive_data(bytes(await self.connection.stream.receive_some(65536)))
        return event

    async def _read(self) -> Request | None:
        """The next whole request; None at the end of the connection."""
        head = await self._event()
        self.connection.kept = False
        if not isinstance(head, h11.Request):
            return None
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                raise _Refused(413)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        return Request(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))

    async def _serve(self, request: Request) -> bool:
        """Whether the connection can carry another request."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, request.gone)
            kept = await self._send(await self.handler(request), request)
            if self.answered is not None:
                await self.answered(request)
            nursery.cancel_scope.cancel()
        return kept and not request.gone.is_set()

    async def _watch(self, gone: trio.Event) -> None:
        """Sets `gone` when the client ends the connection; keeps what it sends early."""
        try:
            while data := await self.connection.stream.receive_some(65536):
                self.http.receive_data(bytes(data))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        gone.set()
        if self.playing is not None:
            self.playing.cancel()

    async def _send(self, answer: Answer, request: Request) -> bool:
        try:
            match answer:
                case Reply():
                    await self._send_whole(answer)
                case StreamReply():
                    await self._send_stream(answer, request)
                case Hangup():
                    if answer.first:
                        await self._write(answer.first)
                    else:
                        self.connection.arm_reset()
                    return False
                case Silence():
                    await request.gone.wait()
                    return False
        except CutOff:
            return False
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            request.gone.set()
            return False
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    async def _send_whole(self, reply: Reply) -> None:
        headers = [*reply.headers, ("content-length", str(len(reply.body)))]
        out = self.http.send(h11.Response(status_code=reply.status, headers=headers)) or b""
        out += self.http.send(h11.Data(data=reply.body)) or b""
        await self._write(out + (self.http.send(h11.EndOfMessage()) or b""))

    async def _send_stream(self, reply: StreamReply, request: Request) -> None:
        async def send(piece: bytes) -> None:
            try:
                await self._write(self.http.send(h11.Data(data=piece)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                request.gone.set()
                raise

        headers = [*reply.headers, ("transfer-encoding", "chunked")]
        await self._write(self.http.send(h11.Response(status_code=reply.status, headers=headers)))
        with trio.CancelScope() as self.playing:
            if request.gone.is_set():
                self.playing.cancel()
            await reply.feed(send)
            await self._write(self.http.send(h11.EndOfMessage()))
        self.playing = None

    async def _last_words(self, status: int) -> None:
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        try:
            await self._send_whole(Reply(status, b"", (("connection", "close"),)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.LocalProtocolError):
            return

    async def _write(self, data: bytes | None) -> None:
        if data:
            await self.connection.stream.send_all(data)
