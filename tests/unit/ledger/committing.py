"""A program for the durability test: lives that commit and acknowledge, each killed by SIGKILL at a random moment.

`python committing.py DATABASE KILLS SEED` prints one JSON object: what was acknowledged, what the database holds at the
end, and how many commits can at most have been durable without an acknowledgement.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path

import trio

from hermes_trio.ledger import connect, open_ledger, open_thread_executor
from hermes_trio.ledger.task import Ledger

TASKS = 4
"""Callers at a time, so that transactions are shared."""


def note(connection: sqlite3.Connection, name: str) -> None:
    """One row with a name that is used once."""
    connection.execute("INSERT INTO cursors VALUES (?, 'x', 0)", (name,))


async def live(database: Path, life: int, acknowledge: int) -> None:
    """Commits until it is killed, and says so after each commit."""

    async def work(ledger: Ledger, task: int) -> None:
        for number in range(1_000_000):
            name = f"{life}.{task}.{number}"
            await ledger.commit(note, name)
            os.write(acknowledge, f"{name}\n".encode())

    async with open_thread_executor(partial(connect, database), time.time) as executor:
        async with open_ledger(executor) as ledger, trio.open_nursery() as nursery:
            for task in range(TASKS):
                nursery.start_soon(work, ledger, task)


def one_life(database: Path, life: int, lines: int, pause: float) -> list[str]:
    """What a life acknowledged: it is killed `pause` seconds after it acknowledged so many commits."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        trio.run(live, database, life, writer)
        os._exit(1)
    os.close(writer)
    with open(reader, "rb") as stream:
        said = b"".join(stream.readline() for _ in range(lines))
        time.sleep(pause)
        os.kill(child, signal.SIGKILL)
        said += stream.read()
    os.waitpid(child, 0)
    return said.decode().splitlines()


def main(database: Path, kills: int, seed: int) -> None:
    """All lives over one database, one after the other."""
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for life in range(kills):
        acknowledged += one_life(database, life, chance.randrange(1, 60), chance.random() * 0.005)
    connection = connect(database)
    found = [row["account"] for row in connection.execute("SELECT account FROM cursors")]
    sound = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    sys.stdout.write(
        json.dumps({"acknowledged": acknowledged, "found": found, "sound": sound, "in flight": kills * TASKS})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
