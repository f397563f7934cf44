"""The bot's log in a world: not printed, because a run makes thousands of lines; errors become part of the story."""

from __future__ import annotations

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NoReturn

import structlog
import trio

Line = tuple[float, str]


@contextmanager
def kept_errors(lines: list[Line]) -> Iterator[None]:
    """Collects the errors that structlog's loggers report within the block, with trio's time; drops the rest."""

    def keep(logger: object, method: str, event: MutableMapping[str, Any]) -> NoReturn:
        words = " ".join(f"{name}={value}" for name, value in event.items() if name not in ("event", "exc_info"))
        lines.append((trio.current_time(), f"the bot logs: {event['event']} {words}".rstrip()))
        trouble = event.get("exc_info")
        if isinstance(trouble, BaseException):
            lines.append((trio.current_time(), f"  {type(trouble).__name__}: {trouble}"))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        yield
    finally:
        structlog.configure(**before)
