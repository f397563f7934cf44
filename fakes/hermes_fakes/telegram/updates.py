"""The queue of updates and the long poll. Source: Telegram Bot API, getUpdates.

An update stays until a poll with a higher offset confirms it, or until it is too old; an answer that carried it
changes nothing. There is one waiting poll at a time: a second that has to wait ends the first with 409.
"""

from __future__ import annotations

from collections.abc import Iterator

import trio
from attrs import define, field

from hermes_fakes.http import unless_gone
from hermes_fakes.telegram.values import JSON, ApiError

MAX_TIMEOUT = 50
"""Seconds; a longer poll is cut to it."""
RETENTION = 24 * 3600.0
"""Seconds that an update is kept."""
CALLBACK_RETENTION = 150.0
"""Seconds that a press of a button is kept."""
CONFLICT_SPACING = 3.0
"""Least seconds between two answers 409."""
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})

OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_SET = "Conflict: terminated by setWebhook request"
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


@define(eq=False)
class _Poll:
    wake: trio.Event = field(factory=trio.Event)
    conflict: str = ""


@define(eq=False)
class _Waiting:
    update: JSON
    expires: float

    @property
    def id(self) -> int:
        number: int = self.update["update_id"]
        return number


@define(eq=False)
class Updates:
    """See the module's text."""

    ids: Iterator[int]
    all: dict[int, JSON] = field(factory=dict)
    """Every update that there was, also filtered and confirmed ones."""
    pending: list[_Waiting] = field(factory=list)
    allowed: frozenset[str] | None = None
    """None: the default set."""
    _again: list[JSON] = field(factory=list)
    """Redeliveries: part of the next answer whatever its offset."""
    _poll: _Poll | None = None
    _last_offset: int | None = None
    _last_time: float = float("-inf")
    _next_conflict: float = float("-inf")

    @property
    def waiting(self) -> int:
        """How many updates a poll would still get or has not confirmed, redeliveries included."""
        return len(self.pending) + len(self._again)

    def put(self, kind: str, payload: JSON) -> int:
        """Queues an update and returns its id. A kind that is not allowed is lost, but keeps its id."""
        number = next(self.ids)
        update = {"update_id": number, kind: payload}
        self.all[number] = update
        if kind in self.allowed if self.allowed is not None else kind not in NOT_BY_DEFAULT:
            keep = CALLBACK_RETENTION if kind == "callback_query" else RETENTION
            self.pending.append(_Waiting(update, trio.current_time() + keep))
            self._wake()
        return number

    def again(self, number: int) -> None:
        """Delivers this update once more, although it may have been confirmed."""
        self._again.append(self.all[number])
        self._wake()

    def interrupt(self, conflict: str) -> None:
        """Ends a waiting poll with 409."""
        if self._poll is not None:
            self._poll.conflict = conflict
            self._poll.wake.set()

    async def poll(
        self, offset: int, limit: int, patience: float, allowed: list[str] | None, gone: trio.Event
    ) -> list[JSON]:
        """What one getUpdates answers; ApiError 409 when another poll took over. Ends when the client goes."""
        if allowed is not None:
            self.allowed = frozenset(allowed) or None
        limit = limit if 1 <= limit <= 100 else 100
        patience = min(max(patience, 0), MAX_TIMEOUT)
        self._forget(offset)
        now = trio.current_time()
        if offset == self._last_offset and patience < 3 and now - self._last_time < 3:
            patience = 3
            limit = 1 if now - self._last_time < 0.5 else limit
        self._last_offset, self._last_time = offset, now
        if not (batch := self._take(limit)) and patience > 0:
            await self._wait(patience, gone)
            batch = [] if gone.is_set() else self._take(limit)
        return batch

    async def _wait(self, patience: float, gone: trio.Event) -> None:
        self.interrupt(OTHER_POLLER)
        self._poll = poll = _Poll()
        try:
            with trio.move_on_after(patience):
                await unless_gone(gone, poll.wake.wait)
        finally:
            if self._poll is poll:
                self._poll = None
        if poll.conflict and not gone.is_set():
            answer_at = max(trio.current_time(), self._next_conflict)
            self._next_conflict = answer_at + CONFLICT_SPACING
            await trio.sleep_until(answer_at)
            raise ApiError(409, poll.conflict)

    def _wake(self) -> None:
        if self._poll is not None:
            self._poll.wake.set()

    def _forget(self, offset: int) -> None:
        now = trio.current_time()
        self.pending = [waiting for waiting in self.pending if waiting.expires > now]
        if offset > 0:
            self.pending = [waiting for waiting in self.pending if waiting.id >= offset]
        elif offset < 0:
            self.pending = self.pending[offset:]

    def _take(self, limit: int) -> list[JSON]:
        again, self._again = self._again[:limit], self._again[limit:]
        return [*again, *(waiting.update for waiting in self.pending[: limit - len(again)])]
