"""The command line."""

from __future__ import annotations

import click

from hermes_trio import __version__
from hermes_trio.commands.config import config
from hermes_trio.commands.fake import fake
from hermes_trio.commands.run import run


@click.group()
@click.version_option(__version__, prog_name="hermes-trio")
def cli() -> None:
    """A bot runtime in which every message gets exactly one complete visible reply."""


for command in (run, config, fake):
    cli.add_command(command)
