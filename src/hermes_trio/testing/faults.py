"""Faults by name, each at a boundary that is addressed by its label and how often it was passed.

    Fault("ack_lost", "wire? editMessageText", nth=2)
    Fault("disk_full", "commit? answer", seconds=3)

A fault is a value, so that a schedule of them can be printed, pasted and shrunk. The rule that must not be broken: a
fault that never struck fails the run, because a test that injects one and misses has shown nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import trio
from attrs import field, frozen

from hermes_fakes.faults import EFFECTS, Call
from hermes_fakes.faults import Fault as WireFault
from hermes_trio.ledger.database import limit_pages

if TYPE_CHECKING:
    from hermes_trio.testing.fence import Incarnation
    from hermes_trio.testing.world import World


class Missed(AssertionError):
    """A fault was injected and never struck."""


def _frozen(options: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(options))


@frozen(init=False)
class Fault:
    """A named fault at the `nth` passage of a boundary.

    name: one of `NAMES`. at: a label such as "wire? sendMessage" or "commit! answer"; of a group commit each call
    counts by its own name. contains: only requests whose text holds this count. options: what the name takes.
    """

    name: str
    at: str
    nth: int
    contains: str
    options: Mapping[str, Any] = field(converter=_frozen, hash=False)

    def __init__(self, name: str, at: str, *, nth: int = 1, contains: str = "", **options: Any) -> None:
        if name not in NAMES:
            raise ValueError(f"there is no fault {name!r}; there are: {', '.join(sorted(NAMES))}")
        if name in EFFECTS and not at.startswith("wire? "):
            raise ValueError(f"{name!r} strikes a request: at='wire? METHOD', not {at!r}")
        self.__attrs_init__(name, at, nth, contains, options)

    def __str__(self) -> str:
        """The line to paste."""
        more = f", nth={self.nth}" if self.nth != 1 else ""
        more += f", contains={self.contains!r}" if self.contains else ""
        more += "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Fault({self.name!r}, {self.at!r}{more})"

    __repr__ = __str__


class Injected:
    """A fault in a world."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.passed = 0
        """How often its boundary was passed."""
        self.hits = 0

    def wants(self, names: tuple[str, ...], call: Call | None, *, early: bool = False) -> bool:
        """Whether it strikes here; counts the passage. early: a transaction is about to begin."""
        fault = self.fault
        if fault.at not in names or early != (fault.name in EARLY and fault.at.startswith("commit?")):
            return False
        if fault.contains and (call is None or fault.contains not in call.text):
            return False
        self.passed += 1
        if self.passed != fault.nth:
            return False
        self.hits += 1
        return True

    def strike(self, world: World, incarnation: Incarnation, call: Call | None) -> None:
        """Does what its name says, now."""
        _ACTIONS.get(self.fault.name, _effect)(world, incarnation, call, self.fault)


def names_of(label: str) -> tuple[str, ...]:
    """The labels by which a boundary can be addressed: that of a group commit by each of its calls."""
    kind, _, calls = label.partition(" ")
    return tuple(f"{kind} {call}" for call in calls.split("+"))


Action = Callable[["World", "Incarnation", Call | None, Fault], None]


def _effect(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    """What the fake does to this one request."""
    fake = next(fake for fake in world.network.hosts.values() if call in fake.requests)
    effect = EFFECTS[fault.name](**fault.options)
    fake.faults.all.insert(0, WireFault(effect, when=lambda other: other is call))


def _crash(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    incarnation.kill()


def _clock_step(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    world.clock.step(fault.options.get("seconds", -3600.0))


def _hold(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    world.hold(fault.options.get("seconds", 5.0), on_wire=call is not None)


def _disk_full(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    limit_pages(world.disk.connection, 0)

    async def make_room() -> None:
        await trio.sleep(fault.options.get("seconds", 5.0))
        limit_pages(world.disk.connection, None)

    world.spawn(make_room)


def _duplicate(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    updates = world.telegram.fake.updates
    if updates.all:
        world.telegram.fake.redeliver(max(updates.all))


def _reorder(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    world.telegram.fake.updates.pending.reverse()


def _deaf(world: World, incarnation: Incarnation, call: Call | None, fault: Fault) -> None:
    world.telegram.fake.faults.add(
        EFFECTS["never_seen"](), "getUpdates", count=None, seconds=fault.options.get("seconds", 60.0)
    )


_ACTIONS: dict[str, Action] = {
    "crash": _crash,
    "clock_step": _clock_step,
    "hold": _hold,
    "disk_full": _disk_full,
    "duplicate": _duplicate,
    "reorder": _reorder,
    "deaf": _deaf,
}
EARLY = frozenset({"hold", "disk_full", "clock_step"})
"""What strikes before a transaction begins when it is addressed to `commit?`."""
NAMES = frozenset({*EFFECTS, *_ACTIONS})
"""What may go wrong. Of a request: refuse, reset_before, never_seen, ack_lost, late_accept, rate_limited,
error_before, error_after, delay, garbage, html_error, cut_stream. Anywhere: crash, clock_step, hold, disk_full,
duplicate (the last update again), reorder (of waiting updates), deaf (polls are not answered)."""
