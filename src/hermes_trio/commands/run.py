"""`hermes-trio run`: the bot, until a signal ends it."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import click
import structlog
import trio

from hermes_trio.commands.logs import configure_logs
from hermes_trio.config import EX_CONFIG, Config, ConfigError, MissingConfig, load_config, report
from hermes_trio.ledger import LedgerLocked, LedgerUnusable
from hermes_trio.runtime import open_runtime

EX_UNAVAILABLE = 69
"""The exit code when the database cannot be used (sysexits.h)."""
NO_CONFIGURATION = """\
There is no configuration: {} does not exist.
Write one with `hermes-trio init`, or name yours with `hermes-trio run --config FILE`.
To try it without any: `hermes-trio` alone is a chat on this terminal, `hermes-trio demonstration` shows what it does.\
"""

ONE_SIGNAL = 0.1
"""Seconds within which several signals are one wish."""
LEAVING = 5.0
"""Seconds that what was cancelled may take to end, after everything was drained."""

log = structlog.get_logger(__name__)


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")
def run(path: Path | None) -> None:
    """Run the bot until SIGINT or SIGTERM; a second signal ends it at once."""
    try:
        loaded = load_config(path)
    except ConfigError as error:
        missing = isinstance(error, MissingConfig) and path is None
        click.echo(NO_CONFIGURATION.format(error.path) if missing else report(error), err=True)
        raise SystemExit(EX_CONFIG) from None
    configure_logs(loaded.config.log)
    for warning in loaded.warnings:
        log.warning("configuration", key=warning.path, problem=warning.reason)
    _allow_connections()
    try:
        trio.run(serve, loaded.config)
    except* (LedgerLocked, LedgerUnusable) as group:
        click.echo(str(group.exceptions[0]), err=True)
        raise SystemExit(EX_UNAVAILABLE) from None


def _allow_connections() -> None:
    """As many open files as the system lets us have: every open turn holds a connection to the model."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(config: Config) -> None:
    """The bot until a signal: the first drains, the second equals a crash."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            asked = trio.Event()
            nursery.start_soon(_obey, signals, asked)
            async with open_runtime(config) as runtime:
                await asked.wait()
                log.info("stopping", drain=config.shutdown.drain)
                await runtime.drain(config.shutdown.drain)
                nursery.start_soon(_leave_anyway)
            nursery.cancel_scope.cancel()
    log.info("stopped")


async def _obey(signals: AsyncIterator[int], asked: trio.Event) -> None:
    """The first signal asks for the end; the second is the end, whatever still runs: all that matters is durable."""
    await anext(signals)
    asked.set()
    with trio.move_on_after(ONE_SIGNAL):
        while True:
            await anext(signals)  # timeout(1) sends the same wish to the process and to its group
    log.info("another signal ends it at once")
    await anext(signals)
    log.warning("stopped at once; the next start goes on from here")
    _vanish()


async def _leave_anyway() -> None:
    """A tool that hangs in a thread cannot be cancelled, and must not keep the process."""
    await trio.sleep(LEAVING)
    log.warning("something that does not end is left behind", waited=LEAVING)
    _vanish()


def _vanish() -> NoReturn:
    sys.stderr.flush()
    os._exit(0)
