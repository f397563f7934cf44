"""The courier: who holds the lanes of all addresses with work, a window of them at a time.

What is open, and when it is due, stands in rows; the courier holds nothing but the lanes that run now and the previews
of replies that stream now. A lane ends when its address has nothing to do, and its rows say when to look again; so
ten thousand open obligations cost no memory. The rule that must not be broken: nobody else performs wire operations
that change a screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from itertools import count
from math import inf

import structlog
import trio
from attrs import evolve

from hermes_trio.clock import Clock
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.folding import clock_stepped, recover
from hermes_trio.delivery.lane import Decision, Moment, Notices, decide, perform, record
from hermes_trio.delivery.previews import Previews
from hermes_trio.delivery.steps import Edit
from hermes_trio.delivery.store import load, save
from hermes_trio.delivery.view import View, Wire
from hermes_trio.ledger import Connection, Ledger, LedgerClosed, accounts, obligations, operating
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.values import Address

WINDOW = 256
"""Lanes at a time: more would only queue at the network, and each costs a task."""
SOON = 2.0
"""Seconds: what waits no longer than this is remembered by the courier itself; what waits longer is read from rows."""
REMEMBERED = 4 * WINDOW
"""Addresses that the courier remembers itself, at most; of those beyond the rows say when to look. Chats that stream
are not counted: no row knows when a preview is due."""
BATCH = 200
"""Obligations that one transaction of a recovery looks at: it bounds memory, and how long others wait."""
FAULT_PAUSE = 60.0
"""Seconds before an address is looked at again at which our own code failed."""
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What reading the rows of an obligation raises when something else has written to them."""
STEP_TOLERANCE = 2.0
"""Seconds by which the wall clock may drift from the monotonic one between two looks before it counts as a step."""

log = structlog.get_logger(__name__)


class Courier:
    """Delivers what the rows say. `run` must run; the other methods may be called by any task."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        accounts: Mapping[str, Account],
        notices: Mapping[str, Notices],
        *,
        only: Address | None = None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._accounts = accounts
        self._notices = notices
        """By account."""
        self._only = only
        """The one address to work at, for a command that sends without a bot; None: all."""
        self._looked: dict[Address, trio.Event] = {}
        """Set when a lane has decided on the address."""
        self._lanes: dict[Address, _Lane] = {}
        self._wanted: dict[Address, None] = {}
        """Addresses to be looked at before their rows say so, in order."""
        self._revived: set[str] = set()
        """Accounts that show life again: what waited for that is due."""
        self._later: list[tuple[float, int, Address]] = []
        """A heap: addresses to be looked at soon, or when a preview is due, by wall-clock time, then by arrival."""
        self._arrivals = count()
        self._look_at = -inf
        """Wall-clock seconds at which the rows may show that something is due which nobody has woken."""
        self._previews = Previews()
        self._changed = trio.Event()
        self._idle = trio.Event()
        """No lane runs and nothing is due."""
        self._offset = clock.now() - trio.current_time()
        self._moved: dict[tuple[str, str], str] = {}
        """By account and chat: the chat that it has become since this life of the process began."""
        self._failed: set[Address] = set()
        """Addresses at which our own code failed, and that were not looked at since."""
        self._closing = False

    # -- what other rooms say to it ---------------------------------------------------------------------------------

    def wake(self, address: Address) -> None:
        """Rows of this address have changed. Never blocks."""
        address = self.current(address)
        if self._only is not None and address != self.current(self._only):
            return
        lane = self._lanes.get(address)
        if lane is not None:
            lane.woken.set()
        else:
            self._wanted[address] = None
            self._change()

    @property
    def moved(self) -> bool:
        """Whether any chat has moved in this life of the process."""
        return bool(self._moved)

    def current(self, address: Address) -> Address:
        """The address that this one has become, where its chat has moved in this life of the process."""
        while (moved := self._moved.get((address.account, address.chat))) is not None:
            address = evolve(address, chat=moved)
        return address

    def show(self, address: Address, reply: str, text: Callable[[], str]) -> None:
        """A streaming reply should show this Markdown; `text` is called when a preview is really made. Never blocks."""
        address = self.current(address)
        interval = self._accounts[address.account].capabilities.edit_interval
        if self._previews.show(address, reply, text, interval):
            self.wake(address)

    def next_look(self, address: Address) -> trio.Event:
        """Is set when a lane has next decided on this address, and all that it decided stands in rows."""
        return self._looked.setdefault(self.current(address), trio.Event())

    def all_said(self, addresses: Iterable[Address]) -> Mapping[str, str]:
        """By streaming reply at these addresses: the Markdown that its latest preview was made of."""
        return self._previews.said(addresses)

    def forget(self, address: Address, reply: str) -> None:
        """The reply streams no more. Never blocks."""
        self._previews.forget(self.current(address), reply)

    def alive(self, account: Account) -> None:
        """A round trip with the account's platform was completed just now. Never blocks."""
        account.alive_at = self._clock.now()
        if account.down or account.doubted:
            account.down = account.doubted = False
            self._revived.add(account.name)
            self._change()

    def trouble(self, account: Account) -> None:
        """Nothing came through to the account's platform just now. Never blocks."""
        account.down = True

    # -- its own work -----------------------------------------------------------------------------------------------

    async def recover(self, stepped: bool) -> None:
        """All that a restart does: what was only intended is now unknown. Before `run`, once.

        stepped: the clock shows less than the time of the last commit.
        """
        wires = {name: account.wire for name, account in self._accounts.items()}
        if self._only is None:
            ids = await self._ledger.insist(obligations.all_open)
        else:
            ids = await self._ledger.insist(operating.open_ids, self._only)
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            _complain(await self._ledger.insist(_recover, batch, wires, stepped, self._clock.now(), 0.0))

    async def run(self) -> None:
        """Runs lanes until cancelled. Cancelled: requests in flight become unknown, as after a crash."""
        async with trio.open_nursery() as nursery:
            while True:
                self._changed = trio.Event()
                due = await self._start_lanes(nursery)
                if not (self._lanes or self._wanted or self._revived or self._is_due_soon()):
                    self._idle.set()
                with trio.move_on_after(max(0.0, due - self._clock.now())):
                    await self._changed.wait()

    async def wait_idle(self) -> None:
        """Returns when nothing is due, or will be soon; what waits for later stays open in its rows."""
        self._change()
        await self._idle.wait()

    def _is_due_soon(self) -> bool:
        due = min(self._look_at, self._later[0][0] if self._later else inf)
        return due <= self._clock.now() + SOON and not self._closing

    async def close(self) -> None:
        """Lets each lane finish its request and record it, and starts no other. Returns when no lane runs."""
        self._closing = True
        self._change()
        await self._idle.wait()

    def _change(self) -> None:
        if self._idle.is_set():
            self._idle = trio.Event()
        self._changed.set()

    async def _start_lanes(self, nursery: trio.Nursery) -> float:
        """Starts lanes for what is due; returns the wall-clock time when more will be."""
        if self._closing:
            self._wanted.clear()
            self._revived.clear()
            return inf
        while self._revived:
            name = self._revived.pop()
            await self._ledger.insist(obligations.revive, name)
            self._look_at = -inf
            for address, lane in self._lanes.items():
                if address.account == name:
                    lane.woken.set()
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            self._wanted[heappop(self._later)[2]] = None
        for address in list(self._wanted)[: WINDOW - len(self._lanes)]:
            del self._wanted[address]
            self._start_lane(nursery, address)
        soon = self._later[0][0] if self._later else inf
        if self._look_at > now:
            return min(self._look_at, soon)
        room = WINDOW - len(self._lanes)
        if room <= 0:
            return inf  # the end of a lane will say so
        self._look_at = inf
        busy = tuple(self._lanes)
        if self._only is None:
            due = await self._ledger.insist(obligations.due_addresses, tuple(self._accounts), room + 1, busy)
        else:
            only = self.current(self._only)
            moment = await self._ledger.insist(operating.due_at, only)
            due = () if moment is None or only in busy else ((only, moment),)
        for address, moment in due[:room]:
            if moment > self._clock.now():
                break
            self._start_lane(nursery, address)
        waiting = [moment for address, moment in due if address not in self._lanes]
        self._look_at = min([self._look_at, *waiting])
        return inf if len(self._lanes) >= WINDOW else min(self._look_at, soon)

    def _start_lane(self, nursery: trio.Nursery, address: Address) -> None:
        if address not in self._lanes and address.account in self._accounts and not self._closing:
            lane = self._lanes[address] = _Lane(self, address)
            nursery.start_soon(lane.run, name=f"lane {address}")

    def _ended(self, address: Address, until: float) -> None:
        """A lane has ended whose address is due at `until` (wall-clock seconds; inf: when it is woken)."""
        woken = self._lanes.pop(address).woken.is_set()
        soon = until <= self._clock.now() + SOON and len(self._later) < REMEMBERED
        if woken:
            self._wanted[address] = None
        elif until < inf and (soon or address in self._previews):
            heappush(self._later, (until, next(self._arrivals), address))
        else:
            self._look_at = min(self._look_at, until)
        self._change()

    # -- what its lanes ask of it -----------------------------------------------------------------------------------

    async def _decide(self, address: Address) -> Decision:
        now = await self._now()
        account = self._accounts[address.account]
        if address in self._failed:
            self._failed.discard(address)
            account.doubted = True  # what is unknown since then may wait for the next sign of life
        due = now + self._previews.refresh(address, account)
        moment = Moment(now, account.alive_at, self._previews.shown(address))
        decision = await self._ledger.insist(decide, address, account, self._notices[address.account], moment)
        if (looked := self._looked.pop(address, None)) is not None:
            looked.set()
        return decision if decision.step is not None else evolve(decision, until=min(decision.until, due))

    async def _request(self, address: Address, decision: Decision) -> None:
        """Makes the request of a decision and records its outcome."""
        account, view, step = self._accounts[address.account], decision.view, decision.step
        assert view is not None
        assert step is not None
        outcome = await perform(account, address, step)
        now = await self._now()
        moment = Moment(now, account.alive_at, {})
        view = await self._ledger.insist(record, address, account, step, view, outcome, moment)
        self._learn(account, outcome)
        self._previews.learn(address, account, view, outcome, edited=isinstance(step, Edit), now=now)
        if isinstance(outcome, Refused) and outcome.moved_to not in (None, address.chat):
            self._follow(address, str(outcome.moved_to))

    def _follow(self, address: Address, chat: str) -> None:
        """The rows of a chat have moved to another; whoever still speaks of the old one means the new one."""
        self._moved.pop((address.account, chat), None)  # it may have moved back
        self._moved[address.account, address.chat] = chat
        self._previews.move(address, chat)
        self._look_at = -inf
        self.wake(address)

    def _learn(self, account: Account, outcome: Outcome) -> None:
        if isinstance(outcome, Accepted):
            self.alive(account)
        elif isinstance(outcome, Refused) and outcome.reason is Reason.NOTHING_LEFT:
            self.trouble(account)
        elif isinstance(outcome, Unknown):
            account.doubted = True
        elif isinstance(outcome, Refused) and outcome.retry_after is not None:
            account.quiet_until = max(account.quiet_until, trio.current_time() + outcome.retry_after)

    async def _postpone(self, address: Address) -> float:
        """Nothing is tried at this address for a while; returns until when. What was intended there is now unknown."""
        account, now = self._accounts[address.account], self._clock.now()
        until = now + FAULT_PAUSE
        self._failed.add(address)
        ids = await self._ledger.insist(_set_aside, address, until)
        wires = {address.account: account.wire}
        _complain(await self._ledger.insist(_recover, ids, wires, False, now, until))
        return until

    async def _now(self) -> float:
        """The wall clock's time, after a step of it was recorded."""
        offset = self._clock.now() - trio.current_time()
        if abs(offset - self._offset) > STEP_TOLERANCE:
            log.warning("the clock was stepped", seconds=round(offset - self._offset, 3))
            self._offset = offset  # whoever looks next finds it noticed, and what it records comes behind this
            wires = {name: account.wire for name, account in self._accounts.items()}
            for account in self._accounts.values():
                account.alive_at = -inf
                account.doubted = True  # what waits for a sign of life has to be told of the next one anew
            _complain(await self._ledger.insist(_step_clock, wires, self._clock.now()))
            self._look_at = -inf
        self._offset = offset
        return self._clock.now()


class _Lane:
    """The task of one address."""

    def __init__(self, courier: Courier, address: Address) -> None:
        self._courier = courier
        self._address = address
        self._until = inf
        """When there is something to do without being woken, by the latest decision; wall-clock seconds."""
        self.woken = trio.Event()
        """Rows, or a preview, of its address have changed since its last decision."""

    async def run(self) -> None:
        """Works until its address has nothing to do now."""
        try:
            while await self._turn():
                pass
        except LedgerClosed:
            raise
        except Exception:  # the supervision border of a lane: a fault at one address must not end the others
            log.exception("a lane failed", address=str(self._address), again_in=FAULT_PAUSE)
            self.woken = trio.Event()
            self._until = await self._courier._postpone(self._address)
        finally:
            self._courier._ended(self._address, self._until)

    async def _turn(self) -> bool:
        """One decision and what follows from it; False when the lane may end."""
        courier = self._courier
        self.woken = trio.Event()
        decision = await courier._decide(self._address)
        self._until = decision.until
        if decision.step is None:
            return False
        await courier._request(self._address, decision)
        return not courier._closing


def _recover(
    con: Connection, ids: tuple[str, ...], wires: Mapping[str, Wire], stepped: bool, now: float, due: float
) -> tuple[str, ...]:
    """Recovers these obligations, to be looked at when they are `due`; returns those that cannot be read."""
    return _revise(con, ids, wires, now, due, lambda view, wire: recover(view, wire, now, stepped))


def _step_clock(con: Connection, wires: Mapping[str, Wire], now: float) -> tuple[str, ...]:
    """Records a step of the clock; returns the obligations that cannot be read."""
    longest = max((wire.max_backoff for wire in wires.values()), default=0.0)
    accounts.clock_stepped(con, now, longest)
    return _revise(con, obligations.all_open(con), wires, now, 0.0, lambda view, wire: clock_stepped(view, wire, now))


def _revise(
    con: Connection,
    ids: tuple[str, ...],
    wires: Mapping[str, Wire],
    now: float,
    due: float,
    change: Callable[[View, Wire], View],
) -> tuple[str, ...]:
    unreadable = []
    for obligation_id in ids:
        try:
            row = obligations.get(con, obligation_id)
            before = load(con, row)
        except UNREADABLE:  # the rows of one address must not keep all others from their recovery
            unreadable.append(obligation_id)
            continue
        wire = wires.get(row.address.account)
        if wire is None:
            continue  # its account is not configured now; when it is again, a restart recovers it
        after = change(before, wire)
        if after != before:
            save(con, row, after, now)
        obligations.set_due(con, (obligation_id,), due)
    return tuple(unreadable)


def _set_aside(con: Connection, address: Address, until: float) -> tuple[str, ...]:
    ids = operating.open_ids(con, address)
    obligations.set_due(con, ids, until)
    return ids


def _complain(unreadable: tuple[str, ...]) -> None:
    for obligation_id in unreadable:
        log.error("the rows of a delivery cannot be read; they stay as they are", obligation=obligation_id)
