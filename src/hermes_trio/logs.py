"""Where log lines end up, whatever has happened to that place: a bot must not end because nobody can read its log."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO


class Enduring:
    """A text stream that never fails: a full disk behind it, or a reader that has gone, costs the line only.

    Without a stream it is standard error, looked up anew for each line, as programs replace it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._given = stream

    @property
    def _stream(self) -> TextIO | None:
        return sys.stderr if self._given is None else self._given  # None: the process was started without one

    def write(self, text: str) -> int:
        """Writes what can be written; the rest is lost."""
        if (stream := self._stream) is not None:
            with suppress(OSError, ValueError):
                stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Likewise."""
        if (stream := self._stream) is not None:
            with suppress(OSError, ValueError):
                stream.flush()

    def isatty(self) -> bool:
        """Whether a person reads along."""
        if (stream := self._stream) is not None:
            with suppress(OSError, ValueError):
                return stream.isatty()
        return False
