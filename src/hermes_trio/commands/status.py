"""`hermes-trio status`: what is open, read from the database beside a running bot.

The rule that must not be broken: it only reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import click
import trio

from hermes_trio.assembly import platform_of
from hermes_trio.commands.configured import configured
from hermes_trio.commands.run import EX_UNAVAILABLE
from hermes_trio.config import Config
from hermes_trio.http import open_http_client
from hermes_trio.ledger import FILE_NAME, LedgerUnusable, connect_readonly
from hermes_trio.ledger.inspection import OpenDelivery, Overview, overview, owner
from hermes_trio.platforms.script import SCRIPT
from hermes_trio.runtime import LOCK_NAME

CLIP = 60
"""Characters of a text that are shown."""


@click.command(short_help="Show what is open, and what each account guarantees.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")
def status(path: Path | None) -> None:
    """Show what is open: turns, waiting messages, deliveries with their reasons, and each account's guarantee."""
    config = configured(path).config
    for name, guarantee in trio.run(guarantees, config):
        click.echo(f"account {name}: {guarantee}")
    running = owner(config.data_dir / LOCK_NAME)
    click.echo(f"bot: {f'runs ({running})' if running else 'does not run'}")
    try:
        found = _look(config.data_dir / FILE_NAME)
    except LedgerUnusable as error:
        click.echo(str(error), err=True)
        raise SystemExit(EX_UNAVAILABLE) from None
    if found is None:
        click.echo("no bot has run on this database yet")
        return
    for line in lines_of(found, time.time(), frozenset(config.platforms)):
        click.echo(line)


def _look(path: Path) -> Overview | None:
    connection = connect_readonly(path)
    try:
        return overview(connection, time.time())
    finally:
        connection.close()


async def guarantees(config: Config) -> list[tuple[str, str]]:
    """Each configured account with its guarantee class. Makes no request."""
    async with open_http_client() as client:
        return [
            (name, platform_of(name, table, client, config.delivery.settle, lambda: "status").capabilities.guarantee)
            for name, table in config.platforms.items()
        ]


def lines_of(found: Overview, now: float, accounts: AbstractSet[str]) -> Iterator[str]:
    """What there is to say of a database. accounts: the names of those that are configured."""
    started = f"{found.lives} {'start' if found.lives == 1 else 'starts'}, the last one {_ago(now - found.started_at)}"
    yield f"database: {started if found.lives else 'no bot has started on it yet'}"
    yield f"last commit: {_ago(now - found.last_commit)}"
    yield f"messages without an end: {len(found.waiting)}"
    for message in found.waiting:
        waited = _ago(now - message.received_at)
        yield f"  {message.state:8} {message.address}  {waited}  {_clipped(message.text)}"
        if (name := message.address.partition(":")[0]) not in accounts | {SCRIPT}:
            yield f"           the configuration has no account {name}: who runs with this one leaves that message"
    counts = ", ".join(f"{number} {state}" for state, number in found.deliveries.items())
    yield f"deliveries: {counts or 'none'}"
    for delivery in found.open:
        yield f"  {_delivery(delivery, now)}"
    for place, until in found.limits:
        yield f"rate limit: {place} for {until - now:.0f} s"
    for place, reason in found.dead:
        yield f"unreachable: {place}: {reason}"


def _delivery(delivery: OpenDelivery, now: float) -> str:
    words = [
        f"{delivery.state:10} {delivery.kind:7} {delivery.address}  {delivery.id}",
        _ago(now - delivery.created_at),
    ]
    if delivery.attempts:
        words.append(f"{delivery.attempts} failed")
    if delivery.last_error:
        words.append(f"last: {delivery.last_error}")
    if now < delivery.due_at < now + 1e9:
        words.append(f"next in {delivery.due_at - now:.0f} s")
    return "  ".join([*words, _clipped(delivery.text)]).rstrip()


def _ago(seconds: float) -> str:
    """A duration since, in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CLIP else f"{line[: CLIP - 1]}…"
