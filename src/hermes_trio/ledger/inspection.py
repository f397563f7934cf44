"""Looking at the ledger from beside it: what an operator asks of a database that a bot may be writing to.

Functions of a read-only connection. The rule that must not be broken: nothing here writes, and nothing that the bot
itself decides rests on what is read here, because it may be outdated before it is printed.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from hermes_trio.values import Address

STORIES: Mapping[str, str] = {
    "inbox": "SELECT id, native_id AS native, state, text FROM inbox",
    "turns": "SELECT inbox, state, resumes, coalesce(error, '') AS error FROM turns",
    "delivery_obligations": "SELECT kind, state, attempts, content AS text FROM delivery_obligations",
    "posts": (
        "SELECT posts.ordinal AS part, posts.state AS state, message_id, marked"
        " FROM posts JOIN delivery_obligations ON obligation = id"
    ),
}
"""The tables that tell what became of each message, and what to read of them. Each is read in order of its birth."""
_ORDER: Mapping[str, str] = {
    "inbox": "id",
    "turns": "started_at",
    "delivery_obligations": "seq",
    "posts": "seq, serial",
}


@frozen
class Story:
    """Some columns of one table, for people."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def stories(con: sqlite3.Connection) -> tuple[Story, ...]:
    """What became of each message, table by table. Meant for small databases: it reads every row."""
    told = []
    for table, statement in STORIES.items():
        cursor = con.execute(f"{statement} ORDER BY {_ORDER[table]}")
        columns = tuple(str(column[0]) for column in cursor.description)
        told.append(Story(table, columns, tuple(tuple(row) for row in cursor)))
    return tuple(told)


def every_row(con: sqlite3.Connection, table: str, order: str) -> list[Mapping[str, Any]]:
    """All rows of a table as they are, for whoever judges them; none when there is no such table.

    table, order: names in the program's own hand.
    """
    if con.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone() is None:
        return []
    cursor = con.execute(f"SELECT * FROM [{table}] ORDER BY {order}")
    columns = [str(column[0]) for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def owner(lock: Path) -> str | None:
    """Who holds the database, in words, by its lock file; None when nobody does.

    It reads what the holder wrote and takes no lock, which could keep a bot from starting.
    """
    try:
        words = lock.read_text(errors="replace").strip()
    except OSError:
        return None
    found = re.match(r"pid (\d+)", words)
    if found is None:
        return None
    try:
        os.kill(int(found[1]), 0)
    except PermissionError:
        return words
    except (OSError, OverflowError):
        return None
    return words


@frozen
class Past:
    """What a conversation was before."""

    messages: int
    """Of the user and of the bot, in the session that the address writes to now."""
    last_at: float
    """Wall-clock seconds."""
    unfinished: str
    """What the user said and has no answer yet; empty when all is answered."""


def past(con: sqlite3.Connection, address: Address) -> Past | None:
    """The conversation at an address so far; None when there is none, or an older database cannot tell."""
    if not con.execute("SELECT 1 FROM sqlite_master WHERE name = 'routes'").fetchone():
        return None
    said = con.execute(
        "SELECT count(*) AS number, max(created_at) AS latest FROM messages JOIN routes USING (session)"
        " WHERE key = ? AND role IN ('user', 'assistant')",
        (str(address),),
    ).fetchone()
    if not said["number"]:
        return None
    open_row = con.execute(
        "SELECT text FROM inbox WHERE ended_at IS NULL AND account = ? AND chat = ? AND thread = ? ORDER BY id",
        (address.account, address.chat, address.thread),
    ).fetchone()
    return Past(said["number"], said["latest"], "" if open_row is None else open_row["text"])


@frozen
class WaitingMessage:
    """An inbound that has no end yet."""

    address: str
    state: str
    """queued, running or consumed."""
    text: str
    received_at: float
    """Wall-clock seconds, here and below."""


@frozen
class OpenDelivery:
    """A visible message that is owed."""

    id: str
    kind: str
    address: str
    state: str
    attempts: int
    due_at: float
    last_error: str
    text: str
    created_at: float


@frozen
class Overview:
    """What is open in a database, and how it is."""

    lives: int
    """How often a bot has opened it."""
    started_at: float
    last_commit: float
    deliveries: Mapping[str, int] = field(factory=dict)
    """How many there are in each state."""
    waiting: tuple[WaitingMessage, ...] = ()
    """Oldest first, at most `limit` of them."""
    open: tuple[OpenDelivery, ...] = ()
    """Not ended, the held ones among them; oldest first, at most `limit`."""
    limits: tuple[tuple[str, float], ...] = ()
    """Rate limits that are closed: where, and until when."""
    dead: tuple[tuple[str, str], ...] = ()
    """Chats to which nothing can be sent, and why."""


def overview(con: sqlite3.Connection, now: float, limit: int = 50) -> Overview | None:
    """What is open, in one consistent read; None: no bot has ever run on this database."""
    con.execute("BEGIN")
    try:
        life = con.execute("SELECT started, last_commit, lives FROM incarnations").fetchone()
        if life is None:
            return None
        return Overview(
            lives=life["lives"],
            started_at=life["started"],
            last_commit=life["last_commit"],
            deliveries=_deliveries(con),
            waiting=_waiting(con, limit),
            open=_open(con, limit),
            limits=_limits(con, now),
            dead=_dead(con),
        )
    finally:
        con.execute("ROLLBACK")


def _deliveries(con: sqlite3.Connection) -> dict[str, int]:
    return {
        row["state"]: row["number"]
        for row in con.execute(
            "SELECT state, count(*) AS number FROM delivery_obligations GROUP BY state ORDER BY state"
        )
    }


def _waiting(con: sqlite3.Connection, limit: int) -> tuple[WaitingMessage, ...]:
    rows = con.execute(
        "SELECT account, chat, thread, state, text, received_at FROM inbox WHERE ended_at IS NULL ORDER BY id LIMIT ?",
        (limit,),
    )
    return tuple(WaitingMessage(_address(row), row["state"], row["text"], row["received_at"]) for row in rows)


def _open(con: sqlite3.Connection, limit: int) -> tuple[OpenDelivery, ...]:
    rows = con.execute(
        "SELECT id, kind, platform AS account, chat_id AS chat, thread_id AS thread, state, attempts, due_at,"
        " last_error, content, created_at FROM delivery_obligations"
        " WHERE state NOT IN ('delivered', 'abandoned', 'withdrawn') ORDER BY seq LIMIT ?",
        (limit,),
    )
    return tuple(
        OpenDelivery(
            row["id"], row["kind"], _address(row), row["state"], row["attempts"], row["due_at"],
            row["last_error"] or "", row["content"], row["created_at"],
        )
        for row in rows
    )  # fmt: skip


def _limits(con: sqlite3.Connection, now: float) -> tuple[tuple[str, float], ...]:
    rows = con.execute(
        "SELECT account, chat, not_before FROM buckets WHERE not_before > ? ORDER BY account, chat", (now,)
    )
    return tuple((f"{row['account']}:{row['chat'] or '*'}", row["not_before"]) for row in rows)


def _dead(con: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    rows = con.execute("SELECT account, chat, reason FROM dead_addresses ORDER BY since")
    return tuple((f"{row['account']}:{row['chat']}", row["reason"]) for row in rows)


def _address(row: sqlite3.Row) -> str:
    return f"{row['account']}:{row['chat']}" + (f"/{row['thread']}" if row["thread"] else "")
