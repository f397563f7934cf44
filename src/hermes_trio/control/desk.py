"""The desk: send, list, resend and drop, over the ledger and the courier of one process.

`Runtime` and the control socket hand what they are asked to the same desk, and so does a command that found no bot
running. The rule that must not be broken: whatever is answered here is durable first.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio
from attrs import field, frozen

from hermes_trio.clock import Clock, Ids
from hermes_trio.control.ending import Ending
from hermes_trio.delivery import operating
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.delivery.operating import Delivery, RequestRefused
from hermes_trio.ledger import Ledger, LedgerClosed
from hermes_trio.text.repair import repair
from hermes_trio.values import Address

LONGEST_KEY = 200
"""Characters of a key; it becomes part of an id."""
LONGEST_TEXT = 100_000
"""Characters of one send: about 25 messages on most platforms; more is a mistake of the program."""
LONGEST_ADDRESS = 500
"""Characters of an address; every platform's are far shorter."""
MOST_LISTED = 200
"""Deliveries in one list."""


class SendInterrupted(Exception):
    """The runtime ends before the delivery that was waited for. It stays owed: the next start goes on with it, and the
    same key then waits for its end."""


@frozen
class Desk:
    """Where deliveries are asked for by hand."""

    ledger: Ledger
    courier: Courier
    clock: Clock
    ids: Ids
    accounts: Mapping[str, Account]
    """To which something can be sent."""
    reserve: bool
    """Whether control messages are reserved first."""
    ending: Ending = field(factory=Ending)
    """Of the runtime that delivers."""

    async def send(self, address: Address | str, text: str, key: str | None = None, *, wait: bool = False) -> Delivery:
        """Owes `text` (Markdown) to `address`, once for this key; see `Runtime.send`."""
        place = self.place(address)
        key = self.ids() if key is None else checked_key(key)
        text = repair(text)
        if len(text) > LONGEST_TEXT:
            raise RequestRefused(f"the text has {len(text)} characters, the most is {LONGEST_TEXT}")
        account, now = self.accounts[place.account], self.clock.now()
        delivery_id = await self.ledger.insist(operating.send, place, account, text, key, self.reserve, now)
        return await self._go_on(place, delivery_id, wait)

    async def deliveries(self, everything: bool = False) -> tuple[Delivery, ...]:
        """What waits for the operator, newest first, or all that is open or not delivered; at most MOST_LISTED."""
        return await self.ledger.insist(operating.listed, everything, MOST_LISTED)

    async def resend(self, delivery_id: str, *, wait: bool = False) -> Delivery:
        """A held or abandoned delivery is owed again; see `Runtime.resend`."""
        now = self.clock.now()
        again, place = await self.ledger.insist(operating.resend, delivery_id, self.accounts, self.reserve, now)
        return await self._go_on(place, again, wait)

    async def drop(self, delivery_id: str) -> Delivery:
        """A held or abandoned delivery is given up; see `Runtime.drop`."""
        place = await self.ledger.insist(operating.drop, delivery_id, self.clock.now())
        return await self._go_on(place, delivery_id, False)

    async def look(self, delivery_id: str) -> Delivery:
        """The delivery as it is now. Raises RequestRefused when there is none of this id."""
        return await self.ledger.insist(operating.look, delivery_id)

    async def wait_ended(self, delivery_id: str) -> Delivery:
        """The delivery, when nothing more happens to it by itself. Cancelled: it goes on.

        Raises RequestRefused when there is none of this id, SendInterrupted when the runtime ends first.
        """
        try:
            return await self._wait_ended(delivery_id)
        except LedgerClosed:
            raise _interrupted() from None

    async def wait_for(self, delivery: Delivery, seconds: float) -> Delivery:
        """The delivery when it has ended, or as it is after so many seconds. Cancelled: it goes on.

        Raises SendInterrupted when the runtime ends first.
        """
        with trio.move_on_after(seconds):
            return await self.wait_ended(delivery.id)
        return await self.look(delivery.id)

    async def _wait_ended(self, delivery_id: str) -> Delivery:
        place = Address.parse((await self.look(delivery_id)).address)
        while True:
            # The event first, and only then the row that is decided on: a decision in between is not missed.
            looked = self.courier.next_look(place)
            delivery = await self.look(delivery_id)
            if delivery.ended:
                return delivery
            if self.ending.over:
                raise _interrupted()
            moved = Address.parse(delivery.address)
            if moved == place:
                with self.ending.cuts_short():
                    await looked.wait()
            place = moved

    def place(self, address: Address | str) -> Address:
        """The address, of an account that is there. Raises RequestRefused."""
        try:
            place = Address.parse(address) if isinstance(address, str) else address
        except ValueError as error:
            raise RequestRefused(str(error)) from None
        if place.account not in self.accounts:
            names = ", ".join(self.accounts) or "none"
            raise RequestRefused(f"there is no account {place.account!r}; there are: {names}")
        if len(str(place)) > LONGEST_ADDRESS:
            raise RequestRefused(f"an address has at most {LONGEST_ADDRESS} characters")
        if not place.chat or not str(place).isprintable() or any(map(str.isspace, str(place))):
            raise RequestRefused(f"{str(place)!r} is not an address: no white space and no control characters")
        return place

    async def _go_on(self, place: Address, delivery_id: str, wait: bool) -> Delivery:
        self.courier.wake(place)
        if wait:
            return await self.wait_ended(delivery_id)
        return await self.look(delivery_id)


def _interrupted() -> SendInterrupted:
    return SendInterrupted("the runtime ends; the next start goes on with the delivery")


def checked_key(key: str) -> str:
    """A key that can become part of an id. Raises RequestRefused."""
    if not key or len(key) > LONGEST_KEY or not key.isprintable() or any(map(str.isspace, key)):
        raise RequestRefused(
            f"{key[:LONGEST_KEY]!r} is not a key: write 1 to {LONGEST_KEY} printable characters without white space"
        )
    return key
