"""Promises about time, each times ten, because the machine of the tests may be busy. `-s` shows what was measured."""

from __future__ import annotations

import os
from pathlib import Path

from .harness import Bot, BotWorld, open_bot_world

SLACK = 10
COLD_START = 1.0
"""Seconds from the start of the process to its first poll."""
TURN_CPU = 0.03
"""Seconds of CPU time that a short turn costs the program."""
TURNS = 20


def cpu_seconds(bot: Bot) -> float:
    """CPU time of the process so far, in seconds, its threads included (Linux: proc(5), stat)."""
    fields = Path(f"/proc/{bot.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_cold_start() -> None:
    """From the start of the process to its first poll: under a second."""
    async with open_bot_world() as world:
        bot = await world.start()
        first = next(call.time for call in world.telegram.requests if call.method == "getUpdates")
        seconds = first - bot.born
        os.write(2, f"\ncold start: {seconds:.3f} s\n".encode())
        assert seconds < COLD_START * SLACK


async def test_cpu_of_a_turn() -> None:
    """A short turn costs the program under 30 ms of its own CPU time."""
    async with open_bot_world() as world:
        bot = await world.start()
        for number in range(TURNS):
            world.answers(f"A-{number}x")
        await _converse(world, 0)
        before = cpu_seconds(bot)
        for number in range(1, TURNS):
            await _converse(world, number)
        spent = (cpu_seconds(bot) - before) / (TURNS - 1)
        os.write(2, f"\nCPU of a short turn: {1000 * spent:.1f} ms\n".encode())
        assert spent < TURN_CPU * SLACK
        world.verdict()


async def _converse(world: BotWorld, number: int) -> None:
    world.asks(f"please A-{number}x")
    await world.wait_shown(f"<</A-{number}x>>")
    await world.wait_settled()
