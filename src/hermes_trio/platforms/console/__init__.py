"""The console: a chat on this terminal, or over a pipe.

`layout` turns a body into lines, `screen` keeps what a terminal shows; both are pure. `streams` reads lines and writes
text, `adapter` puts them together: PlainConsole prints each message once, TerminalConsole redraws one that streams.
"""

from hermes_trio.platforms.console.adapter import (
    CHAT,
    SENDER,
    PlainConsole,
    TerminalConsole,
    console_platform,
    is_capable,
    terminal_size,
)
from hermes_trio.platforms.console.layout import lines_of
from hermes_trio.platforms.console.screen import Screen, Size
from hermes_trio.platforms.console.streams import DescriptorSink, Lines, Sink, read_lines

__all__ = [
    "CHAT",
    "SENDER",
    "DescriptorSink",
    "Lines",
    "PlainConsole",
    "Screen",
    "Sink",
    "Size",
    "TerminalConsole",
    "console_platform",
    "is_capable",
    "lines_of",
    "read_lines",
    "terminal_size",
]
