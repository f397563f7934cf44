"""Tables as aligned text for a monospaced block. Pure; widths count the columns of a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from hermes_trio.text.visible import is_visible


def width(text: str) -> int:
    """The columns that a text takes in a monospaced font: wide characters two, marks and invisible ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def align(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> str:
    """The rows as lines, the first underlined; sides says `left`, `right` or `center` for each column.

    A row may be shorter than the first, never longer. White space at the ends of lines is left out.
    """
    columns = len(rows[0])
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(width(row[column]) for row in full) for column in range(columns)]
    lines = [_line(row, widths, sides) for row in full]
    lines.insert(1, "-|-".join("-" * size for size in widths))
    return "\n".join(line.rstrip() for line in lines)


def _line(row: Sequence[str], widths: Sequence[int], sides: Sequence[str]) -> str:
    return " | ".join(_pad(cell, size, side) for cell, size, side in zip(row, widths, sides, strict=True))


def _pad(cell: str, size: int, side: str) -> str:
    room = size - width(cell)
    before = {"right": room, "center": room // 2}.get(side, 0)
    return " " * before + cell + " " * (room - before)


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me") or not (is_visible(char) or char.isspace()):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
