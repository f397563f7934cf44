"""Opening the database file: what it is like afterwards, and the words for each thing that may be wrong with it."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermes_trio.ledger.database import LedgerUnusable, Synchronous, connect, connect_readonly, prepare

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database that does not exist yet, in a directory that does not exist yet."""
    return tmp_path / "data" / "state.db"


@pytest.fixture
def readonly_directory() -> Iterator[Path]:
    """A directory in which this process may not create a file, also when the tests run as root."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield directory
    finally:
        if root:
            os.seteuid(0)
        directory.chmod(0o755)
        for left in directory.iterdir():
            left.unlink()
        directory.rmdir()


def pragma(connection: sqlite3.Connection, name: str) -> object:
    """One setting of a connection."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def files(directory: Path) -> dict[str, bytes]:
    """Everything in a directory."""
    return {entry.name: entry.read_bytes() for entry in directory.iterdir()}


@contextmanager
def refused_unchanged(path: Path) -> Iterator[pytest.ExceptionInfo[LedgerUnusable]]:
    """The block raises LedgerUnusable, names the file, and leaves all files beside it as they were."""
    before = files(path.parent)
    with pytest.raises(LedgerUnusable) as refused:
        yield refused
    assert str(path) in str(refused.value)
    assert files(path.parent) == before


def test_a_fresh_database_is_safe_and_private(path: Path) -> None:
    """WAL, FULL, foreign keys, mode 0600 for every file, 0700 for a directory that had to be made."""
    mask = os.umask(0)
    try:
        with closing(connect(path)) as connection:
            assert pragma(connection, "journal_mode") == "wal"
            assert pragma(connection, "synchronous") == 2
            assert pragma(connection, "foreign_keys") == 1
            assert pragma(connection, "busy_timeout") == 5000
            assert connection.isolation_level is None and not connection.in_transaction
            connection.execute("INSERT INTO cursors VALUES ('a', '', 0)")
            modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
        assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert os.umask(0) == 0, "the process's own umask is restored"
    finally:
        os.umask(mask)


@pytest.mark.parametrize(("word", "number"), [("FULL", 2), ("NORMAL", 1), ("OFF", 0)])
def test_synchronous_is_what_was_asked(path: Path, word: Synchronous, number: int) -> None:
    """The operator's choice between speed and power failures arrives at SQLite."""
    with closing(connect(path, word)) as connection:
        assert pragma(connection, "synchronous") == number


def test_the_tables_are_those_of_the_contract(path: Path) -> None:
    """The names that operators and documents speak of are there, and rows are read by name."""
    with closing(connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    tables = {row["name"] for row in rows}
    contract = "inbox sessions routes messages turns delivery_obligations posts async_delegations cursors buckets"
    assert set(contract.split()) <= tables


def test_opening_again_changes_nothing(path: Path) -> None:
    """A second opening keeps rows and schema, byte for byte in the dump."""
    dumps = []
    for _ in range(2):
        with closing(connect(path)) as connection:
            connection.execute("INSERT OR IGNORE INTO cursors VALUES ('a', 'kept', 0)")
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]


def test_an_inbound_is_known_once(path: Path) -> None:
    """The inbox is unique on account, chat and native id, whatever else differs."""
    insert = (
        "INSERT INTO inbox (account, chat, thread, native_id, sender, sender_name, text, kind, state, received_at)"
        " VALUES (?, ?, ?, ?, 's', 'S', 't', 'message', 'queued', 0)"
    )
    with closing(connect(path)) as connection:
        connection.execute(insert, ("a", "c", "", "1"))
        for other in (("b", "c", "", "1"), ("a", "d", "", "1"), ("a", "c", "", "2")):
            connection.execute(insert, other)
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute(insert, ("a", "c", "another thread", "1"))


def test_a_newer_schema_is_refused_unchanged(path: Path) -> None:
    """A database that a newer program has migrated is named as such and not touched."""
    with closing(connect(path)) as connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('hermes_trio', '9999_later', 'x')"
        )
    with refused_unchanged(path) as refused:
        connect(path)
    assert "newer" in str(refused.value) and "9999_later" in str(refused.value)


def test_a_newer_schema_is_refused_in_memory() -> None:
    """`prepare` alone refuses it, too: the simulation opens no file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        prepare(connection, "memory")
        connection.execute("UPDATE _sqlite_migrations SET name = '9999_later'")
        with pytest.raises(LedgerUnusable, match="newer"):
            prepare(connection, "memory")


def test_another_programs_database_is_refused_unchanged(path: Path) -> None:
    """A good SQLite file that is not ours gets no tables of ours, and no other journal mode."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE their_table (x)")
    with refused_unchanged(path) as refused:
        connect(path)
    assert "another program" in str(refused.value) and "their_table" in str(refused.value)


def test_a_file_that_is_no_database_is_refused_unchanged(path: Path) -> None:
    """Text in the place of the database: said so, with what to do."""
    path.parent.mkdir()
    path.write_text("not a database " * 500)
    with refused_unchanged(path) as refused:
        connect(path)
    assert "no database" in str(refused.value) and "restore a backup" in str(refused.value)


def spoil_schema(content: bytes) -> bytes:
    """The schema's page is overwritten, behind a header that is still good."""
    return content[:100] + b"\xff" * 3000 + content[3100:]


def cut(content: bytes) -> bytes:
    """The file ends early, as after a copy that was broken off."""
    return content[: 4096 + 100]


@pytest.mark.parametrize("damage", [spoil_schema, cut])
def test_a_damaged_database_is_refused(path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Damage that opening can see is named, with the files to keep and a way to recover."""
    connect(path).close()
    path.write_bytes(damage(path.read_bytes()))
    damaged = path.read_bytes()
    with pytest.raises(LedgerUnusable, match="damaged") as refused:
        connect(path)
    assert f"{path}-wal" in str(refused.value) and ".recover" in str(refused.value)
    assert path.read_bytes() == damaged


def test_a_readonly_directory_is_named(readonly_directory: Path) -> None:
    """Where no file can be created the text says which one, in a word of our own."""
    with pytest.raises(LedgerUnusable, match="cannot be opened") as refused:
        connect(readonly_directory / "state.db")
    assert str(readonly_directory) in str(refused.value)


def test_a_directory_that_cannot_be_made_is_named(readonly_directory: Path) -> None:
    """A data_dir below a directory that is not ours."""
    with pytest.raises(LedgerUnusable, match="Permission denied"):
        connect(readonly_directory / "data" / "state.db")


def test_a_directory_in_the_place_of_the_file_is_named(path: Path) -> None:
    """A directory with the database's name cannot be opened, and is said so."""
    path.mkdir(parents=True)
    with pytest.raises(LedgerUnusable, match="cannot be opened"):
        connect(path)


def test_a_readonly_connection_reads_beside_the_owner(path: Path) -> None:
    """A command beside a running bot sees what is committed, by name, and cannot write."""
    with closing(connect(path)) as owner, closing(connect_readonly(path)) as reader:
        owner.execute("INSERT INTO cursors VALUES ('a', 'seen', 0)")
        assert reader.execute("SELECT value FROM cursors").fetchone()["value"] == "seen"
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("INSERT INTO cursors VALUES ('b', '', 0)")


def test_a_readonly_connection_makes_no_file(path: Path) -> None:
    """Without a database there is nothing to read, and none is created by looking."""
    with pytest.raises(LedgerUnusable, match="no database at"):
        connect_readonly(path)
    assert not path.exists()


def test_a_readonly_connection_names_damage(path: Path) -> None:
    """The same words as for the owner."""
    path.parent.mkdir()
    path.write_text("not a database " * 500)
    with pytest.raises(LedgerUnusable, match="no database"):
        connect_readonly(path)


def test_an_odd_path_is_read_as_it_is(tmp_path: Path) -> None:
    """Characters that mean something in a URI are only characters of the name."""
    path = tmp_path / "a?b#c %20" / "state.db"
    connect(path).close()
    connect_readonly(path).close()
    assert path.exists()
