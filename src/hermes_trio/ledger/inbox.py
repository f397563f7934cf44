"""The inbox: every message from a user, once, in order of arrival."""

from __future__ import annotations

import json
import sqlite3

from attrs import asdict

from hermes_trio.ledger.executors import Connection
from hermes_trio.ledger.rows import InboxRow
from hermes_trio.ledger.transitions import INBOX, advance
from hermes_trio.platforms.base import Attachment, Inbound
from hermes_trio.values import Address


def is_known(con: Connection, inbound: Inbound) -> bool:
    """Whether this native id was stored before."""
    row = con.execute(
        "SELECT 1 FROM inbox WHERE account = ? AND chat = ? AND native_id = ?",
        (inbound.address.account, inbound.address.chat, inbound.native_id),
    ).fetchone()
    return row is not None


def store(
    con: Connection, inbound: Inbound, kind: str, state: str, now: float, *, turn: str | None = None
) -> int | None:
    """The id of the new row; None when this native id is already known."""
    attachments = json.dumps([asdict(attachment) for attachment in inbound.attachments])
    address = inbound.address
    row = con.execute(
        "INSERT INTO inbox (account, chat, thread, native_id, sender, sender_name, text, attachments, anchor,"
        " group_id, shared, kind, state, turn, sent_at, received_at, ended_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT (account, chat, native_id) DO NOTHING RETURNING id",
        (
            address.account, address.chat, address.thread, inbound.native_id, inbound.sender, inbound.sender_name,
            inbound.text if inbound.unreadable is None else inbound.unreadable, attachments, inbound.anchor,
            inbound.group, inbound.shared, kind, state, turn, inbound.sent_at, now, None if INBOX[state] else now,
        ),
    ).fetchone()  # fmt: skip
    return None if row is None else int(row["id"])


def get(con: Connection, row_id: int) -> InboxRow:
    """The row of this id."""
    return _row(con.execute("SELECT * FROM inbox WHERE id = ?", (row_id,)).fetchone())


_AT = "account = ? AND chat = ? AND thread = ?"


def _at(address: Address) -> tuple[str, str, str]:
    return address.account, address.chat, address.thread


def queued(con: Connection, address: Address) -> tuple[InboxRow, ...]:
    """The rows of this address that wait for their turns, oldest first."""
    rows = con.execute(
        f"SELECT * FROM inbox WHERE ended_at IS NULL AND state = 'queued' AND {_AT} ORDER BY id", _at(address)
    )
    return tuple(_row(row) for row in rows)


def parts_of(con: Connection, first: InboxRow, turn: str) -> tuple[InboxRow, ...]:
    """The rows that a turn was begun for, in order of arrival; `first` is the oldest. What was steered is none."""
    rows = con.execute(
        "SELECT * FROM inbox WHERE id >= ? AND turn = ? AND kind != 'steer' ORDER BY id", (first.id, turn)
    )
    return tuple(_row(row) for row in rows)


def newest(con: Connection, address: Address, sender: str) -> InboxRow | None:
    """The latest message of a sender at this address that was meant for a turn."""
    row = con.execute(
        f"SELECT * FROM inbox WHERE {_AT} AND sender = ? AND kind IN ('message', 'queue', 'steer')"
        " AND state NOT IN ('context', 'unreadable') ORDER BY id DESC LIMIT 1",
        (*_at(address), sender),
    ).fetchone()
    return None if row is None else _row(row)


def newest_of_group(con: Connection, address: Address, group: str) -> InboxRow | None:
    """The latest of the messages that were sent as one."""
    row = con.execute(
        f"SELECT * FROM inbox WHERE {_AT} AND group_id = ? ORDER BY id DESC LIMIT 1", (*_at(address), group)
    ).fetchone()
    return None if row is None else _row(row)


def addresses_with_work(con: Connection) -> tuple[Address, ...]:
    """The addresses at which a row is queued or a turn runs, in the order of their oldest open row."""
    rows = con.execute(
        "SELECT account, chat, thread FROM (SELECT account, chat, thread, id FROM inbox WHERE ended_at IS NULL"
        " UNION ALL SELECT account, chat, thread, inbox FROM turns WHERE state = 'running')"
        " GROUP BY account, chat, thread ORDER BY min(id)"
    )
    return tuple(Address(*row) for row in rows)


def move(con: Connection, row_id: int, event: str, now: float, *, turn: str | None = None) -> None:
    """Advances the state of a row. Raises IllegalTransition when its state does not know the event."""
    state = con.execute("SELECT state FROM inbox WHERE id = ?", (row_id,)).fetchone()["state"]
    target = advance(INBOX, state, event)
    ended = None if INBOX[target] else now
    changed = con.execute(
        "UPDATE inbox SET state = ?, ended_at = ?, turn = coalesce(?, turn) WHERE id = ? AND state = ?",
        (target, ended, turn, row_id, state),
    ).rowcount
    assert changed == 1, f"inbox row {row_id} changed under its owner"


def _row(row: sqlite3.Row) -> InboxRow:
    return InboxRow(
        id=row["id"],
        address=Address(row["account"], row["chat"], row["thread"]),
        native_id=row["native_id"],
        sender=row["sender"],
        sender_name=row["sender_name"],
        text=row["text"],
        attachments=tuple(Attachment(**item) for item in json.loads(row["attachments"])),
        anchor=row["anchor"],
        group=row["group_id"],
        shared=bool(row["shared"]),
        kind=row["kind"],
        state=row["state"],
        turn=row["turn"],
        sent_at=row["sent_at"],
        received_at=row["received_at"],
    )
