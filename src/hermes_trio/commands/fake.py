"""`hermes-trio fake telegram|model`: the other side of the wire on loopback, to try the bot without an account."""

from __future__ import annotations

from argparse import Namespace

import click
import trio

from hermes_fakes.__main__ import run
from hermes_fakes.telegram import DEFAULT_TOKEN


@click.group()
def fake() -> None:
    """Serve a fake Telegram or a fake model on loopback until interrupted."""


@fake.command()
@click.option("--port", type=int, default=8081, show_default=True, help="0: a free one.")
@click.option("--token", default=DEFAULT_TOKEN, show_default=True, help="The only token that is accepted.")
def telegram(port: int, token: str) -> None:
    """A Telegram whose people you play by HTTP: POST /control/say, GET /control/screen."""
    _serve(Namespace(fake="telegram", host="127.0.0.1", port=port, token=token))


@fake.command()
@click.option("--port", type=int, default=8082, show_default=True, help="0: a free one.")
def model(port: int) -> None:
    """A model that says what you tell it by POST /control/script, and else repeats what it is asked."""
    _serve(Namespace(fake="model", host="127.0.0.1", port=port))


def _serve(options: Namespace) -> None:
    try:
        trio.run(run, options)
    except* KeyboardInterrupt:
        raise SystemExit(130) from None
