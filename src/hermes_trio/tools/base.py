"""What a tool is. A tool runs inside the turn's nursery and is cancelled with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import frozen

from hermes_trio.model.base import ToolSpec
from hermes_trio.values import Address


@frozen
class ToolContext:
    """What a tool may know of the turn that calls it."""

    address: Address
    sender: str
    now: float
    """Wall-clock seconds since 1970, from the runtime's clock."""
    progress: Callable[[str], None]
    """Shows a line or more of progress in the preview; the latest call replaces the earlier ones. Never blocks."""


class Tool(Protocol):
    """Something that the model may call.

    `run` returns the text that the model reads. It may raise ToolError for the model to read; any other exception is
    a fault of the tool, is logged, and the model is told that the tool failed. Cancelled: it ends its own work at once.
    """

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str: ...


class ToolError(Exception):
    """A failure that the model should read and may react to."""
