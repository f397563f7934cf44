"""The list of conformance rows that must hold, and where each is tried: in the world, and by the real program.

A test of `tests/process` names its rows at the beginning of its docstring ("A3, A4: ...", "D1 to D6: ..."). A story
of the world has its row in its name ("a18m_black_hole", "test_b7_killed") or at the beginning of its docstring; it
stands in `tests/lab` or in a `test_cases_*` file here. The rule that must not be broken: a row is never taken off this
list because its test is gone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CORE = (
    "A1", "A2", "A3", "A6", "A7", "A8", "A9", "A10", "A12", "A13", "A14", "A15", "A16", "A18m", "A18d", "A19",
    "C1", "C2", "C4", "C5", "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D10",
)  # fmt: skip
"""Delivery and recovery on Telegram's wire."""
WIDTH = ("A4", "A5", "A11", "A17", "A18", "A18r", "A20", "C3")
"""Long, streamed, limited and partly refused answers."""
TALK = ("B1", "B2", "B4", "B5", "B6", "B7", "D8", "D9")
"""People who do not wait their turn, and tools. (B3 is a row of a wire with threads of its own.)"""
TELEGRAM = CORE + WIDTH + TALK
"""The rows on Telegram's wire that are due."""

_ROW = r"([A-E])(\d+)([a-z]?)"
_NAMED = re.compile(rf"(?P<rows>{_ROW}(?:(?:, | to ){_ROW})*)[ :,]")
_STORY = re.compile(r"(?:test_)?([a-e])(\d+[a-z]?)_")


Function = ast.AsyncFunctionDef | ast.FunctionDef


def process_rows() -> Iterator[str]:
    """The rows that tests of the real program name."""
    for function in _functions(TESTS.glob("process/test_*.py")):
        if function.name.startswith("test_"):
            yield from _named(function)


def lab_rows() -> Iterator[str]:
    """The rows that have a story in the world."""
    for function in _functions([*TESTS.glob("lab/*.py"), *TESTS.glob("conformance/test_cases_*.py")]):
        yield from _named(function)
        if story := _STORY.match(function.name):
            yield f"{story[1].upper()}{story[2]}"


def _functions(paths: Iterable[Path]) -> Iterator[Function]:
    """The functions of these files, inner ones too."""
    for path in paths:
        yield from (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def _named(function: Function) -> Iterator[str]:
    """The rows at the beginning of a docstring."""
    named = _NAMED.match(ast.get_docstring(function) or "")
    yield from _listed(named["rows"]) if named else ()


def _listed(text: str) -> Iterator[str]:
    """ "D1 to D3, D5" is D1, D2, D3, D5."""
    for piece in text.split(", "):
        first, _, last = piece.partition(" to ")
        if not last:
            yield first
            continue
        letter, low, high = first[0], int(first[1:]), int(last[1:])
        yield from (f"{letter}{number}" for number in range(low, high + 1))


@pytest.mark.parametrize("row", TELEGRAM)
def test_the_real_program_is_tried(row: str) -> None:
    """Each row is tried with the real program in a process of its own."""
    assert row in set(process_rows())


@pytest.mark.parametrize("row", [row for row in TELEGRAM if row != "D7"])
def test_the_world_is_tried(row: str) -> None:
    """Each row is a story of the simulated world, where it is killed at every boundary (that is D7)."""
    assert row in set(lab_rows())


def test_ranges_of_rows() -> None:
    """A docstring may name several rows and ranges of them."""
    assert list(_listed("D1 to D3, D5, A18m")) == ["D1", "D2", "D3", "D5", "A18m"]
