"""The ledger task and the thread beneath it: how they begin, how they end, what an owner sees."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_trio.ledger import LedgerUnusable, StoreFailed, connect, open_ledger, open_thread_executor
from hermes_trio.ledger.executors import Call, Result
from hermes_trio.ledger.task import Ledger, LedgerClosed


class Broken(Exception):
    """A mistake in the ledger itself."""


class BrokenExecutor:
    """An executor that fails as a whole, which none should."""

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        await trio.sleep(1)
        raise Broken


def bump(connection: sqlite3.Connection, name: str) -> int:
    """Counts one name up."""
    row = connection.execute(
        "INSERT INTO cursors VALUES (?, 1, 0) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value", (name,)
    ).fetchone()
    return int(row[0])


async def test_a_crash_of_the_ledger_ends_its_block(autojump_clock: trio.testing.MockClock) -> None:
    """A ledger task that fails cancels the block, answers who waits with LedgerClosed, and is raised to the owner."""
    closed: list[str] = []

    async def wait(ledger: Ledger, name: str, delay: float) -> None:
        await trio.sleep(delay)
        try:
            await ledger.commit(bump, name)
        except LedgerClosed:
            closed.append(name)

    async with trio.open_nursery() as outer:
        with pytest.RaisesGroup(Broken):
            async with open_ledger(BrokenExecutor()) as ledger:
                outer.start_soon(wait, ledger, "in the batch", 0)
                outer.start_soon(wait, ledger, "behind it", 0.5)
                await trio.sleep_forever()
        outer.start_soon(wait, ledger, "later", 0)
    assert closed[-1] == "later" and sorted(closed) == ["behind it", "in the batch", "later"]
    assert trio.current_time() < 5


async def test_a_cancelled_owner_commits_nothing_more(tmp_path: Path) -> None:
    """Cancelling the owner from outside equals a crash: what was not handed to the executor is never carried out."""
    gate = threading.Event()
    ran: list[str] = []

    def slow(connection: sqlite3.Connection, name: str) -> None:
        ran.append(name)
        assert gate.wait(10)
        bump(connection, name)

    async def closed(ledger: Ledger) -> None:
        with pytest.raises(LedgerClosed):
            await ledger.commit(slow, "behind it")

    async with open_thread_executor(partial(connect, tmp_path / "state.db"), time.time) as executor:
        async with trio.open_nursery() as outer:
            with trio.CancelScope() as scope:
                async with open_ledger(executor) as ledger:
                    outer.start_soon(ledger.commit, slow, "under way")
                    await trio.testing.wait_all_tasks_blocked()
                    outer.start_soon(closed, ledger)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    gate.set()
                    await trio.sleep_forever()
    assert ran == ["under way"]


async def test_one_thread_owns_the_connection() -> None:
    """Opening, every call and closing happen on one thread, which is not trio's and ends with the block."""
    threads: set[threading.Thread] = set()
    closed: list[threading.Thread] = []

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            closed.append(threading.current_thread())
            super().close()

    def opener() -> sqlite3.Connection:
        threads.add(threading.current_thread())
        return sqlite3.connect(":memory:", isolation_level=None, factory=Watched)

    def call(connection: sqlite3.Connection) -> None:
        threads.add(threading.current_thread())

    async with open_thread_executor(opener, time.time) as executor:
        async with open_ledger(executor) as ledger:
            for _ in range(3):
                await ledger.commit(call)
    (thread,) = threads
    assert closed == [thread], "the connection is closed when the block ends"
    assert thread is not threading.current_thread()
    thread.join(10)
    assert not thread.is_alive()


async def test_trio_goes_on_during_a_transaction(tmp_path: Path) -> None:
    """While the thread is in a slow transaction other tasks run."""
    gate = threading.Event()

    def wait(connection: sqlite3.Connection) -> bool:
        return gate.wait(10)

    async with open_thread_executor(partial(connect, tmp_path / "state.db"), time.time) as executor:
        async with open_ledger(executor) as ledger, trio.open_nursery() as nursery:

            async def expect_true() -> None:
                assert await ledger.commit(wait)

            nursery.start_soon(expect_true)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()


async def test_what_the_opener_raises_is_raised(tmp_path: Path) -> None:
    """A database that cannot be opened is reported to whoever opens the executor, and no thread is left."""
    (tmp_path / "state.db").write_text("this is not a database, only some text that stands in its place")
    before = threading.active_count()
    with pytest.raises(LedgerUnusable):
        async with open_thread_executor(partial(connect, tmp_path / "state.db"), time.time):
            raise AssertionError("opened")
    for thread in threading.enumerate():
        if thread.name == "ledger":
            thread.join(10)
    assert threading.active_count() <= before


async def test_a_readonly_file_fails_each_write(tmp_path: Path) -> None:
    """A file that was opened for reading only: StoreFailed for each writer, and the ledger lives on."""
    path = tmp_path / "state.db"
    connect(path).close()

    def opener() -> sqlite3.Connection:
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)

    async with open_thread_executor(opener, time.time) as executor, open_ledger(executor) as ledger:
        for _ in range(2):
            with pytest.raises(StoreFailed, match="readonly"):
                await ledger.commit(bump, "a")
        assert not ledger.healthy
    connection = connect(path)
    assert connection.execute("SELECT count(*) FROM cursors").fetchone()[0] == 0
    connection.close()


async def test_commits_survive_the_block(tmp_path: Path) -> None:
    """What one life committed the next one finds."""
    for life in (1, 2, 3):
        opener = partial(connect, tmp_path / "state.db")
        async with open_thread_executor(opener, time.time) as executor, open_ledger(executor) as ledger:
            assert await ledger.commit(bump, "a") == life
