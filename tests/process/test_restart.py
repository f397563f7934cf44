"""Starting and stopping: what a restart leaves alone, what a signal ends, and what is said when it cannot run."""

from __future__ import annotations

import signal

import pytest
import trio

from hermes_fakes.faults import AckLost, NeverSeen, RateLimited

from .answers import answer, long_answer
from .harness import BotWorld, open_bot_world

EX_UNAVAILABLE, EX_CONFIG = 69, 78
FOOTER = "<</A-1>>"


async def test_d10_quiet_restart() -> None:
    """D10: after many a fault and crash on one state, a SIGKILL and a start change no chat and ask no model."""
    async with open_bot_world() as world:
        await world.start()
        for number in range(1, 7):
            world.answers(f"A-{number}", long_answer(f"A-{number}") if number == 2 else None)
        world.faults(AckLost(), contains="<</A-1>>")
        world.asks("please A-1", "alice")
        world.faults(NeverSeen(), "editMessageText", contains="<</A-2>>")
        world.asks("please A-2", "bob")
        world.faults(RateLimited(0.3), contains="<</A-3>>")
        world.asks("please A-3", "carol")
        await world.wait_settled()
        point = world.kill_at("~", "editMessageText", contains="<</A-4>>")
        for number, name in ((4, "alice"), (5, "bob"), (6, "carol")):
            world.asks(f"please A-{number}", name)
        await world.wait_death(point)
        await world.start()
        await world.wait_settled()
        world.verdict()
        for _ in range(2):
            before = world.trace()
            await world.restart()
            await world.wait_quiet()
            assert world.trace() == before
        world.verdict()


async def streaming(world: BotWorld) -> trio.Event:
    """A question whose answer streams; a preview is visible, the rest waits for the event."""
    go_on = trio.Event()
    world.model.when("A-1", once=True).says(answer("A-1")[:200]).holds(go_on).says(answer("A-1")[200:])
    world.asks("please A-1")
    await world.wait_shown("Bold words")
    return go_on


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_answer_finish(number: signal.Signals) -> None:
    """SIGTERM and SIGINT: nothing new is received, the running answer is finished and shown, exit code 0."""
    async with open_bot_world() as world:
        bot = await world.start()
        go_on = await streaming(world)
        bot.signal(number)
        await world.wait_logged('"stopping"')
        world.asks("please A-2")
        go_on.set()
        assert await bot.wait() == 0
        assert FOOTER in world.shown()
        assert not world.ledger.knows("please A-2")
        world.answers("A-2")
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_a_signal_ends_an_idle_program_at_once() -> None:
    """SIGTERM with nothing to do: it ends well before its drain time, with exit code 0."""
    async with open_bot_world() as world:
        bot = await world.start()
        asked = trio.current_time()
        assert await bot.terminate() == 0
        assert trio.current_time() - asked < 10


async def test_what_the_drain_leaves_is_resumed() -> None:
    """An answer that needs longer than the drain time is finished by the next start, once."""
    async with open_bot_world(shutdown={"drain": 0.5}) as world:
        bot = await world.start()
        await streaming(world)
        assert await bot.terminate() == 0
        world.note_crash()
        world.answers("A-1")
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_a_second_signal_ends_at_once() -> None:
    """A second SIGTERM does not wait for the answer; the next start goes on with it."""
    async with open_bot_world(shutdown={"drain": 600}) as world:
        bot = await world.start()
        await streaming(world)
        bot.signal(signal.SIGTERM)
        await world.wait_logged('"another signal ends it at once"')
        await bot.terminate()
        world.note_crash()
        world.answers("A-1")
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_a_second_process_is_refused() -> None:
    """A second process on the same data directory says so and ends with 69; the first is not disturbed."""
    async with open_bot_world() as world:
        first = await world.start()
        second = await world.launch()
        assert await second.wait() == EX_UNAVAILABLE
        assert str(first.process.pid) in second.output
        assert "Traceback" not in second.output
        world.lives.remove(second)
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_settled()
        world.verdict()


async def test_a_killed_process_leaves_no_lock() -> None:
    """After SIGKILL the next process starts; a lock of a dead process holds up nobody."""
    async with open_bot_world() as world:
        await world.start()
        await world.restart()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model]\nkind = 'openai'\n", "model.name"),
        ("[modle]\nkind = 'demo'\n", "modle"),
        ("this is no TOML", "line 1"),
        ("[delivery]\nsettle = -1\n", "delivery.settle"),
    ],
)
async def test_a_broken_configuration(text: str, said: str) -> None:
    """A configuration that is wrong is named with its key, in words and without a traceback, exit code 78."""
    async with open_bot_world() as world:
        world.config.write_text(text)
        bot = await world.launch()
        assert await bot.wait() == EX_CONFIG
        assert said in bot.output
        assert "Traceback" not in bot.output


async def test_no_configuration() -> None:
    """A file that is not there is named, exit code 78."""
    async with open_bot_world() as world:
        bot = await world.launch("run", "--config", "absent.toml")
        assert await bot.wait() == EX_CONFIG
        assert "absent.toml" in bot.output
        assert "Traceback" not in bot.output


async def test_a_damaged_database() -> None:
    """A file that is no database is named and left as it is, exit code 69."""
    async with open_bot_world() as world:
        file = world.directory / "data" / "state.db"
        file.parent.mkdir()
        file.write_bytes(b"this is no database" * 100)
        bot = await world.launch()
        assert await bot.wait() == EX_UNAVAILABLE
        assert "state.db" in bot.output
        assert "Traceback" not in bot.output
        assert file.read_bytes() == b"this is no database" * 100


async def test_strangers_cause_nothing() -> None:
    """I9: whom nobody allowed gets no answer, no row and no model request; who is allowed is answered meanwhile."""
    async with open_bot_world(access={"allow": ["telegram:1001"]}) as world:
        await world.start()
        assert world.telegram.user("alice").id == 1001
        world.answers("A-1")
        world.telegram.user("mallory").says("let me in")
        world.asks("please A-1")
        world.telegram.user("mallory").says("please A-1")
        await world.wait_settled()
        await world.wait_quiet()
        assert [inbound.text for inbound in world.ledger.inbounds()] == ["please A-1"]
        assert [request.last_user_text for request in world.model.requests] == ["please A-1"]
        assert world.shown("mallory") == ""
        assert FOOTER in world.shown()


async def test_a_refused_token() -> None:
    """A token that Telegram does not take: the program says what to compare it with, keeps the token out, and lives."""
    async with open_bot_world(telegram={"token": "999:wrong-token"}) as world:
        bot = await world.launch()
        await world.wait_logged("BotFather")
        assert bot.alive
        assert "wrong-token" not in bot.output
        assert await bot.terminate() == 0


async def test_the_same_signal_twice_at_once_is_one_wish() -> None:
    """timeout(1) signals the process and its group in the same instant: the running answer is finished all the same."""
    async with open_bot_world() as world:
        bot = await world.start()
        go_on = await streaming(world)
        bot.signal(signal.SIGTERM)
        bot.signal(signal.SIGTERM)
        await world.wait_logged('"another signal ends it at once"')
        go_on.set()
        assert await bot.wait() == 0
        assert FOOTER in world.shown()
