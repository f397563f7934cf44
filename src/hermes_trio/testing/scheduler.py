"""The seeded scheduler: the same seed gives the same order of tasks, and a run that can never go on ends.

trio chooses the order of runnable tasks by a private random source; here it is seeded. The garbage collector is off
during a run, because a finalizer would run at a moment that no seed decides. The rule that must not be broken: this is
the only module that touches private names of trio, and tests/lab/test_scheduler.py notices when they change.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from math import inf

import trio
import trio._core._run as _run

IDLE_PASSES = 3
"""Passes of the loop in which nothing ran and nothing can; a deadline that was taken back makes one."""

MAX_STEPS = 100_000
"""Steps of tasks without any time passing: more are a loop that waits for nothing."""

LOOK_EVERY = 256
"""Steps between two looks at the clock, which is no deadline: a run in which nothing can go on must be seen as one."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Makes trio's schedule a function of the seed within the block, with the garbage collector off."""
    before = (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate(), random.getstate(), gc.isenabled())
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]  # declared Final; trio's own tests set it, too
    _run._r.seed(seed)
    random.seed(seed)
    gc.disable()
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = before[0]  # type: ignore[misc]  # as above
        _run._r.setstate(before[1])
        random.setstate(before[2])
        if before[3]:
            gc.enable()


class JumpingClock(trio.abc.Clock):
    """A clock that begins at 0 and jumps to the next deadline as soon as every task is blocked.

    As trio's MockClock with a threshold of 0, but the jump needs no pass of the loop of its own. Nothing real is
    waited for in a world, so there is nothing that a jump could overtake.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None:
        """Nothing has to be started."""

    def current_time(self) -> float:
        """Virtual seconds."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jumps, unless somebody waits for this very moment (`wait_all_tasks_blocked`)."""
        if _run.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle:
            return max(0.0, deadline - self._now)
        if self._now < deadline < inf:
            self._now = deadline
        return 0.0


def run_seeded(main: Callable[[], Awaitable[None]], seed: int, guard: StallGuard) -> None:
    """Runs `main` on an autojumping clock that begins at 0, under the guard."""

    async def guarded() -> None:
        with trio.CancelScope() as guard.scope:
            await main()

    with seeded(seed):
        trio.run(guarded, clock=JumpingClock(), instruments=[guard])


class StallGuard(trio.abc.Instrument):
    """Ends a run in which no task can ever run again, and says where each of them waits.

    On an autojumping clock trio would spin for ever then. Shields are taken away, so that one without a deadline
    cannot keep the run alive.
    """

    def __init__(self, limit: float = inf) -> None:
        self.scope = trio.CancelScope()
        self.limit = limit
        """Virtual seconds that the run may take."""
        self.late = False
        """It took longer."""
        self.stalled: list[str] = []
        """Where the tasks waited when nothing could go on; empty: it never came to that."""
        self.shielded: list[str] = []
        """The tasks that even cancelling did not end."""
        self.steps = 0
        self.spinning: str = ""
        """The task that ran last when so many steps had passed without any time; empty: it never came to that."""
        self._idle = 0
        self._moment = -1.0
        self._steps_then = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Something ran."""
        self._idle = 0
        self.steps += 1
        if self.steps % LOOK_EVERY == 0 and trio.current_time() > self.limit:
            self.late = True
            self.scope.cancel()
        if self.steps - self._steps_then >= MAX_STEPS:
            moment = trio.current_time()
            if moment == self._moment:
                self.spinning = self.spinning or place_of(task)
                self.scope.cancel()
            self._moment, self._steps_then = moment, self.steps

    def before_io_wait(self, timeout: float) -> None:
        """The loop has nothing to run now."""
        self._idle += 1
        if self._idle <= IDLE_PASSES:
            return
        statistics = trio.lowlevel.current_statistics()
        if statistics.tasks_runnable or statistics.seconds_to_next_deadline < inf:
            return
        self._idle = 0
        if not self.stalled:
            self.stalled = [place_of(task) for task in all_tasks()]
            self.scope.cancel()
        else:
            self.shielded = self.shielded or [place_of(task) for task in all_tasks()]
            for task in all_tasks():
                _unshield(task)


def all_tasks() -> list[trio.lowlevel.Task]:
    """Every task below the main one, parents first."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: list[trio.lowlevel.Task] = []
    waiting = list(root.child_nurseries)
    while waiting:
        for task in waiting.pop().child_tasks:
            if task.name != "<init>" and not (task.coro.cr_code.co_filename or "").startswith(_TRIO):
                found.append(task)
            waiting.extend(task.child_nurseries)
    return found


_TRIO = str(trio.__file__).removesuffix("__init__.py")


def place_of(task: trio.lowlevel.Task) -> str:
    """Where a task waits: its name and the innermost line that is not trio's."""
    place = "not started"
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        if not code.co_filename.startswith(_TRIO):
            place = f"{code.co_filename}:{line} in {code.co_qualname}"
    return f"{task.name}: {place}"


def _unshield(task: trio.lowlevel.Task) -> None:
    status: _run.CancelStatus | None = task._cancel_status
    while status is not None:
        status._scope.shield = False
        status = status._parent
