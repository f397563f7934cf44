"""`hermes-trio chat`: a conversation on this terminal, or over a pipe.

It is the same runtime, ledger and delivery as everywhere; the console is its only account. Lines from a pipe are
answered one by one: the next is read when the answer to the one before is out. The rule that must not be broken: on
standard output stands the conversation and nothing else when it is not a terminal.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TextIO

import click
import trio
from attrs import evolve

from hermes_trio.assembly import model_of
from hermes_trio.clock import random_id
from hermes_trio.commands.configured import configured
from hermes_trio.commands.logs import configure_logs
from hermes_trio.commands.run import EX_UNAVAILABLE
from hermes_trio.config import AccessConfig, Config
from hermes_trio.http import open_http_client
from hermes_trio.ledger import FILE_NAME, LedgerLocked, LedgerUnusable, connect_readonly
from hermes_trio.ledger.inspection import Past, past
from hermes_trio.model.base import Event, Message, Model, TextDelta, ToolSpec
from hermes_trio.platforms.console import (
    CHAT,
    SENDER,
    PlainConsole,
    TerminalConsole,
    console_platform,
    lines_of,
    terminal_size,
)
from hermes_trio.runtime import open_runtime
from hermes_trio.text.body import Body
from hermes_trio.values import Address

ACCOUNT = "console"
FOLDER, LOG_NAME = "chat", "chat.log"
"""Below data_dir: a chat has a database of its own, because a bot may run on the other one."""
CHAT_HINT = "`/help` lists the commands, Ctrl-D ends."
CRASH_COMMAND = "/demo crash"
CRASH_TEXT = (
    "This answer is about to be cut off by kill -9, in the middle of a sentence, while it is still being written. "
    "But the question was written down before it was answered. So the next start finds it, goes on with it, and says "
    "all of it, exactly once. If you can read this, it did. The end."
)
CRASH_AFTER = 120
"""Characters of the answer before the kill."""
LAST_LOOK = 0.3
"""Seconds before the kill, so that what was said is on screen."""
DRAIN = 5.0
"""Seconds for what may still be under way when the conversation is over."""

P = ParamSpec("P")


@click.command(short_help="Talk with the configured model on this terminal.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The configuration file.")
def chat(path: Path | None) -> None:
    """Talk with the configured model on this terminal. The conversation lies in DATA_DIR/chat."""
    config = configured(path).config
    table = config.model
    words = "The built-in demo model answers." if table.kind == "demo" else f"{table.name} answers ({table.base_url})."
    raise SystemExit(in_trio(converse, config, (f"{words} {CHAT_HINT}",)))


def in_trio(function: Callable[P, Awaitable[int]], *args: P.args, **kwargs: P.kwargs) -> int:
    """Runs an async function that returns an exit status, and turns a database that cannot be used into one."""
    status = EX_UNAVAILABLE
    try:
        status = trio.run(partial(function, *args, **kwargs))
    except* (LedgerLocked, LedgerUnusable) as group:
        click.echo(str(group.exceptions[0]), err=True)
    return status


async def converse(config: Config, opening: Sequence[str], begun: bytes = b"") -> int:
    """Converses until the input ends or a signal comes; returns the exit status.

    config: its data_dir holds the folder of the chat. opening: lines that the user reads first. begun: what was read
    of standard input already. Cancelled: equals a crash. Raises LedgerLocked and LedgerUnusable in groups.
    """
    config = evolve(config, data_dir=config.data_dir / FOLDER)
    try:
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = _log_file(config.data_dir)
    except OSError as error:
        click.echo(f"{config.data_dir} cannot be used: {error.strerror}; choose another data_dir", err=True)
        return EX_UNAVAILABLE
    with log:
        configure_logs(evolve(config.log, level="warning"), log)
        return await _converse(config, opening, begun)


def _log_file(data_dir: Path) -> TextIO:
    """The log of chats: the terminal belongs to the conversation."""
    descriptor = os.open(data_dir / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "a", buffering=1, encoding="utf-8")


async def _converse(config: Config, opening: Sequence[str], begun: bytes) -> int:
    _greet(opening, config, Address(ACCOUNT, CHAT))
    console = console_platform(ACCOUNT, random_id(), begun=begun)
    fuse = Fuse(demo=config.model.kind == "demo")
    said = Said(console.lines, fuse, paced=not os.isatty(0))
    console.lines = said
    alone = evolve(config, platforms={}, access=AccessConfig(owners=(f"{ACCOUNT}:{SENDER}",)))
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with (
            open_http_client() as client,
            open_runtime(alone, model=Fused(model_of(config.model, client), fuse), platforms={ACCOUNT: console}) as bot,
        ):
            said.attach(bot.wait_idle)
            number = await _until_over(console, bot.wait_idle, signals)
            await bot.drain(0.0 if number else DRAIN)
    if number:
        click.echo("Stopped. The next start goes on with what was unfinished.", err=True)
        return 128 + number
    return 1 if console.broken else 0


def _greet(opening: Sequence[str], config: Config, address: Address) -> None:
    interactive = os.isatty(0) and os.isatty(1)
    width = terminal_size().columns if interactive else 1_000_000
    found = _past(config.data_dir / FILE_NAME, address)
    for line in (*opening, *(_memories(found) if found else ())):
        for part in lines_of(Body(line), width, style=False):
            click.echo(part, err=not interactive)


def _memories(found: Past) -> Iterator[str]:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.last_at))
    count = "1 message" if found.messages == 1 else f"{found.messages} messages"
    yield f"Going on where you stopped: {count}, the last one {when}."
    if found.unfinished:
        yield f"Still unanswered, and answered now: {found.unfinished:.70}"


def _past(path: Path, address: Address) -> Past | None:
    if not path.exists():
        return None
    try:
        connection = connect_readonly(path)
    except LedgerUnusable:
        return None  # the runtime will say what is wrong with it
    try:
        return past(connection, address)
    finally:
        connection.close()


async def _until_over(
    console: PlainConsole | TerminalConsole, wait_idle: Callable[[], Awaitable[None]], signals: AsyncIterator[int]
) -> int:
    """Returns 0 when the input has ended and all is answered, or the number of the signal that came before."""
    number = 0

    async def wait_for_signal(scope: trio.CancelScope) -> None:
        nonlocal number
        number = int(await anext(signals))
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_signal, nursery.cancel_scope)
        await console.ended.wait()
        if not console.broken:
            await wait_idle()
        nursery.cancel_scope.cancel()
    return number


class Said:
    """The lines of the user, one at a time where they come from a pipe, and the demonstration's own command.

    paced: the next line is not read before the answer to the one before is out.
    """

    def __init__(self, lines: AsyncIterator[str], fuse: Fuse, *, paced: bool) -> None:
        self._lines = lines
        self._fuse = fuse
        self._paced = paced
        self._idle: Callable[[], Awaitable[None]] | None = None
        self._attached = trio.Event()

    def attach(self, idle: Callable[[], Awaitable[None]]) -> None:
        """The runtime runs: `idle` returns when everything is answered."""
        self._idle = idle
        self._attached.set()

    def __aiter__(self) -> Said:
        return self

    async def __anext__(self) -> str:
        await self._attached.wait()
        if self._paced and self._idle is not None:
            await self._idle()
        line = await anext(self._lines)
        return self._fuse.lit() if line.strip().lower() == CRASH_COMMAND else line


class Fuse:
    """Ends the process by SIGKILL in mid-answer, once it is lit."""

    def __init__(self, *, demo: bool) -> None:
        self._demo = demo
        self.burning = False

    def lit(self) -> str:
        """Lights it; returns what to say to the model instead."""
        self.burning = True
        return f"echo {CRASH_TEXT}" if self._demo else f"Please repeat this to me, word for word: {CRASH_TEXT}"


class Fused:
    """A Model with a fuse: the answer that is being written when it burns is the process's last."""

    def __init__(self, model: Model, fuse: Fuse) -> None:
        self._model = model
        self._fuse = fuse

    @property
    def name(self) -> str:
        return self._model.name

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        """As the model's own; see `model.base.Model`."""
        async with self._model.stream(messages, tools) as events:
            yield _Burning(events) if self._fuse.burning else events


class _Burning:
    """The events of an answer that will not end."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self._said = 0

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if self._said >= CRASH_AFTER:
            await trio.sleep(LAST_LOOK)
            os.kill(os.getpid(), signal.SIGKILL)
        event = await anext(self._events)
        if isinstance(event, TextDelta):
            self._said += len(event.text)
        return event
