"""Actors: one thing after the other at an address, all addresses at once, and nothing that one does harms another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from hermes_trio.conversation import actor, records
from hermes_trio.conversation.actor import FAULT_PAUSE, HEARTBEAT, LETTING_GO
from hermes_trio.conversation.records import GATHER, Begun
from hermes_trio.ledger import LedgerClosed
from hermes_trio.values import Address

from .desk import HOME
from .stage import Stage, open_stage

Does = Callable[[Begun], Awaitable[None]]


def chat(number: int) -> Address:
    """One of many chats."""
    return Address("tg", str(number))


def takes(stage: Stage, seconds: float) -> Does:
    """Turns that take so long and then answer."""

    async def does(begun: Begun) -> None:
        await trio.sleep(seconds)
        await stage.answer(begun)

    return does


def hangs(stage: Stage, text: str, seconds: float = 1000.0) -> Does:
    """The turn of this text cannot be cancelled, as a tool in a thread; all others answer at once."""

    async def does(begun: Begun) -> None:
        if begun.inbound.text == text:
            with trio.CancelScope(shield=True):
                await trio.sleep(seconds)
        else:
            await stage.answer(begun)

    return does


async def test_one_after_the_other_and_all_at_once(autojump_clock: None) -> None:
    """The turns of an address follow each other in order of arrival; those of different addresses run at once."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 10)
        for number in range(20):
            await stage.hears("first", "second", "third", address=chat(number))
        await stage.conversations.wait_idle()
        assert 30 <= trio.current_time() < 31
        for number in range(20):
            own = [begun.inbound.text for begun in stage.runner.begun if begun.turn.address == chat(number)]
            assert own == ["first", "second", "third"]


async def test_a_fault_at_one_address_is_nobody_elses(autojump_clock: None) -> None:
    """A row that cannot be read ends neither the process nor any other conversation; when it was mended, its address
    goes on after the pause."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 100)
        await stage.hears("running")
        await trio.sleep(1)
        await stage.hears("broken")
        stage.con.execute("UPDATE inbox SET attachments = 'no json' WHERE text = 'broken'")
        await trio.sleep(101)
        await stage.hears("elsewhere", address=chat(2))
        await trio.sleep(101)
        assert stage.states() == {"running": "answered", "broken": "queued", "elsewhere": "answered"}
        stage.con.execute("UPDATE inbox SET attachments = '[]'")
        await trio.sleep(FAULT_PAUSE)
        assert stage.runner.texts == ["running", "elsewhere", "broken"]
        await stage.conversations.wait_idle()
        assert stage.states()["broken"] == "answered"


async def test_a_fault_is_tried_again_when_something_arrives(autojump_clock: None) -> None:
    """A new message at an address that failed does not wait for the pause; while it fails it is tried once a pause."""
    async with open_stage() as stage:
        await stage.hears("one")
        await stage.conversations.wait_idle()
        await stage.hears("broken")
        stage.con.execute("UPDATE inbox SET attachments = 'no json' WHERE text = 'broken'")
        await trio.sleep(5)
        stage.con.execute("UPDATE inbox SET attachments = '[]'")
        await stage.hears("next")
        await trio.sleep(1)
        assert stage.states() == {"one": "answered", "broken": "answered", "next": "answered"}


async def test_more_turns_than_places(autojump_clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns beyond the limit wait for a place as rows that nobody has begun; each gets one when another ends."""
    monkeypatch.setattr(actor, "MAX_TURNS", 3)
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 10)
        for number in range(8):
            await stage.hears(f"text {number}", address=chat(number))
        await trio.sleep(5)
        assert list(stage.states().values()) == ["running"] * 3 + ["queued"] * 5
        await stage.conversations.wait_idle()
        assert set(stage.states().values()) == {"answered"}
        assert stage.runner.busiest == 3
        assert 30 <= trio.current_time() < 31


async def test_what_gathers_takes_no_place(autojump_clock: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An album that still arrives keeps nobody from a turn."""
    monkeypatch.setattr(actor, "MAX_TURNS", 1)
    async with open_stage() as stage:
        await stage.hears("album", group="g")
        await stage.hears("other", address=chat(2))
        await trio.sleep(GATHER / 2)
        assert stage.states() == {"album": "queued", "other": "answered"}
        await stage.conversations.wait_idle()
        assert stage.states()["album"] == "answered"
        assert trio.current_time() < GATHER + 0.5


async def test_a_turn_that_hangs_is_left_alone(autojump_clock: None) -> None:
    """A turn that was stopped and cannot be cancelled keeps its conversation for a moment only; what it does later is
    nobody's, and its end disturbs no other turn."""
    async with open_stage() as stage:
        stage.runner.does = hangs(stage, "hang")
        await stage.hears("hang")
        await trio.sleep(1)
        await stage.hears("/stop")
        await stage.hears("next")
        await trio.sleep(LETTING_GO - 0.5)
        assert stage.states()["next"] == "queued"
        await trio.sleep(1)
        assert stage.states() == {"hang": "stopped", "next": "answered"}
        assert "hang" in stage.runner.running
        await stage.conversations.wait_idle()
        assert trio.current_time() < 10
        stage.runner.does = takes(stage, 2000)
        await stage.hears("long")
        await trio.sleep(1000)
        assert "hang" not in stage.runner.running
        assert stage.states()["long"] == "running"
        await stage.conversations.wait_idle()
        assert stage.states()["long"] == "answered"


async def test_a_stopped_turn_ends_at_once(autojump_clock: None) -> None:
    """A turn that can be cancelled is, as soon as the stop is durable, and the next begins without a pause."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 1000)
        await stage.hears("long")
        await trio.sleep(1)
        stage.runner.does = stage.answer
        await stage.hears("/stop")
        await stage.hears("next")
        await stage.conversations.wait_idle()
        assert stage.runner.cancelled == ["long"]
        assert stage.states() == {"long": "stopped", "next": "answered"}
        assert trio.current_time() < 1.5


async def test_a_turn_that_ended_before_its_scope_is_not_run(autojump_clock: None) -> None:
    """A turn that was begun and ended before its work started does no work, and the next one does."""
    async with open_stage() as stage:

        def end_it(address: Address) -> None:
            row = stage.con.execute("SELECT id FROM turns WHERE state = 'running'").fetchone()
            if row is not None and not stage.runner.begun:
                stage.con.execute("UPDATE turns SET state = 'stopped', ended_at = 1 WHERE id = ?", (row["id"],))
                stage.con.execute("UPDATE inbox SET state = 'stopped', ended_at = 1 WHERE turn = ?", (row["id"],))
                stage.conversations.cancel(address, row["id"])
                stage.courier.on_wake = None

        stage.courier.on_wake = end_it
        await stage.hears("one", "two")
        await stage.conversations.wait_idle()
        assert stage.runner.texts == ["two"]
        assert stage.states() == {"one": "stopped", "two": "answered"}


async def test_a_turn_that_ends_without_an_end_goes_on(autojump_clock: None) -> None:
    """Work that returns while its turn still runs in the ledger is taken up again, as by a restart."""
    async with open_stage() as stage:

        async def does(begun: Begun) -> None:
            await trio.sleep(1)
            if begun.resumed:
                await stage.answer(begun)

        stage.runner.does = does
        await stage.hears("one", "two")
        await stage.conversations.wait_idle()
        assert stage.states() == {"one": "answered", "two": "answered"}
        assert [begun.resumed for begun in stage.runner.begun] == [False, True, False, True]
        assert not stage.conversations._alive


async def test_a_cancel_for_another_turn_does_nothing(autojump_clock: None) -> None:
    """Only the turn that was named is cancelled."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 5)
        await stage.hears("one")
        await trio.sleep(1)
        stage.conversations.cancel(HOME, "some other turn")
        stage.conversations.cancel(chat(99), "some other turn")
        await stage.conversations.wait_idle()
        assert stage.states() == {"one": "answered"}


async def test_a_chat_that_moves_keeps_its_actor(autojump_clock: None) -> None:
    """What is said at the new address while a turn runs that began at the old one waits for it."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 10)
        await stage.hears("one")
        await trio.sleep(1)
        stage.con.execute("UPDATE turns SET chat = '2'")
        stage.con.execute("UPDATE inbox SET chat = '2'")
        stage.courier._follow(HOME, "2")
        await stage.hears("two", address=chat(2))
        await trio.sleep(5)
        assert stage.runner.texts == ["one"]
        turn = stage.runner.begun[0].turn.id
        await stage.ledger.insist(
            records.close, stage.runner.begun[0].turn, "stop", "Stopped.", "", stage.account, 2000.0
        )
        stage.conversations.cancel(chat(2), turn)
        await trio.sleep(1)
        assert stage.runner.texts == ["one", "two"]
        assert stage.runner.cancelled == ["one"]


async def test_a_restart_wakes_whoever_has_work(autojump_clock: None) -> None:
    """Interrupted turns go on, and queued rows begin, at every address; who has none is left asleep."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 1000)
        await stage.hears("running")
        await stage.hears("behind")
        await trio.sleep(1)
        stage.conversations.close()
        await stage.hears("waiting", address=chat(2))
        stage.conversations._closing = False
        stage.runner.does = stage.answer
        await stage.hears("done", address=chat(3))
        await trio.sleep(1)
        con = stage.con
    async with open_stage(con=con) as stage:
        assert stage.states() == {
            "running": "running", "behind": "queued", "waiting": "queued", "done": "answered"
        }  # fmt: skip
        await stage.conversations.recover()
        await stage.conversations.wait_idle()
        assert sorted(stage.runner.texts) == ["behind", "running", "waiting"]
        assert [begun.resumed for begun in stage.runner.begun if begun.inbound.text == "running"] == [True]
        assert set(stage.states().values()) == {"answered"}


async def test_closing_begins_nothing(autojump_clock: None) -> None:
    """Once closed, what runs may finish and what waits stays a row, also what is woken then."""
    async with open_stage() as stage:
        stage.runner.does = takes(stage, 10)
        await stage.hears("one", "two")
        await trio.sleep(1)
        stage.conversations.close()
        await stage.hears("three", address=chat(2))
        await stage.conversations.wait_idle()
        assert stage.states() == {"one": "answered", "two": "queued", "three": "queued"}
        assert 10 <= trio.current_time() < 11


async def test_closing_ends_a_pause(autojump_clock: None) -> None:
    """Neither an album that gathers nor an address that failed holds up the end."""
    async with open_stage() as stage:
        await stage.hears("album", group="g")
        await stage.hears("broken", address=chat(2))
        stage.con.execute("UPDATE inbox SET attachments = 'no json' WHERE text = 'broken'")
        await trio.sleep(0.2)
        stage.conversations.close()
        await stage.conversations.wait_idle()
        assert trio.current_time() < 0.5


async def test_the_heartbeat_is_that_of_work(autojump_clock: None) -> None:
    """While a turn runs there is a sign of life in the database every few seconds; an idle bot writes nothing."""

    def latest() -> float:
        return float(stage.con.execute("SELECT last_commit FROM incarnations").fetchone()[0])

    async with open_stage() as stage:
        stage.con.execute("INSERT INTO incarnations (id, started, last_commit, lives) VALUES (1, 0, 0, 1)")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.conversations.show_life)
            await trio.sleep(100)
            assert latest() == 0
            stage.runner.does = takes(stage, 100)
            await stage.hears("one")
            seen = []
            for _ in range(15):
                await trio.sleep(HEARTBEAT)
                seen.append(latest())
            assert len(set(seen)) >= 14
            await stage.conversations.wait_idle()
            await trio.sleep(HEARTBEAT)
            idle = latest()
            await trio.sleep(100)
            assert latest() == idle
            nursery.cancel_scope.cancel()


async def test_an_unknown_account_wakes_nobody(autojump_clock: None) -> None:
    """Rows of an account that is not configured now wait until it is."""
    async with open_stage() as stage:
        stage.conversations.wake(Address("gone", "1"))
        await stage.conversations.wait_idle()
        assert not stage.conversations._actors


async def test_the_end_of_the_ledger_passes(autojump_clock: None) -> None:
    """LedgerClosed is no fault of an address: it is the end."""
    with pytest.RaisesGroup(LedgerClosed, flatten_subgroups=True, allow_unwrapped=True):
        async with open_stage() as stage:
            stage.ledger._closed = True
            stage.conversations.wake(HOME)
            await trio.sleep(FAULT_PAUSE)
