"""How a command acts on deliveries: through the bot that runs, or by itself when none does.

The bot owns the database while it runs, so a command asks it through the control socket. When no bot runs the command
takes the database's lock, does what was asked, and delivers to the one address that it concerns. The rule that must
not be broken: a command that is repeated because its connection was lost repeats the same key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click
import trio

from hermes_trio.commands.configured import configured
from hermes_trio.commands.logs import configure_logs
from hermes_trio.commands.run import EX_UNAVAILABLE
from hermes_trio.config import Config
from hermes_trio.control.client import ConnectionLost, NoBot, ask_bot
from hermes_trio.control.desk import Desk
from hermes_trio.control.protocol import from_object
from hermes_trio.delivery.operating import Delivery, RequestRefused
from hermes_trio.ledger import LedgerLocked, LedgerUnusable
from hermes_trio.runtime import open_desk
from hermes_trio.values import Address

EX_USAGE, EX_FAILED = 2, 1
STARTING = 10.0
"""Seconds for which a bot may hold the lock without answering on its socket: it is starting, or ending."""
AGAIN = 0.1
"""Seconds between two tries."""

Alone = Callable[[Desk], Awaitable[Delivery]]
"""What is done at a desk of our own; it returns when it is durable."""


def loaded(path: Path | None) -> Config:
    """The configuration; ends the command with 78 when there is none that is right."""
    config = configured(path).config
    configure_logs(config.log)
    return config


def carry_out(
    config: Config, only: Callable[[], Address], request: Mapping[str, Any], alone: Alone, wait: float
) -> Delivery:
    """Does what was asked, here or in the running bot, and waits `wait` seconds for the delivery to end.

    only: the address that it concerns, asked for when no bot runs. Ends the command where it cannot be done.
    """
    try:
        return trio.run(_carry_out, config, only, request, alone, wait)
    except* RequestRefused as group:
        _end(group, EX_USAGE)
    except* (LedgerLocked, LedgerUnusable) as group:
        _end(group, EX_UNAVAILABLE)


def _end(group: BaseExceptionGroup[BaseException], code: int) -> NoReturn:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    click.echo(str(error), err=True)
    raise SystemExit(code)


async def _carry_out(
    config: Config, only: Callable[[], Address], request: Mapping[str, Any], alone: Alone, wait: float
) -> Delivery:
    deadline = trio.current_time() + STARTING
    while True:
        try:
            return from_object(await ask_bot(config.data_dir, wait=wait, **request))
        except (NoBot, ConnectionLost) as missing:
            if isinstance(missing, ConnectionLost) and request.get("key") is None:
                raise RequestRefused(
                    "the bot ended before it answered; `hermes-trio deliveries list --all` tells what became of it"
                ) from None
        try:
            async with open_desk(config, only()) as desk:
                return await desk.wait_for(await alone(desk), wait)
        except LedgerLocked:
            if trio.current_time() >= deadline:
                raise
        await trio.sleep(AGAIN)


def tell(delivery: Delivery) -> NoReturn:
    """Says what became of a delivery and ends the command: 1 when it needs somebody, else 0."""
    reason = f": {delivery.reason}" if delivery.reason else ""
    match delivery.state:
        case "delivered":
            click.echo(f"delivered: {delivery.id}")
        case "held" | "abandoned":
            click.echo(f"{delivery.state}: {delivery.id}{reason}", err=True)
            raise SystemExit(EX_FAILED)
        case _:
            click.echo(f"stored, not delivered yet: {delivery.id}{reason}; a bot that runs goes on with it")
    raise SystemExit(0)
