"""The world of the demonstration: a fake Telegram and a fake model on loopback, and the real program as a child.

Nothing of the bot runs in this process; it is started, killed and started again as an operator would do it, and what
is judged is what the fake Telegram shows and what the database holds. The rule that must not be broken: the child is
the very program that `hermes-trio run` starts, with nothing replaced but its servers and its patience.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from attrs import frozen

from hermes_fakes.loopback import listen
from hermes_fakes.model import ModelFake, open_model_fake
from hermes_fakes.telegram import TelegramFake, open_telegram_fake
from hermes_trio.ledger import FILE_NAME, connect_readonly
from hermes_trio.ledger.inspection import Story, stories

PATIENCE = 8.0
"""Seconds to wait for anything; on a machine that is not busy nothing takes more than one."""


class WentWrong(Exception):
    """The demonstration cannot go on; the text says what was expected."""


@frozen
class World:
    """Both fakes and the place where the bot lives."""

    telegram: TelegramFake
    model: ModelFake
    config: Path
    data_dir: Path
    log: Path
    """What the program says about itself, all its lives in one file."""

    def stories(self) -> tuple[Story, ...]:
        """What the ledger holds; nothing before the program has made one."""
        if not (self.data_dir / FILE_NAME).exists():
            return ()
        connection = connect_readonly(self.data_dir / FILE_NAME)
        try:
            return stories(connection)
        finally:
            connection.close()


@asynccontextmanager
async def open_world(directory: Path) -> AsyncIterator[World]:
    """Both fakes on free loopback ports, and a configuration in `directory` that points at them."""
    async with open_telegram_fake() as telegram, open_model_fake() as model, trio.open_nursery() as nursery:
        ports = await listen(telegram, nursery), await listen(model, nursery)
        world = World(telegram, model, directory / "config.toml", directory / "data", directory / "bot.log")
        world.config.write_text(_configuration(world, *ports), encoding="utf-8")
        yield world
        nursery.cancel_scope.cancel()


def _configuration(world: World, telegram_port: int, model_port: int) -> str:
    """The program's configuration: all patience is short, so that the demonstration is."""
    return f"""\
data_dir = {json.dumps(str(world.data_dir))}
[model]
base_url = "http://127.0.0.1:{model_port}/v1"
name = "fake-model"
[access]
allow = ["telegram:*"]
[platforms.telegram]
kind = "telegram"
token = "{world.telegram.token}"
base_url = "http://127.0.0.1:{telegram_port}"
poll_timeout = 2
request_timeout = 1.0
lateness = 0.5
edit_interval = 0.15
[delivery]
settle = 1.5
backoff = 1.0
[shutdown]
drain = 5
"""


@frozen
class Program:
    """One life of the bot."""

    process: trio.Process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def fate(self) -> str:
        """Whether it runs, in words."""
        status = self.process.returncode
        return "it still runs" if status is None else f"it ended by itself with status {status}"

    async def end(self, scope: trio.CancelScope) -> None:
        """Cancels the scope when it has ended, so that nobody waits for a program that is gone."""
        await self.process.wait()
        scope.cancel()

    async def kill(self) -> None:
        """Ends it as `kill -9` does: nothing of it runs any more when this returns."""
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """Asks it to end (SIGTERM) and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        with trio.move_on_after(PATIENCE):
            return await self.process.wait()
        await self.kill()
        raise WentWrong(f"the program did not end within {PATIENCE:g} s of SIGTERM")


@asynccontextmanager
async def started(world: World) -> AsyncIterator[Program]:
    """The program on the world's configuration; killed at the end of the block if it still runs."""
    # An operator's own overrides must not leak into the demonstration.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_TRIO__")}
    command = [sys.executable, "-m", "hermes_trio", "run", "--config", str(world.config)]
    with world.log.open("ab") as log:
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            with trio.CancelScope(shield=True):  # a killed process is gone within moments
                await process.wait()
