"""A program around the runtime, killed at every effect boundary and run again: one answer and one message for a key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import trio

from hermes_trio.ledger.transcript import messages
from hermes_trio.runtime import Runtime, open_runtime
from hermes_trio.testing import Life, World
from hermes_trio.values import Address

ANSWER = "Nothing is new."
MARKED = f"[may be a duplicate] {ANSWER}"


class Program:
    """A script that does the same in each of its lives: it asks, and sends the answer on."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.states: list[str] = []
        self.done = trio.Event()

    @asynccontextmanager
    async def bot(self, life: Life) -> AsyncIterator[Runtime]:
        """One life of it."""
        async with open_runtime(life.config, ports=life.ports) as runtime, trio.open_nursery() as nursery:
            nursery.start_soon(self._run, runtime)
            yield runtime
            nursery.cancel_scope.cancel()

    async def _run(self, runtime: Runtime) -> None:
        answer = await runtime.ask("what is new?", key="daily")
        self.answers.append(answer)
        sent = await runtime.send("telegram:1", answer, key="daily", wait=True)
        self.states.append(sent.state)
        self.done.set()


def play(crash_at: Collection[int], **delivery: str) -> tuple[World, Program]:
    """The script in a world that kills it there; every promise is checked at the end."""
    program = Program()
    world = World(crash_at=crash_at, bot=program.bot, config={"delivery": delivery} if delivery else None)

    async def scenario(world: World) -> None:
        world.telegram.fake.user("ann", 1).unblocks()
        world.model.says(ANSWER)
        await program.done.wait()

    world.run(scenario)
    return world, program


def complaints(crash_at: Collection[int], **delivery: str) -> list[str]:
    """What is not as it should be when the script is killed there."""
    world, program = play(crash_at, **delivery)
    found = []
    crashes = len(world.boundaries.crashes)
    if set(program.answers) != {ANSWER} or set(program.states) != {"delivered"}:
        found.append(f"the script was told {program.answers} and {program.states}")
    if len(world.model.requests) > 1 + crashes:
        found.append(f"the model was asked {len(world.model.requests)} times")
    said = messages(world.disk.connection, _session(world))
    if [message.role for message in said] != ["user", "assistant"]:
        found.append(f"the transcript holds {said}")
    texts = world.telegram.user("ann").reads()
    allowed = [[ANSWER]] if delivery else [[ANSWER], [MARKED], [ANSWER, MARKED]]
    if texts not in (allowed if crashes else [[ANSWER]]):
        found.append(f"seen: {texts}")
    labels = ", ".join(str(passed) for passed in world.boundaries.crashes)
    return [f"{crash_at} {labels}: {each}" for each in found]


def _session(world: World) -> str:
    row = world.disk.connection.execute(
        "SELECT session FROM routes WHERE key = ?", (str(Address("@script", "default")),)
    ).fetchone()
    return str(row["session"])


def test_a_program_is_killed_at_every_boundary() -> None:
    """Wherever it dies, its next life gets the one answer, and ann sees the one message, or a copy that is marked."""
    boundaries = len(play(())[0].boundaries.trace)
    assert boundaries > 15
    assert [each for number in range(boundaries + 1) for each in complaints((number,) if number else ())] == []


def test_with_reserving_nothing_is_ever_marked() -> None:
    """With `reserve = "all"` the message is reserved first: no crash costs a copy, at most an empty placeholder."""
    boundaries = len(play((), reserve="all")[0].boundaries.trace)
    assert [each for number in range(1, boundaries + 1) for each in complaints((number,), reserve="all")] == []


def test_a_program_is_killed_twice() -> None:
    """The same at pairs of boundaries, some of them."""
    boundaries = len(play(())[0].boundaries.trace)
    pairs = [(one, two) for one in range(1, boundaries + 1, 4) for two in range(one + 1, boundaries + 12, 9)]
    assert [each for pair in pairs for each in complaints(pair)] == []
