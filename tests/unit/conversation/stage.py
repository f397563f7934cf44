"""A stage: the real conversations and the real ingress over a ledger in memory, with turns that a test writes.

    async with open_stage() as stage:
        await stage.hears("hello")
        await stage.conversations.wait_idle()

Only the runner of turns is the test's: it gets what has begun, and ends it in the ledger or not.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from attrs import define, evolve, field

from hermes_trio.access import Access
from hermes_trio.conversation import records
from hermes_trio.conversation.actor import Conversations
from hermes_trio.conversation.admission import Rules
from hermes_trio.conversation.commands import Facts
from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.conversation.ingress import Ingress
from hermes_trio.conversation.records import Begun, Compress
from hermes_trio.conversation.turn import TurnRunner
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.delivery.view import Wire
from hermes_trio.ledger import Connection, Ledger, open_ledger
from hermes_trio.ledger.executors import InlineExecutor
from hermes_trio.model.base import Usage
from hermes_trio.platforms.base import Inbound
from hermes_trio.values import Address

from .desk import EVERYONE, HOME, START, Wireless, inbound, open_memory

COMMIT = 0.001
"""Seconds before and after each transaction."""


class StageClock:
    """trio's time on a base."""

    def now(self) -> float:
        """Wall-clock seconds."""
        return START + trio.current_time()


class Told(Courier):
    """A courier that does not run, and notes what it is told."""

    notes: list[str]
    on_wake: Callable[[Address], None] | None = None

    def wake(self, address: Address) -> None:
        self.notes.append(f"deliver {address.chat}")
        if self.on_wake is not None:
            self.on_wake(address)
        super().wake(address)


class Heard(Conversations):
    """Conversations that note what they are told."""

    notes: list[str]

    def wake(self, address: Address) -> None:
        self.notes.append(f"wake {address.chat}")
        super().wake(address)

    def cancel(self, address: Address, turn: str) -> None:
        self.notes.append(f"cancel {turn}")
        super().cancel(address, turn)


@define(eq=False)
class Runner:
    """Runs turns as the test says: `does` is called with each, and by default answers at once."""

    stage: Stage = field(init=False)
    does: Callable[[Begun], Awaitable[None]] = field(init=False)
    compresses: Callable[[Compress], Awaitable[None]] = field(init=False)
    begun: list[Begun] = field(factory=list)
    running: set[str] = field(factory=set)
    """The texts whose turns run now."""
    busiest: int = 0
    cancelled: list[str] = field(factory=list)

    async def run(self, begun: Begun) -> None:
        text = begun.inbound.text
        self.begun.append(begun)
        self.running.add(text)
        self.busiest = max(self.busiest, len(self.running))
        try:
            await self.does(begun)
        except trio.Cancelled:
            self.cancelled.append(text)
            raise
        finally:
            self.running.discard(text)

    async def compress(self, job: Compress) -> None:
        await self.compresses(job)

    @property
    def texts(self) -> list[str]:
        """What was said to the turns that began."""
        return [begun.inbound.text for begun in self.begun]


@define(eq=False)
class Stage:
    """See the module's text."""

    con: Connection
    ledger: Ledger
    courier: Told
    conversations: Heard
    ingress: Ingress
    runner: Runner
    account: Account
    notes: list[str]
    """What the courier and the conversations were told, in order."""
    completed: list[float] = field(factory=list)
    """When a round trip was reported."""
    _ids: itertools.count[int] = field(factory=lambda: itertools.count(1))

    async def hears(self, *texts: str, address: Address = HOME, cursor: str | None = None, **more: Any) -> None:
        """A receive batch of these messages."""
        natives = [f"m{next(self._ids)}" for _ in texts]
        messages = (inbound(native, text, address=address, **more) for native, text in zip(natives, texts, strict=True))
        await self.receives(*messages, cursor=cursor)

    async def receives(self, *batch: Inbound, cursor: str | None = None) -> None:
        """A receive batch."""
        await self.ingress.receive(batch, cursor)

    async def answer(self, begun: Begun) -> None:
        """The turn ends well."""
        plan = self.account.plan("An answer.")
        await self.ledger.insist(records.answer, begun.turn, plan, Usage(), START + trio.current_time())

    def states(self) -> dict[str, str]:
        """What became of each message that is no command, by its text."""
        rows = self.con.execute("SELECT text, state FROM inbox WHERE kind != 'command' ORDER BY id")
        return {row["text"]: row["state"] for row in rows}


@asynccontextmanager
async def open_stage(
    *, con: Connection | None = None, access: Access = EVERYONE, busy: str = "queue"
) -> AsyncIterator[Stage]:
    """A stage. con: the rows of an earlier one, which ended as by a crash."""
    con = con or open_memory()
    clock, numbers, notes = StageClock(), itertools.count(1), []
    life = con.execute("SELECT count(*) FROM turns").fetchone()[0]
    account = Account("tg", Wireless(), Wire(edits=True), 86_400.0)
    facts = Facts(access, ("first",), "interrupt")
    rules = Rules(account, REGISTRY, evolve(facts, busy=busy), reserve=False, always=False, others_interrupt=False)
    executor = InlineExecutor(con, clock.now, lambda: COMMIT, lambda label: None)

    def ids() -> str:
        return f"life{life}.{next(numbers)}"

    runner = Runner()
    async with open_ledger(executor) as ledger, trio.open_nursery() as nursery:
        courier = Told(ledger, clock, {"tg": account}, {})
        conversations = Heard(
            nursery, ledger, courier, clock, ids, access, {"tg": account},
            lambda account: cast(TurnRunner, runner), reserve=True, previous_death=0.0,
        )  # fmt: skip
        courier.notes = conversations.notes = notes
        completed: list[float] = []
        ingress = Ingress(
            ledger, clock, ids, access, rules, courier, conversations, lambda: completed.append(trio.current_time())
        )
        stage = Stage(con, ledger, courier, conversations, ingress, runner, account, notes, completed)
        runner.stage, runner.does = stage, stage.answer
        yield stage
        nursery.cancel_scope.cancel()
