"""The guards: each trips on its own mistake, and names the place."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
from rows import answer

from hermes_trio.model.base import ToolSpec
from hermes_trio.testing import Fault, LeftTheWorld, Life, Missed, Stuck, World, run_world, runtime_bot

HERE = "test_guards.py"


class Mistake:
    """A tool that does something that it must not."""

    spec = ToolSpec("mistake", "Makes a mistake.", {"type": "object", "properties": {}})

    def __init__(self, mistake: Callable[[], Any]) -> None:
        self.mistake = mistake

    async def run(self, arguments: Mapping[str, Any], context: object) -> str:
        """Makes it."""
        result = self.mistake()
        return str(await result if hasattr(result, "__await__") else result)


async def call_it(world: World) -> None:
    """The model calls the tool once."""
    alice = world.telegram.user("alice")
    world.model.when("go").calls("mistake", {}, id="call").then().says(answer("G"))
    await alice.says("go")


async def numbers() -> AsyncIterator[int]:
    """Counts, and has something to clean up."""
    try:
        yield 1
        yield 2
    finally:
        await trio.lowlevel.checkpoint()


async def leaves_a_generator() -> None:
    """Breaks off a loop without aclosing."""
    async for _ in numbers():
        break


def leaves_a_task() -> None:
    """Starts something that nobody owns."""
    trio.lowlevel.spawn_system_task(trio.sleep_forever)


REACHING_OUT = {
    "sleeps 1 s of real time": lambda: time.sleep(1),
    "starts a real thread": lambda: threading.Thread(target=print).start(),
    "works in a real thread": lambda: trio.to_thread.run_sync(print),
    "opens a real port": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "asks a real name server": lambda: socket.getaddrinfo("localhost", 80),
    "starts a real process": lambda: subprocess.Popen(["true"]),
    "an async generator was left open": leaves_a_generator,
    "a task was left behind": leaves_a_task,
}


@pytest.mark.parametrize("what", REACHING_OUT)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_leaves_the_world_is_named(what: str) -> None:
    """A real sleep, thread, socket or process, a generator and a task left behind: a failure that names the place."""
    with pytest.raises(LeftTheWorld, match=what) as caught:
        run_world(call_it, tools=[Mistake(REACHING_OUT[what])])
    assert HERE in str(caught.value) or "task" in what


def test_a_stall_is_named() -> None:
    """A world in which nothing can go on ends, and says where its tasks wait."""

    @asynccontextmanager
    async def deaf_bot(life: Life) -> AsyncIterator[None]:
        yield

    async def scenario(world: World) -> None:
        await trio.Event().wait()

    with pytest.raises(Stuck, match=HERE):
        run_world(scenario, bot=deaf_bot)


def test_an_endless_shield_is_named() -> None:
    """A shield without a deadline, which would hang a shutdown, is found at the end of the world."""

    @asynccontextmanager
    async def stubborn_bot(life: Life) -> AsyncIterator[None]:
        async with runtime_bot(life):
            try:
                yield
            finally:
                with trio.CancelScope(shield=True):
                    await trio.Event().wait()

    with pytest.raises(Stuck, match=f"endless shield(.|\n)*{HERE}"):
        run_world(call_it, bot=stubborn_bot, tools=[Mistake(str)])


def test_a_hostile_corpse_changes_nothing() -> None:
    """A killed bot that keeps working behind a shield commits nothing, sends nothing, and delays no restart."""

    @asynccontextmanager
    async def hostile_bot(life: Life) -> AsyncIterator[None]:
        bot: AbstractAsyncContextManager[object] = runtime_bot(life)
        async with life.ports.open_executor(life.config.data_dir, life.ports.clock) as executor, bot:
            try:
                yield
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3)
                    await executor.run([])
                    stream = await life.ports.network.connect_tcp("telegram.test", 80)  # type: ignore[union-attr]
                    await stream.write(b"GET / HTTP/1.1\r\n\r\n")

    async def scenario(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.says(answer("H"), chunks=4, interval=0.5)
        await alice.says("hi")
        await trio.sleep(1)
        await world.restart()

    assert run_world(scenario, bot=hostile_bot).lives == 2


def test_a_fault_that_missed_fails() -> None:
    """A fault that never struck fails the run, and prints the line that made it."""
    with pytest.raises(Missed, match=r"Fault\('ack_lost', 'wire\? deleteMessage', nth=3\)"):
        run_world(call_it, tools=[Mistake(str)], faults=[Fault("ack_lost", "wire? deleteMessage", nth=3)])


def test_a_bot_that_never_answers_is_stuck() -> None:
    """A world that does not become quiet says what is missing."""

    async def scenario(world: World) -> None:
        world.model.says("…").stalls()
        world.model.when("hi").stalls()
        await world.telegram.user("alice").says("hi")
        await world.quiet(patience=20)

    with pytest.raises(Stuck, match=r"in flight: getUpdates, chat\.completions"):
        run_world(scenario, config={"model": {"idle_timeout": 3000}})
