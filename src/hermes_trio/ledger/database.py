"""Opening the database file: its mode, its pragmas, its schema, and clear words for what may be wrong with it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from sqlite_utils import Database

from hermes_trio.ledger.schema import migrations

FILE_NAME = "state.db"
BUSY_TIMEOUT = 5000
"""Milliseconds to wait for another reader or writer (an operator's shell, a backup)."""

Synchronous = Literal["FULL", "NORMAL", "OFF"]


class LedgerUnusable(Exception):
    """The database cannot be used as it is; the text says what is wrong and what to do."""


def connect(path: Path, synchronous: Synchronous = "FULL") -> sqlite3.Connection:
    """The connection of the ledger, migrated to the current schema. The file is created with mode 0600.

    Raises LedgerUnusable for a file that is no database, is damaged, is of a newer program, or cannot be written.
    """
    with _explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mask = os.umask(0o077)
        try:
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            os.umask(mask)
    try:
        with _explained(path):
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
            prepare(connection, str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, for commands beside a running bot. Raises LedgerUnusable."""
    with _explained(path):
        if not path.exists():
            raise LedgerUnusable(f"there is no database at {path}; has the bot run with this configuration yet?")
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Makes any open connection the ledger's: rows by name, foreign keys, the current schema."""
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    db = Database(connection, execute_plugins=False)
    known = {migration.name for migration in migrations._migrations}
    newer = sorted({migration.name for migration in migrations.applied(db)} - known)
    if newer:
        raise LedgerUnusable(
            f"{name} was written by a newer hermes_trio (it knows {', '.join(newer)}); "
            "install that version, or point data_dir elsewhere. Nothing was changed."
        )
    if migrations.pending(db):
        migrations.apply(db)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise LedgerUnusable(
                f"{path} is damaged or no database ({error}). Stop the bot, keep a copy of {path}, {path}-wal and "
                f"{path}-shm, then try `sqlite3 {path} .recover | sqlite3 repaired.db` or restore a backup."
            ) from error
        raise LedgerUnusable(f"{path} cannot be opened for writing: {error}") from error
    except OSError as error:
        raise LedgerUnusable(f"{path} cannot be opened: {error}") from error
