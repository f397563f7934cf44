"""hermes_trio: a bot runtime on trio in which every message gets exactly one complete visible reply.

    async with hermes_trio.open_runtime(config) as runtime:
        answer = await runtime.ask("How are you?")
        await runtime.send("telegram:12345", "build 812 is green", key="build-812")

The public names stand here; docs/embedding.md tells how they work together. Each room is imported when one of its
names is first used, so that a command, a fake or a test pays for what it needs and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_trio.clock import Clock, SystemClock
    from hermes_trio.config import (
        AccessConfig,
        ChatConfig,
        Config,
        ConfigError,
        ConsoleConfig,
        DeliveryConfig,
        LoadedConfig,
        LogConfig,
        ModelConfig,
        PlatformConfig,
        Secret,
        ShutdownConfig,
        TelegramConfig,
        TerminalConfig,
        ToolsConfig,
        load_config,
        parse_config,
    )
    from hermes_trio.control.asking import AskFailed, AskInterrupted
    from hermes_trio.control.desk import SendInterrupted
    from hermes_trio.delivery.operating import Delivery, RequestRefused
    from hermes_trio.ledger import LedgerClosed, LedgerLocked, LedgerUnusable
    from hermes_trio.model.base import (
        Completion,
        ContextOverflow,
        Image,
        Message,
        Model,
        ModelError,
        ReasoningDelta,
        TextDelta,
        ToolCall,
        ToolSpec,
        Truncated,
        Usage,
    )
    from hermes_trio.platforms.base import (
        AccountRefused,
        Attachment,
        Capabilities,
        Disconnected,
        Inbound,
        Platform,
        Receiver,
    )
    from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
    from hermes_trio.runtime import Ports, Runtime, open_runtime
    from hermes_trio.text.body import Body, Span
    from hermes_trio.tools.base import Tool, ToolContext, ToolError
    from hermes_trio.tools.decorator import FunctionTool, tool
    from hermes_trio.values import Address

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AccessConfig",
    "AccountRefused",
    "Address",
    "AskFailed",
    "AskInterrupted",
    "Attachment",
    "Body",
    "Capabilities",
    "ChatConfig",
    "Clock",
    "Completion",
    "Config",
    "ConfigError",
    "ConsoleConfig",
    "ContextOverflow",
    "Delivery",
    "DeliveryConfig",
    "Disconnected",
    "FunctionTool",
    "Image",
    "Inbound",
    "LedgerClosed",
    "LedgerLocked",
    "LedgerUnusable",
    "LoadedConfig",
    "LogConfig",
    "Message",
    "Model",
    "ModelConfig",
    "ModelError",
    "Outcome",
    "Platform",
    "PlatformConfig",
    "Ports",
    "Reason",
    "ReasoningDelta",
    "Receiver",
    "Refused",
    "RequestRefused",
    "Runtime",
    "Secret",
    "SendInterrupted",
    "ShutdownConfig",
    "Span",
    "SystemClock",
    "TelegramConfig",
    "TerminalConfig",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolSpec",
    "ToolsConfig",
    "Truncated",
    "Unknown",
    "Usage",
    "load_config",
    "open_runtime",
    "parse_config",
    "tool",
]

_HOMES = {
    "hermes_trio.clock": ("Clock", "SystemClock"),
    "hermes_trio.config": (
        "AccessConfig", "ChatConfig", "Config", "ConfigError", "ConsoleConfig", "DeliveryConfig", "LoadedConfig",
        "LogConfig", "ModelConfig", "PlatformConfig", "Secret", "ShutdownConfig", "TelegramConfig", "TerminalConfig",
        "ToolsConfig", "load_config", "parse_config",
    ),
    "hermes_trio.control.asking": ("AskFailed", "AskInterrupted"),
    "hermes_trio.control.desk": ("SendInterrupted",),
    "hermes_trio.delivery.operating": ("Delivery", "RequestRefused"),
    "hermes_trio.ledger": ("LedgerClosed", "LedgerLocked", "LedgerUnusable"),
    "hermes_trio.model.base": (
        "Completion", "ContextOverflow", "Image", "Message", "Model", "ModelError", "ReasoningDelta", "TextDelta",
        "ToolCall", "ToolSpec", "Truncated", "Usage",
    ),
    "hermes_trio.platforms.base": (
        "AccountRefused", "Attachment", "Capabilities", "Disconnected", "Inbound", "Platform", "Receiver",
    ),
    "hermes_trio.platforms.outcomes": ("Accepted", "Outcome", "Reason", "Refused", "Unknown"),
    "hermes_trio.runtime": ("Ports", "Runtime", "open_runtime"),
    "hermes_trio.text.body": ("Body", "Span"),
    "hermes_trio.tools.base": ("Tool", "ToolContext", "ToolError"),
    "hermes_trio.tools.decorator": ("FunctionTool", "tool"),
    "hermes_trio.values": ("Address",),
}  # fmt: skip
"""Where each name stands; the same as the imports above, which only type checkers read."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
