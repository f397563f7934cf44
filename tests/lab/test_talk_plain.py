"""B1 and B2 on a plain wire: a console whose messages cannot be changed, in the world, killed at every boundary.

Such a wire shows the reply and nothing else: no placeholder, no preview. What a person reads is everything that was
ever printed, by all lives of the bot.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest
import trio

from hermes_trio.clock import Clock
from hermes_trio.platforms.console import PlainConsole
from hermes_trio.runtime import open_runtime
from hermes_trio.testing import Life, World, run_world, verify_crashes
from hermes_trio.testing.checker import MARKER
from hermes_trio.testing.disk import SLOW_DELAY

STREAM = 8.0
"""Seconds that a slow answer streams."""


def said(label: str) -> str:
    """A scripted answer: header, filling, footer."""
    return f"<<A-{label}>> {' '.join(f'word{number}' for number in range(12))} <</A-{label}>>"


class Teletype:
    """A terminal that outlives the bot: what was typed and not read waits, what was printed stays."""

    def __init__(self) -> None:
        self.printed: list[str] = []
        self._send, self._receive = trio.open_memory_channel[str](100)

    def types(self, line: str) -> None:
        """The person enters a line."""
        self._send.send_nowait(line)

    async def lines(self) -> AsyncIterator[str]:
        """The lines, for one life of the bot."""
        while True:
            yield await self._receive.receive()

    async def write(self, text: str) -> None:
        """A Sink's. It takes a moment until the bot knows that it was printed."""
        await trio.lowlevel.checkpoint()
        self.printed.append(text.removesuffix("\n"))
        await trio.sleep(0.01)

    def unmarked(self, label: str) -> int:
        """How many complete copies of an answer were printed without the marker."""
        return sum(text == said(label) for text in self.printed)

    def pieces(self, label: str) -> list[str]:
        """What was printed of an answer that is no complete copy of it."""
        return [text for text in self.printed if f"A-{label}>>" in text and text.removeprefix(MARKER) != said(label)]


Story = Callable[[World, Teletype], Awaitable[None]]


async def hears(world: World, teletype: Teletype, *lines: tuple[float, str]) -> None:
    """The person enters lines, each after so many seconds; one that a dying bot had read and not stored once more."""
    for wait, line in lines:
        await trio.sleep(wait)
        teletype.types(line)
    await trio.sleep(SLOW_DELAY + 1)  # nobody knows of a line that is not stored
    await world.quiet()
    known = {row["text"] for row in world.disk.connection.execute("SELECT text FROM inbox")}
    for _, line in lines:
        if line.removeprefix("/queue ") not in known:
            assert world.boundaries.crashes, f"{line!r} was lost"
            teletype.types(line)
            await trio.sleep(SLOW_DELAY + 1)
            await world.quiet()


def states(world: World) -> dict[str, str]:
    """What became of each message, by its text."""
    return {row["text"]: row["state"] for row in world.disk.connection.execute("SELECT text, state FROM inbox")}


def answered_once(world: World, teletype: Teletype, label: str) -> None:
    """There is one copy, and what a crash left in doubt says that it may be a second one."""
    assert teletype.unmarked(label) <= 1, teletype.printed
    copies = [text for text in teletype.printed if text.removeprefix(MARKER) == said(label)]
    assert 1 <= len(copies) <= 1 + 2 * len(world.boundaries.crashes), teletype.printed
    assert teletype.pieces(label) == [], "a plain wire shows no previews"


async def b1(world: World, teletype: Teletype) -> None:
    """A slow answer, and a message that is queued behind it: both are answered completely, in order."""
    world.model.when("one").says(said("1"), chunks=9, interval=STREAM / 10)
    world.model.when("two").says(said("2"))
    await hears(world, teletype, (0.0, "one, please"), (2.0, "/queue two, please"))
    assert states(world) == {"one, please": "answered", "two, please": "answered"}
    for label in ("1", "2"):
        answered_once(world, teletype, label)
    first, second = (next(n for n, text in enumerate(teletype.printed) if said(label) in text) for label in "12")
    if not world.boundaries.crashes:
        assert teletype.printed == ["⏳ Queued as number 1.", said("1"), said("2")]
        assert first < second
        assert len(world.model.requests) == 2


async def b2(world: World, teletype: Teletype) -> None:
    """A slow answer, and a message that interrupts it: that is answered; of the first nothing was shown, or all."""
    world.model.when("one").says(said("1"), chunks=9, interval=STREAM / 10)
    world.model.when("two").says(said("2"))
    await hears(world, teletype, (0.0, "one, please"), (3.0, "two, please"))
    answered_once(world, teletype, "2")
    assert teletype.pieces("1") == []
    assert teletype.unmarked("1") <= 1
    ended = states(world)
    assert ended["two, please"] == "answered"
    assert (said("1") in "".join(teletype.printed)) == (ended["one, please"] == "answered")
    if not world.boundaries.crashes:
        assert teletype.printed == [said("2")]
        assert ended["one, please"] == "interrupted"
        await world.restart()
        await world.quiet()
        assert teletype.printed == [said("2")]
        assert [request.last_user_text for request in world.model.requests] == ["one, please", "two, please"]


async def stopped(world: World, teletype: Teletype) -> None:
    """A slow answer that is stopped: a word, nothing of the answer, and the next message works."""
    world.model.when("one").says(said("1"), chunks=9, interval=STREAM / 10)
    world.model.when("two").says(said("2"))
    await hears(world, teletype, (0.0, "one, please"), (3.0, "/stop"), (0.5, "two, please"))
    answered_once(world, teletype, "2")
    assert teletype.pieces("1") == []
    if not world.boundaries.crashes:
        assert len(teletype.printed) == 2
        assert "Stopped" in teletype.printed[0]


def on_plain(
    story: Story,
) -> tuple[Callable[[World], Awaitable[None]], Callable[[Life], AbstractAsyncContextManager[object]]]:
    """The story for a world, and the bot whose second account is the console. Each run has a teletype of its own."""
    teletypes: dict[Clock, Teletype] = {}

    def bot(life: Life) -> AbstractAsyncContextManager[object]:
        teletype = teletypes.setdefault(life.ports.clock, Teletype())
        console = PlainConsole("plain", teletype.lines(), teletype, life.ports.ids())
        return open_runtime(life.config, ports=life.ports, tools=life.tools, platforms={"plain": console})

    async def scenario(world: World) -> None:
        await story(world, teletypes[world.clock])

    return scenario, bot


STORIES: dict[str, Story] = {"b1": b1, "b2": b2, "stopped": stopped}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", STORIES)
def test_on_a_plain_wire(name: str, seed: int) -> None:
    """The story ends as it says, under several schedules."""
    scenario, bot = on_plain(STORIES[name])
    run_world(scenario, seed, bot=bot)


@pytest.mark.parametrize("name", ["b1", "b2"])
def test_on_a_plain_wire_killed_at_every_boundary(name: str) -> None:
    """The same, killed at any one boundary between the bot and its world."""
    scenario, bot = on_plain(STORIES[name])
    verify_crashes(scenario, bot=bot)
