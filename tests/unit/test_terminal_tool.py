"""The terminal tool, with real processes: what it returns, and what it leaves behind, which is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from hermes_trio.tools.base import ToolContext, ToolError
from hermes_trio.tools.terminal import HEAD, SHOWN_LINES, TAIL, TERMINATION, TerminalTool
from hermes_trio.values import Address

PATIENCE = 10.0
"""Seconds after which a wait has failed; none takes more than two."""


class Screen:
    """What a preview shows, one after the other."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changed = trio.Event()

    def show(self, text: str) -> None:
        self.lines.append(text)
        self.changed.set()
        self.changed = trio.Event()

    async def wait(self, text: str) -> None:
        """Returns when this was shown."""
        with trio.fail_after(PATIENCE):
            while not any(text in line for line in self.lines):
                await self.changed.wait()


async def run(command: object, directory: Path, *, limit: float = 60, screen: Screen | None = None) -> str:
    show = (screen or Screen()).show
    context = ToolContext(Address("tg", "1"), "alice", 0.0, show)
    arguments = {} if command is None else {"command": command}
    return await TerminalTool(directory, limit).run(arguments, context)


def alive(group: int) -> bool:
    """A process of this group is left, other than a dead one that nobody has waited for."""
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


async def wait_gone(group: int, within: float) -> None:
    """Returns when no process of the group is left."""
    with trio.fail_after(within):
        while True:
            if not alive(group):
                return
            await trio.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo hello", "hello\n[exit code 0]"),
        ("echo out; echo err >&2; exit 3", "out\nerr\n[exit code 3]"),
        ("true", "[exit code 0]"),
        ("pwd", "{directory}\n[exit code 0]"),
        ("cat", "[exit code 0]"),
        ("printf 'a\\377b'", "a�b\n[exit code 0]"),
        ("kill -9 $$", "[exit code -9]"),
        ("no_such_command_here 2>/dev/null", "[exit code 127]"),
    ],
)
async def test_what_it_returns(tmp_path: Path, command: str, said: str) -> None:
    """Output and errors together in order, the exit code behind them; it runs in its directory and reads nothing."""
    assert await run(command, tmp_path) == said.format(directory=tmp_path)


@pytest.mark.parametrize("command", [None, "", "  ", 7, ["ls"]])
async def test_what_is_no_command(tmp_path: Path, command: object) -> None:
    """The model is told how to call it."""
    with pytest.raises(ToolError, match="command"):
        await run(command, tmp_path)


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """The model is told; nothing runs."""
    with pytest.raises(ToolError, match="cannot run"):
        await run("true", tmp_path / "absent")


async def test_a_character_cut_in_two(tmp_path: Path) -> None:
    """A character whose bytes come one at a time is whole."""
    assert await run("printf '\\303'; sleep 0.2; printf '\\244'", tmp_path) == "ä\n[exit code 0]"


async def test_long_output_is_bounded(tmp_path: Path) -> None:
    """Of a long output the beginning and the end are kept, with how much is missing between them."""
    total = 40 * (HEAD + TAIL)
    said = await run(f"echo BEGIN; head -c {total} /dev/zero | tr '\\0' x; echo; echo END", tmp_path)
    assert said.startswith("BEGIN\nxxx")
    assert said.endswith("xxx\nEND\n[exit code 0]")
    assert "characters left out]" in said
    assert len(said) < HEAD + TAIL + 100
    kept = said.removesuffix("[exit code 0]").count("x")
    left_out = int(said.partition("\n[")[2].partition(" characters")[0])
    assert kept + left_out == total, "an x is lost"


async def test_progress(tmp_path: Path) -> None:
    """The last lines are shown while the command runs, and no more of them."""
    screen = Screen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: run("for i in 1 2 3 4 5 6; do echo line $i; done; sleep 60", tmp_path, screen=screen)
        )
        await screen.wait("line 6")
        nursery.cancel_scope.cancel()
    assert screen.lines[-1].splitlines() == ["line 4", "line 5", "line 6"]
    assert all(len(shown.splitlines()) <= SHOWN_LINES for shown in screen.lines)


async def test_the_time_is_up(tmp_path: Path) -> None:
    """After its time a command is ended with all its processes, and the model reads what there was."""
    screen = Screen()
    started = trio.current_time()
    said = await run("echo $$; sleep 600 & sleep 600", tmp_path, limit=0.4, screen=screen)
    assert trio.current_time() - started < 3
    group, note = said.split("\n")
    assert note == "[ended after 0.4 s]"
    await wait_gone(int(group), 1)


STUBBORN = "trap '' TERM; (trap '' TERM; sleep 600; sleep 600) & echo $$; sleep 600; sleep 600"


@pytest.mark.parametrize("command", ["echo $$; sleep 600", "echo $$; sleep 600 & sleep 600 | cat", STUBBORN])
async def test_cancelled(tmp_path: Path, command: str) -> None:
    """B6: within a second of its cancellation no process of the call is left, also of one that ignores SIGTERM."""
    screen = Screen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run(command, tmp_path, screen=screen))
        with trio.fail_after(PATIENCE):
            while not screen.lines:
                await screen.changed.wait()
        group = int(screen.lines[0])
        assert alive(group)
        nursery.cancel_scope.cancel()
        cancelled = trio.current_time()
    assert trio.current_time() - cancelled < 2 * TERMINATION
    await wait_gone(group, 2 * TERMINATION)


async def test_a_child_that_stays_behind(tmp_path: Path) -> None:
    """A command that ends by itself and leaves a process in its group leaves none when the call returns."""
    said = await run("sleep 600 >/dev/null 2>&1 </dev/null & echo $$", tmp_path)
    await wait_gone(int(said.split()[0]), 1)


async def test_a_child_that_keeps_the_output(tmp_path: Path) -> None:
    """A background process that holds the output open is waited for as long as the call may take, and ended then."""
    said = await run("sleep 600 & echo $$", tmp_path, limit=0.5)
    assert said.endswith("[ended after 0.5 s]")
    await wait_gone(int(said.split()[0]), 1)


async def test_cancelled_before_it_began(tmp_path: Path) -> None:
    """Cancelled at once: nothing is left running."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await run("touch ran; sleep 600", tmp_path)
    assert scope.cancelled_caught
