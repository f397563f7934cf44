"""The command line. Each command stands in its own module, which is imported when the command is used."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

import click

from hermes_trio import __version__

COMMANDS: Mapping[str, str] = {
    "run": "hermes_trio.commands.run:run",
    "chat": "hermes_trio.commands.chat:chat",
    "start": "hermes_trio.commands.start:start",
    "init": "hermes_trio.commands.init:init",
    "status": "hermes_trio.commands.status:status",
    "doctor": "hermes_trio.commands.doctor:doctor",
    "demonstration": "hermes_trio.commands.demonstration:demonstration",
    "send": "hermes_trio.commands.send:send",
    "deliveries": "hermes_trio.commands.deliveries:deliveries",
    "config": "hermes_trio.commands.config:config",
    "check-ledger": "hermes_trio.commands.check_ledger:check_ledger",
    "faults": "hermes_trio.commands.faults:faults",
    "fake": "hermes_trio.commands.fake:fake",
}
"""Name of a command and where it stands. Not imported here: the fakes and the test kit would cost every start of the
bot a third of a second."""


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="hermes-trio")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A bot runtime in which every message gets exactly one complete visible reply.

    Without a command: the configured bot, or a chat on this terminal.
    """
    _open_missing_descriptors()
    if ctx.invoked_subcommand is None:
        start = cli.get_command(ctx, "start")
        assert start is not None
        ctx.invoke(start)


def _open_missing_descriptors() -> None:
    """A program that was started without standard streams gets empty ones.

    Else the next file that is opened, such as the database, takes their numbers, and a line of output goes into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
