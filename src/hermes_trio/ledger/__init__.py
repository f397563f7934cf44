"""The ledger: one task that owns one database. All SQL stands in this room."""

from hermes_trio.ledger.database import FILE_NAME, LedgerUnusable, connect, connect_readonly, undone_on_error
from hermes_trio.ledger.executors import Connection, Executor, StoreFailed, is_environment, open_thread_executor
from hermes_trio.ledger.lock import LedgerLocked, hold_lock
from hermes_trio.ledger.task import Ledger, LedgerClosed, open_ledger

__all__ = [
    "FILE_NAME",
    "Connection",
    "Executor",
    "Ledger",
    "LedgerClosed",
    "LedgerLocked",
    "LedgerUnusable",
    "StoreFailed",
    "connect",
    "connect_readonly",
    "hold_lock",
    "is_environment",
    "open_ledger",
    "open_thread_executor",
    "undone_on_error",
]
