"""Ingress: the one door for messages, and the one place where it is decided who may speak.

A receive batch is admitted whole, in one transaction (see `admission`); only then does the adapter acknowledge, and
only then are scopes cancelled and actors woken. The rule that must not be broken: a stranger's message leaves no trace
but a moved cursor.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio

from hermes_trio.access import Access
from hermes_trio.clock import Clock, Ids
from hermes_trio.conversation.actor import Conversations
from hermes_trio.conversation.admission import Batch, Rules, admit
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger, accounts
from hermes_trio.platforms.base import Inbound

log = structlog.get_logger(__name__)


class Ingress:
    """The runtime's side of receiving, for one account; a Receiver."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        ids: Ids,
        access: Access,
        rules: Rules,
        courier: Courier,
        conversations: Conversations,
        completed: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._ids = ids
        self._access = access
        self._rules = rules
        self._account = rules.account
        self._courier = courier
        self._conversations = conversations
        self._completed = completed

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        """Stores one receive batch and its cursor in one transaction, and does what follows from it.

        Cancelled: nothing, or all of it, is stored. Raises LedgerClosed at the end of the process. A database that
        cannot write is waited for; nothing is acknowledged meanwhile.
        """
        inbound = tuple(message for message in batch if self._admits(message))
        said = self._courier.all_said({self._courier.current(message.address) for message in inbound})
        stored = Batch(inbound, cursor, said, tuple(self._ids() for _ in inbound))
        admitted = await self._ledger.insist(admit, self._rules, stored, self._clock.now())
        for address, turn in admitted.ended:
            self._conversations.cancel(address, turn)
        for address in admitted.arrived:
            self._conversations.wake(address)
            self._courier.wake(address)
        await trio.lowlevel.checkpoint()

    async def cursor(self) -> str | None:
        """The cursor of the last batch that was stored."""
        return await self._ledger.insist(accounts.cursor, self._account.name)

    def alive(self) -> None:
        """A round trip with the platform was completed just now."""
        self._completed()
        self._courier.alive(self._account)

    def _admits(self, inbound: Inbound) -> bool:
        if self._access.allows(self._account.name, inbound.sender):
            return True
        log.info("ignored a stranger", account=self._account.name, sender=inbound.sender)
        return False
