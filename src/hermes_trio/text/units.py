"""Lengths and offsets, as the wires count them.

Inside the program an offset counts code points. A wire may count UTF-16 units or bytes of UTF-8; this module is the
only place that knows how. The rule: nothing here looks at a text more than once per call; every function is linear.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

Unit = Literal["utf16", "codepoints", "bytes"]

WIDEST: dict[Unit, int] = {"utf16": 2, "codepoints": 1, "bytes": 4}
"""The units that one code point may need; a limit below it is impossible to keep."""


def measure(text: str, unit: Unit) -> int:
    """The length of `text` in `unit`. A lone surrogate counts as the code point it is."""
    if unit == "codepoints":
        return len(text)
    if unit == "bytes":
        return len(text.encode("utf-8", "surrogatepass"))
    if unit == "utf16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    raise ValueError(f"{unit!r} is not a unit of length; there are utf16, codepoints and bytes")


def fit(text: str, start: int, budget: int, unit: Unit) -> int:
    """The greatest offset such that `text[start:offset]` is at most `budget` units long.

    start and the result count code points. At least one code point is taken only when the budget allows it.
    """
    most = text[start : start + budget]
    if unit == "codepoints" or most.isascii():
        return start + len(most)
    used = 0
    for index, char in enumerate(most):
        used += measure(char, unit) if unit == "bytes" else 1 + (char > "\uffff")
        if used > budget:
            return start + index
    return start + len(most)


def utf16_table(text: str) -> Sequence[int]:
    """For each code point offset of `text`, and for its end, the offset in UTF-16 units: `table[offset]`."""
    if not text or max(text) <= "\uffff":
        return range(len(text) + 1)
    return list(accumulate((1 + (char > "\uffff") for char in text), initial=0))


def to_utf16(text: str, offset: int) -> int:
    """The UTF-16 offset of a code point offset. For many offsets of one text use `utf16_table`."""
    return measure(text[:offset], "utf16")


def from_utf16(text: str, offset: int) -> int:
    """The code point offset of a UTF-16 offset.

    An offset inside a surrogate pair means the start of the pair; one beyond the end means the end.
    """
    return max(bisect_right(utf16_table(text), offset) - 1, 0)
