"""The world: one object that owns all that a bot cannot own, and runs the bot in it, life after life.

Seed, clock, wall clock, identifiers, chance, network, the fakes behind it and the disk are the world's; everything
above the socket and the transaction is production code. `World.run` plays one scenario to its end, deterministically.
The rule that must not be broken: nothing in here reads real time or real chance.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import trio
import trio.testing
from attrs import evolve

from hermes_fakes.faults import Call
from hermes_trio.config import Config
from hermes_trio.ledger import inbox, obligations
from hermes_trio.runtime import Ports
from hermes_trio.testing.amnesia import amnesia_of
from hermes_trio.testing.checker import check
from hermes_trio.testing.coverage import restarted
from hermes_trio.testing.direct import DirectClient, direct_bot
from hermes_trio.testing.disk import Disk
from hermes_trio.testing.faults import Fault, Injected, Missed, names_of
from hermes_trio.testing.fence import Boundaries, Crashed, Incarnation
from hermes_trio.testing.guards import GeneratorGuard, LeftTheWorld, inside_the_world, strays
from hermes_trio.testing.life import Bot, Life, runtime_bot
from hermes_trio.testing.logs import kept_errors
from hermes_trio.testing.network import Link, Network, link
from hermes_trio.testing.people import ModelSide, TelegramSide
from hermes_trio.testing.scheduler import StallGuard, place_of, run_seeded
from hermes_trio.testing.story import brief, tell
from hermes_trio.testing.witness import Witness
from hermes_trio.tools.base import Tool

EPOCH = 1_800_000_000.0
"""Wall-clock seconds at which every world begins."""
RESTART_DELAY = 1.0
"""Seconds between a crash and the next life."""
PATIENCE = 7200.0
"""Virtual seconds after which a world that has not become quiet is called stuck."""
LIMIT = 6 * 3600.0
"""Virtual seconds that a story may take, unless it says otherwise."""
LATENCY = (0.005, 0.03)
"""Seconds that one way on the network takes, at least and at most."""
TELEGRAM, MODEL = "telegram.test", "model.test"
UNCOUNTED = frozenset({"sendChatAction", "getMe", "models", "setMyCommands"})
"""Requests that change nothing that anybody could lose or see twice."""
POLL = "getUpdates"

CONFIG: Mapping[str, Any] = {
    "data_dir": "/world",
    "model": {"kind": "openai", "base_url": f"http://{MODEL}/v1", "name": "fake-model"},
    "access": {"allow": ["*"]},
    "platforms": {"telegram": {"kind": "telegram", "token": "123456:fake-token", "base_url": f"http://{TELEGRAM}"}},
}
"""What the bot of a world is configured with; a test changes keys of it."""

Scenario = Callable[["World"], Awaitable[None]]


class Stuck(AssertionError):
    """The world did not become quiet, or nothing in it can ever go on."""


class WorldClock:
    """The wall clock of a world: trio's time on a base that a test may move."""

    def __init__(self) -> None:
        self.offset = EPOCH

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        return self.offset + trio.current_time()

    def step(self, seconds: float) -> None:
        """Moves it, as an operator or a time server does."""
        self.offset += seconds


class World:
    """See the module's text. Made outside of trio; `run` may be called once."""

    def __init__(
        self,
        seed: int = 0,
        *,
        crash_at: Collection[int] = (),
        config: Config | Mapping[str, Any] | None = None,
        tools: Sequence[Tool] | None = None,
        bot: Bot = runtime_bot,
        faults: Iterable[Fault] = (),
        limit: float = LIMIT,
    ) -> None:
        self.seed = seed
        self.limit = limit
        """Virtual seconds that the story may take."""
        self.clock = WorldClock()
        self.boundaries = Boundaries(crash_at)
        self.boundaries.actions.append(self._strike)
        self.faults = [Injected(fault) for fault in faults]
        """Everything that was injected, with its hits."""
        self.network = Network(self._latency)
        self.disk = Disk(seed, self._cross)
        self.telegram = TelegramSide(EPOCH)
        self.model = ModelSide(EPOCH)
        self.config = make_config(config or {})
        self.witness = Witness(self.disk.connection, "telegram", self.clock.now)
        self.network.hosts = {TELEGRAM: self.telegram.fake, MODEL: self.model}
        self.lives = 0
        """How many incarnations there were."""
        self.alive: Incarnation | None = None
        self.errors: list[tuple[float, str]] = []
        """What the bot logged as an error, with trio's time."""
        self._tools = tools
        self._amnesia = amnesia_of([bot, *(type(tool) for tool in tools or ())])
        self._bot = bot
        self._chance = random.Random(f"chance {seed}")
        self._wire = random.Random(f"wire {seed}")
        self._ids = itertools.count(1)
        self._wanted = trio.Event()
        self._changes = trio.lowlevel.ParkingLot()
        self._flying: dict[Call, Link] = {}
        """Requests that are being answered."""
        self._last_offset: Any = None
        self._held = 0.0
        self._looked_at = -1
        """The number of changes of the database for which `_open_work` holds."""
        self._open_work = ""
        self.disk.changed = self._committed
        self.network.closed = self._notify
        self.disk.before = lambda incarnation, label: self._strike(label, incarnation, None, early=True)
        for fake in self.network.hosts.values():
            fake.watch = self._on_wire

    # -- the bot's lives --------------------------------------------------------------------------------------------

    async def up(self) -> None:
        """Starts the bot, and returns when it runs; it is started again whenever it is killed by a fault."""
        self._wanted.set()
        await self._until(lambda: self.alive is not None and self.alive.started.is_set())

    def kill(self, *, restart: bool = False) -> None:
        """SIGKILL. Without `restart` the bot stays down until `up`."""
        if not restart:
            self._wanted = trio.Event()
        if self.alive is not None:
            self.alive.kill()

    async def restart(self) -> None:
        """SIGKILL, and a new life on the same disk."""
        self.kill()
        await trio.sleep(RESTART_DELAY)
        await self.up()

    def inject(self, fault: Fault) -> Injected:
        """Adds a fault to the world; occurrences are counted from now."""
        injected = Injected(fault)
        self.faults.append(injected)
        return injected

    def missed(self) -> list[str]:
        """The faults that never struck, those of the fakes included."""
        wire = [fault for fake in self.network.hosts.values() for fault in fake.faults.unhit()]
        return [*(str(each.fault) for each in self.faults if not each.hits), *(str(fault.effect) for fault in wire)]

    def hold(self, seconds: float, *, on_wire: bool) -> None:
        """Holds up the task that is at a boundary just now: that of a request, or the ledger's."""
        if on_wire:
            self._held = seconds
        else:
            self.disk.held = seconds

    def spawn(self, action: Callable[[], Awaitable[object]]) -> None:
        """Runs something in the world itself, whatever becomes of the bot."""
        assert self.network.nursery is not None, "the world does not run"
        self.network.nursery.start_soon(action)

    async def quiet(self, patience: float = PATIENCE) -> None:
        """Returns when nothing is left to do: exactly then, at no later time.

        Quiet is: the bot runs; the inbox is drained and no obligation is open; the platform has no update that the
        bot has not confirmed; a poll for new messages waits, no other request is being answered, no effect of an
        earlier one is still to come; and no task is runnable. Raises Stuck, with what is missing, after `patience`
        virtual seconds.
        """
        with trio.move_on_after(patience):
            while True:
                await self._until(lambda: not self._unfinished())
                await trio.testing.wait_all_tasks_blocked()
                if not self._unfinished():
                    return
        raise Stuck(f"not quiet after {patience:g} s: {self._unfinished()}")

    def _unfinished(self) -> str:
        """What keeps the world from being quiet; empty: nothing."""
        if self.alive is None or not self.alive.started.is_set():
            return "the bot does not run"
        if waiting := self.telegram.fake.updates.waiting:
            return f"{waiting} updates are not confirmed"
        flying = [call.method for call in self._in_flight()]
        if flying != [POLL]:
            return f"in flight: {', '.join(flying)}" if flying else "no poll waits"
        if any(fake.due for fake in self.network.hosts.values()):
            return "effects of earlier requests are still to come"
        changes = self.disk.connection.total_changes
        if changes != self._looked_at:
            self._looked_at, self._open_work = changes, self._work_in_rows()
        return self._open_work

    def _work_in_rows(self) -> str:
        if open_rows := obligations.all_open(self.disk.connection):
            return f"open obligations: {', '.join(open_rows)}"
        if addresses := inbox.addresses_with_work(self.disk.connection):
            return f"messages wait or are worked on at {', '.join(map(str, addresses))}"
        return ""

    def _in_flight(self) -> Iterator[Call]:
        for call, connection in list(self._flying.items()):
            if not connection.open or call.gone.is_set():
                del self._flying[call]
            elif call.method != "sendChatAction":
                yield call

    def story(self) -> str:
        """What happened, as lines: who said what, what became visible, where it crashed."""
        return tell(self)

    # -- what happens -----------------------------------------------------------------------------------------------

    def _notify(self) -> None:
        self._changes.unpark_all()

    def _committed(self) -> None:
        self.witness.committed()
        self._notify()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changes.park()

    def _latency(self) -> float:
        return self._wire.uniform(*LATENCY)

    def _new_id(self) -> str:
        return f"id-{next(self._ids)}"

    def _cross(self, incarnation: Incarnation, label: str) -> None:
        self.boundaries.cross(incarnation, label, trio.current_time())

    def _strike(self, label: str, incarnation: Incarnation, call: Call | None, *, early: bool = False) -> None:
        names = names_of(label)
        for injected in self.faults:
            if injected.wants(names, call, early=early):
                injected.strike(self, incarnation, call)

    async def _on_wire(self, stage: str, call: Call) -> None:
        """A request comes to one of its stages at a fake."""
        connection = link.get()
        incarnation = connection.incarnation
        if stage == "?":
            self._flying[call] = connection
            await trio.sleep(self._latency())
        elif stage == "~" and call.method == "sendMessage":
            made = next(change for change in reversed(self.telegram.fake.history) if change.args is call.args)
            if made.message_id is not None:
                self.witness.accepted(call, incarnation, made.message_id)
        elif stage == "!":
            self._flying.pop(call, None)
        try:
            self.boundaries.cross(
                incarnation, f"wire{stage} {call.method}", trio.current_time(), call, numbered=self._counts(stage, call)
            )
            if self._held:
                held, self._held = self._held, 0.0
                await trio.sleep(held)
        except Crashed:
            await trio.sleep_forever()  # its connection is torn
        if stage == "?":
            self.witness.see(call)
        if stage == "~":
            await trio.sleep(self._latency())
        self._notify()

    def _counts(self, stage: str, call: Call) -> bool:
        """Whether this stage of a request is a boundary of its own."""
        if call.method == POLL:
            offset, self._last_offset = self._last_offset, call.args.get("offset")
            if stage == "?":
                return bool(offset != self._last_offset)
            return stage == "~" and self.telegram.fake.updates.waiting > 0
        return call.method not in UNCOUNTED

    async def _keep_alive(self) -> None:
        """Runs one incarnation after the other while the bot is wanted; does not wait for corpses."""
        async with trio.open_nursery() as corpses:
            while True:
                await self._wanted.wait()
                self.lives += 1
                self.alive = incarnation = Incarnation(self.lives)
                corpses.start_soon(self._live, incarnation, name=f"life {incarnation.number}")
                await incarnation.ended.wait()
                self._amnesia.strike()
                self.alive = None
                self._notify()
                await trio.sleep(RESTART_DELAY)

    async def _live(self, incarnation: Incarnation) -> None:
        ports = Ports(
            self.clock,
            self._new_id,
            self._chance.random,
            self.disk.for_incarnation(incarnation),
            self.network.for_incarnation(incarnation),
        )
        try:
            with incarnation.scope:
                client = DirectClient(self.network, incarnation)
                async with self._bot(Life(self.config, ports, self._tools, client)):
                    incarnation.started.set()
                    self._notify()
                    await trio.sleep_forever()
        except BaseException:  # whatever a corpse says while it is torn down, a killed process would not have said
            if not incarnation.dead:
                raise
        finally:
            incarnation.ended.set()

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self, scenario: Scenario) -> None:
        """Plays the scenario to its end and until it is quiet, and checks every promise.

        Raises what the scenario raises, Stuck, Broken, Missed and LeftTheWorld. The notes of the exception say how
        to see it again.
        """
        __tracebackhide__ = True
        try:
            self._run(scenario)
        except Exception as error:  # raised again; whatever it is, it gets the words that help to see it again
            if not getattr(error, "__notes__", None):
                error.add_note(self._note())
            raise

    def _note(self) -> str:
        faults = ", ".join(str(each.fault) for each in self.faults)
        crashes = brief([passed.number for passed in self.boundaries.crashes])
        return f"to see it again: seed={self.seed}, crash_at=[{crashes}], faults=[{faults}]\n{self.story()}"

    def _run(self, scenario: Scenario) -> None:
        __tracebackhide__ = True
        self._amnesia.strike()
        guard, generators = StallGuard(self.limit), GeneratorGuard()
        try:
            with inside_the_world(), kept_errors(self.errors):
                run_seeded(partial(self._play, scenario, generators), self.seed, guard)
        except BaseExceptionGroup as group:  # raised again: the one thing in it, or all
            if (single := _only(group)) is None:
                raise
            raise single from None
        finally:
            self.steps = guard.steps
            restarted(self._way(), max(0, self.lives - 1))
        if guard.late:
            raise Stuck(f"the story did not end within {self.limit:g} s")
        if guard.spinning:
            raise Stuck(f"a task runs round and round while no time passes: {guard.spinning}")
        if guard.shielded:
            raise Stuck("an endless shield; the task waits at\n  " + "\n  ".join(guard.shielded))
        if guard.stalled:
            raise Stuck("nothing can ever go on; the tasks wait at\n  " + "\n  ".join(guard.stalled))
        generators.check()

    def _way(self) -> str:
        """How the bot reaches its world, for the count of restarts."""
        return "bytes" if self._bot is runtime_bot else "ports" if self._bot is direct_bot else "bots of the tests' own"

    async def _play(self, scenario: Scenario, generators: GeneratorGuard) -> None:
        with generators.watch():
            known = set(strays(lambda task: False))
            async with trio.open_nursery() as nursery:
                self.network.nursery = nursery
                for fake in self.network.hosts.values():
                    await nursery.start(fake.run)
                nursery.start_soon(self._keep_alive)
                try:
                    await self.up()
                    await scenario(self)
                    await self.quiet()
                    self._judge()
                finally:
                    if self.alive is not None:  # whatever ended the story, the bot has no part in it any more
                        self.alive.kill()
                nursery.cancel_scope.cancel()
            if left := strays(lambda task: task in known):
                raise LeftTheWorld(f"a task was left behind: {place_of(left[0])}")

    def _judge(self) -> None:
        check(self)
        if (missed := self.missed()) and not self.boundaries.crash_at:
            raise Missed(f"never struck: {', '.join(missed)}")


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The one exception in a group of groups; None when there are more."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) != 1:
            return None
        error = error.exceptions[0]
    return error


def make_config(changes: Config | Mapping[str, Any]) -> Config:
    """The configuration of a world with these keys changed, or with what somebody's own says of chat and tools."""
    if isinstance(changes, Config):
        return evolve(_configs("{}"), chat=changes.chat, tools=changes.tools)
    return _configs(repr(changes)) if not changes else Config.from_mapping(_merged(CONFIG, changes), "/", {})


@cache
def _configs(_: str) -> Config:
    return Config.from_mapping(CONFIG, "/", {})


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = copy.deepcopy(dict(base))
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
