"""Conversations: one actor for each address with work, which runs its turns one after the other.

The queue is rows of the inbox; an actor holds none of it. It takes the next row when its turn has ended, and ends
when there is none. The rule that must not be broken: only an actor begins turns, and there is at most one for an
address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog
import trio

from hermes_trio.access import Access
from hermes_trio.clock import Clock, Ids
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.records import Begun
from hermes_trio.conversation.turn import TurnRunner
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger
from hermes_trio.values import Address

log = structlog.get_logger(__name__)


class Conversations:
    """Wakes the actors of addresses with work. The nursery is where they run; it belongs to the runtime."""

    def __init__(
        self,
        nursery: trio.Nursery,
        ledger: Ledger,
        courier: Courier,
        clock: Clock,
        ids: Ids,
        access: Access,
        accounts: Mapping[str, Account],
        runner: Callable[[Account], TurnRunner],
        *,
        reserve: bool,
        previous_death: float,
    ) -> None:
        self._nursery = nursery
        self._ledger = ledger
        self._courier = courier
        self._clock = clock
        self._ids = ids
        self._access = access
        self._accounts = accounts
        self._runners = {name: runner(account) for name, account in accounts.items()}
        self._reserve = reserve
        self._previous_death = previous_death
        """Wall-clock seconds of the latest commit of the incarnation before this one."""
        self._actors: dict[Address, bool] = {}
        """Addresses with an actor; whether something arrived since it last looked."""
        self._idle = trio.Event()
        self._idle.set()
        self._closing = False

    def wake(self, address: Address) -> None:
        """Something arrived at this address. Never blocks."""
        if self._closing or address.account not in self._accounts:
            return
        if address not in self._actors:
            if self._idle.is_set():
                self._idle = trio.Event()
            self._nursery.start_soon(self._converse, address, name=f"conversation {address}")
        self._actors[address] = True

    async def recover(self) -> None:
        """Wakes every address at which a row waits or a turn was interrupted by the end of the process."""
        for address in await self._ledger.insist(records.addresses_with_work):
            self.wake(address)

    def close(self) -> None:
        """No further turn begins; what waits is durable. Never blocks."""
        self._closing = True

    async def wait_idle(self) -> None:
        """Returns when no actor is at work."""
        await self._idle.wait()

    async def _converse(self, address: Address) -> None:
        try:
            while self._actors[address] and not self._closing:
                self._actors[address] = False
                while not self._closing and await self._next(address):
                    pass
        finally:
            del self._actors[address]
            if not self._actors:
                self._idle.set()

    async def _next(self, address: Address) -> bool:
        """Runs the next turn of an address; False when none waits there."""
        account = self._accounts[address.account]
        begun = await self._ledger.insist(
            records.begin_next,
            address,
            self._access,
            self._reserve,
            self._ids(),
            self._ids(),
            account.plan(notices.GAVE_UP),
            self._previous_death,
            self._clock.now(),
        )
        if begun is None:
            return False
        self._courier.wake(address)
        if isinstance(begun, Begun):
            await self._runners[address.account].run(begun)
        return True
