"""The style of the project, as far as a program can see it: handlers, docstrings, comments, honest tests."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from source_tree import FAKES, SRC, TESTS, Module, functions, modules, report

LINES_PER_BROAD_HANDLER = 1000
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
IGNORE = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w\-, ]+\])?(?P<rest>.*)")
DISHONEST = {"skip", "skipif", "xfail", "importorskip", "mock", "Mock", "MagicMock", "AsyncMock"}
"""Names that make a failing or missing thing look tested."""


def comments(module: Module) -> dict[int, str]:
    """Comments by line."""
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def broad_handlers(module: Module) -> Iterator[ast.AST]:
    """Handlers that swallow any error. One that ends with a bare `raise` swallows nothing."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = {name.id for name in ast.walk(node.type or ast.Pass()) if isinstance(name, ast.Name)}
            if node.type is None or caught & {"Exception", "BaseException", "ExceptionGroup", "BaseExceptionGroup"}:
                last = node.body[-1]
                if not (isinstance(last, ast.Raise) and last.exc is None):
                    yield node
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            yield from (node for argument in node.args if ast.unparse(argument) in {"Exception", "BaseException"})


def unexplained_handlers(module: Module) -> Iterator[str]:
    """Broad handlers without a comment that gives the reason, on their line or the next or the one before."""
    words = comments(module)
    for node in broad_handlers(module):
        line = getattr(node, "lineno", 1)
        near = " ".join(words.get(number, "") for number in (line - 1, line, line + 1))
        if len(re.sub(r"#\s*noqa:\s*[A-Z]+\d+", "", near).split()) < 4:
            yield module.at(node, "a broad handler without its reason in a comment")


def unexplained_ignores(module: Module) -> Iterator[str]:
    """`type: ignore` without a code in brackets and the reason behind it."""
    for line, text in comments(module).items():
        if (found := IGNORE.search(text)) and not (found["code"] and len(found["rest"].split()) >= 3):
            yield module.at(line, "type: ignore needs its code and, in a comment behind it, its reason")


def unfinished(module: Module) -> Iterator[str]:
    """Notes of things to do, and functions that are not there."""
    for line, text in comments(module).items():
        if UNFINISHED.search(text):
            yield module.at(line, "an unfinished thing")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and node.id == "NotImplementedError":
            yield module.at(node, "NotImplementedError")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and UNFINISHED.search(node.value):
            yield module.at(node, "an unfinished thing")


def public(name: str) -> bool:
    """Whether a reader outside the module is meant to see it."""
    return not name.startswith("_")


def definitions(module: Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, str | None]]:
    """Public functions and classes at the top, and the public methods of public classes with their class's name."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and public(node.name):
            yield node, None
        if isinstance(node, ast.ClassDef) and public(node.name):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and public(inner.name):
                    yield inner, node.name


def promised_elsewhere(source: tuple[Module, ...]) -> set[str]:
    """Method names that some class documents: an implementation of a port need not repeat the port's promise."""
    return {
        node.name
        for module in source
        for node, owner in definitions(module)
        if owner is not None and ast.get_docstring(node)
    }


def undocumented(source: tuple[Module, ...]) -> Iterator[str]:
    """Public modules, classes, functions and methods without a docstring."""
    promised = promised_elsewhere(source)
    for module in source:
        if not ast.get_docstring(module.tree) and module.text.strip():
            yield module.at(1, "a module without a docstring")
        for node, owner in definitions(module):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            if ast.get_docstring(node) or decorators & {"overload", "typing.overload"} or ports(node):
                continue
            if owner is None or node.name not in promised:
                yield module.at(node, f"{f'{owner}.' if owner else ''}{node.name} has no docstring")


def ports(node: ast.AST) -> bool:
    """A method of a Protocol that is only its signature: the class says what it promises."""
    body = getattr(node, "body", [])
    return len(body) == 1 and isinstance(body[0], ast.Expr) and ast.unparse(body[0]) == "..."


def silent_tests(module: Module) -> Iterator[str]:
    """Test functions that do not say which property they check."""
    for function in functions(module.tree):
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield module.at(function, f"{function.name} does not say in a docstring which property it checks")


def dishonest_tests(module: Module) -> Iterator[str]:
    """Tests that are left out, expected to fail, or that talk to a mock."""
    for node in ast.walk(module.tree):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in DISHONEST and (isinstance(node, ast.Name) or ast.unparse(node).startswith(("pytest.", "unittest."))):
            yield module.at(node, f"{name}: every test runs, against small real implementations")
        if isinstance(node, ast.Import | ast.ImportFrom) and "mock" in ast.unparse(node).split():
            yield module.at(node, "mock: ports have small real implementations instead")


OURS = (*modules(SRC), *modules(FAKES))


def test_broad_handlers_are_few() -> None:
    """At most one handler per thousand lines swallows any error."""
    lines = sum(module.text.count("\n") for module in OURS)
    found = [module.at(node, "a broad handler") for module in OURS for node in broad_handlers(module)]
    assert len(found) <= max(1, math.ceil(lines / LINES_PER_BROAD_HANDLER)), "\n" + "\n".join(found)


def test_broad_handlers_are_explained() -> None:
    """Each handler that swallows any error says why it may."""
    report([finding for module in OURS for finding in unexplained_handlers(module)])


def test_type_ignores_are_explained() -> None:
    """Each silenced type error names its code and its reason."""
    report([finding for module in OURS for finding in unexplained_ignores(module)])


def test_nothing_is_unfinished() -> None:
    """No note of something to do, and no function that is only promised."""
    report([finding for module in OURS for finding in unfinished(module)])


def test_public_things_have_docstrings() -> None:
    """Every public module, class, function and method says what it promises, itself or in the port it implements."""
    report(list(undocumented(modules(SRC))))


def test_tests_name_their_property() -> None:
    """Every test says in its docstring which property it checks."""
    report([finding for module in modules(TESTS) for finding in silent_tests(module)])


def test_tests_are_honest() -> None:
    """No test is skipped or expected to fail, and none talks to a mock."""
    this = Path(__file__).relative_to(TESTS)
    report([finding for module in modules(TESTS) if module.path != this for finding in dishonest_tests(module)])


def test_first_lines_are_sentences() -> None:
    """The first line of a docstring stands alone: it ends with a stop, a colon or a question mark."""
    report(
        [
            module.at(node, f"{node.name}: the first line of its docstring is no sentence")
            for module in modules(SRC)
            for node, _ in definitions(module)
            if (words := ast.get_docstring(node)) and not words.split("\n\n")[0].rstrip().endswith((".", ":", "?", "`"))
        ]
    )


Rule = Callable[[Module], Iterator[object]]
VIOLATIONS: list[tuple[Rule, str]] = [
    (broad_handlers, "try:\n    f()\nexcept Exception:\n    pass"),
    (broad_handlers, "try:\n    f()\nexcept:\n    raise Other"),
    (broad_handlers, "try:\n    f()\nexcept (OSError, BaseException) as e:\n    log(e)"),
    (broad_handlers, "try:\n    f()\nexcept* Exception:\n    pass"),
    (broad_handlers, "with contextlib.suppress(Exception):\n    f()"),
    (unexplained_handlers, "try:\n    f()\nexcept Exception:  # noqa: BLE001\n    pass"),
    (unexplained_ignores, "a = f()  # type: ignore"),
    (unexplained_ignores, "a = f()  # type: ignore[arg-type]"),
    (unfinished, "# TODO: later"),
    (unfinished, "def f():\n    raise NotImplementedError"),
    (unfinished, "'''FIXME soon'''"),
    (lambda module: undocumented((module,)), "'''A module.'''\n\ndef f(): pass"),
    (lambda module: undocumented((module,)), "'''A module.'''\n\nclass A:\n    '''A.'''\n    def f(self): pass"),
    (lambda module: undocumented((module,)), "a = 1"),
    (silent_tests, "async def test_x(): pass"),
    (dishonest_tests, "@pytest.mark.xfail\ndef test_x(): pass"),
    (dishonest_tests, "from unittest import mock"),
    (dishonest_tests, "pytest.skip('no')"),
]


@pytest.mark.parametrize(("rule", "text"), VIOLATIONS)
def test_a_violation_is_found(rule: Rule, text: str) -> None:
    """Each rule above notices a planted mistake."""
    assert list(rule(Module(Path("x.py"), SRC, ast.parse(text), text)))
