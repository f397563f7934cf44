"""The network: host names lead to fakes over memory streams, below the real HTTP client.

The platform's end of a connection runs in the world's nursery, so that the death of its client does not end what the
platform is doing for others. The rule that must not be broken: a dead incarnation neither connects nor writes.
"""

# ruff: noqa: ASYNC109 -- httpcore's backend protocol passes timeouts

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from math import inf
from typing import Any

import httpcore
import trio
import trio.testing
from attrs import define

from hermes_fakes.server import Server
from hermes_trio.testing.fence import Incarnation


@define(eq=False)
class Link:
    """One connection, as the platform's end of it knows it."""

    incarnation: Incarnation
    """Its client."""
    open: bool = True


link: ContextVar[Link] = ContextVar("link")
"""The connection whose request a fake works on."""


class Network:
    """The hosts of a world."""

    def __init__(self, latency: Callable[[], float]) -> None:
        self.hosts: dict[str, Server[Any]] = {}
        self.latency = latency
        """Seconds that one way takes."""
        self.nursery: trio.Nursery | None = None
        """The world's; the platforms' ends of connections run in it."""
        self.closed: Callable[[], None] = lambda: None
        """Is called after each end of a connection."""

    def for_incarnation(self, incarnation: Incarnation) -> httpcore.AsyncNetworkBackend:
        """The network as one incarnation reaches it."""
        return _Backend(self, incarnation)

    async def connect(self, incarnation: Incarnation, host: str) -> trio.abc.Stream:
        """A new connection. Raises OSError as a socket would, and Crashed."""
        await trio.sleep(self.latency())
        incarnation.guard()
        fake = self.hosts.get(host)
        if fake is None:
            raise socket.gaierror(socket.EAI_NONAME, f"the world has no host {host!r}")
        if fake.refusing:
            fake.door.refused += 1
            raise ConnectionRefusedError(f"{host} refuses connections")
        ours, theirs = trio.testing.memory_stream_pair()
        assert self.nursery is not None, "the world does not run"
        self.nursery.start_soon(self._serve, incarnation, fake, theirs, name=f"{host} for life {incarnation.number}")
        return ours

    async def _serve(self, incarnation: Incarnation, fake: Server[Any], stream: trio.abc.Stream) -> None:
        own = Link(incarnation)
        link.set(own)
        try:
            with incarnation.connection():
                await fake.serve(stream)
        finally:
            own.open = False
            self.closed()


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, network: Network, incarnation: Incarnation) -> None:
        self._network = network
        self._incarnation = incarnation

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            with trio.fail_after(inf if timeout is None else timeout):
                stream = await self._network.connect(self._incarnation, host)
        except trio.TooSlowError as error:
            raise httpcore.ConnectTimeout from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return _Stream(stream, self._incarnation)

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """The client's end. TLS is passed over in silence."""

    def __init__(self, stream: trio.abc.Stream, incarnation: Incarnation) -> None:
        self._stream = stream
        self._incarnation = incarnation

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._incarnation.guard()
        try:
            if timeout is None:
                return bytes(await self._stream.receive_some(max_bytes))
            with trio.fail_after(timeout):
                return bytes(await self._stream.receive_some(max_bytes))
        except trio.TooSlowError as error:
            raise httpcore.ReadTimeout from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._incarnation.guard()
        try:
            with trio.fail_after(inf if timeout is None else timeout):
                await self._stream.send_all(buffer)
        except trio.TooSlowError as error:
            raise httpcore.WriteTimeout from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return self

    def get_extra_info(self, info: str) -> Any:
        return None
