"""An account as the delivery room sees it: its adapter, its wire, and whether it shows life."""

from __future__ import annotations

from functools import lru_cache
from math import inf

import structlog
import trio

from hermes_trio.delivery.planning import Plan
from hermes_trio.delivery.view import Wire
from hermes_trio.platforms.base import Capabilities, Platform
from hermes_trio.text.body import Body
from hermes_trio.text.markdown import render
from hermes_trio.text.split import split
from hermes_trio.text.units import Unit, measure
from hermes_trio.values import Address

log = structlog.get_logger(__name__)

MAX_TYPING = 4
"""Typing signs of an account under way at a time; those beyond are left out: none may keep a message waiting."""


SHORT = 200
"""Characters: the messages of texts up to this length are remembered, because the runtime's own words come again."""
REMEMBERED = 128
"""How many of them: all notices, on several wires."""


def _split(markdown: str, limit: int, unit: Unit, room: int) -> tuple[Body, ...]:
    return split(render(markdown), limit, unit, reserve=room)


_split_again = lru_cache(REMEMBERED)(_split)


class Account:
    """One configured account. `alive_at` and `down` are hints about the wire, not facts; no decision of what was
    delivered rests on them."""

    def __init__(self, name: str, platform: Platform, wire: Wire, expire: float) -> None:
        self.name = name
        self.platform = platform
        self.wire = wire
        self.expire = expire
        """Seconds after which an answer that was not delivered is given up."""
        self.alive_at = -inf
        """Wall-clock seconds of the last completed round trip."""
        self.down = True
        """Nothing has come through since the last failure, or the start."""
        self.doubted = False
        """An attempt of unknown outcome was made since the last sign of life, and may wait for the next one."""
        self._typing = trio.CapacityLimiter(MAX_TYPING)
        self.quiet_until = -inf
        """trio's time until which a rate limit forbids everything cosmetic."""
        self.room = measure(wire.marker, platform.capabilities.unit)
        """Units that each part leaves free for the marker."""

    async def show_typing(self, address: Address) -> None:
        """Shows the typing sign once, if nothing more important is in its way. Cancelled: it may be shown or not."""
        if self.down or trio.current_time() < self.quiet_until or not self._typing.available_tokens:
            return
        async with self._typing:
            try:
                await self.platform.typing(address)
            except Exception:  # a supervision border: a sign that fails must not end the turn that it stands for
                log.exception("an adapter cannot show that the bot types", account=self.name)

    @property
    def capabilities(self) -> Capabilities:
        """What the adapter's wire allows."""
        return self.platform.capabilities

    def measure(self, text: str) -> int:
        """The length of a text in the wire's unit."""
        return measure(text, self.capabilities.unit)

    def split(self, markdown: str) -> tuple[Body, ...]:
        """The messages that a text becomes on this wire; none for a text that shows nothing."""
        cut = _split if len(markdown) > SHORT else _split_again
        return cut(markdown, self.capabilities.limit, self.capabilities.unit, self.room)

    def plan(self, markdown: str) -> Plan:
        """What is committed for a text that is not blank."""
        return Plan(markdown, self.split(markdown), self.wire, self.expire)
