"""What operators and scripts ask of the ledger: the deliveries that need somebody, and what became of a question.

Functions of the ledger's own connection. The rule that must not be broken: nothing here changes a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from attrs import frozen
from sqlite_utils import Database

from hermes_trio.ledger import obligations
from hermes_trio.ledger.executors import Connection
from hermes_trio.ledger.rows import ObligationRow
from hermes_trio.ledger.schema import migrations
from hermes_trio.values import Address


def in_states(con: Connection, states: Sequence[str]) -> Iterator[ObligationRow]:
    """The obligations in these states, newest first; read as far as it is iterated."""
    marks = ", ".join("?" for _ in states)
    found = con.execute(f"SELECT id FROM delivery_obligations WHERE state IN ({marks}) ORDER BY seq DESC", (*states,))
    return (obligations.get(con, row["id"]) for row in found)


def derived(con: Connection, prefix: str) -> tuple[ObligationRow, ...]:
    """The obligations whose id begins with this, in order of arrival."""
    found = con.execute(
        "SELECT id FROM delivery_obligations WHERE substr(id, 1, ?) = ? ORDER BY seq", (len(prefix), prefix)
    ).fetchall()
    return tuple(obligations.get(con, row["id"]) for row in found)


def due_at(con: Connection, address: Address) -> float | None:
    """When this address is due, by its first open obligation; None: nothing there waits for time."""
    marks = ", ".join("?" for _ in obligations.OPEN)
    row = con.execute(
        f"SELECT due_at FROM delivery_obligations WHERE state IN ({marks})"
        " AND platform = ? AND chat_id = ? AND thread_id = ? ORDER BY seq LIMIT 1",
        (*obligations.OPEN, address.account, address.chat, address.thread),
    ).fetchone()
    return None if row is None or row["due_at"] >= 1e300 else float(row["due_at"])


def open_ids(con: Connection, address: Address) -> tuple[str, ...]:
    """The ids of the open obligations of one address, in order of arrival."""
    marks = ", ".join("?" for _ in obligations.OPEN)
    found = con.execute(
        f"SELECT id FROM delivery_obligations WHERE state IN ({marks})"
        " AND platform = ? AND chat_id = ? AND thread_id = ? ORDER BY seq",
        (*obligations.OPEN, address.account, address.chat, address.thread),
    ).fetchall()
    return tuple(row["id"] for row in found)


@frozen
class Question:
    """What became of a message, as its sender may want to know."""

    state: str
    """Of its inbox row."""
    ended: bool
    text: str
    """The reply, as it was said; empty while there is none."""
    error: str
    """For the operator, when it failed."""


def question(con: Connection, address: Address, native_id: str) -> Question:
    """What became of the message with this id, which must be known."""
    row = con.execute(
        "SELECT inbox.state AS state, inbox.ended_at AS ended_at, turns.error AS error, reply.content AS content"
        " FROM inbox LEFT JOIN turns ON turns.inbox = inbox.id"
        " LEFT JOIN delivery_obligations AS reply ON reply.turn = turns.id AND reply.kind = 'reply'"
        " WHERE inbox.account = ? AND inbox.chat = ? AND inbox.native_id = ?",
        (address.account, address.chat, native_id),
    ).fetchone()
    return Question(row["state"], row["ended_at"] is not None, row["content"] or "", row["error"] or "")


def damage(con: Connection) -> str:
    """What is wrong with the database file, from SQLite's own quick check and our schema; empty when nothing is."""
    try:
        complaint = str(con.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        complaint = str(error)
    if complaint != "ok":
        return f"it is damaged ({complaint}); stop the bot and restore a backup, or recover it with SQLite's .recover"
    applied = {migration.name for migration in migrations.applied(Database(con, execute_plugins=False))}
    if newer := sorted(applied - {migration.name for migration in migrations._migrations}):
        return f"it was written by a newer hermes_trio (it knows {', '.join(newer)}); install that version"
    if not applied:
        return "it is the database of another program; point data_dir elsewhere"
    return ""
