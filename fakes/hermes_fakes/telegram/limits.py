"""Rate limits as strict as Telegram's may be: each violation makes the ban longer.

The real numbers are not published; a test chooses its own.
"""

from __future__ import annotations

from collections import deque

import trio
from attrs import define, field, frozen


@frozen
class Limits:
    """What one chat is allowed. Times are seconds."""

    edit_interval: float = 1.0
    """The least time between two edits of one message."""
    messages_per_minute: int = 20
    """New messages of the bot in one chat within any `minute`."""
    ban: float = 5.0
    """How long the chat is closed after a violation; each further one adds as much."""
    slack: float = 0.02
    """A request that comes this much too early is let through: the wire is not that exact."""
    minute: float = 60.0
    """How long a minute lasts; shorter in a test whose times are real."""


@frozen
class Violation:
    """One request that was answered 429 by the limits."""

    time: float
    method: str
    chat_id: int
    text: str
    retry_after: float


@define(eq=False)
class Meter:
    """Counts, for every chat."""

    limits: Limits | None
    violations: list[Violation] = field(factory=list)
    _sends: dict[int, deque[float]] = field(factory=dict)
    _edits: dict[tuple[int, int], float] = field(factory=dict)
    _banned: dict[int, float] = field(factory=dict)

    def charge(self, method: str, chat_id: int, message_id: int | None, text: str) -> float | None:
        """Counts one send (no message id) or edit; the seconds to wait when it is refused."""
        limits, now = self.limits, trio.current_time()
        if limits is None:
            return None
        banned = self._banned.get(chat_id, now)
        if banned <= now + limits.slack and self._fits(limits, now, chat_id, message_id):
            return None
        self._banned[chat_id] = max(banned, now) + limits.ban
        wait = max(self._banned[chat_id], self._fits_at(limits, chat_id, message_id)) - now
        self.violations.append(Violation(now, method, chat_id, text, wait))
        return wait

    def _fits_at(self, limits: Limits, chat_id: int, message_id: int | None) -> float:
        """When the request would be within the limits, bans aside: what the platform says is never too short."""
        if message_id is not None:
            return self._edits.get((chat_id, message_id), float("-inf")) + limits.edit_interval
        sends = self._sends.setdefault(chat_id, deque())
        return sends[0] + limits.minute if len(sends) >= limits.messages_per_minute else float("-inf")

    def _fits(self, limits: Limits, now: float, chat_id: int, message_id: int | None) -> bool:
        if message_id is not None:
            last = self._edits.get((chat_id, message_id), float("-inf"))
            if now - last < limits.edit_interval - limits.slack:
                return False
            self._edits[chat_id, message_id] = now
            return True
        sends = self._sends.setdefault(chat_id, deque())
        while sends and sends[0] <= now - limits.minute:
            sends.popleft()
        if len(sends) >= limits.messages_per_minute:
            return False
        sends.append(now)
        return True
