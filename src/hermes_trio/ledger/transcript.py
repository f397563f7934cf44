"""Sessions, their routes, and the messages in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from attrs import frozen

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


@frozen
class Session:
    """A transcript that an address writes to, or wrote to."""

    id: str
    title: str
    started_at: float
    ended_at: float | None
    messages: int
    model: str | None
    """The model that was chosen for it; None: the configured one."""


def sessions(con: Connection, address: Address) -> tuple[Session, ...]:
    """The sessions of an address, newest first."""
    rows = con.execute(
        "SELECT s.*, (SELECT count(*) FROM messages m WHERE m.session = s.id AND m.hidden = 0) AS messages"
        " FROM sessions s WHERE s.key = ? ORDER BY s.started_at DESC, s.rowid DESC",
        (str(address),),
    )
    return tuple(
        Session(
            row["id"],
            row["title"],
            row["started_at"],
            row["ended_at"],
            row["messages"],
            json.loads(row["model_config"]).get("model"),
        )
        for row in rows
    )


def route(con: Connection, address: Address) -> str | None:
    """The id of the session that the address writes to."""
    row = con.execute("SELECT session FROM routes WHERE key = ?", (str(address),)).fetchone()
    return None if row is None else str(row["session"])


def start_session(
    con: Connection, address: Address, new_id: str, now: float, *, reason: str, parent: str | None = None
) -> None:
    """Ends the current session of an address for a reason and routes it to a new one."""
    key, current = str(address), route(con, address)
    if current is not None:
        con.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL", (now, reason, current)
        )
    con.execute(
        "INSERT INTO sessions (id, key, source, parent_session_id, model_config, title, started_at)"
        " VALUES (?, ?, ?, ?, coalesce((SELECT model_config FROM sessions WHERE id = ?), '{}'),"
        " coalesce((SELECT title FROM sessions WHERE id = ?), ''), ?)",
        (new_id, key, address.account, parent, parent, parent, now),
    )
    con.execute(
        "INSERT INTO routes (key, session) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET session = excluded.session",
        (key, new_id),
    )


def resume_session(con: Connection, address: Address, session: str, now: float) -> None:
    """Routes an address to an earlier session of its own; the current one ends."""
    current = route(con, address)
    con.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = 'resumed another' WHERE id = ? AND ended_at IS NULL",
        (now, current),
    )
    con.execute("UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ?", (session,))
    con.execute("UPDATE routes SET session = ? WHERE key = ?", (session, str(address)))


def set_title(con: Connection, session: str, title: str) -> None:
    """Names a session."""
    con.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session))


def choose_model(con: Connection, session: str, model: str | None) -> None:
    """The model of a session; None: the configured one."""
    row = con.execute("SELECT model_config FROM sessions WHERE id = ?", (session,)).fetchone()
    config = json.loads(row["model_config"])
    config.pop("model", None)
    if model is not None:
        config["model"] = model
    con.execute("UPDATE sessions SET model_config = ? WHERE id = ?", (json.dumps(config), session))


def chosen_model(con: Connection, session: str) -> str | None:
    """The model that was chosen for a session."""
    row = con.execute("SELECT model_config FROM sessions WHERE id = ?", (session,)).fetchone()
    chosen = json.loads(row["model_config"]).get("model")
    return None if chosen is None else str(chosen)


def hide_turn(con: Connection, turn: str) -> None:
    """Takes what a turn wrote out of the conversation; the rows stay."""
    con.execute("UPDATE messages SET hidden = 1 WHERE turn = ?", (turn,))


def move_turn(con: Connection, turn: str, session: str) -> None:
    """What a turn wrote goes on behind the latest message of another session."""
    rows = con.execute("SELECT id FROM messages WHERE turn = ? ORDER BY id", (turn,)).fetchall()
    latest = con.execute("SELECT max(id) AS id FROM messages").fetchone()["id"]
    for offset, row in enumerate(rows, 1):
        con.execute("UPDATE messages SET id = ?, session = ? WHERE id = ?", (latest + offset, session, row["id"]))


def copy_overheard(con: Connection, session: str, after: int, target: str) -> None:
    """What was overheard in a session behind the message `after` stands in another session, too."""
    con.execute(
        "INSERT INTO messages (session, turn, role, content, created_at) SELECT ?, turn, role, content, created_at"
        " FROM messages WHERE session = ? AND id > ? AND role = 'context' AND hidden = 0 ORDER BY id",
        (target, session, after),
    )


def last_turn(con: Connection, session: str) -> str | None:
    """The latest turn of a session that is still part of the conversation."""
    row = con.execute(
        "SELECT turn FROM messages WHERE session = ? AND hidden = 0 AND turn IS NOT NULL ORDER BY id DESC LIMIT 1",
        (session,),
    ).fetchone()
    return None if row is None else str(row["turn"])


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
    rows = con.execute("SELECT * FROM messages WHERE session = ? AND hidden = 0 ORDER BY id", (session,))
    return tuple(_row(row) for row in rows)


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
