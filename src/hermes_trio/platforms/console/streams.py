"""Lines that come in and text that goes out, over the process's own descriptors or anything else.

A source of lines is an async iterator of text; a sink is an object with `write`. Descriptors are never made
non-blocking, because a terminal shares that mode with the shell that it was started from; instead each read and each
small write waits until the kernel says that it will not block. The rule that must not be broken: a sink raises
NothingLeft only when no byte has been written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from typing import Protocol

import trio

from hermes_trio.http import NothingLeft, Uncertain
from hermes_trio.text.repair import repair

CHUNK = 512
"""Bytes of one write: the kernel promises that a pipe which is writable takes so many without blocking (PIPE_BUF)."""
LONGEST_LINE = 1_000_000
"""Bytes; what is longer is cut there, so that an endless line cannot fill the memory."""

Lines = AsyncIterator[str]


class Sink(Protocol):
    """Where text goes."""

    async def write(self, text: str) -> None:
        """Writes all of it. Cancelled: any part of it may be written.

        Raises NothingLeft when it provably wrote nothing, and Uncertain when the other side broke off within.
        """


async def read_lines(descriptor: int, begun: bytes = b"") -> AsyncIterator[str]:
    """The lines of a descriptor, repaired and without their line ends, until it ends.

    begun: what was read of it already. Cancelled: what was read of an unfinished line is lost. Raises OSError for a
    descriptor that cannot be read.
    """
    buffer = b""
    data = begun or await _read(descriptor)
    while data:
        *lines, buffer = (buffer + data).split(b"\n")
        if len(buffer) > LONGEST_LINE:
            lines, buffer = [*lines, buffer], b""
        for line in lines:
            yield _decoded(line)
        data = await _read(descriptor)
    if buffer:
        yield _decoded(buffer)


def _decoded(line: bytes) -> str:
    return repair(line.removesuffix(b"\r").decode("utf-8", "replace"))


async def _read(descriptor: int) -> bytes:
    """What can be read now; empty at the end."""
    try:
        await trio.lowlevel.wait_readable(descriptor)
    except PermissionError:
        await trio.lowlevel.checkpoint()  # a regular file: the kernel cannot wait for it, and never has to
    try:
        return os.read(descriptor, 65536)
    except OSError as error:
        if error.errno == errno.EIO:  # the terminal behind it is gone
            return b""
        raise


class DescriptorSink:
    """A Sink over a descriptor of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def write(self, text: str) -> None:
        """Writes all of it, as UTF-8; see Sink."""
        left = memoryview(text.encode("utf-8", "replace"))
        size = len(left)
        while left:
            try:
                await self._wait_writable()
                left = left[os.write(self._descriptor, left[:CHUNK]) :]
            except OSError as error:
                words = f"the output is closed ({error.strerror})"
                raise (NothingLeft(words) if len(left) == size else Uncertain(words)) from None

    async def _wait_writable(self) -> None:
        try:
            await trio.lowlevel.wait_writable(self._descriptor)
        except PermissionError:
            await trio.lowlevel.checkpoint()  # a regular file
