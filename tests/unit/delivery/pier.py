"""A pier: the real courier over a real ledger in memory, and a platform that does what a test tells it.

    async with open_pier() as pier:
        pier.owe("hello", chat="7")
        await pier.courier.wait_idle()
        assert pier.platform.texts("7") == ["hello"]

Time is trio's, on a base that a test may step. Nothing here decides anything about deliveries.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from math import inf

import trio
from attrs import define, evolve, field, frozen

from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.delivery.lane import Notices
from hermes_trio.delivery.planning import add_control, commit_reply
from hermes_trio.delivery.store import progress_of
from hermes_trio.delivery.view import View, Wire
from hermes_trio.ledger import Connection, Ledger, obligations, open_ledger
from hermes_trio.ledger.database import prepare
from hermes_trio.ledger.executors import Call, InlineExecutor, Result
from hermes_trio.platforms.base import Capabilities, Receiver
from hermes_trio.platforms.outcomes import Accepted, Outcome, Unknown
from hermes_trio.text.body import Body
from hermes_trio.values import Address

START = 1_000_000.0
COMMIT = 0.001
"""Seconds before and after each transaction."""
REQUEST_TIMEOUT = LATENESS = 2.0
EXPIRED, REFUSED = "too late", "not taken"
MARKER = Wire(edits=True).marker


class SteppedClock:
    """trio's time on a base that a test may move."""

    def __init__(self) -> None:
        self.offset = START

    def now(self) -> float:
        """Wall-clock seconds."""
        return self.offset + trio.current_time()


@frozen
class Request:
    """What the platform was asked to do."""

    time: float
    """trio's."""
    method: str
    address: Address
    text: str
    key: str


@define(eq=False)
class Sea:
    """A platform. `behaves` decides on each request, before it takes effect; None: it is done."""

    capabilities: Capabilities
    behaves: Callable[[Request], Outcome | None] = lambda request: None
    takes: Callable[[Request], float] = lambda request: 0.0
    """Seconds from a request to its effect."""
    types: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    """What the typing sign does."""
    requests: list[Request] = field(factory=list)
    screen: dict[str, tuple[Address, str]] = field(factory=dict)
    """By message id."""
    busy: int = 0
    busiest: int = 0
    """Requests at a time, at most."""
    _ids: itertools.count[int] = field(factory=lambda: itertools.count(1))

    def texts(self, chat: str = "1", account: str = "tg") -> list[str]:
        """What is visible in a chat, in order."""
        return [text for address, text in self.screen.values() if (address.account, address.chat) == (account, chat)]

    def made(self, *methods: str) -> list[Request]:
        """The requests of these methods."""
        return [request for request in self.requests if request.method in methods]

    async def _do(self, request: Request, effect: Callable[[], Outcome]) -> Outcome:
        self.requests.append(request)
        self.busy += 1
        self.busiest = max(self.busy, self.busiest)
        try:
            await trio.sleep(self.takes(request))
        finally:
            self.busy -= 1
        outcome = self.behaves(request)
        return effect() if outcome is None else outcome

    async def run(self, receiver: Receiver) -> None:
        await trio.sleep_forever()

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        def effect() -> Outcome:
            self.screen[number] = (address, body.text)
            return Accepted(number)

        number = str(next(self._ids))
        return await self._do(Request(trio.current_time(), "create", address, body.text, key), effect)

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        def effect() -> Outcome:
            self.screen[message_id] = (address, body.text)
            return Accepted(message_id)

        return await self._do(Request(trio.current_time(), "edit", address, body.text, message_id), effect)

    async def delete(self, address: Address, message_id: str) -> Outcome:
        def effect() -> Outcome:
            del self.screen[message_id]
            return Accepted(message_id)

        return await self._do(Request(trio.current_time(), "delete", address, "", message_id), effect)

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome:
        return Unknown("no look-ups")

    async def typing(self, address: Address) -> None:
        self.requests.append(Request(trio.current_time(), "typing", address, "", ""))
        await self.types()


class _Counting:
    """An executor that knows which transactions there were."""

    def __init__(self, inline: InlineExecutor) -> None:
        self._inline = inline
        self.labels: Counter[str] = Counter()

    async def run(self, calls: Sequence[Call]) -> Sequence[Result]:
        self.labels.update(call.label for call in calls)
        return await self._inline.run(calls)


@define(eq=False)
class Pier:
    """See the module's text."""

    con: Connection
    clock: SteppedClock
    ledger: Ledger
    courier: Courier
    platform: Sea
    accounts: dict[str, Account]
    labels: Counter[str]
    """How often each function was handed to the ledger."""
    nursery: trio.Nursery
    _ids: itertools.count[int] = field(factory=lambda: itertools.count(1))

    @property
    def account(self) -> Account:
        """The first account."""
        return self.accounts["tg"]

    def owe(self, text: str, chat: str = "1", *, account: str = "tg", key: str = "", wake: bool = True) -> str:
        """A control message, as its rows; the courier is told unless `wake` is false."""
        key = key or f"c{next(self._ids)}"
        address = Address(account, chat)
        add_control(self.con, key, address, self.accounts[account].plan(text), self.clock.now(), reserve=False)
        if wake:
            self.courier.wake(address)
        return key

    def stream(self, chat: str = "1", *, account: str = "tg", key: str = "") -> str:
        """The obligation of a reply that will stream."""
        key = key or f"r{next(self._ids)}"
        address = Address(account, chat)
        progress = progress_of(View(id=key, reserve=True))
        obligations.insert(self.con, key, "reply", address, self.clock.now(), progress=progress)
        self.courier.wake(address)
        return key

    def show(self, reply: str, text: str, chat: str = "1") -> None:
        """The turn says more."""
        self.courier.show(Address("tg", chat), reply, lambda: text)

    def answer(self, reply: str, text: str, chat: str = "1") -> None:
        """The turn has ended well."""
        commit_reply(self.con, reply, self.account.plan(text), self.clock.now())
        self.courier.forget(Address("tg", chat), reply)
        self.courier.wake(Address("tg", chat))

    def state(self, key: str) -> str:
        """What became of an obligation."""
        return obligations.get(self.con, key).state

    def states(self) -> dict[str, int]:
        """How many obligations are in each state."""
        rows = self.con.execute("SELECT state, count(*) FROM delivery_obligations GROUP BY state")
        return dict(map(tuple, rows))

    async def run_again(self) -> None:
        """The courier of another life of the process: recovered, and running in the nursery."""
        await self.courier.recover(False)
        for account in self.accounts.values():
            self.courier.alive(account)
        self.nursery.start_soon(self.courier.run)


@cache
def _empty() -> bytes:
    con = sqlite3.connect(":memory:", isolation_level=None)
    prepare(con, "memory")
    return con.serialize()


@asynccontextmanager
async def open_pier(
    *,
    edits: bool = True,
    edit_interval: float = 1.0,
    limit: int = 20_000,
    expire: float = 86_400.0,
    names: Sequence[str] = ("tg",),
    con: Connection | None = None,
    start: bool = True,
    marked_copies: int = 2,
    lateness: float = LATENESS,
) -> AsyncIterator[Pier]:
    """A pier whose courier runs; the accounts have shown life. con: the rows of an earlier one. start: run at once."""
    if con is None:
        con = sqlite3.connect(":memory:", isolation_level=None)
        con.deserialize(_empty())
    con.row_factory = sqlite3.Row
    clock = SteppedClock()
    platform = Sea(
        Capabilities(
            limit=limit, unit="codepoints", edits=edits, deletes=edits, typing=True, edit_interval=edit_interval,
            request_timeout=REQUEST_TIMEOUT, lateness=lateness,
        )
    )  # fmt: skip
    wire = Wire(
        edits=edits, deletes=edits, request_timeout=REQUEST_TIMEOUT, lateness=lateness, marked_copies=marked_copies
    )
    accounts = {name: Account(name, platform, wire, expire) for name in names}
    notices = {
        name: Notices(evolve(each.plan(EXPIRED), expire=inf), each.plan(REFUSED), False)
        for name, each in accounts.items()
    }
    executor = _Counting(InlineExecutor(con, clock.now, lambda: COMMIT, lambda label: None))
    async with open_ledger(executor) as ledger, trio.open_nursery() as nursery:
        courier = Courier(ledger, clock, accounts, notices)
        pier = Pier(con, clock, ledger, courier, platform, accounts, executor.labels, nursery)
        if start:
            await pier.run_again()
        yield pier
        nursery.cancel_scope.cancel()
