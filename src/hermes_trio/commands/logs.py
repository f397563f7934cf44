"""Where log lines go: standard error, for people or as JSON."""

from __future__ import annotations

import logging
import sys

import structlog

from hermes_trio.config import LogConfig


def configure_logs(config: LogConfig) -> None:
    """Sends the log of the whole process to standard error in the configured form."""
    json = config.format == "json"
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=json),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[config.level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
