"""From a body to the lines of a terminal. Pure.

The rule that must not be broken: a text of a model never steers the terminal. Control characters are shown as
pictures, and the only escape sequences are our own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from hermes_trio.text.body import Body, Span
from hermes_trio.text.graphemes import is_boundary

TAB = "    "
SGR: Mapping[str, str] = MappingProxyType(
    {
        "bold": "1",
        "italic": "3",
        "underline": "4",
        "strike": "9",
        "spoiler": "2",
        "code": "36",
        "pre": "36",
        "link": "4",
        "quote": "2",
    }
)
"""How each kind of span is shown (ECMA-48, "Select Graphic Rendition"); a kind that is not here is plain text."""
REMEMBERED_LINES = 1024
"""Logical lines whose layout is kept: while a text grows only its last one changes."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What could move the cursor, change the terminal, or turn the direction of what stands behind it."""

Piece = tuple[str, str]
"""A stretch of text without a line end, and the numbers of its Select Graphic Rendition."""


def plain_text(body: Body) -> str:
    """The body as text for a pipe or a dumb terminal: the address of a link stands behind it."""
    return "\n".join("".join(text for text, _ in line) for line in _logical_lines(body))


def lines_of(body: Body, width: int, *, style: bool) -> list[str]:
    """The body as lines of at most `width` cells, each complete with its escape sequences. There is always one.

    width: at least 2, so that every character fits. style: whether spans are shown by escape sequences.
    """
    return [line for pieces in _logical_lines(body) for line in _wrapped(pieces, max(width, 2), style)]


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(grapheme) for grapheme in _graphemes(text))


def shown(text: str) -> str:
    """The text with a picture in the place of each character that a terminal would obey."""
    return _CONTROL.sub(_picture, text.replace("\r\n", "\n").replace("\t", TAB))


def _picture(match: re.Match[str]) -> str:
    number = ord(match.group())
    if number < 0x20:
        return chr(0x2400 + number)
    return "\u2421" if number == 0x7F else "\ufffd"


def _logical_lines(body: Body) -> list[tuple[Piece, ...]]:
    lines: list[list[Piece]] = [[]]
    for text, codes in _pieces(body):
        first, *more = shown(text).split("\n")
        lines[-1].append((first, codes))
        for line in more:
            lines.append([(line, codes)])
    return [tuple(piece for piece in line if piece[0]) for line in lines]


def _pieces(body: Body) -> Iterator[Piece]:
    """The text cut where its marks change."""
    cuts = {0, len(body.text)}
    for span in body.spans:
        cuts |= {min(span.start, len(body.text)), min(span.start + span.length, len(body.text))}
    places = sorted(cuts)
    for start, end in pairwise(places):
        over = [span for span in body.spans if span.start <= start and end <= span.start + span.length]
        yield body.text[start:end], ";".join(dict.fromkeys(SGR[span.kind] for span in over if span.kind in SGR))
        for span in over:
            if span.start + span.length == end and (address := _address(body, span)):
                yield address, ""


def _address(body: Body, span: Span) -> str:
    """What stands behind a link; nothing where its text says the same."""
    text = body.text[span.start : span.start + span.length]
    told = not span.argument or span.argument.removeprefix("mailto:") in text
    return "" if span.kind != "link" or told else f" ({span.argument})"


@lru_cache(maxsize=REMEMBERED_LINES)
def _wrapped(pieces: tuple[Piece, ...], width: int, style: bool) -> tuple[str, ...]:
    """One logical line in as many lines as it needs, broken at spaces where there are any."""
    marks = [(grapheme, codes) for text, codes in pieces for grapheme in _graphemes(text)]
    lines: list[str] = []
    start = used = 0
    space: int | None = None
    index = 0
    while index < len(marks):
        grapheme, _ = marks[index]
        size = _cells_of(grapheme)
        if used + size > width and index > start:
            end = index if space is None else space
            lines.append(_painted(marks[start:end], style))
            start = index = end if space is None else end + 1
            used, space = 0, None
            continue
        if grapheme == " " and index > start:
            space = index
        used += size
        index += 1
    return (*lines, _painted(marks[start:], style))


def _painted(marks: list[Piece], style: bool) -> str:
    if not style:
        return "".join(grapheme for grapheme, _ in marks)
    line, now = [], ""
    for grapheme, codes in marks:
        if codes != now:
            line.append(f"\x1b[0;{codes}m" if codes else "\x1b[0m")
            now = codes
        line.append(grapheme)
    return "".join(line) + ("\x1b[0m" if now else "")


def _graphemes(text: str) -> Iterator[str]:
    if text.isascii():
        yield from text
        return
    start = 0
    for index in range(1, len(text) + 1):
        if is_boundary(text, index, start):
            yield text[start:index]
            start = index


def _cells_of(grapheme: str) -> int:
    if grapheme.isascii():
        return len(grapheme)
    widest = max(map(_cells_of_character, grapheme))
    return 2 if "\ufe0f" in grapheme else widest


def _cells_of_character(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
