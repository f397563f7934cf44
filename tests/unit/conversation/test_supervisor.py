"""The supervisor of an account: it starts the adapter again, in time and not too often, and never twice at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

import pytest
import trio
from attrs import define, field

from hermes_trio.conversation.supervisor import FIRST_PAUSE, LONGEST_PAUSE, REFUSED_PAUSE, Supervisor
from hermes_trio.ledger import LedgerClosed
from hermes_trio.platforms.base import AccountRefused, Disconnected, Platform, Receiver
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused

from .desk import Wireless


@define(eq=False)
class Adapter(Wireless):
    """An adapter whose runs end as the test says, and which takes a moment to let its connection go."""

    ends: Callable[[int], Awaitable[None]]
    """Is called with the number of the run."""
    began: list[float] = field(factory=list)
    running: int = 0
    menus: list[Mapping[str, str]] = field(factory=list)
    menu: Callable[[], Outcome] = Accepted

    async def run(self, receiver: Receiver) -> None:
        assert self.running == 0, "two receivers on one account"
        self.running += 1
        self.began.append(trio.current_time())
        try:
            await self.ends(len(self.began))
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.1)
            self.running -= 1

    async def set_commands(self, commands: Mapping[str, str], *, hidden: Collection[str] = ()) -> Outcome:
        self.menus.append(commands)
        return self.menu()


class Deaf:
    """A Receiver that is never called."""

    async def receive(self, batch: object, cursor: str | None) -> None:
        raise AssertionError

    async def cursor(self) -> str | None:
        return None

    def alive(self) -> None:
        raise AssertionError


def fails(error: Exception | None) -> Callable[[int], Awaitable[None]]:
    """Each run ends so."""

    async def ends(number: int) -> None:
        await trio.lowlevel.checkpoint()
        if error is not None:
            raise error

    return ends


async def stays(number: int) -> None:
    """A run that does not end."""
    await trio.sleep_forever()


def pauses(adapter: Adapter) -> list[float]:
    """Seconds between the end of a run and the next."""
    return [round(later - one - 0.1, 6) for one, later in zip(adapter.began, adapter.began[1:], strict=False)]


async def supervised(adapter: Platform, seconds: float, jitter: float = 0.0) -> list[float]:
    """Supervises for a while; returns when `failed` was called."""
    failed: list[float] = []
    supervisor = Supervisor("tg", adapter, lambda: jitter)
    with trio.move_on_after(seconds):
        await supervisor.run(Deaf(), lambda: failed.append(trio.current_time()))
    return failed


@pytest.mark.parametrize(
    "error", [Disconnected("lost"), RuntimeError("a mistake"), ExceptionGroup("g", [OSError()]), None]
)
async def test_failures_back_off(autojump_clock: None, error: Exception | None) -> None:
    """An adapter that fails, has a fault of its own, or just ends is started again, after pauses that double up to a
    limit; each end is told."""
    adapter = Adapter(fails(error))
    failed = await supervised(adapter, 60)
    found = pauses(adapter)
    assert found[:6] == [FIRST_PAUSE, 1.0, 2.0, 4.0, LONGEST_PAUSE, LONGEST_PAUSE]
    assert set(found[6:]) == {LONGEST_PAUSE}
    assert len(failed) >= len(adapter.began) - 1


async def test_pauses_are_spread(autojump_clock: None) -> None:
    """Chance makes a pause shorter by a quarter at most, so that many accounts do not come back in step."""
    adapter = Adapter(fails(Disconnected("lost")))
    await supervised(adapter, 20, jitter=1.0)
    assert pauses(adapter)[:4] == [0.375, 0.75, 1.5, 3.0]


async def test_the_platform_may_ask_for_a_longer_pause(autojump_clock: None) -> None:
    """`retry_after` is waited for at least; a shorter one does not shorten the backoff."""
    adapter = Adapter(fails(Disconnected("lost", retry_after=30.0)))
    await supervised(adapter, 100)
    assert set(pauses(adapter)) == {30.0}
    adapter = Adapter(fails(Disconnected("lost", retry_after=0.1)))
    await supervised(adapter, 10)
    assert pauses(adapter)[:3] == [0.5, 1.0, 2.0]


async def test_a_round_trip_makes_the_next_failure_a_first_one(autojump_clock: None) -> None:
    """An adapter that worked in between is started again soon."""

    async def ends(number: int) -> None:
        if number % 4 == 0:
            supervisor.completed()
        raise Disconnected("lost")

    adapter = Adapter(ends)
    supervisor = Supervisor("tg", adapter, lambda: 0.0)
    with trio.move_on_after(30):
        await supervisor.run(Deaf(), lambda: None)
    assert pauses(adapter)[:8] == [0.5, 1.0, 2.0, 0.5, 1.0, 2.0, 4.0, 0.5]


async def test_a_refused_account_is_tried_now_and_then(autojump_clock: None) -> None:
    """Only its operator can help; it may be healed without a restart."""

    async def ends(number: int) -> None:
        if number < 4:
            raise AccountRefused("a wrong token")
        await trio.sleep_forever()

    adapter = Adapter(ends)
    failed = await supervised(adapter, 1000)
    assert pauses(adapter) == [REFUSED_PAUSE] * 3
    assert len(failed) == 3


async def test_the_end_of_the_ledger_passes(autojump_clock: None) -> None:
    """LedgerClosed is the end of the process and no failure of the adapter."""
    adapter = Adapter(fails(LedgerClosed()))
    with pytest.raises(LedgerClosed):
        await supervised(adapter, 10)
    assert len(adapter.began) == 1


async def test_a_cancelled_supervisor_lets_the_connection_go(autojump_clock: None) -> None:
    """Cancelled, it returns when the adapter has ended, and starts it no more."""
    adapter = Adapter(stays)
    assert await supervised(adapter, 5) == []
    assert adapter.running == 0
    assert trio.current_time() == pytest.approx(5.1)


async def test_the_menu_waits_for_the_first_round_trip(autojump_clock: None) -> None:
    """It is shown once, when the platform can be reached, and never keeps anything waiting."""
    adapter = Adapter(stays)
    supervisor = Supervisor("tg", adapter, lambda: 0.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.offer_menu, {"stop": "Stops."}, ())
        await trio.sleep(100)
        assert adapter.menus == []
        supervisor.completed()
        await trio.sleep(1)
        supervisor.completed()
    assert adapter.menus == [{"stop": "Stops."}]


def _mistake() -> Outcome:
    raise RuntimeError("a mistake")


@pytest.mark.parametrize("menu", [_mistake, lambda: Refused(Reason.NOTHING_LEFT)])
async def test_a_menu_that_fails_is_nobodys_trouble(autojump_clock: None, menu: Callable[[], Outcome]) -> None:
    """Neither a refusal nor a fault of the adapter reaches anybody else."""
    adapter = Adapter(stays, menu=menu)
    supervisor = Supervisor("tg", adapter, lambda: 0.0)
    supervisor.completed()
    await supervisor.offer_menu({"stop": "Stops."}, ())
    assert len(adapter.menus) == 1


async def test_a_platform_without_a_menu(autojump_clock: None) -> None:
    """There is nothing to wait for."""
    with trio.fail_after(1):
        await Supervisor("tg", Wireless(), lambda: 0.0).offer_menu({"stop": "Stops."}, ())
