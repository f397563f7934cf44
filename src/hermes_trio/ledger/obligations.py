"""Obligations and their posts: the debts of visible messages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_trio.ledger.executors import Connection
from hermes_trio.ledger.rows import ObligationRow, PostRow
from hermes_trio.ledger.transitions import OBLIGATION, advance
from hermes_trio.text.body import Body
from hermes_trio.values import Address

OPEN = ("streaming", "pending", "attempting", "withdrawing")
"""The states in which a lane has something to do; `held` waits for the operator."""
_OPEN = ", ".join(f"'{state}'" for state in OPEN)


def insert(
    con: Connection,
    obligation_id: str,
    kind: str,
    address: Address,
    now: float,
    *,
    turn: str | None = None,
    anchor: str | None = None,
    content: str = "",
    parts: Sequence[Body] = (),
    progress: Mapping[str, Any],
    expires_at: float | None = None,
) -> bool:
    """A new obligation: pending with its parts, or streaming without any. False when this id already exists."""
    changed = con.execute(
        "INSERT INTO delivery_obligations (id, kind, turn, platform, chat_id, thread_id, anchor, content, parts,"
        " progress, state, expires_at, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT (id) DO NOTHING",
        (
            obligation_id, kind, turn, address.account, address.chat, address.thread, anchor, content,
            bodies_to_json(parts), json.dumps(progress), "pending" if parts else "streaming", expires_at, now, now,
        ),
    ).rowcount  # fmt: skip
    return changed == 1


def get(con: Connection, obligation_id: str) -> ObligationRow:
    """The obligation of this id. Raises KeyError when there is none."""
    row = con.execute("SELECT * FROM delivery_obligations WHERE id = ?", (obligation_id,)).fetchone()
    if row is None:
        raise KeyError(obligation_id)
    return _row(row)


def open_at(con: Connection, address: Address, limit: int) -> tuple[ObligationRow, ...]:
    """The open obligations of an address in order of arrival, the first `limit` of them."""
    rows = con.execute(
        f"SELECT * FROM delivery_obligations WHERE state IN ({_OPEN})"
        " AND platform = ? AND chat_id = ? AND thread_id = ? ORDER BY seq LIMIT ?",
        (address.account, address.chat, address.thread, limit),
    )
    return tuple(_row(row) for row in rows)


def all_open_in(con: Connection, address: Address) -> tuple[ObligationRow, ...]:
    """The open obligations of a chat, in all its threads."""
    rows = con.execute(
        f"SELECT * FROM delivery_obligations WHERE state IN ({_OPEN}) AND platform = ? AND chat_id = ? ORDER BY seq",
        (address.account, address.chat),
    ).fetchall()
    return tuple(_row(row) for row in rows)


def any_open_named(con: Connection, address: Address, prefix: str) -> bool:
    """Whether an open obligation of this address has an id that begins so."""
    row = con.execute(
        f"SELECT 1 FROM delivery_obligations WHERE state IN ({_OPEN}) AND platform = ? AND chat_id = ?"
        " AND thread_id = ? AND substr(id, 1, length(?)) = ? LIMIT 1",
        (address.account, address.chat, address.thread, prefix, prefix),
    ).fetchone()
    return row is not None


def all_open(con: Connection) -> tuple[str, ...]:
    """The ids of all open obligations, in order of arrival."""
    rows = con.execute(f"SELECT id FROM delivery_obligations WHERE state IN ({_OPEN}) ORDER BY seq")
    return tuple(row["id"] for row in rows)


def due_addresses(
    con: Connection, names: Sequence[str], limit: int, besides: Sequence[Address]
) -> tuple[tuple[Address, float], ...]:
    """At most `limit` addresses of these accounts with open obligations, and when each is due, earliest first.

    Less those in `besides`, and without those that wait for something else than time. An address is due when its
    first open obligation is: a decision says so for all that it looked at.
    """
    taken = set(besides)
    rows = con.execute(
        "SELECT platform, chat_id, thread_id, due_at AS due, min(seq) AS first FROM delivery_obligations"
        f" WHERE state IN ({_OPEN}) AND platform IN ({', '.join('?' for _ in names)})"
        " GROUP BY platform, chat_id, thread_id HAVING due < 1e300 ORDER BY due, first LIMIT ?",
        (*names, limit + len(taken)),
    )
    found = [(Address(row[0], row[1], row[2]), float(row["due"])) for row in rows]
    return tuple(pair for pair in found if pair[0] not in taken)[:limit]


def revive(con: Connection, account: str) -> None:
    """The account shows life again: everything open there is due."""
    con.execute(
        f"UPDATE delivery_obligations SET due_at = 0 WHERE platform = ? AND state IN ({_OPEN}) AND due_at != 0",
        (account,),
    )


def counts(con: Connection, address: Address) -> Mapping[str, int]:
    """How many obligations of an address are in each state that is not an end without trouble."""
    rows = con.execute(
        "SELECT state, count(*) AS n FROM delivery_obligations WHERE platform = ? AND chat_id = ? AND thread_id = ?"
        " AND state NOT IN ('delivered', 'withdrawn') GROUP BY state ORDER BY state",
        (address.account, address.chat, address.thread),
    )
    return {row["state"]: row["n"] for row in rows}


def posts_of(con: Connection, obligation_id: str) -> tuple[PostRow, ...]:
    """The posts of an obligation in the order of their creation."""
    rows = con.execute("SELECT * FROM posts WHERE obligation = ? ORDER BY serial", (obligation_id,))
    return tuple(_post(row) for row in rows)


def move(con: Connection, obligation_id: str, event: str, now: float) -> None:
    """Advances the state. Raises IllegalTransition when its state does not know the event."""
    state = get(con, obligation_id).state
    changed = con.execute(
        "UPDATE delivery_obligations SET state = ?, updated_at = ? WHERE id = ? AND state = ?",
        (advance(OBLIGATION, state, event), now, obligation_id, state),
    ).rowcount
    assert changed == 1, f"obligation {obligation_id} changed under its owner"


def plan(
    con: Connection, obligation_id: str, content: str, parts: Sequence[Body], expires_at: float | None, now: float
) -> None:
    """Gives a streaming obligation its final content and parts; with no parts it is to be withdrawn."""
    move(con, obligation_id, "commit" if parts else "withdraw", now)
    con.execute(
        "UPDATE delivery_obligations SET content = ?, parts = ?, expires_at = ?, due_at = 0 WHERE id = ?",
        (content, bodies_to_json(parts), expires_at, obligation_id),
    )


def keep_content(con: Connection, obligation_id: str, content: str) -> None:
    """Stores what an obligation that has ended should have shown, for the operator."""
    con.execute("UPDATE delivery_obligations SET content = ? WHERE id = ?", (content, obligation_id))


def save_progress(
    con: Connection,
    obligation_id: str,
    *,
    parts: Sequence[Body] | None,
    progress: Mapping[str, Any],
    attempts: int,
    not_before: float | None,
    expires_at: float | None,
    anchor: str | None,
    last_error: str | None,
    now: float,
) -> None:
    """Stores what the delivery core knows of an obligation; parts None leaves them as they are."""
    con.execute(
        "UPDATE delivery_obligations SET parts = coalesce(?, parts), progress = ?, attempts = ?, not_before = ?,"
        " expires_at = ?, anchor = ?, last_error = ?, updated_at = ? WHERE id = ?",
        (
            None if parts is None else bodies_to_json(parts), json.dumps(progress), attempts, not_before, expires_at,
            anchor, last_error, now, obligation_id,
        ),
    )  # fmt: skip


def set_due(con: Connection, obligation_ids: Sequence[str], due_at: float) -> None:
    """When a lane should look at these next."""
    con.executemany(
        "UPDATE delivery_obligations SET due_at = ? WHERE id = ? AND due_at != ?",
        [(due_at, obligation_id, due_at) for obligation_id in obligation_ids],
    )


def save_post(con: Connection, obligation_id: str, post: PostRow) -> None:
    """Stores a new or changed post."""
    con.execute(
        "INSERT INTO posts (key, obligation, serial, ordinal, state, message_id, body, shown, marked, progress,"
        " created_at, ended_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET"
        " ordinal = excluded.ordinal, state = excluded.state, message_id = excluded.message_id, body = excluded.body,"
        " shown = excluded.shown, marked = excluded.marked, progress = excluded.progress,"
        " created_at = excluded.created_at, ended_at = excluded.ended_at",
        (
            post.key, obligation_id, post.serial, post.ordinal, post.state, post.message_id,
            None if post.body is None else json.dumps(post.body.to_json(), ensure_ascii=False), post.shown,
            post.marked, json.dumps(post.progress), post.created_at, post.ended_at,
        ),
    )  # fmt: skip


def remove_post(con: Connection, key: str) -> None:
    """The post was refused or is gone."""
    con.execute("DELETE FROM posts WHERE key = ?", (key,))


def bodies_to_json(bodies: Sequence[Body]) -> str:
    """The parts of an obligation as its row holds them."""
    return json.dumps([body.to_json() for body in bodies], ensure_ascii=False)


def _row(row: sqlite3.Row) -> ObligationRow:
    return ObligationRow(
        seq=row["seq"],
        id=row["id"],
        kind=row["kind"],
        turn=row["turn"],
        address=Address(row["platform"], row["chat_id"], row["thread_id"]),
        anchor=row["anchor"],
        content=row["content"],
        parts=tuple(Body.from_json(part) for part in json.loads(row["parts"])),
        progress=json.loads(row["progress"]),
        state=row["state"],
        attempts=row["attempts"],
        not_before=row["not_before"],
        due_at=row["due_at"],
        expires_at=row["expires_at"],
        last_error=row["last_error"],
        created_at=row["created_at"],
    )


def _post(row: sqlite3.Row) -> PostRow:
    return PostRow(
        key=row["key"],
        serial=row["serial"],
        ordinal=row["ordinal"],
        state=row["state"],
        message_id=row["message_id"],
        body=None if row["body"] is None else Body.from_json(json.loads(row["body"])),
        shown=row["shown"],
        marked=bool(row["marked"]),
        progress=json.loads(row["progress"]),
        created_at=row["created_at"],
        ended_at=row["ended_at"],
    )
