"""Ingress: who is let in, what is durable when, and what follows in which order."""

from __future__ import annotations

import pytest
import trio

from hermes_trio.access import Access
from hermes_trio.conversation.records import Begun
from hermes_trio.ledger import LedgerClosed, accounts
from hermes_trio.values import Address

from .desk import HOME, inbound
from .stage import COMMIT, Stage, open_stage

OTHER = Address("tg", "2")


async def for_ever(begun: Begun) -> None:
    """A turn without an end."""
    await trio.sleep_forever()


def everything(stage: Stage) -> dict[str, list[tuple[object, ...]]]:
    """Every row but the cursors'."""
    names = [row[0] for row in stage.con.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: [tuple(row) for row in stage.con.execute(f"SELECT * FROM {name}")] for name in names if name != "cursors"
    }


@pytest.mark.parametrize("text", ["hello", "/stop", "/queue hello", "/new", "/steer hello", "/model second", ""])
async def test_a_stranger_leaves_no_trace(autojump_clock: None, text: str) -> None:
    """Whatever a stranger says, nothing changes but the cursor, and nobody is told: also while a turn runs."""
    async with open_stage(access=Access(["tg:alice"], [])) as stage:
        stage.runner.does = for_ever
        await stage.hears("a question")
        await trio.sleep(1)
        before = everything(stage)
        stage.notes.clear()
        await stage.hears(text, sender="mallory", cursor="7")
        await stage.hears(text, sender="mallory", address=OTHER, cursor="8")
        await trio.sleep(1)
        assert everything(stage) == before
        assert stage.notes == []
        assert stage.runner.cancelled == []
        assert await stage.ingress.cursor() == "8"


async def test_a_batch_with_a_stranger_in_it(autojump_clock: None) -> None:
    """The others of the batch are let in, in their order."""
    async with open_stage(access=Access(["tg:alice"], [])) as stage:
        await stage.receives(
            inbound("1", "one"), inbound("2", "two", "mallory"), inbound("3", "three"), cursor="3"
        )  # fmt: skip
        await stage.conversations.wait_idle()
        assert stage.states() == {"one": "answered", "three": "answered"}


async def test_who_was_let_in_once_need_not_be_for_ever(autojump_clock: None) -> None:
    """What waits of somebody who may not speak any more is dropped by the next life, without a turn."""
    async with open_stage() as stage:
        stage.conversations.close()
        await stage.hears("hello", sender="bob")
        con = stage.con
    async with open_stage(con=con, access=Access(["tg:alice"], [])) as stage:
        await stage.conversations.recover()
        await stage.conversations.wait_idle()
        assert stage.runner.begun == []
        assert stage.states() == {"hello": "dropped"}


async def test_scopes_are_cancelled_before_actors_are_woken(autojump_clock: None) -> None:
    """What was ended is cancelled first, so that the next turn does not begin beside it; all of it only when the batch
    is durable."""
    async with open_stage() as stage:
        stage.runner.does = for_ever
        await stage.hears("one")
        await trio.sleep(1)
        turn = stage.runner.begun[0].turn.id
        stage.notes.clear()
        states: list[str] = []
        stage.courier.on_wake = lambda address: states.append(
            stage.con.execute("SELECT state FROM turns WHERE id = ?", (turn,)).fetchone()[0]
        )
        await stage.hears("/stop", "two")
        assert stage.notes[0] == f"cancel {turn}"
        assert set(stage.notes[1:]) == {"wake 1", "deliver 1"}
        assert set(states) == {"stopped"}


async def test_nothing_follows_before_it_is_durable(autojump_clock: None) -> None:
    """`receive` returns, so that the platform may be told, only behind the commit; nobody is told anything before."""
    async with open_stage() as stage:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.hears, "hello")
            await trio.sleep(COMMIT / 2)
            assert stage.notes == []
            assert stage.states() == {}
        assert stage.states() == {"hello": "queued"}
        assert stage.notes[0] == "wake 1"


async def test_cancelled_before_the_commit(autojump_clock: None) -> None:
    """A cancelled `receive` has stored nothing, or all of it with its cursor."""
    async with open_stage() as stage:
        with trio.CancelScope() as scope:
            scope.cancel()
            await stage.hears("one", "two", cursor="1")
        await trio.sleep(1)
        assert stage.states() == {}
        assert await stage.ingress.cursor() is None
        with trio.move_on_after(COMMIT / 2):
            await stage.hears("three", "four", cursor="2")
        await trio.sleep(1)
        assert stage.states() == {"three": "answered", "four": "answered"}
        assert await stage.ingress.cursor() == "2"


async def test_a_message_that_is_known(autojump_clock: None) -> None:
    """Delivered again it is one row and one turn; the cursor moves all the same."""
    async with open_stage() as stage:
        for cursor in ("1", "2", "3"):
            await stage.receives(inbound("m", "hello"), cursor=cursor)
        await stage.conversations.wait_idle()
        assert stage.runner.texts == ["hello"]
        assert await stage.ingress.cursor() == "3"


async def test_a_round_trip_is_a_sign_of_life(autojump_clock: None) -> None:
    """It is told to the supervisor and to the courier, whose account then counts as up."""
    async with open_stage() as stage:
        assert stage.account.down
        await trio.sleep(5)
        stage.ingress.alive()
        assert stage.completed == [5.0]
        assert not stage.account.down
        assert stage.account.alive_at == stage.ingress._clock.now()


async def test_the_end_of_the_ledger(autojump_clock: None) -> None:
    """An adapter that receives then hears LedgerClosed, and acknowledges nothing."""
    async with open_stage() as stage:
        stage.ledger._closed = True
        with pytest.raises(LedgerClosed):
            await stage.hears("hello")
        with pytest.raises(LedgerClosed):
            await stage.ingress.cursor()
        assert stage.notes == []


async def test_a_message_of_a_chat_that_has_moved(autojump_clock: None) -> None:
    """It is stored at the new address, and that is woken, also in a later life of the process."""
    async with open_stage() as stage:
        accounts.rename_chat(stage.con, HOME, "2")
        await stage.hears("hello")
        await stage.conversations.wait_idle()
        assert stage.states() == {"hello": "answered"}
        assert [begun.turn.address for begun in stage.runner.begun] == [OTHER]
        assert HOME not in stage.conversations._actors
