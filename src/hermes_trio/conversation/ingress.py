"""Ingress: the one place where messages enter, and where it is decided who may speak.

A receive batch, the inbox rows that it becomes and the cursor behind it are one transaction; only then does the
adapter acknowledge. The rule that must not be broken: a stranger's message leaves no trace but a moved cursor.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio
from attrs import frozen

from hermes_trio.access import Access
from hermes_trio.clock import Clock
from hermes_trio.conversation import notices
from hermes_trio.conversation.actor import Conversations
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.delivery.planning import Plan, add_control
from hermes_trio.ledger import Connection, Ledger, accounts, inbox
from hermes_trio.platforms.base import Inbound
from hermes_trio.values import Address

log = structlog.get_logger(__name__)


@frozen
class Batch:
    """What is stored in one transaction."""

    account: str
    inbound: tuple[Inbound, ...]
    cursor: str | None
    unreadable: Plan
    """The notice for what could not be understood."""
    reserve: bool
    """Whether control messages are reserved too."""


def admit(con: Connection, batch: Batch, now: float) -> tuple[Address, ...]:
    """Stores a batch in order and its cursor; returns the addresses at which something new arrived."""
    arrived: dict[Address, None] = {}
    for inbound in batch.inbound:
        state = "queued" if inbound.unreadable is None else "unreadable"
        row = inbox.store(con, inbound, "message", state, now)
        if row is None:
            continue
        arrived[inbound.address] = None
        accounts.mark_living(con, inbound.address)
        if inbound.unreadable is not None:
            add_control(
                con, f"unreadable.{row}", inbound.address, batch.unreadable, now,
                reserve=batch.reserve, anchor=inbound.anchor,
            )  # fmt: skip
    if batch.cursor is not None:
        accounts.set_cursor(con, batch.account, batch.cursor, now)
    return tuple(arrived)


class Ingress:
    """The runtime's side of receiving, for one account; a Receiver."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        account: Account,
        access: Access,
        courier: Courier,
        conversations: Conversations,
        *,
        reserve: bool,
        completed: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._account = account
        self._access = access
        self._courier = courier
        self._conversations = conversations
        self._reserve = reserve
        self._completed = completed

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        """Stores one receive batch and its cursor in one transaction, and wakes the conversations concerned.

        Cancelled: nothing, or all of it, is stored. Raises LedgerClosed at the end of the process. A database that
        cannot write is waited for; nothing is acknowledged meanwhile.
        """
        admitted = tuple(inbound for inbound in batch if self._admits(inbound))
        stored = Batch(self._account.name, admitted, cursor, self._account.plan(notices.UNREADABLE), self._reserve)
        for address in await self._ledger.insist(admit, stored, self._clock.now()):
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
            return inbound.direct
        log.info("ignored a stranger", account=self._account.name, sender=inbound.sender)
        return False
