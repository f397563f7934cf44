"""The control socket's language: one JSON object a line, each way.

    {"version": 1, "command": "send", "address": "telegram:12345", "text": "built", "key": "build-812", "wait": 30}
    {"version": 1, "ok": true, "result": {"id": "send.telegram:12345.build-812", "state": "delivered", ...}}
    {"version": 1, "ok": false, "error": "there is no account 'telegarm'; there are: telegram"}

Commands: `send` (address, text, key, wait), `deliveries` (all), `resend` (id, wait), `drop` (id), `status`. `wait` is
the seconds to wait for the end of the delivery, by default 0. A delivery is told with the beginning of its text and of
its reason only, and a list holds the newest, as many as fit: so no answer is too long to be read. The rule that must
not be broken: a line that is not understood changes nothing and is answered with its reason.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import asdict, evolve

from hermes_trio.delivery.operating import Delivery, RequestRefused
from hermes_trio.text.repair import repair

SOCKET_NAME = "control.sock"
VERSION = 1
LONGEST_LINE = 1 << 20
"""Bytes of one line; a longer one is refused, and the connection closed. The longest text of a send fits into it."""
LONGEST_LIST = LONGEST_LINE // 2
"""Bytes of the deliveries in one answer."""
CLIP = 200
"""Characters of a text, and of a reason, that are told."""
LONGEST_WAIT = 3600.0
"""Seconds that one request may wait."""
LARGEST = 1 << 53
"""The largest whole number that is taken for a number of seconds."""
LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes (Linux takes 107)."""

Object = dict[str, Any]
"""A decoded line; it never leaves this room."""


class Lines:
    """A stream as JSON lines."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._rest = bytearray()

    async def receive(self) -> Object | None:
        """The next line; None at the end. Raises RequestRefused for one that is no object of this language."""
        while (end := self._rest.find(b"\n")) < 0:
            if len(self._rest) > LONGEST_LINE:
                raise RequestRefused(f"a line is longer than {LONGEST_LINE} bytes")
            data = await self._stream.receive_some()
            if not data and not self._rest:
                return None
            self._rest += data or b"\n"
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return _decoded(line)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Sends one line. Cancelled: it may be torn, and the stream is of no use any more.

        Raises RequestRefused, with nothing sent, for one that the other side would not read.
        """
        line = _encoded({"version": VERSION, **message})
        if len(line) > LONGEST_LINE:
            raise RequestRefused(f"the request has {len(line)} bytes, the most is {LONGEST_LINE}")
        await self._stream.send_all(line + b"\n")


def _encoded(message: Any) -> bytes:
    """As JSON in UTF-8: escapes would make most scripts longer. Half a character, which has no UTF-8, is escaped."""
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _decoded(line: bytes) -> Object:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestRefused("this is not JSON: write one object a line") from None
    if not isinstance(message, dict):
        raise RequestRefused("this is no JSON object")
    if message.get("version") != VERSION:
        raise RequestRefused(f"this speaks version {VERSION}, not {message.get('version')!r}")
    return message


def field_of(message: Object, name: str, kind: type, default: Any = None, *, required: bool = False) -> Any:
    """A field of a request. Raises RequestRefused when it is missing or of another type."""
    value = message.get(name)
    if value is None:
        if required:
            raise RequestRefused(f"{name} is missing")
        return default
    if kind is float and type(value) is int and abs(value) < LARGEST:
        value = float(value)
    if type(value) is not kind:
        raise RequestRefused(f"{name} must be of the type {kind.__name__}")
    return repair(value) if isinstance(value, str) else value


def to_object(delivery: Delivery) -> Object:
    """A delivery as the socket speaks of it: only the first CLIP characters of what it says, and of why."""
    return asdict(evolve(delivery, text=_clipped(delivery.text), reason=_clipped(delivery.reason)))


def to_objects(deliveries: Iterable[Delivery]) -> list[Object]:
    """As many of them, from the first on, as fit into one answer."""
    found, room = [], LONGEST_LIST
    for each in map(to_object, deliveries):
        room -= len(_encoded(each)) + len(", ")
        if room < 0:
            break
        found.append(each)
    return found


def _clipped(text: str) -> str:
    return text if len(text) <= CLIP else f"{text[: CLIP - 1]}…"


def from_object(message: Object) -> Delivery:
    """The inverse of `to_object`, but for what that left out."""
    return Delivery(**message)


def bind(path: Path) -> socket.socket:
    """A listening Unix socket at `path`, mode 0600. What a dead process left there is replaced.

    The caller holds the lock of the data directory, so whoever made an older socket is gone. Raises OSError.
    """
    if path.exists() or path.is_symlink():
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is there and is no socket")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # the socket is never open to others, not even for a moment
    try:
        with short_path(path) as name:
            listener.bind(name)
        listener.listen()
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(mask)
    return listener


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name of the socket that fits into an address, during the block. Raises OSError where there is none."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    if sys.platform != "linux":
        raise OSError(f"the path {path} is too long for a socket; choose a shorter data_dir")
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
