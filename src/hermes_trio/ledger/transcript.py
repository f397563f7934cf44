"""Sessions, their routes, and the messages in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from hermes_trio.ledger.executors import Connection
from hermes_trio.ledger.rows import MessageRow
from hermes_trio.model.base import ToolCall
from hermes_trio.values import Address


def current_session(con: Connection, address: Address, new_id: str, now: float) -> str:
    """The session that this address writes to; a new one with the given id if it has none."""
    key = str(address)
    row = con.execute("SELECT session FROM routes WHERE key = ?", (key,)).fetchone()
    if row is not None:
        return str(row["session"])
    con.execute(
        "INSERT INTO sessions (id, key, source, started_at) VALUES (?, ?, ?, ?)", (new_id, key, address.account, now)
    )
    con.execute("INSERT INTO routes (key, session) VALUES (?, ?)", (key, new_id))
    return new_id


def append(
    con: Connection,
    session: str,
    turn: str | None,
    role: str,
    content: str | None,
    now: float,
    *,
    calls: Sequence[ToolCall] = (),
    interrupted: bool = False,
) -> None:
    """Adds a message to a transcript, and for each of its calls the row that will hold the result."""
    con.execute(
        "INSERT INTO messages (session, turn, role, content, tool_calls, interrupted, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (session, turn, role, content, _calls_to_json(calls), interrupted, now),
    )
    con.executemany(
        "INSERT INTO messages (session, turn, role, tool_call_id, tool_name, created_at)"
        " VALUES (?, ?, 'tool', ?, ?, ?)",
        [(session, turn, call.id, call.name, now) for call in calls],
    )


def start_call(con: Connection, turn: str, call_id: str, now: float) -> None:
    """Marks the newest call of this id as started; it must not have been started."""
    _update_call(con, "started = ?", "started IS NULL", now, turn, call_id)


def finish_call(con: Connection, turn: str, call_id: str, result: str) -> None:
    """Stores the result of a call; it must not have one."""
    _update_call(con, "content = ?", "content IS NULL", result, turn, call_id)


def _update_call(con: Connection, change: str, expected: str, value: object, turn: str, call_id: str) -> None:
    changed = con.execute(
        f"UPDATE messages SET {change} WHERE {expected} AND id = "
        "(SELECT max(id) FROM messages WHERE turn = ? AND role = 'tool' AND tool_call_id = ?)",
        (value, turn, call_id),
    ).rowcount
    assert changed == 1, f"call {call_id} of turn {turn} is not as expected ({expected})"


def messages(con: Connection, session: str) -> tuple[MessageRow, ...]:
    """The transcript of a session, oldest first."""
    return tuple(_row(row) for row in con.execute("SELECT * FROM messages WHERE session = ? ORDER BY id", (session,)))


def messages_of_turn(con: Connection, turn: str) -> tuple[MessageRow, ...]:
    """What one turn wrote, oldest first."""
    return tuple(_row(row) for row in con.execute("SELECT * FROM messages WHERE turn = ? ORDER BY id", (turn,)))


def _calls_to_json(calls: Sequence[ToolCall]) -> str | None:
    return json.dumps([[call.id, call.name, call.arguments] for call in calls]) if calls else None


def _row(row: sqlite3.Row) -> MessageRow:
    calls = json.loads(row["tool_calls"]) if row["tool_calls"] else []
    return MessageRow(
        id=row["id"],
        turn=row["turn"],
        role=row["role"],
        content=row["content"],
        tool_calls=tuple(ToolCall(*call) for call in calls),
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        started=row["started"],
        interrupted=bool(row["interrupted"]),
        created_at=row["created_at"],
    )
