"""A small HTTP client for tests of the fakes and for their control interface: one connection, h11, nothing else."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import h11
import trio
import trio.testing
from attrs import define, field, frozen


class Lost(Exception):
    """The connection ended before the answer was complete, or carried something that is no answer."""


@frozen
class Response:
    """A whole answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@define(eq=False)
class Client:
    """One connection. `open_client` and `connect_memory` make one."""

    stream: trio.abc.Stream
    http: h11.Connection = field(factory=lambda: h11.Connection(h11.CLIENT))

    async def request(
        self,
        method: str,
        target: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Response:
        """Sends a request and reads its whole answer; Lost when there is none."""
        head = await self.start(method, target, json=json, headers=headers, body=body)
        pieces = bytearray()
        while (piece := await self.piece()) is not None:
            pieces += piece
        return Response(head.status, head.headers, bytes(pieces))

    async def start(
        self,
        method: str,
        target: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Response:
        """Sends a request and reads the head of its answer; `piece` reads the rest."""
        await self.send(method, target, json=json, headers=headers, body=body)
        return await self.head()

    async def head(self) -> Response:
        """The head of the answer to what was sent, with an empty body; Lost when there is none."""
        head = await self._event()
        if not isinstance(head, h11.Response):
            raise Lost("closed without an answer")
        found = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        return Response(head.status_code, found, b"")

    async def send(
        self,
        method: str,
        target: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> None:
        """Sends a request and reads nothing."""
        fields = {"host": "fake", **(headers or {})}
        if json is not None:
            body = _encode(json)
            fields["content-type"] = "application/json"
        fields["content-length"] = str(len(body))
        out = self.http.send(h11.Request(method=method, target=target, headers=list(fields.items()))) or b""
        out += self.http.send(h11.Data(data=body)) or b""
        out += self.http.send(h11.EndOfMessage()) or b""
        try:
            await self.stream.send_all(out)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Lost("closed while writing") from error

    async def piece(self) -> bytes | None:
        """The next bytes of the body; None at its end."""
        event = await self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            if self.http.our_state is h11.DONE and self.http.their_state is h11.DONE:
                self.http.start_next_cycle()
            return None
        raise Lost("closed within the answer")

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def _event(self) -> Any:
        try:
            while (event := self.http.next_event()) is h11.NEED_DATA:
                self.http.receive_data(bytes(await self.stream.receive_some(65536)))
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError) as error:
            raise Lost("closed or garbage") from error
        return event


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def connect_memory(nursery: trio.Nursery, serve: Callable[[trio.abc.Stream], Awaitable[None]]) -> Client:
    """A client on one end of a memory stream, with the server on the other end in the nursery."""
    ours, theirs = trio.testing.memory_stream_pair()
    nursery.start_soon(serve, theirs)
    return Client(ours)


async def open_client(port: int, host: str = "127.0.0.1") -> Client:
    """A client over a new TCP connection; OSError when it is refused."""
    return Client(await trio.open_tcp_stream(host, port))
