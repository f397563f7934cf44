"""The control socket of a running bot: the desk, for other processes of the same user.

It belongs to the runtime's task tree and ends with it. The rule that must not be broken: nothing that comes over the
socket, and nothing that happens to it, ends the runtime.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import trio

from hermes_trio.control.desk import Desk, SendInterrupted
from hermes_trio.control.protocol import LONGEST_WAIT, Lines, Object, bind, field_of, to_object, to_objects
from hermes_trio.delivery.operating import Delivery, RequestRefused
from hermes_trio.ledger import LedgerClosed

MOST_CONNECTIONS = 64
"""Connections at a time; more are closed at once."""

Status = Callable[[], Mapping[str, Any]]

log = structlog.get_logger(__name__)


async def serve_control(
    path: Path, desk: Desk, status: Status, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serves the desk at `path` until cancelled; then the socket is gone.

    A socket that cannot be made is a warning, not the end: the bot works without it.
    """
    try:
        listener = bind(path)
    except OSError as error:
        log.warning("no control socket: `send` and `deliveries` cannot reach this bot", reason=str(error))
        task_status.started()
        return
    try:
        wrapped = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        limit = trio.CapacityLimiter(MOST_CONNECTIONS)
        handler = partial(_serve_one, desk, status, limit)
        task_status.started()
        await trio.serve_listeners(handler, [wrapped])
    finally:
        with suppress(OSError):
            os.unlink(path)


async def _serve_one(desk: Desk, status: Status, limit: trio.CapacityLimiter, stream: trio.SocketStream) -> None:
    """One connection, request by request."""
    async with stream:
        try:
            limit.acquire_nowait()
        except trio.WouldBlock:
            return
        try:
            await _converse(desk, status, Lines(stream))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("a control connection broke off")
        except SendInterrupted:
            log.debug("a control request waits for a runtime that ends")  # without an answer the command goes on itself
        except LedgerClosed:
            raise
        except Exception:  # the supervision border of a connection: what it asked must not end the bot
            log.exception("a control request failed")
        finally:
            limit.release()


async def _converse(desk: Desk, status: Status, lines: Lines) -> None:
    while True:
        try:
            request = await lines.receive()
        except RequestRefused as error:
            await lines.send({"ok": False, "error": str(error)})
            return  # what follows on such a line is anybody's guess
        if request is None:
            return
        try:
            result = await _do(desk, status, request)
        except RequestRefused as error:
            await lines.send({"ok": False, "error": str(error)})
        else:
            await lines.send({"ok": True, "result": result})


async def _do(desk: Desk, status: Status, request: Object) -> Any:
    """Carries a request out. Raises RequestRefused."""
    seconds = field_of(request, "wait", float, 0.0)
    if not seconds >= 0:  # also what is no number
        raise RequestRefused("wait must be seconds, at least 0")
    match request.get("command"):
        case "send":
            address = field_of(request, "address", str, required=True)
            text = field_of(request, "text", str, required=True)
            return await _end_of(desk, await desk.send(address, text, field_of(request, "key", str)), seconds)
        case "deliveries":
            return to_objects(await desk.deliveries(field_of(request, "all", bool, False)))
        case "resend":
            return await _end_of(desk, await desk.resend(field_of(request, "id", str, required=True)), seconds)
        case "drop":
            return to_object(await desk.drop(field_of(request, "id", str, required=True)))
        case "status":
            return dict(status())
        case other:
            raise RequestRefused(f"there is no command {other!r}; there are: send, deliveries, resend, drop, status")


async def _end_of(desk: Desk, delivery: Delivery, seconds: float) -> Object:
    """The delivery when it has ended, or as it is after so many seconds."""
    return to_object(await desk.wait_for(delivery, min(seconds, LONGEST_WAIT)))
