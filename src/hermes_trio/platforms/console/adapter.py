"""The console as an account: whoever sits at the terminal is the user, and the terminal is the wire.

A line that is read is an inbound message. Its native id is made of this run's id and a count, so that nothing that was
read once is ever taken for something else. What was printed by an earlier run cannot be redrawn; an edit of it prints
the message anew, behind a line that says so.

The rule that must not be broken: an outcome is Accepted only when all of the text has been written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import trio
from attrs import evolve

from hermes_trio.http import NothingLeft, Uncertain
from hermes_trio.platforms.base import Capabilities, Inbound, Receiver
from hermes_trio.platforms.console.layout import plain_text
from hermes_trio.platforms.console.screen import Screen, Size
from hermes_trio.platforms.console.streams import DescriptorSink, Lines, Sink, read_lines
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.text.body import Body
from hermes_trio.values import Address

CHAT = "local"
"""The one chat of a console account."""
SENDER = "you"
"""The one user of a console account."""
LIMIT = 1_000_000
"""Characters of one message. A terminal takes any text; this only bounds what one write holds."""
TYPING_INTERVAL = 0.2
"""Seconds between two signs that a turn is at work."""
QUIET = 0.4
"""Seconds without such a sign after which the user is asked for more."""
SETTLING = 0.15
"""Seconds at the start in which an answer that a restart goes on with may come before the first prompt."""
PATIENCE = 1.5
"""Seconds for which a turn may be about to begin after a line was entered."""

# A write has landed when it returns, and none outlives its process: there is nothing to wait out after a restart.
PLAIN = Capabilities(
    limit=LIMIT,
    unit="codepoints",
    edits=False,
    deletes=False,
    request_timeout=5.0,
    lateness=0.0,
)
EDITABLE = evolve(
    PLAIN,
    edits=True,
    deletes=True,
    typing=True,
    request_timeout=0.1,
    typing_interval=TYPING_INTERVAL,
)


class _Console:
    """What both variants share: lines in, outcomes out."""

    def __init__(self, account: str, lines: Lines, sink: Sink, run_id: str) -> None:
        self._account = account
        self.lines = lines
        """What the user says; may be replaced before `run` begins."""
        self._sink = sink
        self._run_id = run_id
        self._received = self._made = 0
        self.ended = trio.Event()
        """There will be no more lines, or nobody sees what is written."""
        self.broken = False
        """Nobody sees what is written."""

    async def run(self, receiver: Receiver) -> None:
        """Receives lines until cancelled; blank ones are nothing. Raises what the receiver raises.

        Cancelled: what was stored stays stored; a line that was read and not stored is lost with its terminal.
        """
        receiver.alive()
        async for line in self.lines:
            self._entered()
            if line.strip():
                self._received += 1
                await receiver.receive((self._inbound(line),), None)
                receiver.alive()
        self.ended.set()
        await trio.sleep_forever()

    def _inbound(self, line: str) -> Inbound:
        return Inbound(
            address=Address(self._account, CHAT),
            native_id=f"{self._run_id}.{self._received}",
            sender=SENDER,
            sender_name=SENDER,
            text=line,
        )

    def _entered(self) -> None:
        """A line was entered."""

    def _new_id(self) -> str:
        self._made += 1
        return f"{self._run_id}.{self._made}"

    async def _write(self, text: str, message_id: str) -> Outcome:
        try:
            await self._sink.write(text)
        except NothingLeft as error:
            self._break()
            return Refused(Reason.NOTHING_LEFT, detail=str(error))
        except Uncertain as error:
            self._break()
            return Unknown(str(error))
        return Accepted(message_id)

    def _break(self) -> None:
        self.broken = True
        self.ended.set()

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome:
        """Unknown: nobody can ask a terminal what it shows."""
        return Unknown("a console cannot look up a message")


class PlainConsole(_Console):
    """A Platform for pipes and dumb terminals: each message is printed once, and nothing printed changes.

    lines: what the user says. sink: where replies go. run_id: tells this run from every other one over the same
    database.
    """

    capabilities = PLAIN

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        """Prints a message. Cancelled: any part of it may have been printed, so it counts as Unknown."""
        return await self._write(f"{plain_text(body)}\n", self._new_id())

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        """Prints the message: only one that was begun on a better terminal is ever edited here."""
        return await self._write(f"{plain_text(body)}\n", message_id)

    async def delete(self, address: Address, message_id: str) -> Outcome:
        """Refused: what is printed stays."""
        return Refused(Reason.FORBIDDEN, detail="what is printed stays")

    async def typing(self, address: Address) -> None:
        """Nothing: there is no such sign."""
        await trio.lowlevel.checkpoint()


class TerminalConsole(_Console):
    """A Platform for a terminal that can move its cursor: a message that streams is redrawn in place.

    size: of the terminal, asked before each change. style: whether text may have colours and weights.
    edit_interval: seconds between two previews. Else as PlainConsole.
    """

    def __init__(
        self,
        account: str,
        lines: Lines,
        sink: Sink,
        run_id: str,
        *,
        size: Callable[[], Size],
        style: bool = True,
        edit_interval: float = 0.05,
    ) -> None:
        super().__init__(account, lines, sink, run_id)
        self.capabilities = evolve(EDITABLE, edit_interval=edit_interval)
        self._size = size
        self._screen = Screen(style)
        self._drawing = trio.Lock()
        """Held while something is written: the cursor must be where the screen believes it to be."""
        self._stirred = trio.Event()
        self._quiet_at = trio.current_time() + SETTLING
        """On trio's clock, when the user may be asked for more."""

    async def run(self, receiver: Receiver) -> None:
        """Receives lines until cancelled; prompts whenever nobody speaks. Else as the plain one's."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._prompt)
                await super().run(receiver)
        finally:
            with trio.move_on_after(1, shield=True):  # leaves the shell a clean line, if the terminal is still there
                async with self._drawing:
                    await self._write(self._screen.close(self._size()), "")

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        """Draws a message at the bottom. Cancelled: it may be half drawn, so it counts as Unknown."""
        message_id = self._new_id()
        async with self._drawing:
            return await self._draw(self._screen.create(message_id, body, self._size()), message_id)

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        """Redraws a message. Cancelled: it may be half drawn, so it counts as Unknown."""
        async with self._drawing:
            return await self._draw(self._screen.edit(message_id, body, self._size()), message_id)

    async def delete(self, address: Address, message_id: str) -> Outcome:
        """Takes the message away if it is the last one and can be reached; else that is refused for good."""
        async with self._drawing:
            erased = self._screen.erase(message_id, self._size())
            if erased is None:
                return Refused(Reason.FORBIDDEN, detail="it cannot be reached any more")
            return await self._draw(erased, message_id)

    async def typing(self, address: Address) -> None:
        """Somebody is at work: the user is not asked for more yet."""
        self._stir(QUIET)
        await trio.lowlevel.checkpoint()

    async def _draw(self, text: str, message_id: str) -> Outcome:
        self._stir(QUIET)
        return await self._write(text, message_id)

    def _entered(self) -> None:
        self._screen.entered()
        self._stir(PATIENCE)

    def _stir(self, seconds: float) -> None:
        self._quiet_at = trio.current_time() + seconds
        self._stirred.set()

    async def _prompt(self) -> None:
        while True:
            self._stirred = trio.Event()
            with trio.move_on_at(self._quiet_at):
                await self._stirred.wait()
                continue
            async with self._drawing:
                await self._write(self._screen.pause(self._size()), "")
            await self._stirred.wait()


def is_capable(environ: Mapping[str, str], *descriptors: int) -> bool:
    """Whether all these descriptors are terminals, of a kind that can move its cursor."""
    return environ.get("TERM", "") not in ("", "dumb") and all(map(os.isatty, descriptors))


def console_platform(
    account: str,
    run_id: str,
    *,
    edit_interval: float = 0.05,
    environ: Mapping[str, str] | None = None,
    begun: bytes = b"",
) -> PlainConsole | TerminalConsole:
    """The console of this process: standard input and output, redrawn where both are a capable terminal.

    environ: by default the process's; TERM and NO_COLOR count (https://no-color.org). begun: what was read of standard
    input already.
    """
    environ = os.environ if environ is None else environ
    lines, sink = read_lines(0, begun), DescriptorSink(1)
    if not is_capable(environ, 0, 1):
        return PlainConsole(account, lines, sink, run_id)
    return TerminalConsole(
        account,
        lines,
        sink,
        run_id,
        size=terminal_size,
        style=not environ.get("NO_COLOR"),
        edit_interval=edit_interval,
    )


def terminal_size() -> Size:
    """The size of the terminal behind standard output; a usual one when it says nothing."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        return Size()
    return Size(columns or 80, rows or 24)
