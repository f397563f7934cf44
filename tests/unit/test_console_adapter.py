"""The console as a platform: what it hands to the runtime, and what it says of a write."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
from attrs import define, field
from little_terminal import LittleTerminal

from hermes_trio.http import NothingLeft, Uncertain
from hermes_trio.platforms.base import Inbound
from hermes_trio.platforms.console import DescriptorSink, PlainConsole, Size, TerminalConsole, is_capable, read_lines
from hermes_trio.platforms.outcomes import Accepted, Reason, Refused, Unknown
from hermes_trio.text.body import Body
from hermes_trio.text.markdown import render
from hermes_trio.values import Address

HERE = Address("console", "local")


async def lines(*said: str) -> AsyncIterator[str]:
    for line in said:
        yield line


@define
class Notebook:
    """A sink that remembers, or fails with what it is told."""

    text: str = ""
    failure: Exception | None = None

    async def write(self, text: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        self.text += text


@define
class Inbox:
    """A Receiver that keeps what it was given."""

    batches: list[tuple[Inbound, ...]] = field(factory=list)
    signs: int = 0

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        await trio.lowlevel.checkpoint()
        self.batches.append(batch)

    async def cursor(self) -> str | None:
        return None

    def alive(self) -> None:
        self.signs += 1


async def received(*said: str, run_id: str = "run") -> list[Inbound]:
    """What the runtime gets of these lines."""
    console, inbox = PlainConsole("console", lines(*said), Notebook(), run_id), Inbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(console.run, inbox)
        await console.ended.wait()
        nursery.cancel_scope.cancel()
    assert inbox.signs > len(inbox.batches)
    return [inbound for batch in inbox.batches for inbound in batch]


async def test_each_line_is_a_message() -> None:
    """A line is an inbound of the one user of the one chat; a blank one is nothing."""
    found = await received("one", "  ", "two")
    assert [inbound.text for inbound in found] == ["one", "two"]
    assert {(str(inbound.address), inbound.sender, inbound.direct) for inbound in found} == {
        ("console:local", "you", True)
    }


async def test_ids_never_repeat() -> None:
    """The same line twice, and the same line in another run, are different messages."""
    found = [*await received("again", "again"), *await received("again", run_id="another")]
    assert len({inbound.native_id for inbound in found}) == 3


async def test_a_message_is_printed_once_and_plainly() -> None:
    """Without edits a message is its text and a line end; spans leave no trace."""
    sink = Notebook()
    console = PlainConsole("console", lines(), sink, "run")
    outcome = await console.create(HERE, render("**bold**\n\ntext"), key="k", reply_to=None)
    assert isinstance(outcome, Accepted) and outcome.message_id
    assert sink.text == "bold\n\ntext\n"
    assert console.capabilities.guarantee == "plain"
    assert await console.delete(HERE, outcome.message_id) == Refused(Reason.FORBIDDEN, detail="what is printed stays")


async def test_a_reply_begun_on_a_terminal_is_finished_on_a_pipe() -> None:
    """A final edit of a message from an earlier run prints all of it."""
    sink = Notebook()
    console = PlainConsole("console", lines(), sink, "run")
    assert await console.edit(HERE, "earlier.1", Body("The whole answer.")) == Accepted("earlier.1")
    assert sink.text == "The whole answer.\n"


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_closed_output_is_told(terminal: bool) -> None:
    """Nothing written is a refusal, some of it is unknown; either way the console says that it has ended."""
    for failure, expected in ((NothingLeft("closed"), Refused), (Uncertain("closed"), Unknown)):
        sink = Notebook(failure=failure)
        console: PlainConsole | TerminalConsole = PlainConsole("console", lines(), sink, "run")
        if terminal:
            console = TerminalConsole("console", lines(), sink, "run", size=Size)
        assert isinstance(await console.create(HERE, Body("text"), key="k", reply_to=None), expected)
        assert console.ended.is_set() and console.broken


async def test_a_terminal_prompts_when_nobody_speaks(autojump_clock: trio.testing.MockClock) -> None:
    """The prompt comes at the start, stays away while a turn is at work, and comes back when it is over."""
    terminal = LittleTerminal(60, 20)

    class Typed:
        async def write(self, text: str) -> None:
            terminal.feed(text)

    said, heard = trio.open_memory_channel[str](1)
    console = TerminalConsole("console", heard, Typed(), "run", size=lambda: Size(60, 20), style=False)
    inbox = Inbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(console.run, inbox)
        await trio.sleep(1)
        assert terminal.text == "\n›"
        terminal.feed("hello\n")
        await said.send("hello")
        await trio.sleep(0.1)
        made = await console.create(HERE, Body("…"), key="k", reply_to=None)
        assert isinstance(made, Accepted) and made.message_id is not None
        for _ in range(20):
            await console.typing(HERE)
            await trio.sleep(0.2)
            assert terminal.text == "\n› hello\n● …"
        await console.edit(HERE, made.message_id, Body("done"))
        await trio.sleep(1)
        assert terminal.text == "\n› hello\n● done\n\n›"
        nursery.cancel_scope.cancel()
    assert terminal.text == "\n› hello\n● done"


async def test_a_quick_answer_is_followed_by_the_prompt(autojump_clock: trio.testing.MockClock) -> None:
    """After an answer without a turn, such as a command's, the user waits for no turn that might still begin."""
    sink = Notebook()
    said, heard = trio.open_memory_channel[str](1)
    console = TerminalConsole("console", heard, sink, "run", size=Size, style=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(console.run, Inbox())
        await trio.sleep(1)
        await said.send("/usage")
        await trio.sleep(0.1)
        await console.create(HERE, Body("Nothing yet."), key="k", reply_to=None)
        await trio.sleep(0.3)
        assert sink.text.endswith("Nothing yet.\n")
        await trio.sleep(0.2)
        assert sink.text.endswith("Nothing yet.\n\n› ")
        nursery.cancel_scope.cancel()


async def test_a_bare_placeholder_can_be_withdrawn() -> None:
    """Deleting the last message takes it off the screen; an earlier one is refused for good."""
    terminal = LittleTerminal()

    class Typed:
        async def write(self, text: str) -> None:
            terminal.feed(text)

    console = TerminalConsole("console", lines(), Typed(), "run", size=lambda: Size(40, 10), style=False)
    first = await console.create(HERE, Body("stays"), key="a", reply_to=None)
    second = await console.create(HERE, Body("…"), key="b", reply_to=None)
    assert isinstance(first, Accepted) and isinstance(second, Accepted)
    refused = await console.delete(HERE, first.message_id or "")
    assert isinstance(refused, Refused) and refused.reason is Reason.FORBIDDEN
    assert isinstance(await console.delete(HERE, second.message_id or ""), Accepted)
    assert terminal.text == "● stays"


def test_a_terminal_must_be_capable() -> None:
    """A pipe, a dumb terminal and an unknown one are not redrawn."""
    reading, writing = os.pipe()
    try:
        assert not is_capable({"TERM": "xterm"}, reading, writing)
    finally:
        os.close(reading)
        os.close(writing)
    assert not is_capable({"TERM": "dumb"})
    assert not is_capable({})
    assert is_capable({"TERM": "xterm"})


async def read(chunks: Sequence[bytes], begun: bytes = b"") -> list[str]:
    """The lines that are read of a pipe to which these chunks are written."""
    reading, writing = os.pipe()
    found: list[str] = []

    async def write() -> None:
        for chunk in chunks:
            os.write(writing, chunk)
            await trio.testing.wait_all_tasks_blocked()
        os.close(writing)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            found += [line async for line in read_lines(reading, begun)]
    finally:
        os.close(reading)
    return found


async def test_lines_are_read_whole() -> None:
    """However the bytes arrive: line ends of both kinds, a last line without one, a letter that is cut in two."""
    assert await read([b"on", b"e\r\ntw", b"o\n\nth\xc3", b"\xbcr"]) == ["one", "two", "", "thür"]
    assert await read([b"ded\n"], begun=b"first\nbegun and ad") == ["first", "begun and added"]


async def test_what_is_no_text_is_repaired() -> None:
    """Bytes that are no UTF-8 and NUL are replaced, so that a line can always be stored."""
    assert await read([b"a\xffb\x00c\n"]) == ["a\ufffdbc"]


async def test_a_file_is_read_too(tmp_path: Path) -> None:
    """Standard input may be a regular file, for which the kernel cannot wait."""
    (tmp_path / "said.txt").write_text("one\ntwo\n")
    descriptor = os.open(tmp_path / "said.txt", os.O_RDONLY)
    try:
        assert [line async for line in read_lines(descriptor)] == ["one", "two"]
    finally:
        os.close(descriptor)


async def test_a_descriptor_takes_long_texts(tmp_path: Path) -> None:
    """More than a pipe holds is written as its reader goes on, and all of it arrives."""
    reading, writing = os.pipe()
    text = "ä line of text\n" * 20_000
    found = b""

    async def consume() -> None:
        nonlocal found
        while len(found) < len(text.encode()):
            await trio.lowlevel.wait_readable(reading)
            found += os.read(reading, 65536)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume)
            await DescriptorSink(writing).write(text)
        assert found.decode() == text
        os.close(reading)
        reading = -1
        with pytest.raises(NothingLeft):
            await DescriptorSink(writing).write("nobody reads this")
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)
