"""Two stores that the contract tests run on: a thread over a real file, and inline over a database in memory."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from attrs import field, frozen

from hermes_trio.ledger.database import connect, prepare
from hermes_trio.ledger.executors import Executor, InlineExecutor, open_thread_executor

SCHEMA = (
    "CREATE TABLE note (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, body BLOB)",
    "CREATE TABLE link (note TEXT NOT NULL REFERENCES note(name))",
    "INSERT INTO incarnations (id, started, last_commit, lives) VALUES (1, 1000, 1000, 1)",
)
NOW = 5000.0


@frozen
class Store:
    """An executor, and eyes of one's own on what is behind it."""

    executor: Executor
    durable: Callable[[], list[str]]
    """The names that another reader sees now, in order."""
    trace: list[str]
    """Every statement that SQLite ran."""
    boundaries: list[str]
    """What the inline executor announced; the thread announces nothing."""
    gate: threading.Event | None
    """Holds `slow` back on the thread."""
    ran: list[str] = field(factory=list)
    """The calls that ran, each time that they did."""

    def put(self, connection: sqlite3.Connection, name: str, size: int = 0) -> str:
        """Writes one row."""
        self.ran.append(name)
        connection.execute("INSERT INTO note (name, body) VALUES (?, zeroblob(?))", (name, size))
        return f"{name} is in"

    def put_and_raise(self, connection: sqlite3.Connection, name: str, error: BaseException) -> None:
        """Writes one row, and then has a change of mind."""
        self.put(connection, name)
        raise error

    def slow(self, connection: sqlite3.Connection, name: str) -> str:
        """Like `put`; on the thread it waits for the gate."""
        assert self.gate is None or self.gate.wait(10)
        return self.put(connection, name)

    def release(self) -> None:
        """Opens the gate."""
        if self.gate is not None:
            self.gate.set()

    @property
    def transactions(self) -> list[int]:
        """How many rows each committed transaction put, in order."""
        sizes, rows = [], 0
        for statement in self.trace:
            match statement.split()[0]:
                case "BEGIN":
                    rows = 0
                case "INSERT":
                    rows += 1
                case "COMMIT":
                    sizes.append(rows)
        return sizes


def names(connection: sqlite3.Connection) -> list[str]:
    """The rows that a connection sees."""
    return [name for (name,) in connection.execute("SELECT name FROM note ORDER BY seq").fetchall()]


def furnished(connection: sqlite3.Connection, trace: list[str]) -> sqlite3.Connection:
    """The connection with the tables of these tests, watched from now on."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.set_trace_callback(trace.append)
    return connection


@pytest.fixture(params=["thread", "inline"])
def kind(request: pytest.FixtureRequest) -> str:
    """The executor that a contract test runs on."""
    return str(request.param)


@pytest.fixture
def clock(kind: str) -> trio.testing.MockClock:
    """Real time for the thread; for the inline executor time that jumps."""
    return trio.testing.MockClock(rate=1.0) if kind == "thread" else trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
async def store(kind: str, tmp_path: Path) -> AsyncIterator[Store]:
    """An open store of the kind."""
    trace: list[str] = []
    boundaries: list[str] = []
    if kind == "thread":
        path = tmp_path / "state.db"
        gate = threading.Event()

        def opener() -> sqlite3.Connection:
            connection = connect(path)
            connection.execute("PRAGMA busy_timeout = 20")
            return furnished(connection, trace)

        async with open_thread_executor(opener, lambda: NOW) as executor:
            reader = sqlite3.connect(path, isolation_level=None)
            yield Store(executor, lambda: names(reader), trace, boundaries, gate)
            gate.set()
            reader.close()
        return
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, "memory")
    furnished(connection, trace)

    def durable() -> list[str]:
        assert not connection.in_transaction, "an answer inside a transaction"
        return [row[0] for row in connection.execute("SELECT name FROM note ORDER BY seq")]

    yield Store(
        InlineExecutor(connection, lambda: NOW, lambda: 0.01, boundaries.append), durable, trace, boundaries, None
    )
    connection.close()
