"""The short way: requests of the bot go to the fakes as values, without bytes, sockets or HTTP between them.

For explorations of thousands of runs. Adapters and the model's client are production code; only the HTTP client is
replaced by one that hands a decoded request to the fake and waits for its answer. Faults, boundaries and the fence
are those of the long way. The rule that must not be broken: what the long way calls uncertain is uncertain here.
"""

from __future__ import annotations

import json as jsonlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from typing import Any
from urllib.parse import urlsplit

import trio
from attrs import define, evolve, field

from hermes_fakes.http import Answer, Connection, CutOff, Hangup, Reply, Request, Silence, StreamReply
from hermes_fakes.server import Server
from hermes_trio.config import TelegramConfig
from hermes_trio.http import HttpClient, NothingLeft, Response, StreamedResponse, Uncertain
from hermes_trio.model.openai import OpenAIModel
from hermes_trio.platforms.telegram import TelegramPlatform
from hermes_trio.runtime import open_runtime
from hermes_trio.testing.fence import Incarnation
from hermes_trio.testing.life import Life
from hermes_trio.testing.network import Link, Network, link


@define(eq=False)
class _Streamed:
    """An answer that arrives as pieces."""

    status: int
    headers: Mapping[str, str]
    _pieces: trio.MemoryReceiveChannel[bytes | None]
    _timeout: float
    _ended: bool = False

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._ended:
            raise StopAsyncIteration
        try:
            with trio.fail_after(self._timeout):
                piece = await self._pieces.receive()
        except trio.TooSlowError:
            raise Uncertain("no answer in time") from None
        except trio.EndOfChannel:
            raise Uncertain("the answer broke off or is not HTTP") from None
        if piece is None:
            self._ended = True
            raise StopAsyncIteration
        return piece

    async def read(self, limit: int) -> bytes:
        """The rest of the body."""
        body = bytearray()
        async for piece in self:
            body += piece
            if len(body) > limit:
                raise Uncertain(f"the answer is longer than {limit} bytes")
        return bytes(body)


class _Nothing(trio.abc.Stream):
    """Stands where a connection has its stream."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        raise trio.ClosedResourceError

    async def wait_send_all_might_not_block(self) -> None:
        raise trio.ClosedResourceError

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        raise trio.ClosedResourceError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@define(eq=False)
class _Exchange:
    """One request on its way, in the world's nursery: the death of its client does not end what the fake does."""

    fake: Server[Any]
    request: Request
    incarnation: Incarnation
    network: Network
    head: trio.Event = field(factory=trio.Event)
    answer: Answer | None = None
    send: trio.MemorySendChannel[bytes | None] = field(init=False)
    pieces: trio.MemoryReceiveChannel[bytes | None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.send, self.pieces = trio.open_memory_channel[bytes | None](inf)

    async def run(self) -> None:
        """The fake's side."""
        own = Link(self.incarnation)
        link.set(own)
        connection = Connection(_Nothing())
        self.fake.door.connections.add(connection)
        try:
            with self.incarnation.connection(), connection.scope, self.send:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._leave, nursery.cancel_scope)
                    await self._answer()
                    nursery.cancel_scope.cancel()
        finally:
            own.open = False
            self.fake.door.connections.discard(connection)
            self.head.set()
            self.network.closed()

    async def _leave(self, scope: trio.CancelScope) -> None:
        """Ends a stream whose client has gone; what has begun before its answer goes on."""
        await self.request.gone.wait()
        if self.answer is not None:
            scope.cancel()

    async def _answer(self) -> None:
        answer = await self.fake.handle(self.request)
        self.answer = answer
        if isinstance(answer, Hangup):
            return
        if isinstance(answer, Silence):
            await self.request.gone.wait()
            return
        self.head.set()
        if isinstance(answer, Reply):
            self.send.send_nowait(answer.body)
        else:
            try:
                await answer.feed(self._feed)
            except CutOff:
                return
        self.send.send_nowait(None)
        await self.fake.answered(self.request)

    async def _feed(self, piece: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if not self.request.gone.is_set():
            self.send.send_nowait(piece)


def direct_bot(life: Life) -> AbstractAsyncContextManager[object]:
    """The real runtime, whose adapter and model reach the fakes the short way."""
    config, client = life.config, life.client
    table, settle = config.platforms["telegram"], config.delivery.settle
    assert isinstance(table, TelegramConfig), "the short way leads to Telegram"
    platform = TelegramPlatform(
        client,
        "telegram",
        table.token.reveal(),
        base_url=table.base_url,
        poll_timeout=table.poll_timeout,
        request_timeout=table.request_timeout,
        connect_timeout=table.connect_timeout,
        edit_interval=table.edit_interval,
        lateness=table.lateness_within(settle),
    )
    model = OpenAIModel(
        client,
        config.model.base_url,
        config.model.name,
        None,
        timeout=config.model.timeout,
        idle_timeout=config.model.idle_timeout,
    )
    return open_runtime(
        evolve(config, platforms={}),
        ports=life.ports,
        model=model,
        tools=life.tools,
        platforms={"telegram": platform},
    )


class DirectClient(HttpClient):
    """An HttpClient whose server is a fake of the same world."""

    def __init__(self, network: Network, incarnation: Incarnation) -> None:
        self._network = network
        self._incarnation = incarnation

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 10.0,
    ) -> Response:
        """As HttpClient's."""
        with trio.move_on_after(read_timeout):
            async with self.stream(method, url, json=json, headers=headers, read_timeout=inf) as answer:
                return Response(answer.status, answer.headers, await answer.read(2**24))
        raise Uncertain("no complete answer in time")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 60.0,
    ) -> AsyncGenerator[StreamedResponse]:
        """As HttpClient's."""
        self._incarnation.guard()
        target = urlsplit(url)
        fake = self._network.hosts.get(target.hostname or "")
        if fake is None:
            raise NothingLeft("no such host")
        if fake.refusing:
            fake.door.refused += 1
            raise NothingLeft("connection refused")
        body = b"" if json is None else jsonlib.dumps(json, ensure_ascii=False).encode("utf-8", "replace")
        given = {"content-type": "application/json", **{name.lower(): text for name, text in (headers or {}).items()}}
        path = f"{target.path}?{target.query}" if target.query else target.path
        exchange = _Exchange(fake, Request(method, path, given, body), self._incarnation, self._network)
        assert self._network.nursery is not None, "the world does not run"
        self._network.nursery.start_soon(exchange.run, name=f"{target.hostname} for life {self._incarnation.number}")
        try:
            with trio.fail_after(read_timeout):
                await exchange.head.wait()
            answer = exchange.answer
            if not isinstance(answer, Reply | StreamReply):
                raise Uncertain("the answer broke off or is not HTTP")
            fields = {name.lower(): text for name, text in answer.headers}
            yield _Streamed(answer.status, fields, exchange.pieces, read_timeout)
        except trio.TooSlowError:
            raise Uncertain("no answer in time") from None
        finally:
            exchange.request.gone.set()
