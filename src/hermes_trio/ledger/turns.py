"""Turns: at most one runs at an address, and each belongs to one inbox row."""

from __future__ import annotations

import json
import sqlite3

from attrs import asdict, frozen

from hermes_trio.ledger.executors import Connection
from hermes_trio.ledger.rows import InboxRow, TurnRow
from hermes_trio.ledger.transitions import TURN, advance
from hermes_trio.model.base import Usage
from hermes_trio.values import Address


class TurnOver(Exception):
    """A commit of a turn found that it is not running any more; the turn ends without a word."""


def insert(con: Connection, turn_id: str, row: InboxRow, session: str, now: float) -> TurnRow:
    """A running turn for an inbox row."""
    address = row.address
    con.execute(
        "INSERT INTO turns (id, inbox, session, account, chat, thread, state, started_at)"
        " VALUES (?, ?, ?, ?, ?, ?, 'running', ?)",
        (turn_id, row.id, session, address.account, address.chat, address.thread, now),
    )
    return get(con, turn_id)


def get(con: Connection, turn_id: str) -> TurnRow:
    """The turn of this id."""
    return _row(con.execute("SELECT * FROM turns WHERE id = ?", (turn_id,)).fetchone())


def running(con: Connection, address: Address) -> TurnRow | None:
    """The turn that runs at this address."""
    row = con.execute(
        "SELECT * FROM turns WHERE state = 'running' AND account = ? AND chat = ? AND thread = ?",
        (address.account, address.chat, address.thread),
    ).fetchone()
    return None if row is None else _row(row)


def all_running(con: Connection, address: Address) -> tuple[TurnRow, ...]:
    """The turns that run at this address, oldest first: one, or after a chat has moved one from each place."""
    rows = con.execute(
        "SELECT * FROM turns WHERE state = 'running' AND account = ? AND chat = ? AND thread = ?"
        " ORDER BY started_at, id",
        (address.account, address.chat, address.thread),
    )
    return tuple(_row(row) for row in rows)


def expect_running(con: Connection, turn_id: str) -> None:
    """Raises TurnOver unless the turn runs: every commit of a turn begins with this."""
    row = con.execute("SELECT state FROM turns WHERE id = ?", (turn_id,)).fetchone()
    if row["state"] != "running":
        raise TurnOver(row["state"])


def move(con: Connection, turn_id: str, session: str) -> None:
    """The turn goes on in another session."""
    con.execute("UPDATE turns SET session = ? WHERE id = ?", (session, turn_id))


def note_resume(con: Connection, turn_id: str, charge: bool, now: float) -> None:
    """A restart found it running and goes on with it."""
    con.execute(
        "UPDATE turns SET resumes = resumes + 1, charged = charged + ?, resumed_at = ? WHERE id = ?",
        (charge, now, turn_id),
    )


def end(
    con: Connection, turn_id: str, event: str, now: float, *, usage: Usage | None = None, error: str | None = None
) -> None:
    """Ends a running turn by answer, fail, interrupt or stop. Raises TurnOver when it does not run any more."""
    changed = con.execute(
        "UPDATE turns SET state = ?, ended_at = ?, usage = ?, error = ? WHERE id = ? AND state = 'running'",
        (advance(TURN, "running", event), now, json.dumps(asdict(usage or Usage())), error, turn_id),
    ).rowcount
    if changed != 1:
        raise TurnOver(event)


def _row(row: sqlite3.Row) -> TurnRow:
    return TurnRow(
        id=row["id"],
        inbox=row["inbox"],
        session=row["session"],
        address=Address(row["account"], row["chat"], row["thread"]),
        state=row["state"],
        resumes=row["resumes"],
        charged=row["charged"],
        resumed_at=row["resumed_at"],
        started_at=row["started_at"],
    )


@frozen
class UsageTotal:
    """What turns have used."""

    turns: int
    prompt: int
    completion: int


def usage(con: Connection, session: str) -> UsageTotal:
    """What the turns of a session have used, as the servers counted it."""
    row = con.execute(
        "SELECT count(*) AS turns, total(json_extract(usage, '$.prompt')) AS prompt,"
        " total(json_extract(usage, '$.completion')) AS completion FROM turns WHERE session = ?",
        (session,),
    ).fetchone()
    return UsageTotal(row["turns"], int(row["prompt"]), int(row["completion"]))


def last_context(con: Connection, session: str) -> int:
    """The tokens of the latest answered request of a session; 0: none, or nobody counted."""
    row = con.execute(
        "SELECT json_extract(usage, '$.context') AS context FROM turns WHERE session = ? AND state = 'answered'"
        " ORDER BY ended_at DESC LIMIT 1",
        (session,),
    ).fetchone()
    return 0 if row is None else int(row["context"] or 0)
