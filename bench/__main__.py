"""Runs the measurements and prints them as a table, below the facts of the machine that they were made on.

`python -m bench [NAME...]` runs the modules `bench/NAME.py`, all of them by default. A number without its machine
says nothing, so the facts are always printed.
"""

from __future__ import annotations

import importlib
import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import cast

import click

from bench.measure import Bench, Measurement

HERE = Path(__file__).parent
NOT_MEASURING = {"__init__", "__main__", "measure"}


def facts() -> Iterator[tuple[str, str]]:
    """What the numbers depend on."""
    yield "processor", f"{processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    yield "memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "temporary files", f"{file_system(Path(tempfile.gettempdir()))}"
    yield "python", f"{platform.python_implementation()} {platform.python_version()}"
    yield "sqlite", sqlite3.sqlite_version
    yield "libraries", ", ".join(f"{name} {version(name)}" for name in ("trio", "httpcore", "h11", "sqlite-utils"))
    yield "hermes-trio", version("hermes-trio")


def processor() -> str:
    """The model that the kernel names, or the architecture where it names none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def file_system(directory: Path) -> str:
    """The kind of the file system that holds a directory: commits are as fast as its fsync."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "unknown"
    holding = [mount for mount in mounts if directory.resolve().is_relative_to(mount[1])]
    return max(holding, key=lambda mount: len(mount[1]))[2] if holding else "unknown"


def benches() -> tuple[str, ...]:
    """The names of the modules that measure."""
    return tuple(sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_MEASURING))


def line(row: Measurement) -> str:
    """One row of the table."""
    digits = 0 if abs(row.value) >= 100 else 2
    return f"{row.name:<44} {row.value:>12,.{digits}f} {row.unit:<14} {row.circumstances}".rstrip()


def main(arguments: Sequence[str]) -> int:
    """Prints the facts and the table; 2 for a name that is no bench."""
    wrong = sorted(set(arguments) - set(benches()))
    if wrong:
        click.echo(f"no such bench: {', '.join(wrong)}; there are: {', '.join(benches()) or 'none'}", err=True)
        return 2
    for name, fact in facts():
        click.echo(f"{name:<16} {fact}")
    for name in arguments or benches():
        click.echo(f"\n{name}")
        for row in cast(Bench, importlib.import_module(f"bench.{name}")).measure():
            click.echo(f"  {line(row)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
