"""What every fake has in common: a door, faults, a list of requests, and a scope for what happens later.

A fake outlives the program that it serves: no state belongs to a connection. A concrete fake decodes a Request into a
Call, performs a Call, and knows how its service words a refusal; between decoding and performing stand the faults.

The rule: `perform` is the moment of acceptance. What a fault does before it has had no effect; what it does after it
cannot take the effect back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Self, TypeVar

import trio
from attrs import define, field

from hermes_fakes.faults import Call, Faults
from hermes_fakes.http import Answer, Connection, Reply, Request, serve_http

C = TypeVar("C", bound=Call)
T = TypeVar("T")


class Changes:
    """Lets tasks wait for a condition that is looked at again after each change."""

    def __init__(self) -> None:
        self._lot = trio.lowlevel.ParkingLot()

    def notify(self) -> None:
        self._lot.unpark_all()

    async def wait_for(self, predicate: Callable[[], T]) -> T:
        """The first true value of the predicate. Cancelled: nothing has happened."""
        await trio.lowlevel.checkpoint()
        while not (value := predicate()):
            await self._lot.park()
        return value


@define(eq=False)
class Door:
    """Whether a fake can be reached, and the connections that are open."""

    connections: set[Connection] = field(factory=set)
    refused: int = 0
    """How many connections came while it was closed. A closed loopback listener cannot count them."""
    changes: Changes = field(factory=Changes)
    _closed_until: float = float("-inf")

    @property
    def refusing(self) -> bool:
        """New connections are refused now."""
        return trio.current_time() < self._closed_until

    @property
    def closed_until(self) -> float:
        """On trio's clock; inf: until `open`."""
        return self._closed_until

    def close(self, seconds: float = float("inf"), *, active: bool = False) -> None:
        """Refuses new connections for that long and ends the open ones as `close_connections` does."""
        self._closed_until = trio.current_time() + seconds
        self.close_connections(active=active)
        self.changes.notify()

    def open(self) -> None:
        """Accepts connections again."""
        self._closed_until = float("-inf")
        self.changes.notify()

    def close_connections(self, *, active: bool = False) -> None:
        """Ends the kept connections that are idle, and the others after their answer; with `active`, all at once."""
        for connection in tuple(self.connections):
            connection.last = True
            if active or connection.kept:
                connection.close()

    async def wait_open(self) -> None:
        """Returns when connections are accepted."""
        while self.refusing:
            with trio.move_on_at(self._closed_until):
                await self.changes.wait_for(lambda: not self.refusing)

    async def wait_closed(self) -> None:
        """Returns when connections are refused."""
        await self.changes.wait_for(lambda: self.refusing)


Watch = Callable[[str, Any], Awaitable[None]]
"""Is called with a stage and the Call: `?` before a request can take effect, `~` when it has taken effect and before
its answer, `!` behind the answer. It may wait, and it may cancel the connection."""


class Server(Generic[C]):
    """The base of a fake. See the module's text for what a subclass adds."""

    def __init__(self) -> None:
        self.door = Door()
        self.faults = Faults()
        self.requests: list[C] = []
        """Every request that was read and understood, in order of arrival, with what became of it."""
        self.watch: Watch | None = None
        """Follows every request through its stages; a simulated world crashes its clients there."""
        self._answering: dict[Request, C] = {}
        self._changes = Changes()
        self._nursery: trio.Nursery | None = None

    # --- for subclasses -------------------------------------------------------------------------------------------

    def decode(self, request: Request) -> C | Reply:
        """The call that a request means, or the refusal of one that means none."""
        raise AssertionError("a fake defines decode")

    async def perform(self, call: C) -> Answer:
        """Does what the call asks for, now, and says what the service would answer. Sets `call.outcome`."""
        raise AssertionError("a fake defines perform")

    def decline(self, status: int, text: str = "", *, retry_after: float | None = None, **parameters: Any) -> Reply:
        """A refusal in the words of the service."""
        raise AssertionError("a fake defines decline")

    def control(self, request: Request) -> Reply | None:
        """The answer of the control interface; None for a request that is not one of it."""
        return None

    def changed(self) -> None:
        """Wakes everyone who waits for a change."""
        self._changes.notify()

    def later(self, seconds: float, action: Callable[[], Awaitable[Any]]) -> None:
        """Runs the action after that time in the fake's own scope, whatever becomes of the connection."""
        if self._nursery is None:
            raise RuntimeError(
                f"start {type(self).__name__}.run (or open_...) first: this effect outlives its connection"
            )

        async def wait_and_act() -> None:
            await trio.sleep(seconds)
            await action()

        self._nursery.start_soon(wait_and_act)

    # --- for everyone ---------------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """How many effects are still to come by themselves (`later`)."""
        return len(self._nursery.child_tasks) if self._nursery is not None else 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serves one connection until either side ends it. Over memory streams or sockets."""
        if self.door.refusing:
            self.door.refused += 1
            connection = Connection(stream)
            connection.arm_reset()
            await trio.aclose_forcefully(stream)
            return
        await serve_http(self.handle, stream, self.door.connections, self.answered)

    async def run(self, *, task_status: trio.TaskStatus[Self] = trio.TASK_STATUS_IGNORED) -> None:
        """The scope of what happens later; runs until it is cancelled. `await nursery.start(fake.run)`."""
        async with self._scope():
            task_status.started(self)
            await trio.sleep_forever()

    @asynccontextmanager
    async def _scope(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                yield
            finally:
                self._nursery = None
                nursery.cancel_scope.cancel()

    async def wait_for(self, predicate: Callable[[], T]) -> T:
        """The first true value of the predicate, which is called again after every change of the fake.

            await fake.wait_for(lambda: len(fake.screen(alice.chat)) == 2)

        Put it under `trio.fail_after`: it waits for ever by itself.
        """
        return await self._changes.wait_for(predicate)

    @property
    def refusing(self) -> bool:
        """New connections are refused now. A simulated network asks this before it connects."""
        return self.door.refusing

    def refuse(self, seconds: float = float("inf")) -> None:
        """New connections are refused for that long; idle ones end now, the others after their answer."""
        self.door.close(seconds)

    def outage(self, seconds: float = float("inf")) -> None:
        """As `refuse`, and every connection ends at once, also one in the middle of an answer."""
        self.door.close(seconds, active=True)

    def admit(self) -> None:
        """Ends a `refuse` or an `outage`."""
        self.door.open()

    async def handle(self, request: Request) -> Answer:
        """The answer to one request; whoever calls this itself calls `answered` when the client has it."""
        reply = self.control(request)
        if reply is not None:
            return reply
        call = self.decode(request)
        if isinstance(call, Reply):
            return call
        self.requests.append(call)
        self.changed()
        if self.watch is not None:
            await self.watch("?", call)
        fault = self.faults.choose(call)
        if fault is None:
            answer = await self.perform(call)
        else:
            call.fault = fault
            answer = await fault.effect.play(call, self)
        self.changed()
        if self.watch is not None:
            if call.outcome == "accepted":
                await self.watch("~", call)
            self._answering[request] = call
        return answer

    async def answered(self, request: Request) -> None:
        """The answer to this request was written, or never will be."""
        call = self._answering.pop(request, None)
        if call is not None and self.watch is not None:
            await self.watch("!", call)
