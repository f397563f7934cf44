"""The guards of a run: what must not happen in a simulated world, each a failure that names the place.

A real sleep, thread, process or socket would let real time pass, or reach out of the world; an async generator that
nobody closed is finished by the garbage collector at a moment that no seed decides; a task outside every nursery
outlives its owner. The rule that must not be broken: a guard changes nothing in a run that does not trip it.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NoReturn

import trio

FORBIDDEN = {
    "socket.connect": "opens a real connection",
    "socket.bind": "opens a real port",
    "socket.getaddrinfo": "asks a real name server",
    "subprocess.Popen": "starts a real process",
    "os.fork": "forks the process",
}
"""Audit events of Python, and what each means."""


class LeftTheWorld(AssertionError):
    """Something in a simulated world reached for the real one, or was left behind in it."""


_watching: list[str] = []
"""What reached out, while a world runs; the hook itself cannot be removed."""
_depth = 0


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _depth and event in FORBIDDEN:
        _refuse(FORBIDDEN[event])


def _refuse(what: str) -> NoReturn:
    found = f"{what}: {_caller()}"
    _watching.append(found)
    raise LeftTheWorld(found)


def _caller() -> str:
    """The innermost line that is neither ours nor of a library."""
    frames = [frame for frame in traceback.extract_stack() if frame.filename != __file__]
    outside = [f for f in frames if "site-packages" not in f.filename and f"{sys.prefix}/lib" not in f.filename]
    outside = [f for f in outside if not f.filename.startswith((sys.base_prefix, "<"))]
    frame = (outside or frames)[-1]
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _real_sleep(seconds: float) -> NoReturn:
    _refuse(f"sleeps {seconds:g} s of real time")


def _new_thread(thread: threading.Thread) -> NoReturn:
    _refuse("starts a real thread")


async def _real_thread(*arguments: object, **options: object) -> NoReturn:
    _refuse("works in a real thread")


_hooked = False


@contextmanager
def inside_the_world() -> Iterator[None]:
    """Refuses whatever reaches out of the world within the block. Raises LeftTheWorld at its end, too."""
    global _depth, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    kept = (time.sleep, trio.to_thread.run_sync, threading.Thread.start)
    time.sleep, trio.to_thread.run_sync = _real_sleep, _real_thread  # type: ignore[assignment]  # both always raise
    threading.Thread.start = _new_thread  # type: ignore[assignment,method-assign]  # put back below
    _watching.clear()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        time.sleep, trio.to_thread.run_sync, threading.Thread.start = kept  # type: ignore[method-assign]  # as they were
    if _watching:
        raise LeftTheWorld(_watching[0])


class GeneratorGuard:
    """Notices async generators that were left to the garbage collector. `watch` is to be entered inside of trio."""

    def __init__(self) -> None:
        self.leaked: list[str] = []
        self._alive: dict[int, tuple[weakref.ref[Any], str]] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watches the generators that begin within the block."""
        before = sys.get_asyncgen_hooks()

        def begin(generator: AsyncGenerator[Any, Any]) -> None:
            code: CodeType = generator.ag_code  # type: ignore[attr-defined]  # every generator of Python's own has it
            place = f"{code.co_qualname} of {code.co_filename}:{code.co_firstlineno}"
            self._alive[id(generator)] = (weakref.ref(generator), place)
            if before.firstiter is not None:
                before.firstiter(generator)

        def end(generator: AsyncGenerator[Any, Any]) -> None:
            self.leaked.append(self._alive[id(generator)][1])
            if before.finalizer is not None:
                before.finalizer(generator)

        sys.set_asyncgen_hooks(begin, end)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*before)

    def check(self) -> None:
        """Raises LeftTheWorld when a generator was not closed."""
        left = [
            place
            for reference, place in self._alive.values()
            if (generator := reference()) is not None and generator.ag_frame is not None
        ]
        if found := [*self.leaked, *left]:
            raise LeftTheWorld(f"an async generator was left open (use contextlib.aclosing): {found[0]}")


def strays(known: Callable[[trio.lowlevel.Task], bool]) -> list[trio.lowlevel.Task]:
    """The tasks that run outside of the main one: system tasks that somebody spawned."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    return [
        task
        for nursery in root.child_nurseries
        for task in nursery.child_tasks
        if task is not trio.lowlevel.current_task() and not known(task)
    ]
