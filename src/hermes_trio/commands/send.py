"""`hermes-trio send`: a message from a script, once for its key, beside a running bot or without one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hermes_trio.clock import random_id
from hermes_trio.commands.acting import EX_USAGE, carry_out, loaded, tell
from hermes_trio.values import Address


@click.command(short_help="Send a message, once for its key.")
@click.argument("address")
@click.argument("text")
@click.option("--key", help="What makes it the same message when it is sent again; it is delivered once for each key.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")
@click.option(
    "--wait", type=click.FloatRange(0, 3600), default=30.0, show_default=True, help="Seconds to wait until it is there."
)
def send(address: str, text: str, key: str | None, path: Path | None, wait: float) -> None:
    """Send TEXT (Markdown; - reads standard input) to ADDRESS, such as telegram:12345.

    Exits 0 when it is delivered, or stored and a bot goes on with it; 1 when it was abandoned or is held for you; 2
    when it cannot be sent as you wrote it; 69 when the database cannot be used; 78 when the configuration is wrong.
    """
    try:
        place = Address.parse(address)
    except ValueError as error:
        click.echo(str(error), err=True)
        raise SystemExit(EX_USAGE) from None
    if text == "-":
        text = sys.stdin.read()
    name = random_id() if key is None else key
    request = {"command": "send", "address": address, "text": text, "key": name}
    tell(carry_out(loaded(path), lambda: place, request, lambda desk: desk.send(place, text, name), wait))
