"""The clock: a harmless tool that tells the time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes_trio.model.base import ToolSpec
from hermes_trio.tools.base import ToolContext, ToolError

SPEC = ToolSpec(
    "clock",
    "Tells the current date and time.",
    {
        "type": "object",
        "properties": {"timezone": {"type": "string", "description": "IANA name such as Europe/Berlin; default UTC"}},
        "additionalProperties": False,
    },
)


class ClockTool:
    """Tells the runtime's time, so that a simulated world sees its own."""

    spec = SPEC

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The time as ISO 8601 with the weekday. Raises ToolError for an unknown time zone."""
        name = str(arguments.get("timezone") or "UTC")
        try:
            zone = UTC if name == "UTC" else ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ToolError(f"unknown time zone {name!r}") from None
        moment = datetime.fromtimestamp(context.now, zone)
        return f"{moment.isoformat(timespec='seconds')} ({moment:%A}, {name})"
