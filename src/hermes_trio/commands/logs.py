"""Where log lines go: standard error, for people or as JSON."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog

from hermes_trio.config import LogConfig


class _Enduring:
    """A stream that never fails: a full disk behind it, or a reader that has gone, must not end the bot."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes what can be written; the rest is lost."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Likewise."""
        with suppress(OSError, ValueError):
            self._stream.flush()


def configure_logs(config: LogConfig, stream: TextIO | None = None) -> None:
    """Sends the log of the whole process to a stream, by default standard error, in the configured form."""
    stream = sys.stderr if stream is None else stream
    json = config.format == "json"
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=json),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=stream.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[config.level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Enduring(stream))),
        cache_logger_on_first_use=True,
    )
