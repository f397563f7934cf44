"""People who do not wait their turn, against the real program: rows B, C4 and D8, and /stop under load."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import trio

from .answers import answer
from .harness import PATIENCE, POLL, BotWorld, open_bot_world
from .talk import talk_verdict

INTERRUPT = {"busy": "interrupt"}
AT_ONCE = 1.0
"""Seconds in which /stop is answered."""


async def streaming(world: BotWorld, label: str = "A-1", user: str = "alice") -> trio.Event:
    """A question whose answer streams; a preview is visible, the rest waits for the event."""
    go_on = trio.Event()
    world.model.when(label, once=True).says(answer(label)[:200]).holds(go_on).says(answer(label)[200:])
    world.asks(f"please {label}", user)
    await world.wait_shown("Bold words", user)
    return go_on


async def test_b1_queue() -> None:
    """B1, Q-02: /queue while an answer streams: both are answered completely, in order, one turn each."""
    async with open_bot_world(chat=INTERRUPT) as world:
        await world.start()
        go_on = await streaming(world)
        world.answers("A-2")
        world.asks("/queue please A-2")
        await world.wait_shown("Queued as number 1")
        go_on.set()
        await world.wait_settled()
        talk_verdict(world)
        assert [inbound.state for inbound in world.ledger.inbounds()] == ["answered", "answered"]


async def test_b2_interrupt() -> None:
    """B2: a follow-up while a preview is visible is answered once; what it ended is closed and not run again."""
    async with open_bot_world(chat=INTERRUPT) as world:
        await world.start()
        await streaming(world)
        world.answers("A-2")
        world.asks("please A-2")
        await world.wait_settled()
        talk_verdict(world)
        assert "interrupted by your next message" in world.shown()
        assert [inbound.state for inbound in world.ledger.inbounds()] == ["interrupted", "answered"]
        assert not world.model.open_streams, "the model still works for the turn that was interrupted"
        await world.restart()
        await world.wait_quiet()
        talk_verdict(world)


async def test_b5_a_queue_survives() -> None:
    """B5: /queue a, b, c while busy, SIGKILL, restart: all are answered, in order."""
    async with open_bot_world(chat=INTERRUPT) as world:
        await world.start()
        await streaming(world)
        for number in (1, 2, 3, 4):
            world.answers(f"A-{number}")
        for number in (2, 3, 4):
            world.asks(f"/queue please A-{number}")
        await world.wait_shown("Queued as number 3")
        await world.restart()
        await world.wait_settled()
        talk_verdict(world, strays=1)
        assert [inbound.state for inbound in world.ledger.inbounds()] == ["answered"] * 4


async def test_c4_with_an_interrupt() -> None:
    """C4, C1: the interrupted and the interrupting message come again, before and after a SIGKILL: nothing new."""
    async with open_bot_world(chat=INTERRUPT) as world:
        await world.start()
        go_on = trio.Event()
        world.model.when("A-1", once=True).says(answer("A-1")[:200]).holds(go_on).says(answer("A-1")[200:])
        first = world.asks("please A-1")
        await world.wait_shown("Bold words")
        world.model.when("A-2", once=True).says(answer("A-2")[:200]).holds(go_on)
        world.answers("A-2")
        second = world.asks("please A-2")
        await world.wait(world.telegram, lambda: world.shown().count("Bold words") == 2)
        for asked in (first, second):
            world.telegram.redeliver(asked.update)
        await world.kill()
        for asked in (first, second):
            world.telegram.redeliver(asked.update)
        await world.start()
        await world.wait_settled()
        await world.restart()
        for asked in (first, second):
            world.telegram.redeliver(asked.update)
        await world.wait_quiet()
        talk_verdict(world)
        assert [inbound.state for inbound in world.ledger.inbounds()] == ["interrupted", "answered"]


# --- the terminal -----------------------------------------------------------------------------------------------------


def with_terminal(world: BotWorld) -> Path:
    """Turns the tool on; its working directory."""
    place = world.directory / "work"
    place.mkdir()
    settings = f'\n[tools.terminal]\nenabled = true\ndirectory = "{place}"\n'
    world.config.write_text(world.config.read_text() + settings)
    return place


async def wait_until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Returns when something is so that tells nobody when it changes: a file, a process."""
    with trio.fail_after(patience):
        while True:
            if condition():
                return
            await trio.sleep(POLL)


async def wait_pid(path: Path) -> int:
    """The number in a file, when it is there."""
    await wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(_text(path))


def _text(path: Path) -> str:
    return path.read_text().strip()


def alive(group: int) -> bool:
    """A process of this group is left, other than a dead one that nobody has waited for."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                return True
    return False


async def test_b6_stop_while_a_tool_sleeps() -> None:
    """B6: /stop while a tool sleeps ten minutes: answered within a second, its processes are gone, the next works."""
    async with open_bot_world(chat=INTERRUPT) as world:
        place = with_terminal(world)
        await world.start()
        command = "trap '' TERM; (trap '' TERM; sleep 600) & echo $$ > pid; sleep 600; sleep 600"
        world.model.when("A-1").calls("terminal", {"command": command}, id="c1").then().says(answer("A-1"))
        world.answers("A-2")
        world.asks("please A-1")
        group = await wait_pid(place / "pid")
        assert alive(group)
        asked = trio.current_time()
        world.asks("/stop")
        await world.wait_shown("Stopped")
        assert trio.current_time() - asked < 10 * AT_ONCE
        await wait_until(lambda: not alive(group), 10 * AT_ONCE)
        world.asks("please A-2")
        await world.wait_settled()
        talk_verdict(world)
        states = {inbound.text: inbound.state for inbound in world.ledger.inbounds()}
        assert states == {"please A-1": "stopped", "/stop": "answered", "please A-2": "answered"}


async def test_d8_a_tool_in_flight() -> None:
    """D8: one call finished, one started, one not: kept, reported as unknown, and run; none twice."""
    async with open_bot_world() as world:
        place = with_terminal(world)
        await world.start()
        script = world.model.when("A-1")
        for name, more in (("one", ""), ("two", "; echo $$ > pid; sleep 600"), ("three", "")):
            command = f"echo {name} | tee -a {shlex.quote(name)}{more}"
            script = script.calls("terminal", {"command": command}, id=name)
        script.then().says(answer("A-1"))
        world.asks("please A-1")
        group = await wait_pid(place / "pid")
        try:
            await world.restart()
            await world.wait_settled()
        finally:
            os.killpg(group, signal.SIGKILL)
        talk_verdict(world)
        assert [_text(place / name) for name in ("one", "two", "three")] == ["one", "two", "three"]
        results = world.model.requests[-1].tool_results
        assert results["one"].startswith("one\n[exit code 0]")
        assert results["two"].startswith("[outcome unknown")
        assert results["three"].startswith("three\n[exit code 0]")
        assert results["three"].endswith("interrupted by a restart; go on from here]")


# --- load -------------------------------------------------------------------------------------------------------------


async def test_stop_while_a_hundred_turns_stream() -> None:
    """/stop is answered at once, ten times in a row, while a hundred turns stream: a second is promised, and ten are
    allowed here, where other tests may share the machine."""
    async with open_bot_world(chat=INTERRUPT, telegram={"edit_interval": 1}) as world:
        await world.start()
        world.model.when("please").says(answer("A-0") * 5, chunks=10, interval=1)
        people = [f"user{number}" for number in range(100)]
        for name in people:
            world.asks("please", name)
        await world.wait(world.telegram, lambda: all(len(world.shown(name)) > 5 for name in people))
        times = []
        for name in people[:10]:
            asked = trio.current_time()
            world.asks("/stop", name)
            await world.wait_shown("⏹ Stopped.", name)
            times.append(trio.current_time() - asked)
        assert max(times) < 10 * AT_ONCE, times
        assert len(world.model.open_streams) == 90


async def test_b4_a_follow_up_at_any_moment() -> None:
    """B4: a follow-up at any moment of a turn of half a second: each message has one end, the last is answered. One
    program for all moments, one after the other, each in a chat of its own."""
    async with open_bot_world(chat=INTERRUPT) as world:
        await world.start()
        for moment in range(12):
            world.answers(f"A-{moment}a", chunks=60, interval=0.1)
            world.answers(f"A-{moment}b")
            world.asks(f"please A-{moment}a", f"user{moment}")
            await trio.sleep(moment * 0.07)  # the moment itself is what is tested
            world.asks(f"please A-{moment}b", f"user{moment}")
            await world.wait_settled()
            assert world.ledger.inbounds()[-1].state == "answered"
        talk_verdict(world)
