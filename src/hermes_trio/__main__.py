"""`python -m hermes_trio`, and the console script `hermes-trio`."""

from __future__ import annotations

from hermes_trio.commands import cli


def main() -> None:
    """Runs the command line."""
    cli(prog_name="hermes-trio")


if __name__ == "__main__":
    main()
