"""How the program ends: whatever it is at, one signal ends it politely and a second one at once, and nothing in it can
keep the process alive."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from .answers import answer
from .harness import PATIENCE, Bot, BotWorld, open_bot_world
from .test_talk import with_terminal

AT_ONCE = 3.0
"""Seconds in which a process is gone that is to end at once, on a busy machine."""
DRAIN = {"drain": 0.5}
HANGING_TOOL = """\
import functools, time, trio
from hermes_trio import open_runtime, tool
from hermes_trio.commands import run

@tool
async def hang() -> str:
    \"\"\"Hangs in a thread that nothing can end.\"\"\"
    await trio.to_thread.run_sync(time.sleep, 600)
    return "late"

run.open_runtime = functools.partial(open_runtime, tools=[hang])
run.run()
"""
"""The program with a tool of the user's own: what `hermes-trio run` does, and nothing else."""


async def launch_with_tool(world: BotWorld) -> Bot:
    """A new life with the tool that hangs; returns when it polls."""
    log = world.directory / f"life{len(world.lives) + 1}.log"
    polls, born = world.count("getUpdates"), trio.current_time()
    with log.open("wb") as sink:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-c", HANGING_TOOL, "--config", str(world.config)],
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
            cwd=world.directory,
        )  # fmt: skip
    world.lives.append(Bot(process, born, log))
    await world.wait(world.telegram, lambda: world.count("getUpdates") > polls or not world.bot.alive)
    return world.bot


async def hanging(world: BotWorld) -> Bot:
    """A life in which a call of the tool hangs."""
    world.model.when("A-1").calls("hang", {}, id="c1").then().says(answer("A-1"))
    bot = await launch_with_tool(world)
    world.asks("please A-1")
    await world.wait_rows(lambda ledger: _started(world))
    return bot


def _started(world: BotWorld) -> bool:
    """The call is marked as started."""
    with sqlite3.connect(f"file:{world.directory / 'data' / 'state.db'}?mode=ro", uri=True) as connection:
        found = connection.execute("SELECT count(*) FROM messages WHERE role = 'tool' AND started IS NOT NULL")
        return bool(found.fetchone()[0])


async def ended(bot: Bot, within: float) -> None:
    """It ends by itself, with success, in this time, and without a word that only a programmer reads."""
    asked = trio.current_time()
    assert await bot.wait() == 0
    assert trio.current_time() - asked < within
    assert "Traceback" not in bot.output, bot.output


@contextmanager
def locked(world: BotWorld) -> Iterator[None]:
    """Another program has the database to itself."""
    connection = sqlite3.connect(world.directory / "data" / "state.db", isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
    finally:
        connection.close()


async def starting_up(world: BotWorld) -> Bot:
    """A life that waits for the database before it has begun."""
    polls = world.count("getUpdates")
    bot = await world.launch()
    await world.wait_logged("cannot write")
    assert world.count("getUpdates") == polls
    return bot


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_while_starting_up(number: signal.Signals) -> None:
    """A start that waits is ended by a second signal, as a crash would end it; the next one is a start like any."""
    async with open_bot_world() as world:
        await (await world.start()).terminate()
        with locked(world):
            bot = await starting_up(world)
            bot.signal(number)
            await world.wait_logged("another signal ends it at once")
            bot.signal(number)
            await ended(bot, AT_ONCE)
        world.answers("A-1")
        await world.start()
        world.asks("please A-1")
        await world.wait_settled()
        world.verdict()


async def test_one_signal_while_starting_up() -> None:
    """It is remembered: as soon as the start has done what it waited for, the program ends, and is in nobody's way."""
    async with open_bot_world() as world:
        await (await world.start()).terminate()
        with locked(world):
            bot = await starting_up(world)
            bot.signal(signal.SIGTERM)
            await world.wait_logged("another signal ends it at once")
        await ended(bot, PATIENCE)
        world.answers("A-1")
        world.asks("please A-1")
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_a_tool_that_hangs_does_not_keep_the_process() -> None:
    """A call in a thread that never ends is left behind when all else was drained; the next start reports it to the
    model as unknown, and its user gets the one answer."""
    async with open_bot_world(shutdown=DRAIN) as world:
        bot = await hanging(world)
        bot.signal(signal.SIGTERM)
        await ended(bot, 15.0)
        assert "something that does not end is left behind" in bot.output
        world.note_crash()
        await launch_with_tool(world)
        await world.wait_settled()
        world.verdict()
        assert "unknown" in world.model.requests[-1].tool_results["c1"]
        assert (
            sum(message.text.count("<</A-1>>") for message in world.telegram.screen(world.telegram.user("alice"))) == 1
        )
        assert await world.bot.terminate() == 0


async def test_a_second_signal_while_a_tool_hangs() -> None:
    """It ends the process at once, whatever is left of the drain."""
    async with open_bot_world(shutdown={"drain": 600}) as world:
        bot = await hanging(world)
        bot.signal(signal.SIGTERM)
        await world.wait_logged('"stopping"')
        await world.wait_logged("another signal ends it at once")
        bot.signal(signal.SIGTERM)
        await ended(bot, AT_ONCE)
        world.note_crash()
        await launch_with_tool(world)
        await world.wait_settled()
        world.verdict()


async def test_a_command_that_ignores_sigterm() -> None:
    """A shell command that will not end is killed with its turn, well before anything has to be left behind."""
    async with open_bot_world(shutdown=DRAIN) as world:
        place = with_terminal(world)
        command = "trap '' TERM; touch started; sleep 600; sleep 600"
        world.model.when("A-1").calls("terminal", {"command": command}, id="c1").then().says(answer("A-1"))
        bot = await world.start()
        world.asks("please A-1")
        await world.wait_rows(lambda ledger: (place / "started").exists())
        bot.signal(signal.SIGTERM)
        await ended(bot, 10.0)
        assert "left behind" not in bot.output
        world.note_crash()
        await world.start()
        await world.wait_settled()
        world.verdict()


@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)])
async def test_signals_that_come_together(signals: tuple[signal.Signals, ...]) -> None:
    """Signals within a moment are one wish: the running answer is finished and shown."""
    async with open_bot_world() as world:
        bot = await world.start()
        go_on = trio.Event()
        world.model.when("A-1", once=True).says(answer("A-1")[:200]).holds(go_on).says(answer("A-1")[200:])
        world.asks("please A-1")
        await world.wait_shown("Bold words")
        for number in signals:
            bot.signal(number)
        await world.wait_logged("another signal ends it at once")
        go_on.set()
        await ended(bot, PATIENCE)
        world.verdict()
