"""The real program as a person starts it: in a home of its own, over pipes or on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from attrs import define, field
from little_terminal import LittleTerminal

PATIENCE = 30.0
"""Seconds after which a wait has failed: many times what any of them takes."""
COMMAND = (sys.executable, "-m", "hermes_trio")


def environment(home: Path, **more: str) -> dict[str, str]:
    """A clean environment in which only `home` is the user's; `more` comes on top."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "TERM": "xterm", **more}


async def run(
    home: Path, *arguments: str, stdin: bytes | int = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The program over pipes, until it ends."""
    with trio.fail_after(PATIENCE):
        return await trio.run_process(
            [*COMMAND, *arguments],
            stdin=stdin,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=environment(home, **(env or {})),
            cwd=home,
        )


@define(eq=False)
class OnTerminal:
    """The program on a pseudo-terminal, and what a person sees there."""

    process: subprocess.Popen[bytes]
    master: int
    screen: LittleTerminal
    raw: bytearray = field(factory=bytearray)
    """Everything that was written to the terminal."""
    _fed: int = 0

    def types(self, text: str) -> None:
        """The person types."""
        os.write(self.master, text.encode())

    async def sees(self, seen: Callable[[str], bool]) -> str:
        """Waits until what stands on the terminal fulfils the predicate; returns it."""
        with trio.fail_after(PATIENCE):
            while not seen(self.screen.text):
                if not await self._read():
                    raise AssertionError(f"the program ended before it was seen:\n{self.screen.text}")
        return self.screen.text

    async def ends(self) -> int:
        """Waits until the program has ended; returns its status, negative for a signal."""
        with trio.fail_after(PATIENCE):
            while await self._read():
                pass
            return await trio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)

    async def _read(self) -> bool:
        await trio.lowlevel.wait_readable(self.master)
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            data = b""
        self.raw += data
        whole = bytes(self.raw).decode("utf-8", "ignore").replace("\r\n", "\n")
        self.screen.feed(whole[self._fed :])
        self._fed = len(whole)
        return bool(data)


@asynccontextmanager
async def on_terminal(
    home: Path, *arguments: str, columns: int = 80, rows: int = 24, **env: str
) -> AsyncIterator[OnTerminal]:
    """Starts the program on a terminal of its own; killed at the end of the block if it still runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(  # noqa: ASYNC220 -- trio's own cannot give the child a session of its own terminal
        [*COMMAND, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(home, **env),
        cwd=home,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield OnTerminal(process, master, LittleTerminal(columns, rows))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)
