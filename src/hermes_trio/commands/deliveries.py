"""`hermes-trio deliveries`: what could not be delivered, and what to do about it.

`list` reads the database beside a running bot; `resend` and `drop` change it through the bot, or under its lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from hermes_trio.commands.acting import carry_out, loaded, tell
from hermes_trio.commands.run import EX_UNAVAILABLE
from hermes_trio.config import Config
from hermes_trio.control.desk import MOST_LISTED
from hermes_trio.delivery.operating import Delivery, listed, look
from hermes_trio.ledger import FILE_NAME, LedgerUnusable, connect_readonly
from hermes_trio.values import Address

CLIP = 70
"""Characters of a text that are shown."""

_config = click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")


@click.group("deliveries", short_help="List, resend or drop what could not be delivered.")
def deliveries() -> None:
    """List what could not be delivered, send it again, or drop it."""


@deliveries.command("list", short_help="List what waits for you, the newest first.")
@click.option("--all", "everything", is_flag=True, help="Also what is on its way, and what you have seen to.")
@_config
def list_deliveries(everything: bool, path: Path | None) -> None:
    """List what waits for you: held and abandoned deliveries, the newest first."""
    config = loaded(path)
    try:
        connection = connect_readonly(config.data_dir / FILE_NAME)
    except LedgerUnusable as error:
        click.echo(str(error), err=True)
        raise SystemExit(EX_UNAVAILABLE) from None
    try:
        found = listed(connection, everything, MOST_LISTED)
    finally:
        connection.close()
    for line in lines_of(found):
        click.echo(line)


def lines_of(found: tuple[Delivery, ...]) -> Iterator[str]:
    """The list as lines for a person."""
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.created_at))
        text = " ".join(each.text.split())
        clipped = text if len(text) <= CLIP else f"{text[:CLIP]}…"
        reason = f" ({each.reason})" if each.reason else ""
        yield f"{each.state}{reason}  {each.address}  {when}  {each.id}"
        yield f"    {clipped}"
    if not found:
        yield "nothing waits for you"
    elif len(found) == MOST_LISTED:
        yield f"... the newest {MOST_LISTED}; there may be more"


@deliveries.command(short_help="Send one of them again.")
@click.argument("delivery")
@_config
@click.option(
    "--wait", type=click.FloatRange(0, 3600), default=30.0, show_default=True, help="Seconds to wait until it is there."
)
def resend(delivery: str, path: Path | None, wait: float) -> None:
    """Send DELIVERY (an id from the list) again.

    A held one goes on with one more copy, marked as a possible duplicate. An abandoned one is sent as a new message,
    marked if a part of it may be on screen. Exit codes as of send.
    """
    config = loaded(path)
    request = {"command": "resend", "id": delivery}
    tell(carry_out(config, lambda: _place(config, delivery), request, lambda desk: desk.resend(delivery), wait))


@deliveries.command(short_help="Give one of them up.")
@click.argument("delivery")
@_config
def drop(delivery: str, path: Path | None) -> None:
    """Give up DELIVERY (an id from the list): it leaves the list and is not sent any more."""
    config = loaded(path)
    request = {"command": "drop", "id": delivery}
    carry_out(config, lambda: _place(config, delivery), request, lambda desk: desk.drop(delivery), 0)
    click.echo(f"dropped: {delivery}")


def _place(config: Config, delivery: str) -> Address:
    """Where a delivery goes. Raises RequestRefused and LedgerUnusable."""
    connection = connect_readonly(config.data_dir / FILE_NAME)
    try:
        return Address.parse(look(connection, delivery).address)
    finally:
        connection.close()
