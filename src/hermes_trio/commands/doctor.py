"""`hermes-trio doctor`: whether everything that a bot stands on works, and what it can promise on each account.

Each finding is one line that begins with ok, note or WRONG; what is wrong comes with what to do. The rule that must
not be broken: it changes nothing, and may be run beside a running bot.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import click
import trio
from attrs import frozen

from hermes_trio.assembly import model_of, platform_of
from hermes_trio.commands.configured import configured
from hermes_trio.commands.probe import ProbeFailed, probe_model, probe_telegram
from hermes_trio.config import Config, LoadedConfig, TelegramConfig
from hermes_trio.control.client import ConnectionLost, NoBot, ask_bot
from hermes_trio.delivery.operating import RequestRefused, listed
from hermes_trio.http import HttpClient, open_http_client
from hermes_trio.ledger import FILE_NAME, LedgerUnusable, connect_readonly
from hermes_trio.ledger.operating import damage

COSTS = {
    "keyed": "an uncertain message costs nothing: it is repeated under the same key",
    "editable": "an uncertain message costs at most one stray empty placeholder, never a second copy of content",
    "lookup": "an uncertain message costs nothing once the time to look it up has passed",
    "plain": "an uncertain message costs one extra marked copy, at most two, then it is held for you",
}
"""What an uncertain create costs, by guarantee class."""
PATIENCE = 5.0
"""Seconds for the bot to answer on its socket."""


@frozen
class Finding:
    """One thing that was looked at."""

    level: str
    """ok, note (worth knowing, nothing is broken) or WRONG."""
    text: str


@click.command(short_help="Check configuration, database, model and accounts.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")
def doctor(path: Path | None) -> None:
    """Check the configuration, the database, the model and the accounts; tell what each account guarantees.

    Makes one small request to each model and to each account. Exits 0 when a bot can work, 1 when something needs
    you, 78 when the configuration is wrong.
    """
    problems = trio.run(_tell, configured(path))
    raise SystemExit(1 if problems else 0)


async def _tell(found: LoadedConfig) -> int:
    """Prints each finding as it is made; returns how many are problems."""
    problems = 0
    async for finding in findings(found):
        click.echo(f"{finding.level}: {finding.text}")
        problems += finding.level == "WRONG"
    return problems


async def findings(found: LoadedConfig) -> AsyncIterator[Finding]:
    """What there is to say, in order."""
    config = found.config
    yield Finding("ok", f"configuration: {found.path}")
    for warning in found.warnings:
        yield Finding("note", f"configuration: {warning}")
    for finding in _database(config.data_dir / FILE_NAME):
        yield finding
    yield await _bot(config.data_dir)
    for finding in await _outside(config):
        yield finding


def _database(path: Path) -> Iterator[Finding]:
    if not os.path.exists(path):
        hindrance = _hindrance(path.parent)
        if hindrance:
            yield Finding("WRONG", f"database: {path} cannot be made: {hindrance}; choose another data_dir")
        else:
            yield Finding("ok", f"database: {path} does not exist yet; the first start makes it")
        return
    try:
        connection = connect_readonly(path)
    except LedgerUnusable as error:
        yield Finding("WRONG", f"database: {error}")
        return
    try:
        complaint = damage(connection)
        waiting = () if complaint else listed(connection, False, 1000)
    finally:
        connection.close()
    if complaint:
        yield Finding("WRONG", f"database: {path}: {complaint}")
        return
    yield Finding("ok", f"database: {path}")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("note", f"database: others may read it; chmod 600 {path}")
    if waiting:
        yield Finding("note", f"deliveries: {len(waiting)} held or abandoned; see `hermes-trio deliveries list`")


def _hindrance(directory: Path) -> str:
    """Why a file cannot be made in a directory that may not exist yet; empty when nothing is known."""
    nearest = next(place for place in (directory, *directory.parents) if os.path.exists(place))
    if not nearest.is_dir():
        return f"{nearest} is no directory"
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"this user may not write in {nearest}"


async def _bot(data_dir: Path) -> Finding:
    with trio.move_on_after(PATIENCE):
        try:
            status = await ask_bot(data_dir, "status")
        except NoBot:
            return Finding("ok", "bot: does not run now")
        except (ConnectionLost, RequestRefused) as error:
            return Finding("note", f"bot: {error}")
        if not status["writes"]:
            return Finding("WRONG", f"bot: process {status['pid']} cannot write its database; is the disk full?")
        down = [name for name, account in status["accounts"].items() if not account["up"]]
        if down:
            return Finding("note", f"bot: process {status['pid']} runs, but has no connection to {', '.join(down)}")
        return Finding("ok", f"bot: process {status['pid']} runs, and all its accounts are connected")
    return Finding("WRONG", f"bot: it does not answer on its control socket within {PATIENCE:g} s")


async def _outside(config: Config) -> list[Finding]:
    async with open_http_client() as client:
        return [
            *[await _model(config, index, client) for index in range(1 + len(config.model.fallback))],
            *[await _account(config, name, client) for name in config.platforms],
        ]


async def _model(config: Config, index: int, client: HttpClient) -> Finding:
    table = (config.model, *config.model.fallback)[index]
    model = model_of(table, client)
    try:
        await probe_model(model)
    except ProbeFailed as error:
        return Finding("WRONG", f"model {model.name}: {error}")
    return Finding("ok", f"model {model.name} answers")


async def _account(config: Config, name: str, client: HttpClient) -> Finding:
    """What the account is and what it guarantees; a wrong token does not change the guarantee."""
    table = config.platforms[name]
    guarantee = platform_of(name, table, client, config.delivery.settle, lambda: "doctor").capabilities.guarantee
    promise = f"{guarantee}: {COSTS[guarantee]}"
    if not isinstance(table, TelegramConfig):
        return Finding("ok", f"account {name}; {promise}")
    try:
        bot = await probe_telegram(client, table.base_url, table.token)
    except ProbeFailed as error:
        return Finding("WRONG", f"account {name}: {error}; {promise}")
    return Finding("ok", f"account {name} is @{bot.username}; {promise}")
