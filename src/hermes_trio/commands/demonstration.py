"""`hermes-trio demonstration`: three messages, a lost acknowledgement and a `kill -9`, and one reply to each.

The real program answers a scripted user on a fake Telegram. The acknowledgement of one final edit is lost, and the
program is killed in mid-answer and started again. Then it is judged: by the chat as the user saw it and by the rows
of the ledger. The rule that must not be broken: it exits 0 only when every message has exactly one complete reply and
both faults have really struck.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import trio
from attrs import frozen

from hermes_fakes.faults import AckLost, Fault
from hermes_fakes.telegram import ScreenMessage, User
from hermes_trio.commands.demo_world import PATIENCE, Program, WentWrong, World, open_world, started
from hermes_trio.ledger.inspection import Story

NAME = "Mia"
WIDTH = 96
"""Columns of what is printed: fits a usual terminal."""


@frozen
class Exchange:
    """What the user says and what the model is to say to it."""

    said: str
    answer: str


HELLO = Exchange("Hello! Who are you?", "Hello Mia! I am a bot whose every message arrives exactly once.")
TIME = Exchange("What time is it?", "I looked at the clock: it is time to lose an acknowledgement.")
STORY = Exchange(
    "Tell me a story, please.",
    "Once upon a time a bot was killed in the middle of a sentence. It did not say goodbye, and it lost all that it "
    "had in memory. But it had written down what it owed before it spoke. So it woke up, found its own half-told "
    "story on the screen, and told it to the end, in the same message. The end.",
)
EXCHANGES = (HELLO, TIME, STORY)
FIRST_WORDS, LAST_WORDS = "Once upon a time", "The end."


@click.command(short_help="Play a conversation with a kill -9 in it.")
def demonstration() -> None:
    """Play a conversation with a lost acknowledgement and a kill -9; nothing leaves this machine."""
    raise SystemExit(trio.run(demonstrate, click.echo))


async def demonstrate(say: Callable[[str], Any]) -> int:
    """Plays and judges it; returns the exit status. `say` prints a line. Cancelled: the program is killed."""
    directory = Path(tempfile.mkdtemp(prefix="hermes-trio-demonstration-"))
    try:
        wrong = await _play(directory, say)
    except BaseException:
        _keep(directory, say)
        raise
    if wrong:
        _keep(directory, say)
    else:
        shutil.rmtree(directory)
    return 1 if wrong else 0


def _keep(directory: Path, say: Callable[[str], Any]) -> None:
    say(f"The program's log is {directory / 'bot.log'}, its database is in {directory / 'data'}.")


async def _play(directory: Path, say: Callable[[str], Any]) -> list[str]:
    """The whole demonstration; returns what was wrong."""
    say("The real program, against a fake Telegram and a fake model on this machine. Nothing leaves it.\n")
    async with open_world(directory) as world:
        stage = Stage(world, say)
        try:
            await stage.play()
        except WentWrong as error:
            wrong = [str(error)]
        else:
            wrong = [*judge(world, stage.lost)]
        say(f"\nWhat {NAME} sees at the end\n")
        for line in chat_lines(world.telegram.screen(stage.user)):
            say(line)
        say("\nWhat the ledger holds\n")
        for story in world.stories():
            for line in table_lines(story):
                say(line)
        say("")
        for reason in wrong:
            say(f"WRONG: {reason}")
        if not wrong:
            say("One acknowledgement was lost, the program was killed once in mid-answer,")
            say("and each of the three messages has exactly one complete reply.")
    return wrong


class Stage:
    """The scripted conversation."""

    def __init__(self, world: World, say: Callable[[str], Any]) -> None:
        self._world = world
        self._say = say
        self._began = trio.current_time()
        self.user: User = world.telegram.user(NAME)
        self._program: Program | None = None
        self.lost: Fault | None = None
        """The lost acknowledgement, once it is injected."""

    async def play(self) -> None:
        """Both lives of the program. Raises WentWrong when something that must happen does not."""
        self._instruct_model()
        async with started(self._world) as program:
            self._program = program
            self._tell(f"the program starts (process {program.pid})")
            await self._exchange(HELLO)
            self.lost = self._world.telegram.faults.add(AckLost(silent=True), "editMessageText", contains=TIME.answer)
            await self._exchange(TIME)
            self._tell("  Telegram showed that answer, but its acknowledgement was lost; the edit was repeated")
            await self._ask(STORY)
            await self._kill_in_mid_answer(program)
        async with started(self._world) as program:
            self._program = program
            self._tell(f"the program is started again (process {program.pid})")
            await self._answered(STORY)
            await self._settled()
            status = await program.stop()
            self._tell(f"the program is asked to stop, and exits {status}")
            if status != 0:
                raise WentWrong(f"the program exited {status} after SIGTERM")

    def _instruct_model(self) -> None:
        model = self._world.model
        model.when(HELLO.said).says(HELLO.answer, chunks=8, interval=0.03)
        clock = model.when(TIME.said).calls("clock", {}, text="One moment. ")
        clock.then().says(TIME.answer, chunks=8, interval=0.03)
        model.when(STORY.said).says(STORY.answer, chunks=6, interval=0.03)

    async def _ask(self, exchange: Exchange) -> None:
        self.user.says(exchange.said)
        self._tell(f"{NAME}: {exchange.said}")

    async def _exchange(self, exchange: Exchange) -> None:
        await self._ask(exchange)
        await self._answered(exchange)

    async def _answered(self, exchange: Exchange) -> None:
        """Waits until the answer is on screen and the fault that awaits it has struck."""
        await self._see(lambda: exchange.answer in self._texts(), f"a complete answer to {exchange.said!r}")
        if self.lost is not None and exchange is TIME:
            await self._see(self._repeated, "a repetition of the edit whose acknowledgement was lost")
        edits = next(message.edits for message in self._screen() if message.text == exchange.answer)
        self._tell(f"  bot: a complete answer, in one message that was edited {edits} times")

    def _repeated(self) -> bool:
        """The final edit was asked for again after its acknowledgement was lost."""
        final = [r for r in self._world.telegram.requests if r.method == "editMessageText" and r.text == TIME.answer]
        return len(final) >= 2 and final[-1].fault is None and final[-1].outcome != "open"

    async def _kill_in_mid_answer(self, program: Program) -> None:
        def begun() -> bool:
            return any(FIRST_WORDS in text and LAST_WORDS not in text for text in self._texts())

        await self._see(begun, "the beginning of the story")
        await program.kill()
        half = next((text for text in reversed(self._texts()) if FIRST_WORDS in text), "")
        self._tell(f"  bot: {clipped(half, 60)}")
        self._tell("kill -9, in mid-answer")
        if LAST_WORDS in half:
            raise WentWrong("the story was complete before the program could be killed")

    async def _see(self, seen: Callable[[], bool], what: str) -> None:
        assert self._program is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._program.end, nursery.cancel_scope)
            with trio.move_on_after(PATIENCE):
                await self._world.telegram.wait_for(seen)
                nursery.cancel_scope.cancel()
                return
            nursery.cancel_scope.cancel()
        raise WentWrong(f"{NAME} did not see {what} within {PATIENCE:g} s: {self._program.fate}")

    async def _settled(self) -> None:
        """Waits until the ledger has closed every delivery: after a kill it first says the final text once more."""
        with trio.move_on_after(PATIENCE):
            # A database that another process writes sends no events.
            while [*unfinished(self._world.stories())]:  # noqa: ASYNC110
                await trio.sleep(0.1)

    def _screen(self) -> list[ScreenMessage]:
        return self._world.telegram.screen(self.user)

    def _texts(self) -> list[str]:
        return self._world.telegram.bot_texts(self.user)

    def _tell(self, what: str) -> None:
        self._say(f"{trio.current_time() - self._began:6.1f} s  {what}")


def judge(world: World, lost: Fault | None) -> Iterator[str]:
    """What is wrong, from what the fake Telegram shows and what the database holds."""
    screen = world.telegram.screen(world.telegram.user(NAME))
    replies = [message.text for message in screen if message.from_bot]
    for exchange in EXCHANGES:
        count = replies.count(exchange.answer)
        if count != 1:
            yield f"{exchange.said!r} has {count} complete replies"
    if len(replies) != len(EXCHANGES):
        yield f"the bot left {len(replies)} messages on screen for {len(EXCHANGES)} of {NAME}'s"
    if [message.text for message in screen if not message.from_bot] != [exchange.said for exchange in EXCHANGES]:
        yield f"{NAME}'s messages are not as she wrote them"
    if lost is None or not lost.hits:
        yield "no acknowledgement was lost, so nothing was shown"
    yield from unfinished(world.stories())


def unfinished(stories: Iterable[Story]) -> Iterator[str]:
    """The tables in which a row is missing or has not come to its good end."""
    found = {story.table: [row[story.columns.index("state")] for row in story.rows] for story in stories}
    for table, end in (("inbox", "answered"), ("turns", "answered"), ("delivery_obligations", "delivered")):
        states = found.get(table, [])
        if states != [end] * len(EXCHANGES):
            yield f"{table} holds the states {', '.join(map(str, states)) or '(none)'}"


def chat_lines(screen: Iterable[ScreenMessage]) -> Iterator[str]:
    """A chat as lines of text, each speaker in a column of its own."""
    for message in screen:
        speaker = "bot" if message.from_bot else NAME
        lines = list(_wrapped(message.text, WIDTH - 8))
        for index, line in enumerate(lines):
            yield f"  {speaker if index == 0 else '':4}  {line}"


def table_lines(story: Story) -> Iterator[str]:
    """A table as aligned lines."""
    cells = [tuple(clipped(str(cell).replace("\n", " "), 60) for cell in row) for row in (story.columns, *story.rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(story.columns))]
    for number, row in enumerate(cells):
        padded = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {story.table if number == 0 else '':22}{padded}".rstrip()


def clipped(text: str, width: int) -> str:
    """The text, or as much of its beginning as fits into so many characters, with a sign that it goes on."""
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def _wrapped(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line
