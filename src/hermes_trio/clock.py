"""Time and identity as parameters: the same code runs on the machine's clock and in a simulated world."""

from __future__ import annotations

import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, for rows. Durations are measured on trio's clock, which is never stored."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Seconds since 1970, UTC. May jump."""
        return time.time()


class Ids(Protocol):
    """A source of identifiers that nobody has used before and nobody can guess."""

    def __call__(self) -> str: ...


def random_id() -> str:
    """16 characters of letters, digits, - and _, from the system's randomness (96 bits)."""
    return secrets.token_urlsafe(12)
