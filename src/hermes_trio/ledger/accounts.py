"""What the ledger remembers of accounts and of its own lives: cursors, rate limits, dead addresses, incarnations."""

from __future__ import annotations

from attrs import frozen

from hermes_trio.ledger.executors import Connection
from hermes_trio.values import Address


@frozen
class Life:
    """What an incarnation finds when it opens the database."""

    number: int
    """How often a bot has begun to work here, this one included; 0 for a visit before any."""
    previous_death: float
    """The latest wall-clock time at which an earlier bot is known to have run; -inf when there was none."""
    stepped: bool
    """The clock shows less than the time of the latest commit: key windows are closed for good."""


def begin_life(con: Connection, now: float) -> Life:
    """Records a new life of a bot."""
    row = con.execute("SELECT lives, last_commit, bot_died FROM incarnations").fetchone()
    if row is None:
        con.execute("INSERT INTO incarnations (id, started, last_commit, lives) VALUES (1, ?, ?, 1)", (now, now))
        return Life(1, float("-inf"), False)
    con.execute("UPDATE incarnations SET started = ?, lives = lives + 1, last_commit = ?, bot_died = NULL", (now, now))
    died = row["last_commit"] if row["bot_died"] is None else row["bot_died"]
    return Life(row["lives"] + 1, died, now < row["last_commit"])


def begin_visit(con: Connection, now: float) -> Life:
    """Records that a command works here while no bot does. No life begins, and a step of the clock stays to be seen.

    For the next bot the previous one died when it did, whatever is committed meanwhile.
    """
    row = con.execute("SELECT lives, last_commit, bot_died FROM incarnations").fetchone()
    never = float("-inf")
    if row is None:
        con.execute(
            "INSERT INTO incarnations (id, started, last_commit, lives, bot_died) VALUES (1, ?, ?, 0, ?)",
            (now, now, never),
        )
        return Life(0, never, False)
    con.execute("UPDATE incarnations SET bot_died = coalesce(bot_died, last_commit)")
    died = row["last_commit"] if row["bot_died"] is None else row["bot_died"]
    return Life(row["lives"], died, now < row["last_commit"])


def clock_stepped(con: Connection, now: float, longest_wait: float) -> None:
    """The clock jumped: the latest commit is now, and no rate limit lasts longer than `longest_wait` seconds."""
    con.execute("UPDATE incarnations SET last_commit = ?", (now,))
    con.execute("UPDATE buckets SET not_before = min(not_before, ?)", (now + longest_wait,))


def cursor(con: Connection, account: str) -> str | None:
    """Where receiving goes on."""
    row = con.execute("SELECT value FROM cursors WHERE account = ?", (account,)).fetchone()
    return None if row is None else str(row["value"])


def set_cursor(con: Connection, account: str, value: str, now: float) -> None:
    """Stores where receiving goes on, in the transaction of the batch that led there."""
    con.execute(
        "INSERT INTO cursors (account, value, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (account) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (account, value, now),
    )


def close_bucket(con: Connection, account: str, chat: str, until: float) -> None:
    """A rate limit of a chat, or with an empty chat of the account: nothing is asked before `until`."""
    con.execute(
        "INSERT INTO buckets (account, chat, not_before) VALUES (?, ?, ?) ON CONFLICT (account, chat)"
        " DO UPDATE SET not_before = max(not_before, excluded.not_before)",
        (account, chat, until),
    )


def bucket_opens(con: Connection, address: Address) -> float:
    """When the rate limits of this address allow the next request; -inf: they have never been reached."""
    row = con.execute(
        "SELECT max(not_before) AS latest FROM buckets WHERE account = ? AND chat IN ('', ?)",
        (address.account, address.chat),
    ).fetchone()
    return float("-inf") if row["latest"] is None else float(row["latest"])


def mark_dead(con: Connection, address: Address, reason: str, now: float) -> None:
    """Nothing can be sent to this chat any more."""
    con.execute(
        "INSERT INTO dead_addresses (account, chat, reason, since) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (account, chat) DO NOTHING",
        (address.account, address.chat, reason, now),
    )


def mark_living(con: Connection, address: Address) -> None:
    """A user wrote from there: it can be answered again."""
    con.execute("DELETE FROM dead_addresses WHERE account = ? AND chat = ?", (address.account, address.chat))


def is_dead(con: Connection, address: Address) -> bool:
    """Whether the chat was permanently refused and nobody wrote from it since."""
    row = con.execute(
        "SELECT 1 FROM dead_addresses WHERE account = ? AND chat = ?", (address.account, address.chat)
    ).fetchone()
    return row is not None


def rename_chat(con: Connection, address: Address, new: str) -> None:
    """The chat of this address has another id now: open messages, turns, routes and open obligations follow it.

    Message ids of the old chat mean nothing in the new one: an open message keeps its own behind the old chat's id,
    and answers no message any more. `moved_to` knows the way from then on.
    """
    account, old = address.account, address.chat
    con.execute(
        "UPDATE inbox SET chat = ?, native_id = ? || ':' || native_id, anchor = NULL"
        " WHERE account = ? AND chat = ? AND ended_at IS NULL",
        (new, old, account, old),
    )
    con.execute("UPDATE turns SET chat = ? WHERE account = ? AND chat = ?", (new, account, old))
    con.execute(
        "UPDATE delivery_obligations SET chat_id = ?, due_at = 0 WHERE platform = ? AND chat_id = ?"
        " AND state NOT IN ('delivered', 'abandoned', 'withdrawn')",
        (new, account, old),
    )
    for row in con.execute("SELECT key, session FROM routes").fetchall():
        routed = Address.parse(row["key"])
        if (routed.account, routed.chat) == (account, old):
            key = str(Address(account, new, routed.thread))
            con.execute("DELETE FROM routes WHERE key = ?", (row["key"],))
            con.execute("INSERT OR IGNORE INTO routes (key, session) VALUES (?, ?)", (key, row["session"]))
            con.execute("UPDATE sessions SET key = ? WHERE id = ?", (key, row["session"]))
    con.execute("DELETE FROM chat_settings WHERE account = ? AND chat = ? AND name = ?", (account, new, _MOVED))
    set_chat_setting(con, address, _MOVED, new)


def moved_to(con: Connection, address: Address) -> str | None:
    """The id that the chat of this address has now; None: it never moved."""
    return chat_setting(con, address, _MOVED)


_MOVED = "moved to"


def beat(con: Connection, now: float) -> None:
    """A sign of life: the process still ran at this time."""
    con.execute("UPDATE incarnations SET last_commit = max(last_commit, ?)", (now,))


def chat_setting(con: Connection, address: Address, name: str) -> str | None:
    """What was set for a chat, with all its threads, by a command."""
    row = con.execute(
        "SELECT value FROM chat_settings WHERE account = ? AND chat = ? AND name = ?",
        (address.account, address.chat, name),
    ).fetchone()
    return None if row is None else str(row["value"])


def set_chat_setting(con: Connection, address: Address, name: str, value: str) -> None:
    """Sets something for a chat, with all its threads."""
    con.execute(
        "INSERT INTO chat_settings (account, chat, name, value) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (account, chat, name) DO UPDATE SET value = excluded.value",
        (address.account, address.chat, name, value),
    )
