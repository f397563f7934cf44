"""What a bot is given for one life, and the two that this project brings.

The rule that must not be broken: a bot is made anew for each life, from this and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from attrs import frozen

from hermes_trio.config import Config
from hermes_trio.http import HttpClient
from hermes_trio.runtime import Ports, open_runtime
from hermes_trio.tools.base import Tool


@frozen
class Life:
    """What a bot is given for one life: its configuration, the ports to the world, and what else it is made of."""

    config: Config
    ports: Ports
    tools: Sequence[Tool] | None
    client: HttpClient
    """Reaches the fakes without bytes; `ports.network` is the long way."""


Bot = Callable[[Life], AbstractAsyncContextManager[object]]
"""Makes a fresh bot that runs while the block does."""


def runtime_bot(life: Life) -> AbstractAsyncContextManager[object]:
    """The real runtime."""
    return open_runtime(life.config, ports=life.ports, tools=life.tools)
