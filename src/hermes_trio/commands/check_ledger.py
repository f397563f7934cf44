"""`hermes-trio check-ledger PATH`: whether the rows of a database keep the promises, also beside a running bot.

The one rule: it only reads.
"""

from __future__ import annotations

from pathlib import Path

import click

from hermes_trio.ledger import FILE_NAME, LedgerUnusable
from hermes_trio.testing.checker import check_database

EX_UNAVAILABLE = 69
"""The exit code when the database cannot be read (sysexits.h)."""


@click.command("check-ledger", short_help="Check the rows of a database against the promises.")
@click.argument("path", type=click.Path(path_type=Path))
def check_ledger(path: Path) -> None:
    """Check the database at PATH (a state.db, or the data directory that it lies in) against the promises.

    Reads only, so a bot may run meanwhile. Exits 0 when every promise is kept, 1 with a line for each that is broken.
    """
    try:
        found = check_database(path / FILE_NAME if path.is_dir() else path)
    except LedgerUnusable as error:
        click.echo(str(error), err=True)
        raise SystemExit(EX_UNAVAILABLE) from None
    for violation in found:
        click.echo(str(violation))
    if found:
        raise SystemExit(1)
    click.echo("every promise is kept")
