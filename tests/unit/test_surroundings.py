"""What surrounds the program may be broken: its log, its directory, whoever speaks to its socket."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from hermes_trio.commands.logs import configure_logs
from hermes_trio.config import LogConfig
from hermes_trio.control.protocol import field_of
from hermes_trio.delivery.operating import RequestRefused
from hermes_trio.ledger import LedgerUnusable, hold_lock


@pytest.fixture
def structlog_as_it_was() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


class FullDisk(io.StringIO):
    """A stream behind which there is no room."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_ends_nothing(structlog_as_it_was: None) -> None:
    """A full disk behind standard error loses log lines, not the bot."""
    configure_logs(LogConfig(), FullDisk())
    structlog.get_logger().error("lost")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A data_dir below a file: the operator reads which path and what to do, and sees no traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerUnusable, match="choose another data_dir"), hold_lock(tmp_path / "file" / "state.db.lock"):
        pass


def test_lone_surrogates_from_the_socket_are_repaired() -> None:
    """JSON may hold half a character; it becomes the replacement character before it reaches a row."""
    assert field_of({"text": "a\ud800b"}, "text", str) == "a\ufffdb"


def test_a_number_beyond_measure_is_refused() -> None:
    """A wait of 10**400 seconds is a mistake of the caller, not of the bot."""
    with pytest.raises(RequestRefused, match="wait must be"):
        field_of({"wait": 10**400}, "wait", float)
