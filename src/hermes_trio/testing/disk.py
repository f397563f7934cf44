"""The disk: a database in memory that outlives the incarnations, and the executor that each of them works on.

A commit takes seeded time, because one that takes none hides races. The rule that must not be broken: a transaction of
a dead incarnation is never committed.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path

import trio

from hermes_trio.clock import Clock
from hermes_trio.ledger.database import prepare, set_up
from hermes_trio.ledger.executors import Call, Executor, InlineExecutor, Result
from hermes_trio.testing.fence import Incarnation

Crossing = Callable[[Incarnation, str], None]
NAME = "the simulated disk"
USUAL_DELAY = 0.02
"""Seconds that a commit takes at most, before and after the transaction, unless the disk is slow."""
SLOW_DELAY = 3.0
SLOW_ONE_IN = 300


class Disk:
    """A database that survives its clients. `crossing` is told of every boundary."""

    def __init__(self, seed: int, crossing: Crossing) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_empty())
        set_up(self.connection)
        self.changed: Callable[[], None] = lambda: None
        """Is called after each commit that changed something."""
        self.held = 0.0
        """Seconds that the ledger task is held up at its next chance."""
        self.before: Crossing = lambda incarnation, label: None
        """Is told of every transaction before it begins."""
        self._crossing = crossing
        self._random = random.Random(f"disk {seed}")
        self._seen = self.connection.total_changes

    def for_incarnation(
        self, incarnation: Incarnation
    ) -> Callable[[Path, Clock], AbstractAsyncContextManager[Executor]]:
        """What opens the executor of one incarnation: the port `open_executor`."""

        @asynccontextmanager
        async def open_executor(data_dir: Path, clock: Clock) -> AsyncIterator[Executor]:
            incarnation.guard()
            inline = InlineExecutor(
                self.connection, clock.now, self._delay, lambda label: self._cross(incarnation, label)
            )
            yield _Executor(inline, lambda label: self.before(incarnation, label), self._hold)

        return open_executor

    async def _hold(self) -> None:
        held, self.held = self.held, 0.0
        if held:
            with trio.CancelScope(shield=True):  # as the inline executor's own waits; it has an end
                await trio.sleep(held)

    def _delay(self) -> float:
        if self._random.randrange(SLOW_ONE_IN) == 0:
            return self._random.uniform(0, SLOW_DELAY)
        return self._random.uniform(0, USUAL_DELAY)

    def _cross(self, incarnation: Incarnation, label: str) -> None:
        """A boundary of a transaction; one that changed nothing has none."""
        incarnation.guard()
        changes = self.connection.total_changes
        if changes == self._seen:
            return
        if label.startswith("commit!"):
            self._seen = changes
            self.changed()
        self._crossing(incarnation, label)


class _Executor:
    """An executor that may be held up before and after a transaction, and that tells of it before it begins."""

    def __init__(self, inline: Executor, before: Callable[[str], None], hold: Callable[[], Awaitable[None]]) -> None:
        self._inline = inline
        self._before = before
        self._hold = hold

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        self._before("commit? " + "+".join(dict.fromkeys(call.label for call in calls)))
        await self._hold()
        results = await self._inline.run(calls)
        await self._hold()
        return results


@cache
def _empty() -> bytes:
    """A database with the current schema, made once a process."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, NAME)
    content = connection.serialize()
    connection.close()
    return content
