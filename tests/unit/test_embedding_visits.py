"""A command that works on the database while no bot does is no life of the bot: what the next bot finds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import trio
from attrs import define
from embedded import ScriptedModel, config_in

from hermes_trio import Address, Ports, open_runtime
from hermes_trio.ledger import FILE_NAME, accounts, connect
from hermes_trio.ledger.accounts import Life
from hermes_trio.runtime import open_desk

NEVER = float("-inf")


@define
class Hand:
    """A clock that stands still until it is moved."""

    time: float = 1000.0

    def now(self) -> float:
        return self.time


def database(tmp_path: Path) -> sqlite3.Connection:
    """A new database."""
    return connect(tmp_path / FILE_NAME)


def committed(con: sqlite3.Connection, time: float) -> None:
    """Something is committed at this time."""
    accounts.beat(con, time)


def test_a_visit_is_no_death(tmp_path: Path) -> None:
    """Between two bots any number of visits change neither when the first died nor how many there were."""
    con = database(tmp_path)
    assert accounts.begin_life(con, 1000.0) == Life(1, NEVER, False)
    committed(con, 1010.0)
    for time in (2000.0, 3000.0):
        assert accounts.begin_visit(con, time) == Life(1, 1010.0, False)
        committed(con, time + 5)
    assert accounts.begin_life(con, 4000.0) == Life(2, 1010.0, False)
    committed(con, 4001.0)
    assert accounts.begin_life(con, 5000.0) == Life(3, 4001.0, False)
    con.close()


def test_a_visit_leaves_a_step_of_the_clock_to_be_seen(tmp_path: Path) -> None:
    """A clock that was set back is seen by the visit and by the bot behind it; one that ran on, by nobody."""
    con = database(tmp_path)
    accounts.begin_life(con, 1000.0)
    committed(con, 5000.0)
    assert accounts.begin_visit(con, 2000.0).stepped
    committed(con, 2001.0)
    assert accounts.begin_life(con, 2010.0) == Life(2, 5000.0, True)
    assert accounts.begin_life(con, 2020.0) == Life(3, 2010.0, False)
    con.close()


def test_a_visit_may_come_first(tmp_path: Path) -> None:
    """Before any bot there was neither a life nor a death, however often a command came."""
    con = database(tmp_path)
    assert accounts.begin_visit(con, 1000.0) == Life(0, NEVER, False)
    committed(con, 1010.0)
    assert accounts.begin_visit(con, 1020.0) == Life(0, NEVER, False)
    assert accounts.begin_life(con, 1030.0) == Life(1, NEVER, False)
    con.close()


async def test_a_bot_that_died_soon_is_charged_after_a_visit(tmp_path: Path) -> None:
    """A turn with which the bot died within seconds is charged for it, also when a send came in between."""
    clock = Hand()
    model = ScriptedModel()
    model.gate = trio.Event()

    async def live(asks: bool = False) -> None:
        model.asked = trio.Event()
        with trio.fail_after(10):
            async with open_runtime(config_in(tmp_path), model=model, ports=Ports(clock=clock)) as runtime:
                async with trio.open_nursery() as nursery:
                    if asks:
                        nursery.start_soon(runtime.ask, "q")
                    await model.asked.wait()
                    nursery.cancel_scope.cancel()

    async def visit() -> None:
        async with open_desk(config_in(tmp_path), Address("memory", "room"), ports=Ports(clock=clock)):
            pass

    def charged() -> int:
        connection = sqlite3.connect(tmp_path / FILE_NAME)
        try:
            return int(connection.execute("SELECT charged FROM turns").fetchone()[0])
        finally:
            connection.close()

    await live(asks=True)
    clock.time += 100
    await live()  # resumes the turn, and dies at once
    assert charged() == 0
    clock.time += 100
    await visit()
    clock.time += 100
    await live()
    assert charged() == 1
