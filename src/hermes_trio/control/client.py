"""The other end of the control socket: how a command reaches the bot that runs on a data directory.

The rule that must not be broken: a request that may have been read is never taken for one that was not; whoever
repeats it does so under the same key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from hermes_trio.control.protocol import SOCKET_NAME, Lines, Object, short_path
from hermes_trio.delivery.operating import RequestRefused


class NoBot(Exception):
    """Nobody listens on this data directory. Nothing was asked."""


class ConnectionLost(Exception):
    """The bot ended, or was restarted, before it answered. The request may have been carried out."""


async def ask_bot(data_dir: Path, command: str, **fields: Any) -> Any:
    """The result of a command of the running bot; see `protocol`.

    Raises RequestRefused with the bot's own words, NoBot, and ConnectionLost. Cancelled: it may have been carried out.
    """
    path = data_dir / SOCKET_NAME
    try:
        with short_path(path) as name:
            stream = await trio.open_unix_socket(name)
    except OSError:
        raise NoBot(f"no bot listens on {path}") from None
    async with stream:
        lines = Lines(stream)
        try:
            await lines.send({"command": command, **fields})
            answer = await _answer(lines)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            answer = None
    if answer is None:
        raise ConnectionLost("the bot ended before it answered; ask again with the same key")
    if not answer["ok"]:
        raise RequestRefused(answer["error"])
    return answer["result"]


async def _answer(lines: Lines) -> Object | None:
    """None when there is none, and when it is torn: what was asked for may have been done, so it is no refusal."""
    try:
        return await lines.receive()
    except RequestRefused:
        return None
