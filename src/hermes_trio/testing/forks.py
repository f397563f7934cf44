"""Runs in processes of their own: what earlier runs left in this process cannot help a later one.

Each run is made in a fork of the process that asks. The rule that must not be broken: a child answers and ends; it
never returns into the code of its parent.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from typing import NoReturn, TypeVar

T = TypeVar("T")


class ChildFailed(AssertionError):
    """A run in a fork raised; the text is its traceback."""


def in_fork(work: Callable[[], T]) -> T:
    """The result of `work` (it must be picklable), computed in a fork of this process.

    Not for use inside of trio. Raises ChildFailed with the child's traceback.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise ChildFailed("the run ended without an answer")
    good, value = pickle.loads(answer)
    if not good:
        raise ChildFailed(value)
    result: T = value
    return result


def _answer(work: Callable[[], object], writing: int) -> NoReturn:
    try:
        answer: tuple[bool, object] = (True, work())
    except BaseException:  # noqa: BLE001 -- a fork must end here, whatever happened in it; its parent raises it
        answer = (False, traceback.format_exc())
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
    finally:
        os._exit(0)
