"""Server-sent events, from bytes as they happen to arrive. Pure.

Theory of operation. Lines end with CR, LF or CRLF and with nothing else: U+2028 and its kin are text. All three are
single bytes that UTF-8 never uses inside a character, so lines are cut as bytes and decoded whole. A CR at the end of
a read ends its line at once; an LF that opens the next read then belongs to it.

The rule that must not be broken: however the bytes are cut, the events are the same.

Source: WHATWG HTML, "Server-sent events", parsing and interpreting an event stream.
"""

from __future__ import annotations

import re

from attrs import frozen

_LINE_END = re.compile(rb"\r\n|\r|\n")


@frozen
class ServerEvent:
    """One event with data."""

    kind: str
    """The `event` field; `message` where the server named none."""
    data: str
    """Never empty; several data lines are joined by LF."""


class SseParser:
    """Turns reads into events. Comments, retry and id fields, unknown fields and events without data give nothing."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        """The pieces of the line that has not ended yet."""
        self._after_cr = False
        """The last byte so far was a CR; an LF now is its second half."""
        self._first_line = True
        self._kind = ""
        self._data: list[str] = []

    def feed(self, read: bytes) -> list[ServerEvent]:
        """The events that this read completes, in order."""
        if self._after_cr and read.startswith(b"\n"):
            read = read[1:]
            self._after_cr = False
        if not read:
            return []
        self._after_cr = read.endswith(b"\r")
        *lines, rest = _LINE_END.split(read)
        events: list[ServerEvent] = []
        for line in lines:
            events += self._line(b"".join([*self._partial, line]))
            self._partial.clear()
        if rest:
            self._partial.append(rest)
        return events

    def end(self) -> list[ServerEvent]:
        """The last event, where the server closed without the blank line behind it."""
        last = b"".join(self._partial)
        self._partial.clear()
        return [*self._line(last), *self._line(b"")]

    def _line(self, raw: bytes) -> list[ServerEvent]:
        if self._first_line:
            self._first_line = False
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if not raw:
            return self._dispatch()
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._kind = value
            case "error":
                # Not in the standard: older llama.cpp servers tell a failure in mid-stream by a field of this name.
                self._kind = "error"
                self._data.append(value)
            case _:
                pass
        return []

    def _dispatch(self) -> list[ServerEvent]:
        data, kind = "\n".join(self._data), self._kind or "message"
        self._data.clear()
        self._kind = ""
        return [ServerEvent(kind, data)] if data else []
