"""The simulated world on one core: crash-restarts, turns and idle days a second of processor time.

Processor time, because the world waits for nothing: on a machine that is busy with other things the numbers still say
what one core does. Bot and ledger are the real ones. The short way leaves out HTTP between adapter and fake, the long
one passes every byte.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate

import trio

from bench.measure import Measurement
from hermes_trio.testing import World, direct_bot, explore_crashes, run_world, runtime_bot
from hermes_trio.testing.life import Bot

SECONDS = 5.0
"""Of processor time, at least, for each measurement."""
TURNS = 50
GAP = 25
"""Boundaries between two kills of one run, at most; a turn without a kill passes about as many."""
DAYS = 3
DAY = 86_400.0


async def question(world: World) -> None:
    """One question and its answer."""
    await _ask(world, 1)


async def questions(world: World) -> None:
    """Many, one after the other."""
    await _ask(world, TURNS)


async def _ask(world: World, turns: int) -> None:
    alice = world.telegram.user("alice")
    world.model.when("question").says("A short **answer** and `code`, in a few words.")
    for number in range(turns):
        await alice.says(f"question {number}")
        await world.quiet()


async def idle(world: World) -> None:
    """Nobody says anything."""
    await trio.sleep(DAYS * DAY)


def _rate(play: Callable[[], int]) -> float:
    """How many things a second of processor time `play` does, which returns how many it did."""
    play()  # what is made once a process
    done, started = 0, time.process_time()
    while (spent := time.process_time() - started) < SECONDS:
        done += play()
    return done / spent


def _restarts(bot: Bot) -> int:
    chance = random.Random(0)
    kills = list(accumulate(chance.randint(1, GAP) for _ in range(100 * TURNS)))
    return len(run_world(questions, bot=bot, crash_at=kills).boundaries.crashes)


def _explored(bot: Bot) -> int:
    return len(explore_crashes(question, bot=bot).verdicts)


def _turns(bot: Bot) -> int:
    run_world(questions, bot=bot)
    return TURNS


def _days(bot: Bot) -> int:
    run_world(idle, bot=bot, limit=2 * DAYS * DAY)
    return DAYS


def _measure(way: str, bot: Bot) -> Iterator[Measurement]:
    restarts = _rate(lambda: _restarts(bot))
    yield Measurement(f"crash-restarts, {way}", restarts, "/s", f"{TURNS} turns, a kill every 1 to {GAP} effects")
    yield Measurement(
        f"explored crashes, {way}", _rate(lambda: _explored(bot)), "/s", "a world, a turn, a kill, judged"
    )
    yield Measurement(f"turns, {way}", _rate(lambda: _turns(bot)), "/s", "one after the other, each until quiet")
    days = _rate(lambda: _days(bot))
    yield Measurement(f"days of an idle bot, {way}", days * 60, "/min", f"{days * DAY:,.0f} times real time")


def measure() -> Iterator[Measurement]:
    """Each the short way and through bytes."""
    yield from _measure("ports", direct_bot)
    yield from _measure("bytes", runtime_bot)
