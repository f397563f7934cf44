"""The real program over loopback: how fast it starts, what a turn costs it, and what many turns at once do to it.

The other side of the wire runs in this process, so on two cores the program has one to itself. Beside it, in the same
run, an echo bot on python-telegram-bot where that is installed: it answers the same messages without a ledger, a model
or a placeholder, so the ratio is the price of all that.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from bench.measure import Measurement
from hermes_fakes.loopback import listen
from hermes_fakes.model import ModelFake, open_model_fake
from hermes_fakes.telegram import TelegramFake, open_telegram_fake

STARTS = 5
TURNS = 100
OPEN_TURNS = 1000
LOOK = 0.2
"""Seconds between two looks at a condition that is dear to compute."""
PATIENCE = 120.0
"""Seconds after which a measurement has failed."""

CONFIG = """
data_dir = "{data}"
[model]
base_url = "http://127.0.0.1:{model}/v1"
name = "fake-model"
[access]
allow = ["telegram:*"]
[platforms.telegram]
token = "{token}"
base_url = "http://127.0.0.1:{telegram}"
"""
PEER = """
from telegram.ext import Application, MessageHandler, filters
async def echo(update, context):
    await update.message.reply_text("You said: " + update.message.text)
app = Application.builder().token("{token}").base_url("http://127.0.0.1:{telegram}/bot").build()
app.add_handler(MessageHandler(filters.TEXT, echo))
app.run_polling()
"""


class _Program:
    """A process of the program, and the two fakes that it talks to."""

    def __init__(self, telegram: TelegramFake, model: ModelFake, process: trio.Process) -> None:
        self.telegram = telegram
        self.model = model
        self._process = process

    def cpu(self) -> float:
        """Seconds of processor time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """MiB of memory that it holds."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def wait_polling(self) -> None:
        """Returns when it has asked for messages."""
        await self.telegram.wait_for(lambda: any(call.method == "getUpdates" for call in self.telegram.requests))


@asynccontextmanager
async def _program(peer: bool = False) -> AsyncIterator[_Program]:
    with tempfile.TemporaryDirectory() as directory:
        async with open_telegram_fake() as telegram, open_model_fake() as model, trio.open_nursery() as nursery:
            names = {
                "data": directory,
                "model": await listen(model, nursery),
                "telegram": await listen(telegram, nursery),
                "token": telegram.token,
            }
            path = Path(directory) / "config.toml"
            path.write_text(CONFIG.format(**names))
            command = ["-c", PEER.format(**names)] if peer else ["-m", "hermes_trio", "run", "--config", str(path)]
            process = await trio.lowlevel.open_process(
                [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                with trio.fail_after(PATIENCE):
                    yield _Program(telegram, model, process)
            finally:
                process.kill()
                await process.wait()
                nursery.cancel_scope.cancel()


async def _cold_start() -> float:
    started = trio.current_time()
    async with _program() as program:
        await program.wait_polling()
        return trio.current_time() - started


async def _turns(peer: bool) -> tuple[float, float]:
    """Milliseconds of processor time, and of waiting, for a short turn."""
    async with _program(peer) as program:
        await program.wait_polling()
        alice = program.telegram.user("alice")
        await _say(program.telegram, 0, 10)
        cpu, started = program.cpu(), trio.current_time()
        await _say(program.telegram, 10, 10 + TURNS)
        assert len(program.telegram.bot_texts(alice)) == 10 + TURNS
        return (program.cpu() - cpu) * 1000 / TURNS, (trio.current_time() - started) * 1000 / TURNS


async def _say(telegram: TelegramFake, first: int, last: int) -> None:
    alice = telegram.user("alice")
    for number in range(first, last):
        alice.says(f"message {number}")
        await telegram.wait_for(lambda: telegram.bot_texts(alice)[-1:] == [f"You said: message {number}"])  # noqa: B023


async def _crowd() -> tuple[float, float, float]:
    """Seconds until all open turns show text, MiB that they hold, and seconds until a /stop is answered meanwhile."""
    async with _program() as program:
        await program.wait_polling()
        before, finish = program.resident(), trio.Event()
        program.model.when("hold").says("partial").holds(finish).says(" and the end")
        people = [program.telegram.user(f"user {number}") for number in range(OPEN_TURNS)]
        started = trio.current_time()
        for person in people:
            person.says("hold on")
        await _until(lambda: all("partial" in program.telegram.bot_texts(person) for person in people))
        streaming = trio.current_time() - started
        held = program.resident() - before
        started = trio.current_time()
        people[0].says("/stop")
        await program.telegram.wait_for(
            lambda: any("Stopped" in text for text in program.telegram.bot_texts(people[0]))
        )
        return streaming, held, trio.current_time() - started


async def _until(condition: Callable[[], bool], look: float = LOOK) -> None:
    while not condition():  # noqa: ASYNC110  # the condition costs more than the changes that could wake it
        await trio.sleep(look)


def measure() -> Iterator[Measurement]:
    """Cold start, the cost of a turn beside a peer's, and a thousand open turns."""
    starts = sorted(trio.run(_cold_start) for _ in range(STARTS))
    yield Measurement("cold start to the first poll", starts[STARTS // 2], "s", f"median of {STARTS}")
    cpu, wall = trio.run(_turns, False)
    yield Measurement("own processor time of a short turn", cpu, "ms", f"mean of {TURNS}")
    yield Measurement("a short turn from message to final edit", wall, "ms", "one after the other")
    if importlib.util.find_spec("telegram") is not None:
        peer_cpu, peer_wall = trio.run(_turns, True)
        yield Measurement("the same of python-telegram-bot's echo", peer_cpu, "ms", f"ratio {cpu / peer_cpu:.1f}")
        yield Measurement("its time from message to reply", peer_wall, "ms", f"ratio {wall / peer_wall:.1f}")
    streaming, held, stop = trio.run(_crowd)
    yield Measurement(f"until {OPEN_TURNS} open turns show text", streaming, "s")
    yield Measurement(f"memory of {OPEN_TURNS} open turns", held, "MiB", "above the idle program")
    yield Measurement("/stop meanwhile, until it is answered", stop, "s")
