"""The surface that embedders see: the names of `hermes_trio` and of each room that lists its own."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys

import pytest
from source_tree import ROOT, SRC, Module, modules

EMBEDDING = ROOT / "docs" / "embedding.md"


def listed(module: Module) -> list[str] | None:
    """The names in a module's `__all__`; None when it has none."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def imported(module: Module) -> set[str]:
    """The public names of ours that a package's import statements bind: what it re-exports."""
    return {
        alias.asname or alias.name
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "hermes_trio")
        for alias in node.names
        if not (alias.asname or alias.name).startswith("_")
    }


PACKAGES = [
    module for module in modules(SRC) if module.path.name == "__init__.py" and (listed(module) or imported(module))
]


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: ".".join(("hermes_trio", *module.dotted)))
def test_names_are_listed_and_there(module: Module) -> None:
    """A package lists what it re-exports, once, all of it, and each name can be imported."""
    names = listed(module)
    assert names is not None, "a package that re-exports names lists them in __all__"
    assert len(names) == len(set(names))
    assert imported(module) <= set(names), "imported, but not listed"
    live = importlib.import_module(".".join(("hermes_trio", *module.dotted)))
    assert [name for name in names if not hasattr(live, name)] == []


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: ".".join(("hermes_trio", *module.dotted)))
def test_names_say_what_they_promise(module: Module) -> None:
    """Every re-exported class and function has a docstring of its own."""
    live = importlib.import_module(".".join(("hermes_trio", *module.dotted)))
    things = {name: getattr(live, name) for name in listed(module) or ()}
    ours = {
        name: thing
        for name, thing in things.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing.__module__.startswith("hermes_trio")
    }
    assert [name for name, thing in ours.items() if not thing.__doc__] == []


def test_the_embedding_guide_names_the_surface() -> None:
    """What `hermes_trio` exports stands in docs/embedding.md, and what that imports from it is exported."""
    root = next(module for module in modules(SRC) if module.dotted == ())
    names = set(listed(root) or ())
    assert names or not EMBEDDING.exists(), "the guide is there and the package exports nothing"
    guide = EMBEDDING.read_text() if EMBEDDING.exists() else " ".join(f"`{name}`" for name in names)
    assert sorted(name for name in names if not re.search(rf"\b{re.escape(name)}\b", guide)) == []
    used = {
        name
        for clause in re.findall(r"from hermes_trio import (\([^)]*\)|[^\n]*)", guide)
        for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", clause))
    }
    assert sorted(used - names) == []


def root() -> Module:
    """The package's own module."""
    return next(module for module in modules(SRC) if module.dotted == ())


def announced() -> dict[str, str]:
    """What type checkers read of the package: each name with the module that it is imported from."""
    return {
        alias.asname or alias.name: node.module
        for block in root().tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


def test_type_checkers_and_python_see_the_same() -> None:
    """Each listed name is announced to type checkers, and is at run time the very thing that is announced."""
    live = importlib.import_module("hermes_trio")
    names = announced()
    assert sorted(names) == sorted(listed(root()) or ())
    for name, home in names.items():
        assert getattr(live, name) is getattr(importlib.import_module(home), name), name
    assert set(names) <= set(dir(live))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as with any module."""
    with pytest.raises(AttributeError, match="no attribute 'open_runtme'"):
        _ = importlib.import_module("hermes_trio").open_runtme


def test_importing_the_package_costs_nothing() -> None:
    """Whoever imports the package, or one pure room of it, imports no network, database or command line."""
    heavy = "{'trio', 'httpx', 'httpcore', 'sqlite3', 'sqlite_utils', 'click', 'structlog', 'cattrs', 'markdown_it'}"
    program = f"import sys, hermes_trio, hermes_trio.values; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"


def test_the_version_is_the_packages() -> None:
    """`hermes_trio.__version__` is the version that is installed."""
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert importlib.import_module("hermes_trio").__version__ == declared[1]
