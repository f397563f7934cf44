"""Conversations: one actor for each address with work, which runs its turns one after the other.

The queue is rows of the inbox; an actor holds none of it. It takes the next row when its turn has ended, and ends
when there is none. The rule that must not be broken: only an actor begins turns, and there is at most one for an
address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import structlog
import trio

from hermes_trio.access import Access
from hermes_trio.clock import Clock, Ids
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.records import Begun, Compress, Gathering
from hermes_trio.conversation.turn import TurnRunner
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger, LedgerClosed
from hermes_trio.values import Address

HEARTBEAT = 5.0
"""Seconds between two signs of life in the database while conversations are at work: a restart must know how long the
process lived."""
MAX_TURNS = 2000
"""Turns at a time: each holds a connection to the model. Those beyond wait for a place, as rows."""
FAULT_PAUSE = 60.0
"""Seconds before an address is looked at again at which our own code failed, unless something arrives there."""
LETTING_GO = 2.0
"""Seconds that a cancelled turn may take to end. One that does not (a tool that hangs in a thread) is left alone: the
ledger refuses whatever it still does, and the conversation goes on without it."""

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
        self._actors: dict[Address, _Actor] = {}
        self._places = trio.CapacityLimiter(MAX_TURNS)
        self._alive: set[str] = set()
        """The turns that run in this process, and those that it is about to begin."""
        self._busy = trio.Event()
        """Set while there is an actor; `_idle` is its contrary."""
        self._idle = trio.Event()
        self._idle.set()
        self._closing = False

    def wake(self, address: Address) -> None:
        """Something arrived at this address. Never blocks."""
        if self._closing or address.account not in self._accounts:
            return
        actor = self._at(address)
        if actor is None:
            actor = self._actors[address] = _Actor(self, address)
            if self._idle.is_set():
                self._idle = trio.Event()
                self._busy.set()
            self._nursery.start_soon(actor.run, name=f"conversation {address}")
        actor.woken.set()

    def cancel(self, address: Address, turn: str) -> None:
        """The ledger says that this turn, or compression, has ended: its work is cancelled. Never blocks."""
        actor = self._at(address)
        if actor is not None:
            actor.cancel(turn)

    def _at(self, address: Address) -> _Actor | None:
        """The actor of an address, also one that began when its chat had another id."""
        found = self._actors.get(address)
        if found is None and self._courier.moved:
            current = self._courier.current
            found = next((actor for old, actor in self._actors.items() if current(old) == address != old), None)
        return found

    async def recover(self) -> None:
        """Wakes every address at which a row waits or a turn was interrupted by the end of the process."""
        for address in await self._ledger.insist(records.addresses_with_work):
            self.wake(address)

    async def show_life(self) -> None:
        """The heartbeat, for the next start, until cancelled."""
        while True:
            await self._busy.wait()
            await trio.sleep(HEARTBEAT)
            if self._actors:
                await self._ledger.insist(records.beat, self._clock.now())

    def close(self) -> None:
        """No further turn begins; what waits is durable. Never blocks."""
        self._closing = True
        for actor in self._actors.values():
            actor.woken.set()

    async def wait_idle(self) -> None:
        """Returns when no actor is at work."""
        await self._idle.wait()

    def _ended(self, address: Address) -> None:
        del self._actors[address]
        if not self._actors:
            self._busy = trio.Event()
            self._idle.set()

    async def _begin(self, address: Address) -> Begun | Gathering | Compress | records.Ended | None:
        """What is next at this address; the turn that it may begin counts as this process's before its row is there."""
        turn_id = self._ids()
        self._alive.add(turn_id)
        begun = await self._ledger.insist(
            records.begin_next,
            self._courier.current(address),
            self._access,
            self._reserve,
            turn_id,
            self._ids(),
            self._accounts[address.account].plan(notices.GAVE_UP),
            self._previous_death,
            frozenset(self._alive),
            self._clock.now(),
        )
        if not isinstance(begun, Begun) or begun.turn.id != turn_id:
            self._alive.discard(turn_id)
        if isinstance(begun, Begun):
            self._alive.add(begun.turn.id)
        return begun


class _Actor:
    """The conversation at one address."""

    def __init__(self, conversations: Conversations, address: Address) -> None:
        self._conversations = conversations
        self._address = address
        self._scope: trio.CancelScope | None = None
        self._job: str | None = None
        """The turn, or the compression, that runs in the scope."""
        self._patience: trio.CancelScope | None = None
        """How long the actor waits for it."""
        self._over: set[str] = set()
        """Turns that ended before their scope was there."""
        self.woken = trio.Event()
        """Something arrived since it last looked."""

    def cancel(self, turn: str) -> None:
        """Cancels the scope of this turn, also one that is only about to begin."""
        if self._job == turn and self._scope is not None and self._patience is not None:
            self._scope.cancel()
            self._patience.deadline = min(self._patience.deadline, trio.current_time() + LETTING_GO)
        else:
            self._over.add(turn)

    async def run(self) -> None:
        """Works until nothing waits at its address."""
        conversations = self._conversations
        try:
            while self.woken.is_set() and not conversations._closing:
                self.woken = trio.Event()
                await self._work_off()
        finally:
            conversations._ended(self._address)

    async def _work_off(self) -> None:
        """One thing after the other, until nothing waits; where our own code fails it is tried again after a pause."""
        try:
            while not self._conversations._closing and await self._next():
                pass
        except LedgerClosed:
            raise
        except Exception:  # the supervision border of a conversation: a fault at one address must not end the others
            log.exception("a conversation failed", address=str(self._address), again_in=FAULT_PAUSE)
            with trio.move_on_after(FAULT_PAUSE):
                await self.woken.wait()
            self.woken.set()

    async def _next(self) -> bool:
        """Does the next thing at its address; False when nothing waits there."""
        conversations = self._conversations
        async with conversations._places:
            begun = await conversations._begin(self._address)
            if not isinstance(begun, Gathering):
                return await self._do(begun)
        self.woken = trio.Event()  # what has arrived so far is in the rows that were just read
        with trio.move_on_after(max(0.0, begun.until - conversations._clock.now())):
            await self.woken.wait()
        return True

    async def _do(self, begun: Begun | Compress | records.Ended | None) -> bool:
        conversations = self._conversations
        runner = conversations._runners[self._address.account]
        match begun:
            case None:
                return False
            case Compress():
                await self._run(begun.id, partial(runner.compress, begun))
            case Begun():
                conversations._courier.wake(self._address)
                await self._run(begun.turn.id, partial(runner.run, begun))
            case _:
                conversations._courier.wake(self._address)
        return True

    async def _run(self, job: str, work: Callable[[], Awaitable[None]]) -> None:
        """Runs a turn, or a compression, in a task and a scope of its own; it does not wait for ever for its end."""
        try:
            if job not in self._over:
                await self._run_in_scope(job, work)
        finally:
            self._over.discard(job)
            self._conversations._alive.discard(job)

    async def _run_in_scope(self, job: str, work: Callable[[], Awaitable[None]]) -> None:
        self._job, self._scope, self._patience = job, trio.CancelScope(), trio.CancelScope()
        ended = trio.Event()
        self._conversations._nursery.start_soon(_work, self._scope, work, ended, name=f"turn {job}")
        try:
            with self._patience:
                await ended.wait()
            if not ended.is_set():
                log.warning("what was ended hangs; it is left alone", turn=job)
        finally:
            self._job = self._scope = self._patience = None


async def _work(scope: trio.CancelScope, work: Callable[[], Awaitable[None]], ended: trio.Event) -> None:
    """The task of a turn."""
    try:
        with scope:
            await work()
    finally:
        ended.set()
