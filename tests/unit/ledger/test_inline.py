"""The inline executor of the simulation: its boundaries, at which a crash may be put, and its waits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest
import trio
import trio.testing

from hermes_trio.ledger.database import prepare
from hermes_trio.ledger.executors import Boundary, InlineExecutor, StoreFailed
from hermes_trio.ledger.task import Ledger, LedgerClosed, open_ledger


class Killed(BaseException):
    """The crash that a simulated world puts at a boundary."""


def first(connection: sqlite3.Connection, name: str = "first") -> None:
    """A call with a name for the labels."""
    connection.execute("INSERT INTO cursors VALUES (?, '', 0)", (name,))


def second(connection: sqlite3.Connection) -> None:
    """Another call, with another name."""
    first(connection, "second")


def failing(connection: sqlite3.Connection) -> None:
    """A call whose COMMIT is refused."""
    first(connection, "failing")
    connection.execute("PRAGMA defer_foreign_keys = ON")
    connection.execute("INSERT INTO routes VALUES ('key', 'no such session')")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A database in memory with the project's schema."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, "memory")
    yield connection
    connection.close()


def durable(connection: sqlite3.Connection) -> set[str]:
    """What is left when everything that is open has been lost."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    return {row["account"] for row in connection.execute("SELECT account FROM cursors")}


def inline(
    connection: sqlite3.Connection, boundary: Boundary, delay: Callable[[], float] = lambda: 0.5
) -> InlineExecutor:
    """The executor under test, on the wall clock of trio."""
    return InlineExecutor(connection, trio.current_time, delay, boundary)


def kill_at(label: str, seen: list[str]) -> Boundary:
    """A boundary that notes what it is told and crashes at one label."""

    def boundary(told: str) -> None:
        seen.append(told)
        if told == label:
            raise Killed

    return boundary


async def test_a_commit_is_announced_before_and_after(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock
) -> None:
    """`commit? NAME` is told while nothing is durable, `commit! NAME` when it is and nobody was answered yet."""
    told: list[tuple[str, bool, bool]] = []
    answered = False
    executor = inline(connection, lambda label: told.append((label, connection.in_transaction, answered)))
    async with open_ledger(executor) as ledger:
        await ledger.commit(first)
        answered = True
    assert told == [("commit? first", True, False), ("commit! first", False, False)]


async def test_a_group_is_named_by_all_its_calls(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock
) -> None:
    """The label of a shared transaction names each kind of call in it once, in order."""
    told: list[str] = []
    async with open_ledger(inline(connection, told.append)) as ledger:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.commit, first, "opening")  # keeps the ledger busy for half a second
            for delay, call in ((0.1, first), (0.2, second), (0.3, partial(first, name="third"))):
                nursery.start_soon(later, ledger, delay, call)
    assert told == ["commit? first", "commit! first", "commit? first+second+partial", "commit! first+second+partial"]


async def later(ledger: Ledger, delay: float, call: Callable[[sqlite3.Connection], None]) -> None:
    """Commits after a while."""
    await trio.sleep(delay)
    await ledger.commit(call)


async def test_a_rerun_announces_each_call_alone(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock
) -> None:
    """After a refused COMMIT the boundaries are those of each call alone; a refused one has no `commit!`."""
    told: list[str] = []
    async with open_ledger(inline(connection, told.append)) as ledger:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.commit, first, "opening")
            nursery.start_soon(later, ledger, 0.1, first)
            nursery.start_soon(expect_integrity_error, ledger, 0.2)
            nursery.start_soon(later, ledger, 0.3, second)
    assert told[2:] == [
        "commit? first+failing+second",
        "commit? first",
        "commit! first",
        "commit? failing",
        "commit? second",
        "commit! second",
    ]
    assert durable(connection) == {"opening", "first", "second"}


async def expect_integrity_error(ledger: Ledger, delay: float) -> None:
    """Commits the failing call after a while."""
    await trio.sleep(delay)
    with pytest.raises(sqlite3.IntegrityError):
        await ledger.commit(failing)


@pytest.mark.parametrize(
    ("label", "left"), [("commit? first+second", {"opening"}), ("commit! first+second", {"opening", "first", "second"})]
)
async def test_a_crash_at_a_boundary(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock, label: str, left: set[str]
) -> None:
    """A crash before the COMMIT loses the whole transaction, one after it keeps all; either way nobody is answered."""
    seen: list[str] = []
    errors: list[type[BaseException]] = []

    async def expect_closed(ledger: Ledger, delay: float, call: Callable[[sqlite3.Connection], None]) -> None:
        try:
            await later(ledger, delay, call)
        except LedgerClosed as error:
            errors.append(type(error))

    async with trio.open_nursery() as outer:
        with pytest.RaisesGroup(Killed):
            async with open_ledger(inline(connection, kill_at(label, seen))) as ledger:
                outer.start_soon(ledger.commit, first, "opening")
                outer.start_soon(expect_closed, ledger, 0.1, first)
                outer.start_soon(expect_closed, ledger, 0.2, second)
                await trio.sleep(60)
    assert errors == [LedgerClosed, LedgerClosed]
    assert seen[-1].partition(" ")[0] == label.partition(" ")[0]
    assert durable(connection) == left


async def test_a_commit_takes_time_before_and_after(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock
) -> None:
    """The waits come from `delay`, one before the transaction and one between it and the answer."""
    delays = iter([3.0, 4.0])
    told: list[float] = []
    started = trio.current_time()
    executor = inline(connection, lambda _: told.append(trio.current_time() - started), lambda: next(delays))
    async with open_ledger(executor) as ledger:
        await ledger.commit(first)
        assert trio.current_time() - started == 7.0
    assert told == [3.0, 3.0]


async def test_insist_doubles_its_pause_up_to_five_seconds(
    connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock
) -> None:
    """The pauses are 0.1, 0.2, 0.4 ... 5, 5 s: a full disk is neither hammered nor forgotten."""
    tries: list[float] = []

    def full(connection: sqlite3.Connection) -> None:
        tries.append(trio.current_time())
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        connection.execute("INSERT INTO cursors VALUES ('large', zeroblob(100000), 0)")

    async with open_ledger(inline(connection, lambda _: None, lambda: 0.0)) as ledger:
        with trio.move_on_after(20):
            await ledger.insist(full)
    pauses = [round(after - before, 3) for before, after in pairwise(tries)]
    assert pauses[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def test_store_failed_says_why(connection: sqlite3.Connection, autojump_clock: trio.testing.MockClock) -> None:
    """The text of StoreFailed is SQLite's own."""
    connection.execute("PRAGMA query_only = ON")
    async with open_ledger(inline(connection, lambda _: None)) as ledger:
        with pytest.raises(StoreFailed, match="readonly"):
            await ledger.commit(first)
