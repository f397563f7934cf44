"""The terminal: a shell command in a working directory, in a process group of its own.

The rule that must not be broken: when the call is cancelled, or its time is over, no process of the group is left.
A process that leaves the group on purpose (setsid) is beyond reach.
"""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import trio

from hermes_trio.model.base import ToolSpec
from hermes_trio.tools.base import ToolContext, ToolError

HEAD, TAIL = 8_000, 16_000
"""Characters of the output that are kept from its beginning and its end; what lies between is left out."""
SHOWN_LINES = 3
"""Lines of the output that the preview shows."""
TERMINATION = 0.5
"""Seconds between SIGTERM and SIGKILL."""

SPEC = ToolSpec(
    "terminal",
    "Runs a shell command and returns its output and exit code.",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "A command line for sh."}},
        "required": ["command"],
        "additionalProperties": False,
    },
)


class TerminalTool:
    """Runs commands with all the rights of the bot's own user: off unless configured.

    directory: where they run. timeout: seconds that one command may take.
    """

    spec = SPEC

    def __init__(self, directory: Path, timeout: float) -> None:
        self._directory = directory
        self._timeout = timeout

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The output, stdout and stderr together, and the exit code.

        Cancelled: the process group is ended within TERMINATION seconds. Raises ToolError when it cannot be run.
        """
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            raise ToolError("give the command line as `command`")
        output = _Output()
        start = partial(
            trio.lowlevel.open_process,
            ["/bin/sh", "-c", command],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process = await start()
        except OSError as error:
            raise ToolError(f"cannot run in {self._directory}: {error.strerror}") from None
        with trio.move_on_after(self._timeout) as scope:
            await _follow(process, output, context)
        if scope.cancelled_caught:
            return f"{output.text()}\n[ended after {self._timeout:g} s]"
        return f"{output.text()}\n[exit code {process.returncode}]".lstrip()


async def _follow(process: trio.Process, output: _Output, context: ToolContext) -> None:
    """Reads the output to its end; cancelled, it ends the process group."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        async with process.stdout:
            async for piece in process.stdout:
                output.add(decoder.decode(piece))
                context.progress(output.latest())
        output.add(decoder.decode(b"", final=True))
        await process.wait()
    finally:
        await _end_group(process)


async def _end_group(process: trio.Process) -> None:
    """Nothing of the group is left when this returns."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 4 * TERMINATION):  # bounded by SIGKILL
        _signal(process, signal.SIGTERM)
        with trio.move_on_after(TERMINATION):
            await process.wait()
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: trio.Process, number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


class _Output:
    """The beginning and the end of an output of any length."""

    def __init__(self) -> None:
        self._head = ""
        self._tail: deque[str] = deque()
        self._kept = 0
        self._dropped = 0

    def add(self, text: str) -> None:
        room = HEAD - len(self._head)
        self._head += text[:room]
        rest = text[room:] if room > 0 else text
        if rest:
            self._tail.append(rest)
            self._kept += len(rest)
        while self._kept - len(self._tail[0] if self._tail else "") > TAIL:
            piece = self._tail.popleft()
            self._kept -= len(piece)
            self._dropped += len(piece)

    def text(self) -> str:
        tail = "".join(self._tail)
        dropped = self._dropped + max(0, len(tail) - TAIL)
        left_out = f"\n[{dropped} characters left out]\n" if dropped else ""
        return f"{self._head}{left_out}{tail[-TAIL:]}".rstrip()

    def latest(self) -> str:
        """The last lines, for the preview."""
        recent = (self._tail[-1] if self._tail else self._head)[-400:]
        return "\n".join(recent.rstrip().splitlines()[-SHOWN_LINES:])
