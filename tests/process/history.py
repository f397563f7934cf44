"""Every state of the database that was durable once, read back from its write-ahead log.

SQLite appends the changed pages of each transaction to the log; the last page of a transaction says so. The file with
the log cut behind such a page is what a crash at that commit would have left. Source: SQLite, "WAL file format". It
works while nothing was copied back into the database file: for less than 1,000 pages in one life of the program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .audit import Ledger

_HEADER, _FRAME_HEADER = 32, 24


def commits(log: bytes) -> list[int]:
    """The lengths of the log at which a transaction was complete."""
    (page,) = struct.unpack_from(">I", log, 8)
    salts = log[16:24]
    ends = []
    for start in range(_HEADER, len(log) - _FRAME_HEADER - page + 1, _FRAME_HEADER + page):
        if log[start + 8 : start + 16] != salts:
            break  # the rest is of an earlier use of the file
        (size,) = struct.unpack_from(">I", log, start + 4)
        if size:
            ends.append(start + _FRAME_HEADER + page)
    return ends


@contextmanager
def durable_states(database: Path) -> Iterator[Iterator[Ledger]]:
    """The states after each commit, in order. The program must not run."""
    log = database.with_name(f"{database.name}-wal").read_bytes()
    with TemporaryDirectory(prefix="hermes-history-") as name:
        copy = Path(name) / database.name

        def states() -> Iterator[Ledger]:
            for end in commits(log):
                copy.write_bytes(database.read_bytes())
                copy.with_name(f"{copy.name}-wal").write_bytes(log[:end])
                copy.with_name(f"{copy.name}-shm").unlink(missing_ok=True)
                yield Ledger(copy)

        yield states()
