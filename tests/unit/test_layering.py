"""The house of docs/design.md, enforced on the syntax trees: who may import whom, and which rooms are pure.

A new room at the top of the package needs a floor in FLOORS; a new pure module needs a line in PURE.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from attrs import frozen
from source_tree import FAKES, SRC, Module, docstrings, functions, modules, parse, report

FLOORS = (
    {"values", "text", "http", "access", "config", "clock", "logs"},
    {"ledger", "platforms", "model", "tools"},
    {"agent", "delivery"},
    {"conversation", "delegation"},
    {"runtime", "assembly", "control"},
    {"commands", "__main__", ""},
)
"""From the bottom up. A room imports its own floor and lower ones, without a cycle. The empty name is the package
itself, which re-exports the runtime's names, so that nothing below the command line may import from it."""

TESTING = "testing"
"""Stands beside the floors: it may import everything."""
MAY_IMPORT_TESTING = {("commands", "check_ledger"), ("commands", "faults")}

PURE = (
    "access.py",
    "text/**/*.py",
    "conversation/policy.py",
    "delegation/ownership.py",
    "delivery/reconcile.py",
    "delivery/reconcile/**/*.py",
    "delivery/view.py",
    "delivery/folding.py",
    "ledger/transitions.py",
    "model/assembly.py",
    "model/sse.py",
    "platforms/outcomes.py",
    "platforms/telegram/classify.py",
    "platforms/telegram/render.py",
    "platforms/telegram/updates.py",
    "values.py",
)
"""Modules that decide and can do nothing else. What they import of this package must be as poor as they are."""

# fmt: off
POWERS = frozenset({
    "trio", "trio_websocket", "httpx", "httpcore", "h11", "sqlite3", "sqlite_utils", "time", "random", "secrets",
    "os", "logging", "structlog", "asyncio", "threading", "socket", "subprocess", "select", "signal", "io",
    "shutil", "tempfile", "multiprocessing", "importlib",
})
# fmt: on
"""What a pure module does not import: the world, the clock, chance, and ways to talk of it."""
POWERFUL_NAMES = frozenset({"open", "print", "input", "exec", "eval", "__import__"})
CLOCK_READS = frozenset({("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")})

SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|PRAGMA|BEGIN|COMMIT|VACUUM)\s")
"""How a statement begins. Capitals, as all SQL of the project is written."""

HOME_OF = {
    "httpx": ("http.py",),
    "httpcore": ("http.py", "runtime.py", "testing/"),
    "sqlite3": ("ledger/", "testing/"),
    "sqlite_utils": ("ledger/", "testing/"),
}
"""Where a library may be imported."""


@frozen
class Import:
    """One imported name, as a path of names from the top: `("trio", "lowlevel")`."""

    target: tuple[str, ...]
    node: ast.stmt


def imports(module: Module) -> Iterator[Import]:
    """Every import of a module, at any depth, also under TYPE_CHECKING, relative ones resolved."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(tuple(alias.name.split(".")), node)
        elif isinstance(node, ast.ImportFrom):
            origin = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                package = ("hermes_trio", *module.path.parts[:-1])
                origin = package[: len(package) - node.level + 1] + origin
            for alias in node.names:
                yield Import((*origin, alias.name), node)


def own(module: Module, base: Path = SRC) -> Iterator[tuple[tuple[str, ...], ast.stmt]]:
    """The modules of this package that a module imports, as names below it; () is the package itself."""
    for found in imports(module):
        if found.target[0] == "hermes_trio":
            names = found.target[1:]
            while names and not exists(names, base):
                names = names[:-1]
            yield names, found.node


def exists(names: tuple[str, ...], base: Path) -> bool:
    """Whether there is such a module or package."""
    place = base.joinpath(*names)
    return place.is_dir() or place.with_suffix(".py").is_file()


def room(names: tuple[str, ...]) -> str:
    """The room of a module: the first name below the package."""
    return names[0] if names else ""


def floor(name: str) -> int | None:
    """The number of the room's floor, from the bottom; None for a room that has none."""
    return next((number for number, rooms in enumerate(FLOORS) if name in rooms), None)


def upward(module: Module) -> Iterator[str]:
    """Imports of a module that point up, or into the test kit."""
    here = room(module.dotted)
    if here == TESTING:
        return
    height = floor(here)
    if height is None:
        yield module.at(1, f"the room {here!r} has no floor: give it one in FLOORS")
        return
    for names, node in own(module):
        there = room(names)
        if there == TESTING:
            if module.dotted not in MAY_IMPORT_TESTING:
                yield module.at(node, "imports testing, which is for tests, demonstration and faults only")
            continue
        other = floor(there)
        if other is None:
            yield module.at(node, f"imports {'.'.join(names)}, a room without a floor")
        elif other > height:
            what = f"the room {there!r}" if there else "the package itself"
            yield module.at(node, f"{here!r} imports {what}, which stands above it")


def cycles(edges: dict[str, set[str]]) -> Iterator[str]:
    """The cycles between rooms, each written once as a path."""
    seen: set[frozenset[str]] = set()

    def walk(path: list[str]) -> Iterator[str]:
        for following in sorted(edges.get(path[-1], ())):
            if following == path[0]:
                if frozenset(path) not in seen:
                    seen.add(frozenset(path))
                    yield " -> ".join([*path, following])
            elif following not in path:
                yield from walk([*path, following])

    for start in sorted(edges):
        yield from walk([start])


def impure(module: Module) -> Iterator[str]:
    """What gives a module power over the world."""
    for found in imports(module):
        if found.target[0] in POWERS:
            yield module.at(found.node, f"a pure module imports {found.target[0]}")
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in POWERFUL_NAMES:
                yield module.at(node, f"a pure module calls {name}")
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name) if (
                owner,
                name,
            ) in CLOCK_READS:
                yield module.at(node, f"a pure module reads the clock: {owner}.{name}")
            case ast.Global():
                yield module.at(node, "a pure module keeps state in a global")


def asynchronous(module: Module) -> Iterator[str]:
    """Everything that waits."""
    waiting = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
    for node in ast.walk(module.tree):
        if isinstance(node, waiting) or (isinstance(node, ast.comprehension) and node.is_async):
            yield module.at(node if hasattr(node, "lineno") else 1, "a pure module waits")


def pure_modules(base: Path = SRC) -> dict[Path, Module]:
    """The modules that PURE names and that exist yet."""
    return {path: parse(path, base) for pattern in PURE for path in sorted(base.glob(pattern))}


def reached(start: Iterable[Path], base: Path = SRC) -> dict[Path, Module]:
    """The modules of this package that these import, and what those import; without `__init__` files."""
    found: dict[Path, Module] = {}
    waiting = list(start)
    while waiting:
        for names, _ in own(parse(waiting.pop(), base), base):
            path = base.joinpath(*names).with_suffix(".py")
            if path.is_file() and path not in found:
                found[path] = parse(path, base)
                waiting.append(path)
    return found


def dodging(module: Module) -> Iterator[str]:
    """Imports where no reader looks for them: inside functions, or by name at run time."""
    for function in functions(module.tree):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield module.at(node, f"an import inside {function.name}(): imports stand at the top")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and "hermes_trio" in ast.unparse(node.args[0]):
                yield module.at(node, "imports a room of ours by name: imports stand at the top")


def private_trio(module: Module) -> Iterator[ast.AST]:
    """The places where a module touches private names of trio."""
    for found in imports(module):
        if found.target[0] == "trio" and any(name.startswith("_") for name in found.target[1:]):
            yield found.node
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and re.fullmatch(r"_[^_].*", node.attr):
            path = ast.unparse(node.value).split(".")
            if path[0] == "trio":
                yield node


def statements(module: Module) -> Iterator[ast.AST]:
    """String literals, also the first piece of formatted ones, that begin like SQL; docstrings are not among them."""
    words = docstrings(module.tree)
    later = {
        id(piece) for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr) for piece in node.values[1:]
    }
    for node in ast.walk(module.tree):
        is_statement = isinstance(node, ast.Constant) and SQL.match(str(node.value))
        if is_statement and node not in words and id(node) not in later:
            yield node


def lives_in(module: Module, homes: Iterable[str]) -> bool:
    """Whether a module is one of these files or stands in one of these folders."""
    return any(module.path.as_posix().startswith(home) for home in homes)


def test_imports_point_one_way() -> None:
    """No room imports a room above it; nothing but the commands that simulate imports the test kit."""
    report([finding for module in modules(SRC) for finding in upward(module)])


def test_rooms_form_no_cycle() -> None:
    """Rooms of one floor may know each other in one direction only."""
    edges: dict[str, set[str]] = {}
    for module in modules(SRC):
        here = room(module.dotted)
        edges.setdefault(here, set()).update(room(names) for names, _ in own(module) if room(names) != here)
    edges.pop("", None)
    report([f"rooms import each other: {cycle}" for cycle in cycles(edges)])


def test_pure_rooms_have_no_power() -> None:
    """A pure module, and all of ours that it stands on, imports no clock, chance, network, storage or log."""
    pure = pure_modules()
    report([finding for module in (pure | reached(pure)).values() for finding in impure(module)])


def test_pure_rooms_do_not_wait() -> None:
    """A pure module holds no await and no async."""
    report([finding for module in pure_modules().values() for finding in asynchronous(module)])


def test_no_import_is_hidden() -> None:
    """Every import of our package stands at the top of its module."""
    report([finding for module in modules(SRC) for finding in dodging(module)])


def test_fakes_know_nothing_of_us() -> None:
    """The other side of the wire is independent ground truth: it never imports what it judges."""
    report(
        [
            module.at(found.node, "a fake imports hermes_trio")
            for module in modules(FAKES)
            for found in imports(module)
            if found.target[0] == "hermes_trio"
        ]
        + [finding for module in modules(FAKES) for finding in dodging(module)]
    )


@pytest.mark.parametrize("library", HOME_OF)
def test_a_library_stays_in_its_room(library: str) -> None:
    """The network and the database are each imported in one place."""
    report(
        [
            module.at(found.node, f"{library} is imported in {' and '.join(HOME_OF[library])} only")
            for module in modules(SRC)
            if not lives_in(module, HOME_OF[library])
            for found in imports(module)
            if found.target[0] == library
        ]
    )


def test_private_names_of_trio_have_one_home() -> None:
    """The scheduler's private names are used in one module of the test kit."""
    users = {module.path: (module, node) for module in modules(SRC) for node in private_trio(module)}
    outside = [m.at(node, "uses a private name of trio") for m, node in users.values() if not lives_in(m, ["testing/"])]
    inside = [
        m.at(node, "a second module with private names") for m, node in users.values() if lives_in(m, ["testing/"])
    ]
    report(outside + inside[1:])


def test_sql_stands_in_the_ledger_only() -> None:
    """No statement is written outside the ledger."""
    report(
        [
            module.at(node, "SQL outside the ledger")
            for module in modules(SRC)
            if not lives_in(module, ["ledger/"])
            for node in statements(module)
        ]
    )


VIOLATIONS = [
    ("ledger/x.py", "from hermes_trio.delivery import lane", upward),
    ("ledger/x.py", "import hermes_trio.runtime", upward),
    ("ledger/x.py", "from ..conversation import actor", upward),
    ("ledger/x.py", "from hermes_trio import open_runtime", upward),
    ("runtime.py", "from hermes_trio.testing import world", upward),
    ("attic/x.py", "", upward),
    ("values.py", "from hermes_trio.ledger.transitions import TURN", upward),
    ("delivery/reconcile.py", "import time", impure),
    ("delivery/reconcile.py", "from os import path", impure),
    ("delivery/reconcile.py", "import datetime\nnow = datetime.datetime.now()", impure),
    ("delivery/reconcile.py", "print(1)", impure),
    ("text/x.py", "async def f():\n    pass", asynchronous),
    ("text/x.py", "f = [x async for x in y]", asynchronous),
    ("agent/x.py", "def f():\n    import json", dodging),
    ("agent/x.py", "class A:\n    async def f(self):\n        from json import loads", dodging),
    ("agent/x.py", "import importlib\nm = importlib.import_module('hermes_trio.runtime')", dodging),
    ("runtime.py", "import trio\nr = trio._core._run", private_trio),
    ("runtime.py", "from trio._core import _run", private_trio),
    ("delivery/x.py", "q = 'SELECT 1 FROM inbox'", statements),
    ("delivery/x.py", "q = f'''\n  UPDATE {table} SET a = 1'''", statements),
    ("delivery/x.py", "c.execute('PRAGMA user_version')", statements),
]


@pytest.mark.parametrize(("path", "text", "rule"), VIOLATIONS)
def test_a_violation_is_found(path: str, text: str, rule: object) -> None:
    """Each rule above notices a planted mistake."""
    assert callable(rule)
    assert list(rule(Module(Path(path), SRC, ast.parse(text), text)))


def test_a_cycle_is_found() -> None:
    """Two rooms of one floor that import each other are named once."""
    assert list(cycles({"agent": {"delivery"}, "delivery": {"agent", "text"}, "text": set()})) == [
        "agent -> delivery -> agent"
    ]


def test_power_is_found_behind_a_pure_module(tmp_path: Path) -> None:
    """A pure module that reads the clock by way of a neighbour is not pure."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "body.py").write_text("from hermes_trio.helper import stamp")
    (tmp_path / "helper.py").write_text("import time\nstamp = time.time")
    pure = pure_modules(tmp_path)
    assert [finding for module in reached(pure, tmp_path).values() for finding in impure(module)]
