"""In which line of a TOML text a key stands. Only for messages: the parser tells no lines, so this asks it again."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

MOST_LINES = 1000
"""A longer text gets no line numbers: its beginnings are parsed one by one, which takes the square of its length."""


def lines_of(text: str) -> dict[str, int]:
    """For each key and table, such as `model.name` and `access.allow[0]`, the line (from 1) where it begins.

    A key begins in the first line after a beginning of the text that is valid TOML without it.
    """
    lines = text.splitlines(keepends=True)
    found: dict[str, int] = {}
    if len(lines) > MOST_LINES:
        return found
    begin = 1
    for count in range(1, len(lines) + 1):
        try:
            document = tomllib.loads("".join(lines[:count]))
        except tomllib.TOMLDecodeError:
            continue
        for path in _paths(document, ""):
            found.setdefault(path, begin)
        begin = count + 1
    return found


def _paths(value: Any, path: str) -> Iterator[str]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _paths(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _paths(below, f"{path}[{index}]")
