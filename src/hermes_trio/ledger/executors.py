"""Where transactions run: on a dedicated thread in production, inline in simulation.

Both run the same `transact`. The rule that must not be broken: every call gets exactly one result, and a call whose
result is a value is durable.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import outcome
import trio
from attrs import field, frozen

Connection = sqlite3.Connection
Result = outcome.Value[Any] | outcome.Error


class StoreFailed(Exception):
    """The database could not write: disk full, an I/O error, a lock. Nothing of the call is durable."""


class Locked(StoreFailed):
    """Another program held the lock of the database for longer than `busy_timeout`."""


ENVIRONMENT = ("FULL", "IOERR", "BUSY", "LOCKED", "READONLY", "CANTOPEN", "NOMEM", "CORRUPT", "NOTADB", "INTERRUPT")
"""SQLite's names, less SQLITE_, of what may go wrong without a mistake in the call, by their beginning."""


@frozen
class Call:
    """A function of the connection and its arguments."""

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(factory=dict)

    @property
    def label(self) -> str:
        """The name by which boundaries and logs speak of this call."""
        return str(getattr(self.fn, "__name__", type(self.fn).__name__))


class Executor(Protocol):
    """Runs batches of calls, one batch at a time."""

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        """One result per call, in order. Not cancellable once the batch was handed over."""


Boundary = Callable[[str], None]
"""Is told of `commit? NAME` before and `commit! NAME` after the COMMIT of a batch; it may raise."""


def transact(
    connection: Connection, calls: Sequence[Call], now: Callable[[], float], boundary: Boundary | None = None
) -> list[Result]:
    """Runs the calls in one transaction, each under a savepoint.

    An error inside a call undoes that call. An error that ends the transaction undoes all; each call is then run
    again alone, once, and gets its own result. `now` (wall-clock seconds) stamps the commit if it changed anything.
    """
    label = "+".join(dict.fromkeys(call.label for call in calls))
    try:
        connection.execute("BEGIN IMMEDIATE")
        before = connection.total_changes
        results = [_under_savepoint(connection, call) for call in calls]
        if connection.total_changes != before:
            connection.execute("UPDATE incarnations SET last_commit = max(?, last_commit) WHERE id = 1", (now(),))
        if boundary is not None:
            boundary(f"commit? {label}")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _undo(connection)
        if len(calls) == 1:
            return [outcome.Error(_failure(error))]
        return _each_alone(connection, calls, now, boundary)
    except BaseException:
        _undo(connection)
        raise
    if boundary is not None:
        boundary(f"commit! {label}")
    return results


def _each_alone(
    connection: Connection, calls: Sequence[Call], now: Callable[[], float], boundary: Boundary | None
) -> list[Result]:
    results: list[Result] = []
    for call in calls:
        result = transact(connection, [call], now, boundary)[0]
        results.append(result)
        if isinstance(result, outcome.Error) and isinstance(result.error, Locked):
            break
    # Who holds the lock of the database for longer than we wait for one call will outlast the others' waiting, too,
    # and the thread cannot be stopped meanwhile.
    missing = len(calls) - len(results)
    return results + [outcome.Error(Locked("the database is locked by another program")) for _ in range(missing)]


def _failure(error: sqlite3.Error) -> Exception:
    """What the caller gets for an error that ended the transaction of its call alone."""
    if not is_environment(error):
        return error
    kind = Locked if error.sqlite_errorname.startswith("SQLITE_BUSY") else StoreFailed
    return kind(str(error))


def _under_savepoint(connection: Connection, call: Call) -> Result:
    """Raises sqlite3.Error only when the whole transaction has ended or cannot go on."""
    connection.execute("SAVEPOINT call")
    result: Result
    try:
        result = outcome.Value(call.fn(connection, *call.args, **call.kwargs))
    except Exception as error:  # a supervision border: the caller gets it, the batch goes on
        if isinstance(error, sqlite3.Error) and (is_environment(error) or not connection.in_transaction):
            raise  # nobody's own mistake, or the end of the transaction: the re-run alone tells whose it is
        connection.execute("ROLLBACK TO call")
        result = outcome.Error(error)
    connection.execute("RELEASE call")
    return result


def is_environment(error: Exception) -> bool:
    """Whether this is the database's own trouble (disk full, I/O, a lock), and not a mistake of whoever called it."""
    if not isinstance(error, sqlite3.Error):
        return False
    name = getattr(error, "sqlite_errorname", None) or ""
    return name.removeprefix("SQLITE_").startswith(ENVIRONMENT)


def _undo(connection: Connection) -> None:
    if connection.in_transaction:  # a full disk has already rolled it back by itself
        connection.execute("ROLLBACK")


class ThreadExecutor:
    """One dedicated thread owns the connection for its whole life."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._jobs: queue.SimpleQueue[tuple[trio.lowlevel.Task, Callable[[], Any]] | None] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._connection: Connection | None = None

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        results: list[Result] = await self._submit(lambda: transact(self._live, calls, self._now))
        return results

    @property
    def _live(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def _open(self, opener: Callable[[], Connection]) -> None:
        self._connection = opener()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _serve(self) -> None:
        """The thread's main loop: jobs until None."""
        while (job := self._jobs.get()) is not None:
            task, work = job
            result = outcome.capture(work)
            try:
                self._token.run_sync_soon(trio.lowlevel.reschedule, task, result)
            except trio.RunFinishedError:
                return

    async def _submit(self, work: Callable[[], Any]) -> Any:
        self._jobs.put((trio.lowlevel.current_task(), work))
        return await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)


@asynccontextmanager
async def open_thread_executor(opener: Callable[[], Connection], now: Callable[[], float]) -> AsyncIterator[Executor]:
    """A ThreadExecutor whose thread opens the connection by `opener` and closes it at the end.

    What `opener` raises is raised here.
    """
    executor = ThreadExecutor(now)
    thread = threading.Thread(target=executor._serve, name="ledger", daemon=True)
    thread.start()
    try:
        await executor._submit(lambda: executor._open(opener))
        yield executor
    finally:
        await executor._submit(executor._close)  # not cancellable and bounded by one SQLite call
        executor._jobs.put(None)


class InlineExecutor:
    """Simulation: the transaction runs in the ledger task itself, with a wait before and after it.

    A commit that takes no time hides races; a thread under an autojumping clock lets hours pass.
    """

    def __init__(
        self, connection: Connection, now: Callable[[], float], delay: Callable[[], float], boundary: Boundary
    ) -> None:
        self._connection = connection
        self._now = now
        self._delay = delay
        self._boundary = boundary

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        await self._wait()
        results = transact(self._connection, calls, self._now, self._boundary)
        await self._wait()
        return results

    async def _wait(self) -> None:
        # Like the thread's: a batch that was handed over is not cancellable.
        with trio.CancelScope(shield=True):
            await trio.sleep(self._delay())
