"""Runs a client library of another event loop against a fake that trio serves on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import trio
from attrs import frozen

from hermes_fakes.server import Server

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a client that does not end is given up; only a mistake takes that long."""


async def run_in_asyncio(main: Coroutine[Any, Any, T]) -> T:
    """The result of an asyncio program, which runs in a thread beside this trio loop.

    Its exceptions come out as they are; TimeoutError when it does not end. Cancelled: the thread is left to end by
    itself.
    """
    bounded = asyncio.wait_for(main, PATIENCE)
    return await trio.to_thread.run_sync(partial(asyncio.run, bounded), abandon_on_cancel=True)


@frozen
class Bridge:
    """Lets an asyncio program wait for what a fake, which lives in a trio loop, has seen. Made in that loop."""

    fake: Server[Any]
    _home: trio.lowlevel.TrioToken

    @classmethod
    def here(cls, fake: Server[Any]) -> Bridge:
        return cls(fake, trio.lowlevel.current_trio_token())

    async def until(self, predicate: Callable[[], object]) -> None:
        """Returns when the predicate, asked after every change of the fake, is true."""
        wait = partial(trio.from_thread.run, self.fake.wait_for, predicate, trio_token=self._home)
        await asyncio.to_thread(wait)
