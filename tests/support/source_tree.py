"""What the tests of the source itself share: the files, their syntax trees, and how a finding is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "hermes_trio"
FAKES = ROOT / "fakes"
TESTS = ROOT / "tests"


@frozen
class Module:
    """One source file of the package."""

    path: Path
    """Relative to `base`."""
    base: Path
    tree: ast.Module
    text: str

    @property
    def dotted(self) -> tuple[str, ...]:
        """Its name below the package: `("ledger", "task")`; a package is itself without `__init__`."""
        parts = self.path.with_suffix("").parts
        return parts[:-1] if parts[-1] == "__init__" else parts

    def at(self, node: ast.AST | int, message: str) -> str:
        """A finding, with the place to go to."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{(self.base / self.path).relative_to(self.base.parent)}:{line}: {message}"


@cache
def modules(base: Path) -> tuple[Module, ...]:
    """Every Python file below `base`, parsed."""
    return tuple(parse(path, base) for path in sorted(base.rglob("*.py")))


def parse(path: Path, base: Path) -> Module:
    """One file, parsed."""
    text = path.read_text()
    return Module(path.relative_to(base), base, ast.parse(text, str(path)), text)


def docstrings(tree: ast.Module) -> set[ast.Constant]:
    """The string nodes that stand alone as statements: docstrings and the words under a field."""
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, at any depth."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def report(findings: list[str]) -> None:
    """Fails with all findings at once, one a line."""
    assert not findings, "\n" + "\n".join(findings)
