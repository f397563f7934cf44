"""A network of memory streams for tests of the HTTP client: names lead to servers that run in the test's nursery."""

# ruff: noqa: ASYNC109 -- httpcore's backend protocol passes timeouts

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore
import trio
import trio.testing

Serve = Callable[[trio.abc.Stream], Awaitable[None]]


class MemoryNet(httpcore.AsyncNetworkBackend):
    """Connects to the servers of `hosts`; any other host refuses. `connections` counts what was made."""

    def __init__(self, nursery: trio.Nursery, hosts: dict[str, Serve]) -> None:
        self.nursery = nursery
        self.hosts = hosts
        self.connections = 0
        self.connect_takes = 0.0
        """Seconds until a connection is made."""
        self.tls_fails = False

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            with trio.fail_after(float("inf") if timeout is None else timeout):
                await trio.sleep(self.connect_takes)
        except trio.TooSlowError:
            raise httpcore.ConnectTimeout from None
        if host not in self.hosts:
            raise httpcore.ConnectError(f"no route to {host}")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.hosts[host], theirs)
        self.connections += 1
        return MemoryStream(ours, self.tls_fails)


class MemoryStream(httpcore.AsyncNetworkStream):
    """The client's end. TLS is passed over in silence."""

    def __init__(self, stream: trio.abc.Stream, tls_fails: bool) -> None:
        self.stream = stream
        self.tls_fails = tls_fails

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            with trio.fail_after(float("inf") if timeout is None else timeout):
                return bytes(await self.stream.receive_some(max_bytes))
        except trio.TooSlowError:
            raise httpcore.ReadTimeout from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise httpcore.ReadError from None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            with trio.fail_after(float("inf") if timeout is None else timeout):
                await self.stream.send_all(buffer)
        except trio.TooSlowError:
            raise httpcore.WriteTimeout from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise httpcore.WriteError from None

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        if self.tls_fails:
            await self.aclose()
            raise httpcore.ConnectError("handshake failed")
        return self

    def get_extra_info(self, info: str) -> Any:
        return None
