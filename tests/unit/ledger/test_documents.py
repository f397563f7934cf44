"""The parts of the documents that are made from the lifecycles are up to date."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from source_tree import ROOT

from hermes_trio.ledger.transitions import TURN, diagram


@pytest.fixture
def generate() -> ModuleType:
    """The program behind `make docs`."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_are_current(generate: ModuleType) -> None:
    """`make docs` would change nothing: the diagrams are those of the tables."""
    stale = [
        path.name for path in (ROOT / "docs").glob("*.md") if generate.regenerated(path.read_text()) != path.read_text()
    ]
    assert stale == [], "run `make docs`"


def test_a_block_is_rewritten(generate: ModuleType) -> None:
    """A block between its two marks becomes the diagram; the text around it, and a second block, are kept apart."""
    block = "<!-- lifecycle: TURN -->\n{}<!-- end -->\n"
    fresh = block.format(f"```mermaid\n{diagram(TURN)}\n```\n")
    text = "before\n" + block.format("old\n") + "between\n" + block.format("") + "after\n"
    assert generate.regenerated(text) == f"before\n{fresh}between\n{fresh}after\n"
    with pytest.raises(AttributeError):
        generate.regenerated("<!-- lifecycle: NOTHING -->\n<!-- end -->")
