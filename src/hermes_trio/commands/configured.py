"""The configuration that a command works with, or the end of the command.

The one rule: whatever is missing or wrong is told together with what to do next, and the exit status is 78.
"""

from __future__ import annotations

from pathlib import Path

import click

from hermes_trio.config import EX_CONFIG, ConfigError, LoadedConfig, MissingConfig, load_config, report

WITHOUT = """\
There is no configuration: {} does not exist.
Write one with `hermes-trio init`, or name yours with --config FILE.\
"""


def configured(path: Path | None) -> LoadedConfig:
    """The configuration at `path`, by default the user's own; ends the command with 78 when none is right."""
    try:
        return load_config(path)
    except ConfigError as error:
        missing = isinstance(error, MissingConfig) and path is None
        click.echo(WITHOUT.format(error.path) if missing else report(error), err=True)
        raise SystemExit(EX_CONFIG) from None
