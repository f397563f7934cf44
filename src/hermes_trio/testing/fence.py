"""The fence: numbered effect boundaries, and incarnations that can be cut off at any of them.

Every effect of a bot passes a boundary before and after it takes hold: `commit?` and `commit!` around a transaction,
`wire?`, `wire~` and `wire!` around a request. A crash happens at a boundary and at nothing else. The rule that must
not be broken: once an incarnation is dead no store and no wire operation of it has an effect, whatever its `finally`
blocks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from math import inf

import trio
from attrs import define, field, frozen

from hermes_fakes.faults import Call


class Crashed(BaseException):
    """Is raised inside a dead incarnation. A BaseException, so that `except Exception` cannot swallow it."""


@define(eq=False)
class Incarnation:
    """One life of the bot."""

    number: int
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    dead: bool = False
    died_at: float = inf
    """On trio's clock."""
    started: trio.Event = field(factory=trio.Event)
    """It has recovered and runs."""
    ended: trio.Event = field(factory=trio.Event)
    """It was killed, or came to an end by itself."""
    _torn: dict[int, trio.CancelScope] = field(factory=dict)
    """The platforms' ends of its connections."""

    def guard(self) -> None:
        """Raises Crashed when it is dead."""
        if self.dead:
            raise Crashed(self.number)

    def kill(self) -> None:
        """From now on nothing of it has an effect; its connections are torn, its tasks cancelled."""
        if not self.dead:
            self.dead = True
            self.died_at = trio.current_time()
            for scope in self._torn.values():
                scope.cancel()
            self.scope.cancel()
            self.ended.set()

    @contextmanager
    def connection(self) -> Iterator[None]:
        """The other end of one of its connections: it is torn when the incarnation is killed."""
        with trio.CancelScope() as scope:
            if self.dead:
                scope.cancel()
            self._torn[id(scope)] = scope
            try:
                yield
            finally:
                del self._torn[id(scope)]


@frozen
class Passed:
    """One boundary that was passed."""

    number: int
    """Counted from 1 over the whole run."""
    time: float
    """On trio's clock."""
    incarnation: int
    label: str
    occurrence: int
    """How often this label was passed before and now."""

    def __str__(self) -> str:
        return f"#{self.number} {self.label} ({self.occurrence})"


Action = Callable[[str, Incarnation, Call | None], None]
"""Is told of every passage: its label, whose it is, and the request that it belongs to."""


class Boundaries:
    """Counts boundaries, remembers them, and crashes the incarnation at those that were chosen."""

    def __init__(self, crash_at: Collection[int]) -> None:
        self.crash_at = frozenset(crash_at)
        self.trace: list[Passed] = []
        self.crashes: list[Passed] = []
        """The boundaries at which an incarnation was killed."""
        self.actions: list[Action] = []
        """Called at every boundary, before the crash that may be due there."""
        self._counts: Counter[str] = Counter()

    def cross(
        self, incarnation: Incarnation, label: str, now: float, call: Call | None = None, *, numbered: bool = True
    ) -> None:
        """Passes a boundary. Raises Crashed when the incarnation is dead, also when it died here.

        numbered: it is one of those that the explorer crashes at.
        """
        incarnation.guard()
        passed = None
        if numbered:
            self._counts[label] += 1
            passed = Passed(len(self.trace) + 1, now, incarnation.number, label, self._counts[label])
            self.trace.append(passed)
        for action in self.actions:
            action(label, incarnation, call)
        if passed is not None and (incarnation.dead or passed.number in self.crash_at):
            self.crash(passed, incarnation)
        incarnation.guard()

    def crash(self, passed: Passed, incarnation: Incarnation) -> None:
        """Kills the incarnation at this boundary."""
        self.crashes.append(passed)
        incarnation.kill()
