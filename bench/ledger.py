"""Commits of the ledger on a real file: how many calls a second, alone and together."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trio

from bench.measure import Measurement
from hermes_trio.ledger import connect, open_ledger, open_thread_executor

COMMITS = 2000


def bump(connection: sqlite3.Connection, name: int) -> None:
    """One small row, like a state that changes."""
    connection.execute(
        "INSERT INTO cursors VALUES (?, '0', 0) ON CONFLICT DO UPDATE SET value = value + 1", (str(name),)
    )


async def commit_together(path: Path, tasks: int) -> float:
    """Seconds for COMMITS calls by so many tasks, each waiting for its own."""
    async with open_thread_executor(partial(connect, path), time.time) as executor, open_ledger(executor) as ledger:

        async def worker(name: int) -> None:
            for _ in range(COMMITS // tasks):
                await ledger.commit(bump, name)

        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            for name in range(tasks):
                nursery.start_soon(worker, name)
        return trio.current_time() - started


def measure() -> Iterator[Measurement]:
    """Calls a second by one task, by ten and by a hundred."""
    for tasks in (1, 10, 100):
        with tempfile.TemporaryDirectory() as directory:
            seconds = trio.run(commit_together, Path(directory) / "state.db", tasks)
        yield Measurement(f"durable calls, {tasks} at a time", COMMITS / seconds, "calls/s", "synchronous=FULL")
