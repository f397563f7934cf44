"""`hermes-trio run`: the bot, until a signal ends it."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

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
        async with open_runtime(config) as runtime:
            await anext(signals)
            log.info("stopping", drain=config.shutdown.drain)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_at_once, signals, nursery.cancel_scope)
                await runtime.drain(config.shutdown.drain)
                nursery.cancel_scope.cancel()
    log.info("stopped")


async def _end_at_once(signals: object, scope: trio.CancelScope) -> None:
    await anext(signals)  # type: ignore[call-overload]  # trio does not export the type of its receiver
    log.warning("stopped at once; the next start goes on from here")
    scope.cancel()
