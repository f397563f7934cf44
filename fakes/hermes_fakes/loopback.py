"""A fake on a loopback port, for tests of whole processes and for a person with curl.

A closed door closes the listener itself, so a client really sees "connection refused"; it opens again on the same
port.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import trio

from hermes_fakes.server import Server

_REBIND_SECONDS = 10.0
"""How long the old port may be occupied by someone else before that is an error."""


async def listen(fake: Server[Any], nursery: trio.Nursery, port: int = 0, host: str = "127.0.0.1") -> int:
    """Serves the fake on loopback in the nursery and returns the port (port 0: a free one).

    `fake.refuse()` and `fake.outage()` close the listener, `fake.admit()` opens it again on the same port. It is over
    when the nursery is cancelled.
    """
    listeners = await trio.open_tcp_listeners(port, host=host)
    bound: int = listeners[0].socket.getsockname()[1]
    nursery.start_soon(_keep_listening, fake, listeners, bound, host)
    return bound


async def _keep_listening(fake: Server[Any], listeners: list[trio.SocketListener], port: int, host: str) -> None:
    async with trio.open_nursery() as connections:
        while True:
            async with trio.open_nursery() as accepting:
                serve = partial(trio.serve_listeners, fake.serve, listeners, handler_nursery=connections)
                accepting.start_soon(serve)
                await fake.door.wait_closed()
                accepting.cancel_scope.cancel()
            await fake.door.wait_open()
            listeners = await _reopen(port, host)


async def _reopen(port: int, host: str) -> list[trio.SocketListener]:
    give_up = trio.current_time() + _REBIND_SECONDS
    while True:
        try:
            return await trio.open_tcp_listeners(port, host=host)
        except OSError:
            if trio.current_time() > give_up:
                raise
        await trio.sleep(0.05)
