"""Where log lines go: standard error, for people or as JSON."""

from __future__ import annotations

import logging
from typing import TextIO, cast

import structlog

from hermes_trio.config import LogConfig
from hermes_trio.logs import Enduring


def configure_logs(config: LogConfig, stream: TextIO | None = None) -> None:
    """Sends the log of the whole process to a stream, by default standard error, in the configured form."""
    enduring = Enduring(stream)
    json = config.format == "json"
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=json),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=enduring.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[config.level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, enduring)),
        cache_logger_on_first_use=True,
    )
