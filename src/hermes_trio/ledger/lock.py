"""One process per database: an advisory lock on a file beside it.

The lock file is never removed: its inode is the lock. The rule that must not be broken: nothing but SQLite ever opens
the database files themselves, because closing such a descriptor would drop SQLite's own locks.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_trio.ledger.database import LedgerUnusable


class LedgerLocked(Exception):
    """Another process owns this database."""


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Holds the lock file at `path` during the block. Raises LedgerLocked, naming the owner, when it is taken.

    Its directory is made when it is missing; LedgerUnusable says why the file cannot be made. The descriptor is
    closed on exec and in forked children, so that no child keeps the lock alive; a child that leaves the block, too,
    touches nothing.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LedgerUnusable(f"{path} cannot be made: {error.strerror}; choose another data_dir") from error
    owner_pid = os.getpid()
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
            raise LedgerLocked(
                f"{path.with_suffix('')} is in use by another process ({owner}); stop that one first, "
                "or give this one a data_dir of its own"
            ) from None
        with suppress(OSError):  # a full disk: the lock holds without its owner's name
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"pid {owner_pid} since {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n".encode(), 0)
        _held.add(descriptor)
        try:
            yield
        finally:
            _held.discard(descriptor)
            if os.getpid() == owner_pid:
                os.ftruncate(descriptor, 0)
    finally:
        if os.getpid() == owner_pid:  # in a forked child the number is closed, or names another file by now
            os.close(descriptor)


_held: set[int] = set()


def _release_in_child() -> None:
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_release_in_child)
