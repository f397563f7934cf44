"""Amnesia: what an incarnation kept in module globals is gone when it dies, as in a process that was killed.

A crash inside one process leaves modules as they are, so a bot that remembers in a global what it has sent would pass
every test and fail its first SIGKILL. Before the first life the plain values in the globals and classes of the bot's
modules are noted; at each death they are put back. The rule that must not be broken: the test's own modules are left
alone, unless the bot itself is made there.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from types import ModuleType
from typing import Any

CONTAINERS = (dict, list, set, deque, bytearray)
SCALARS = (int, float, str, bytes, bool, type(None), tuple, frozenset)
OURS = "hermes_trio"
NOT_OURS = ("hermes_trio.testing", "hermes_trio.commands")

Restore = Callable[[], None]


class Amnesia:
    """The plain state of the bot's modules at one moment."""

    def __init__(self, makers: Iterable[object]) -> None:
        """makers: functions and objects of the bot that is tested; their modules count as the bot's."""
        names = {getattr(maker, "__module__", None) for maker in makers}
        found = [module for name, module in list(sys.modules.items()) if _is_bot(name, names)]
        self._restores = [restore for module in found for owner in _owners(module) for restore in _note(owner)]

    def strike(self) -> None:
        """Puts everything back."""
        for restore in self._restores:
            restore()


def amnesia_of(makers: Iterable[object]) -> Amnesia:
    """The Amnesia of these makers as the process was when they were first asked for with the same modules."""
    names = tuple(sorted({str(getattr(maker, "__module__", "")) for maker in makers}))
    key = (names, len(sys.modules))
    if key not in _known:
        _known[key] = Amnesia(makers)
    return _known[key]


_known: dict[tuple[tuple[str, ...], int], Amnesia] = {}


def _is_bot(name: str, names: set[str | None]) -> bool:
    if name.startswith(NOT_OURS):
        return False
    return name == OURS or name.startswith(f"{OURS}.") or name in names


def _owners(module: ModuleType) -> Iterator[Any]:
    yield module
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield value


def _note(owner: Any) -> Iterator[Restore]:
    for name, value in list(vars(owner).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, CONTAINERS):
            yield _refill(value)
        elif isinstance(value, SCALARS):
            yield _rebind(owner, name, value)


def _refill(container: Any) -> Restore:
    kept = copy(container)

    def restore() -> None:
        if container != kept:
            container.clear()
            (container.update if isinstance(container, dict | set) else container.extend)(kept)

    return restore


def _rebind(owner: Any, name: str, value: object) -> Restore:
    def restore() -> None:
        if getattr(owner, name, None) is not value:
            setattr(owner, name, value)

    return restore
