"""`hermes-trio fake telegram|model`: the other side of the wire on loopback, to try the bot without an account."""

from __future__ import annotations

from argparse import Namespace

import click
import trio

from hermes_fakes.__main__ import run
from hermes_fakes.telegram import DEFAULT_TOKEN


@click.group(short_help="Serve a fake Telegram or a fake model on loopback.")
def fake() -> None:
    """Serve a fake Telegram or a fake model on loopback until interrupted."""


@fake.command(short_help="A Telegram whose people you play by HTTP.")
@click.option("--port", type=int, default=8081, show_default=True, help="0: a free one.")
@click.option("--token", default=DEFAULT_TOKEN, show_default=True, help="The only token that is accepted.")
def telegram(port: int, token: str) -> None:
    """A Telegram whose people you play by HTTP; set base_url of the account and its token.

    \b
    curl -d '{"user": "mia", "text": "hi"}' localhost:8081/control/say
    curl 'localhost:8081/control/screen?user=mia'
    curl -d '{"effect": "ack_lost", "methods": ["editMessageText"]}' localhost:8081/control/fault
    curl localhost:8081/control/

    The first person has the user id 1001, the next 1002. The last line names all that there is.
    """
    _serve(Namespace(fake="telegram", host="127.0.0.1", port=port, token=token))


@fake.command(short_help="A model that says what you tell it.")
@click.option("--port", type=int, default=8082, show_default=True, help="0: a free one.")
def model(port: int) -> None:
    """A model that says what you tell it, and else repeats what it is asked; set base_url to it, with /v1.

    \b
    curl -d '{"says": "Good morning."}' localhost:8082/control/script
    curl -d '{"when": "time", "script": [{"calls": {"name": "clock", "arguments": {}}},
              {"then": null}, {"says": {"text": "It is late.", "chunks": 4, "interval": 0.2}}]}' \\
        localhost:8082/control/script
    curl localhost:8082/control/

    Without "when" it is the answer to the next request. "chunks" are the characters of one delta, "interval" the
    seconds between two. The last line names all that there is.
    """
    _serve(Namespace(fake="model", host="127.0.0.1", port=port))


def _serve(options: Namespace) -> None:
    try:
        trio.run(run, options)
    except* KeyboardInterrupt:
        raise SystemExit(130) from None
