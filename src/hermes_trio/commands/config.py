"""`hermes-trio config`: check a configuration, explain a key, print the schema, name the file.

Everything that it says comes from `hermes_trio.config`; here is only the command line. The one rule: it reads with
the same loader as `run`, so what it accepts will run.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from hermes_trio.commands.configured import configured
from hermes_trio.config import EX_CONFIG, ConfigError, default_config_path, report
from hermes_trio.config.explaining import UnknownKey, explain, written
from hermes_trio.config.reference import json_schema, markdown_reference

_FILE = click.Path(dir_okay=True, path_type=Path)


@click.group("config")
def config() -> None:
    """Check and explain the configuration."""


@config.command(short_help="Print every mistake in a configuration.")
@click.argument("file", type=_FILE, required=False)
@click.option("--config", "option", type=_FILE, help="The same as FILE.")
def check(file: Path | None, option: Path | None) -> None:
    """Check FILE (by default your own configuration) and print every mistake in it.

    Exits 0 when it is accepted, with its warnings, and 78 when it is not.
    """
    loaded = configured(file or option)
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}")
    click.echo(f"ok: {loaded.path}")


@config.command("explain", short_help="Tell what a key means, its value and its origin.")
@click.argument("key")
@click.option("--config", "file", type=_FILE, help="The file to read; by default your own configuration.")
def explain_key(key: str, file: Path | None) -> None:
    """Tell what KEY means, what it may be, what it is now and where that comes from.

    KEY is written as in delivery.settle or platforms.telegram.token; a table is explained by its keys.
    """
    try:
        click.echo(explain(key, written(file)))
    except UnknownKey as error:
        raise click.UsageError(str(error)) from None
    except ConfigError as error:
        click.echo(report(error), err=True)
        raise SystemExit(EX_CONFIG) from None


@config.command(short_help="Print the JSON Schema of the file, for editors.")
@click.option("--markdown", is_flag=True, help="The reference page instead of JSON Schema.")
def schema(markdown: bool) -> None:
    """Print the JSON Schema of the file, for editors."""
    click.echo(markdown_reference() if markdown else json.dumps(json_schema(), indent=2), nl=not markdown)


@config.command(short_help="Print where the configuration lies.")
def path() -> None:
    """Print where the configuration lies when no command names a file."""
    click.echo(default_config_path())
