"""docs/cases.md tells the truth: every test that it names exists, and every case has a row."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [line for line in (ROOT / "docs" / "cases.md").read_text().splitlines() if re.match(r"\| [A-Z]-\d\d ", line)]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The names of the functions of a test file."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:6])
def test_a_row_names_tests_that_exist(row: str) -> None:
    """A case is tried by tests of that name, or says why there is none."""
    last = row.rstrip("| ").rpartition(" | ")[2]
    named = re.findall(r"`([\w/.]+)::(\w+)`", last)
    assert named or last.startswith("- ")
    for path, name in named:
        assert name in functions_of(path), f"{path} has no {name}"


def test_no_case_is_listed_twice() -> None:
    """One row for each case."""
    cases = [row[2:6] for row in ROWS]
    assert len(set(cases)) == len(cases) > 40
