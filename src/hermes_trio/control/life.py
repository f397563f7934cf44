"""A receiver that takes nothing: for a command that delivers without a bot and must know whether an account lives.

An uncertain message is repeated only when its account has shown life since, and only receiving shows that. The rule
that must not be broken: what the platform hands over is never accepted, so it stays there for the bot.
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from attrs import frozen

from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger, accounts
from hermes_trio.platforms.base import Inbound


@frozen
class LifeOnly:
    """Tells the courier of signs of life; a Receiver."""

    ledger: Ledger
    courier: Courier
    account: Account
    completed: Callable[[], None]
    """Is called with each sign."""

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        """Never returns: so nothing is acknowledged, also what only moves the cursor."""
        await trio.sleep_forever()

    async def cursor(self) -> str | None:
        """Where the bot will go on."""
        return await self.ledger.insist(accounts.cursor, self.account.name)

    def alive(self) -> None:
        """A round trip with the platform was completed just now."""
        self.completed()
        self.courier.alive(self.account)
