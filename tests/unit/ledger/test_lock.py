"""One process per database, seen from real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_trio.ledger.database import LedgerUnusable
from hermes_trio.ledger.lock import LedgerLocked, hold_lock

HOLD = """
import sys
from pathlib import Path
from hermes_trio.ledger.database import LedgerUnusable
from hermes_trio.ledger.lock import LedgerLocked, hold_lock
try:
    with hold_lock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.readline()
except LedgerLocked as error:
    print(f"refused: {error}", flush=True)
"""

HOLD_WITH_CHILDREN = """
import os, subprocess, sys, time
from pathlib import Path
from hermes_trio.ledger.database import LedgerUnusable
from hermes_trio.ledger.lock import hold_lock
with hold_lock(Path(sys.argv[1])):
    forked = os.fork()
    if forked == 0:
        time.sleep(60)
        os._exit(0)
    executed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    print(forked, executed.pid, flush=True)
    sys.stdin.readline()
"""

LEAVE_IN_CHILD = """
import os, sys
from pathlib import Path
from hermes_trio.ledger.database import LedgerUnusable
from hermes_trio.ledger.lock import hold_lock
other = Path(sys.argv[1]).with_name("other")
child = None
with hold_lock(Path(sys.argv[1])):
    child = os.fork()
    if child == 0:
        other.write_text("untouched")
        reused = os.open(other, os.O_RDWR)  # the number that the lock had before the fork
if child == 0:
    os.pwrite(reused, b"U", 0)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), other.read_text(), flush=True)
"""


@contextmanager
def python(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the program and is gone after the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The lock file, as it stands beside the database."""
    return tmp_path / "state.db.lock"


def test_a_second_process_is_refused_by_name(path: Path) -> None:
    """While one process holds the lock another gets LedgerLocked, which names the database, the owner and a way out."""
    with python(HOLD, path) as owner:
        assert line(owner) == "held"
        with pytest.raises(LedgerLocked) as refused:
            with hold_lock(path):
                raise AssertionError("held twice")
        text = str(refused.value)
        assert f"pid {owner.pid} " in text and str(path.with_name("state.db")) in text and "data_dir" in text
        assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text)
        assert not isinstance(refused.value, OSError)


def test_of_several_processes_one_holds_it(path: Path) -> None:
    """Of four that start at the same time exactly one gets the lock."""
    with python(HOLD, path) as a, python(HOLD, path) as b, python(HOLD, path) as c, python(HOLD, path) as d:
        words = sorted(line(process).partition(":")[0] for process in (a, b, c, d))
    assert words == ["held", "refused", "refused", "refused"]


def test_the_end_of_the_block_releases(path: Path) -> None:
    """After the block the next one gets the lock; the file stays, holds no stale owner, and is private."""
    for _ in range(2):
        with hold_lock(path):
            assert path.read_text().startswith(f"pid {os.getpid()} ")
        assert path.read_text() == ""
    assert path.stat().st_mode & 0o777 == 0o600
    with python(HOLD, path) as other:
        assert line(other) == "held"


def test_an_error_in_the_block_releases(path: Path) -> None:
    """The lock does not outlive a block that failed."""
    with pytest.raises(ZeroDivisionError):
        with hold_lock(path):
            raise ZeroDivisionError
    with hold_lock(path):
        pass


def test_a_refusal_leaves_the_lock_with_its_owner(path: Path) -> None:
    """Who was refused has changed nothing: the owner's name still stands there and a third is refused, too."""
    with hold_lock(path):
        for _ in range(2):
            with pytest.raises(LedgerLocked, match=f"pid {os.getpid()} "):
                with hold_lock(path):
                    raise AssertionError("held twice")


def test_a_killed_owner_releases(path: Path) -> None:
    """SIGKILL of the owner frees the lock at once; the stale name in the file hinders nobody."""
    with python(HOLD, path) as owner:
        assert line(owner) == "held"
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait(10)
        assert f"pid {owner.pid} " in path.read_text()
        with hold_lock(path):
            assert path.read_text().startswith(f"pid {os.getpid()} ")


def test_children_do_not_inherit_it(path: Path) -> None:
    """Forked and executed children that outlive a killed owner do not keep its lock."""
    with python(HOLD_WITH_CHILDREN, path) as owner:
        children = [int(pid) for pid in line(owner).split()]
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait(10)
        try:
            with hold_lock(path):
                for pid in children:
                    os.kill(pid, 0)  # raises unless the child is alive
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)


def test_a_child_that_leaves_the_block_touches_nothing(path: Path) -> None:
    """A forked child that runs on out of the block closes and empties no file that has the lock's old number."""
    with python(LEAVE_IN_CHILD, path) as owner:
        assert line(owner) == "0 Untouched"


def test_a_fork_leaves_the_lock_with_the_parent(path: Path) -> None:
    """After a fork and the child's end the parent still holds the lock."""
    program = HOLD.replace('print("held"', 'import os; os.waitpid(os.fork() or os._exit(0), 0); print("held"')
    with python(program, path) as owner:
        assert line(owner) == "held"
        with pytest.raises(LedgerLocked):
            with hold_lock(path):
                raise AssertionError("held twice")


def test_a_missing_directory_is_made(tmp_path: Path) -> None:
    """The first start takes the lock before anything else is there."""
    path = tmp_path / "new" / "data" / "state.db.lock"
    with hold_lock(path):
        assert path.exists()
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_stale_name_is_replaced(path: Path) -> None:
    """Whatever an earlier owner left in the file, the name that a refused process reads is the present owner's."""
    path.write_text("pid 4194304 since a long time ago, " * 10)
    with hold_lock(path):
        assert re.fullmatch(rf"pid {os.getpid()} since [-0-9: +]+\n", path.read_text())


def test_an_impossible_place_is_no_lock(tmp_path: Path) -> None:
    """Where no lock file can be made the error says so, and not that somebody else holds it."""
    (tmp_path / "file").write_text("")
    started = time.monotonic()
    with pytest.raises(LedgerUnusable, match="file"):
        with hold_lock(tmp_path / "file" / "state.db.lock"):
            raise AssertionError("held")
    assert time.monotonic() - started < 5
