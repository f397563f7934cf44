"""The end of a runtime, for those outside its task tree who wait for what it does.

The tasks of the runtime are cancelled with it; a task of the program around it would wait for ever. The rule that must
not be broken: what such a task waits for, other than the ledger, it waits for inside `cuts_short`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Ending:
    """The end of one runtime: it is announced once, however the runtime ends."""

    def __init__(self) -> None:
        self.over = False
        """Set once: nothing is done any more."""
        self._waits: set[trio.CancelScope] = set()

    def announce(self) -> None:
        """Ends every wait, and those to come. Never blocks."""
        self.over = True
        for scope in self._waits:
            scope.cancel()

    @contextmanager
    def cuts_short(self) -> Iterator[None]:
        """The block is left early when the runtime ends, at its first checkpoint when it has ended already."""
        with trio.CancelScope() as scope:
            if self.over:
                scope.cancel()
            self._waits.add(scope)
            try:
                yield
            finally:
                self._waits.discard(scope)
