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

    A directory that is missing is made. Raises LedgerUnusable for a file that is no database, is damaged, is of a
    newer or of another program, or cannot be written; the file is unchanged then.
    """
    with _explained(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mask = os.umask(0o077)  # the WAL takes the mode of the file beside it
        try:
            connection = sqlite3.connect(path, isolation_level=None)
        finally:
            os.umask(mask)
    with _closed_on_failure(connection), _explained(path):
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
        _refuse_what_is_not_ours(connection, str(path))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        prepare(connection, str(path))
    return connection


@contextmanager
def undone_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """What the block did is undone when it raises; what stood before it in the same transaction stays."""
    connection.execute("SAVEPOINT part")
    try:
        yield
    except Exception:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, for commands beside a running bot. Raises LedgerUnusable."""
    with _explained(path):
        if not path.exists():
            raise LedgerUnusable(f"there is no database at {path}; has the bot run with this configuration yet?")
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    with _closed_on_failure(connection), _explained(path):
        connection.row_factory = sqlite3.Row
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Makes any open connection the ledger's: rows by name, foreign keys, the current schema.

    Raises LedgerUnusable, with nothing changed, for a database of a newer or of another program.
    """
    _refuse_what_is_not_ours(connection, name)
    set_up(connection)
    db = Database(connection, execute_plugins=False)
    if migrations.pending(db):
        migrations.apply(db)


def set_up(connection: sqlite3.Connection) -> None:
    """Rows by name and foreign keys, on a connection to a database that has the current schema."""
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")


def limit_pages(connection: sqlite3.Connection, spare: int | None) -> None:
    """Lets the database grow by that many pages and no further, as on a disk that is full; None: without a limit."""
    pages = 2**31 if spare is None else connection.execute("PRAGMA page_count").fetchone()[0] + spare
    connection.execute(f"PRAGMA max_page_count = {pages}")


def _refuse_what_is_not_ours(connection: sqlite3.Connection, name: str) -> None:
    """Only reads."""
    db = Database(connection, execute_plugins=False)
    applied = {migration.name for migration in migrations.applied(db)}
    newer = sorted(applied - {migration.name for migration in migrations._migrations})
    if newer:
        raise LedgerUnusable(
            f"{name} was written by a newer hermes_trio (it knows {', '.join(newer)}); "
            "install that version, or point data_dir elsewhere. Nothing was changed."
        )
    foreign = sorted(set(db.table_names()) - {migrations.migrations_table})
    if foreign and not applied:
        raise LedgerUnusable(
            f"{name} is the database of another program (it holds the table {foreign[0]!r}); "
            "point data_dir elsewhere. Nothing was changed."
        )


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


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
