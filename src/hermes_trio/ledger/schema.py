"""The tables, and how an older database becomes a current one.

Each migration runs once, atomically with its record. The rule that must not be broken: a migration that has been
released is never edited; a change of the schema is a new migration.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlite_utils import Database, Migrations

from hermes_trio.ledger.transitions import INBOX, MESSAGE_ROLES, OBLIGATION, POST, TURN

migrations = Migrations("hermes_trio")


def _one_of(column: str, values: Iterable[str]) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"CHECK ({column} IN ({listed}))"


TABLES = (
    """
    CREATE TABLE incarnations (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        started REAL NOT NULL,          -- when the latest bot opened this database
        last_commit REAL NOT NULL,      -- the latest time in any row: a clock that shows less was stepped
        lives INTEGER NOT NULL,         -- how often a bot opened it
        bot_died REAL                   -- the last_commit that it left, once a command has worked here without a bot
    )""",
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        key TEXT NOT NULL,              -- the address that it belongs to
        source TEXT NOT NULL,           -- the account
        parent_session_id TEXT REFERENCES sessions(id),
        model_config TEXT NOT NULL DEFAULT '{}',
        title TEXT NOT NULL DEFAULT '',
        started_at REAL NOT NULL,
        ended_at REAL,
        end_reason TEXT
    )""",
    "CREATE INDEX sessions_by_key ON sessions(key, started_at)",
    """
    CREATE TABLE routes (
        key TEXT PRIMARY KEY,           -- an address
        session TEXT NOT NULL REFERENCES sessions(id)
    )""",
    f"""
    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        native_id TEXT NOT NULL,
        sender TEXT NOT NULL,
        sender_name TEXT NOT NULL,
        text TEXT NOT NULL,
        attachments TEXT NOT NULL DEFAULT '[]',
        anchor TEXT,
        group_id TEXT,                  -- the same for all messages that were sent as one
        shared INTEGER NOT NULL DEFAULT 0,      -- several people speak in this chat
        kind TEXT NOT NULL {_one_of("kind", ("message", "queue", "steer", "command", "delegation", "scheduled"))},
        state TEXT NOT NULL {_one_of("state", INBOX)},
        turn TEXT REFERENCES turns(id),
        session TEXT REFERENCES sessions(id),
        sent_at REAL,                   -- by the platform's clock
        received_at REAL NOT NULL,
        ended_at REAL,
        UNIQUE (account, chat, native_id)
    )""",
    "CREATE INDEX inbox_open ON inbox(state, account, chat, thread, id) WHERE ended_at IS NULL",
    f"""
    CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        inbox INTEGER NOT NULL UNIQUE REFERENCES inbox(id),
        session TEXT NOT NULL REFERENCES sessions(id),
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        state TEXT NOT NULL {_one_of("state", TURN)},
        resumes INTEGER NOT NULL DEFAULT 0,     -- how often a restart found it running
        charged INTEGER NOT NULL DEFAULT 0,     -- how many of these count against it
        resumed_at REAL,
        usage TEXT NOT NULL DEFAULT '{{}}',
        error TEXT,
        started_at REAL NOT NULL,
        ended_at REAL
    )""",
    "CREATE INDEX inbox_by_sender ON inbox(account, chat, thread, sender, id)",
    "CREATE INDEX turns_by_session ON turns(session, ended_at)",
    "CREATE INDEX turns_open ON turns(account, chat, thread) WHERE state = 'running'",
    f"""
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL REFERENCES sessions(id),
        turn TEXT REFERENCES turns(id),
        role TEXT NOT NULL {_one_of("role", MESSAGE_ROLES)},
        content TEXT,                   -- of a tool: its result; NULL until there is one
        tool_calls TEXT,                -- of an assistant: [[id, name, arguments], ...]
        tool_call_id TEXT,              -- of a tool
        tool_name TEXT,
        started REAL,                   -- of a tool: set before its effect
        interrupted INTEGER NOT NULL DEFAULT 0,
        hidden INTEGER NOT NULL DEFAULT 0,      -- taken back by /undo: kept, but not part of the conversation
        created_at REAL NOT NULL
    )""",
    "CREATE INDEX messages_by_session ON messages(session, id)",
    "CREATE INDEX messages_by_turn ON messages(turn, id)",
    f"""
    CREATE TABLE delivery_obligations (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of arrival
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL {_one_of("kind", ("reply", "control"))},
        turn TEXT REFERENCES turns(id),
        platform TEXT NOT NULL,
        chat_id TEXT NOT NULL,
        thread_id TEXT NOT NULL,
        anchor TEXT,
        content TEXT NOT NULL DEFAULT '',
        parts TEXT NOT NULL DEFAULT '[]',       -- the bodies as planned; empty while it streams
        progress TEXT NOT NULL DEFAULT '{{}}',    -- what the delivery core keeps of the whole: forms, serial, waits
        state TEXT NOT NULL {_one_of("state", OBLIGATION)},
        attempts INTEGER NOT NULL DEFAULT 0,
        not_before REAL,
        due_at REAL NOT NULL DEFAULT 0,         -- when a lane should look at it next
        expires_at REAL,
        last_error TEXT,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL
    )""",
    f"""
    CREATE INDEX obligations_open ON delivery_obligations(due_at, platform, chat_id, thread_id)
        WHERE state IN ({", ".join(f"'{state}'" for state in ("streaming", "pending", "attempting", "withdrawing"))})
    """,
    "CREATE INDEX obligations_by_turn ON delivery_obligations(turn) WHERE turn IS NOT NULL",
    "CREATE INDEX obligations_by_address ON delivery_obligations(platform, chat_id, thread_id, state, seq)",
    f"""
    CREATE TABLE posts (
        key TEXT PRIMARY KEY,                   -- the platform's idempotency key where it knows one
        obligation TEXT NOT NULL REFERENCES delivery_obligations(id) ON DELETE CASCADE,
        serial INTEGER NOT NULL,                -- the order of creation, which is the order on screen
        ordinal INTEGER NOT NULL,               -- the part that it was created for
        state TEXT NOT NULL {_one_of("state", POST)},
        message_id TEXT,
        body TEXT,                              -- what the create carries, until its outcome is known
        shown TEXT,                             -- fingerprint of what it shows; NULL: not known
        marked INTEGER NOT NULL DEFAULT 0,
        progress TEXT NOT NULL DEFAULT '{{}}',    -- what the delivery core keeps of its edits
        created_at REAL NOT NULL,
        ended_at REAL NOT NULL
    )""",
    "CREATE INDEX posts_by_obligation ON posts(obligation, serial)",
    """
    CREATE TABLE cursors (
        account TEXT PRIMARY KEY,
        value TEXT NOT NULL,
        updated_at REAL NOT NULL
    )""",
    """
    CREATE TABLE buckets (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,                  -- empty: the whole account
        not_before REAL NOT NULL,
        PRIMARY KEY (account, chat)
    )""",
    """
    CREATE TABLE chat_settings (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (account, chat, name)
    )""",
    """
    CREATE TABLE dead_addresses (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        reason TEXT NOT NULL,
        since REAL NOT NULL,
        PRIMARY KEY (account, chat)
    )""",
    """
    CREATE TABLE async_delegations (
        delegation_id TEXT PRIMARY KEY,
        session TEXT NOT NULL REFERENCES sessions(id),
        child_session TEXT REFERENCES sessions(id),
        task TEXT NOT NULL,
        state TEXT NOT NULL,
        result TEXT,
        delivery_state TEXT NOT NULL,
        delivery_attempts INTEGER NOT NULL DEFAULT 0,
        delivery_claim TEXT,
        restored INTEGER NOT NULL DEFAULT 0,
        reason TEXT,
        created_at REAL NOT NULL,
        ended_at REAL
    )""",
)


@migrations(name="0001_first")
def _first(db: Database) -> None:
    """The tables of the first release."""
    for statement in TABLES:
        db.execute(statement)
