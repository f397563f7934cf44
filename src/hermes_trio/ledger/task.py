"""The ledger task: the one task that owns the database, and the one door to it.

Callers hand over synchronous functions of the connection. The task takes all that are waiting, runs them in one
transaction on its executor, each under a savepoint, and answers every caller after the COMMIT. The rule that must not
be broken: a function touches only the connection and its frozen arguments, because it may run twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Concatenate, Generic, ParamSpec, TypeVar

import outcome
import structlog
import trio

from hermes_trio.ledger.executors import Call, Connection, Executor, StoreFailed

P = ParamSpec("P")
T = TypeVar("T")

MAX_BATCH = 256
"""Calls in one transaction: a hundred rows a transaction are 15 times as fast as one; beyond that waiting grows."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two tries of `insist`: the first, and the longest after doubling."""

log = structlog.get_logger(__name__)


class LedgerClosed(Exception):
    """The ledger has ended, and with it this incarnation. What was waiting may or may not be durable."""


class _Waiting(Generic[T]):
    """A call, and the task that waits for its result."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.done = trio.Event()
        self.result: outcome.Value[T] | outcome.Error | None = None

    def settle(self, result: outcome.Value[T] | outcome.Error) -> None:
        self.result = result
        self.done.set()


class Ledger:
    """The handle that every task uses. It stays valid until `open_ledger` ends; then calls raise LedgerClosed."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._waiting: list[_Waiting[object]] = []
        self._work = trio.Event()
        self._closed = False
        self.healthy = True
        """Whether the latest transaction could be written."""

    async def commit(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(connection, *args)` in a transaction and returns its value when that is durable.

        An exception of `fn` undoes what it did, nothing else, and is raised here. Raises StoreFailed when the
        database could not write (nothing of the call is durable then) and LedgerClosed at the end of the process.
        Cancelled before the call was handed over: nothing happens. After that, waiting is not cancellable.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise LedgerClosed
        waiting: _Waiting[T] = _Waiting(Call(fn, args, kwargs))
        self._waiting.append(waiting)  # type: ignore[arg-type]  # the list forgets each caller's result type
        self._work.set()
        # The only shield without a deadline: a commit has no half outcome, and the ledger outlives its callers.
        with trio.CancelScope(shield=True):
            await waiting.done.wait()
        assert waiting.result is not None
        return waiting.result.unwrap()

    async def insist(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `commit`, but a database that cannot write is tried again until it can.

        Cancelled between two tries: nothing of the call is durable.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                return await self.commit(fn, *args, **kwargs)
            except StoreFailed as failure:
                log.warning("the database cannot write, trying again", call=Call(fn).label, error=str(failure))
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run(self) -> None:
        """Takes what is waiting, batch by batch, until cancelled."""
        try:
            while True:
                await self._work.wait()
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                if not self._waiting:
                    self._work = trio.Event()
                await self._transact(batch)
        finally:
            self._closed = True
            for waiting in self._waiting:
                waiting.settle(outcome.Error(LedgerClosed()))

    async def _transact(self, batch: list[_Waiting[object]]) -> None:
        try:
            results = await self._executor.run(tuple(waiting.call for waiting in batch))
        except BaseException:
            for waiting in batch:
                waiting.settle(outcome.Error(LedgerClosed()))
            raise
        self.healthy = not any(
            isinstance(result, outcome.Error) and isinstance(result.error, StoreFailed) for result in results
        )
        for waiting, result in zip(batch, results, strict=True):
            waiting.settle(result)


@asynccontextmanager
async def open_ledger(executor: Executor) -> AsyncIterator[Ledger]:
    """The ledger over an executor that is open. Its task runs in a nursery around the block and ends after it.

    An error of the ledger task itself (not of a call) cancels the block and is raised from here.
    """
    ledger = Ledger(executor)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ledger._run, name="ledger")
        try:
            yield ledger
        except* LedgerClosed:
            # Whoever cancelled everything from outside gets the cancellation back, and nothing of ours beside it.
            await trio.lowlevel.checkpoint_if_cancelled()
            raise
        nursery.cancel_scope.cancel()
