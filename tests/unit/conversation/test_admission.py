"""Admission: what becomes of messages, in the transaction that stores them."""

from __future__ import annotations

import pytest
from attrs import evolve

from hermes_trio.conversation import notices
from hermes_trio.conversation.admission import CUT_SHARE, CUT_WITHIN
from hermes_trio.conversation.commands import Command, CommandCall, Outcome, Registry
from hermes_trio.conversation.records import GATHER, Begun
from hermes_trio.ledger import accounts, obligations, transcript
from hermes_trio.platforms.base import Attachment
from hermes_trio.values import Address

from .desk import GROUP, HOME, LIMIT, Desk, inbound

LONG = "x" * LIMIT
OTHER = Address("tg", "2")


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- storing ----------------------------------------------------------------------------------------------------------


def test_a_batch_is_stored_in_order_with_its_cursor(desk: Desk) -> None:
    """A batch is one transaction: its rows in order, its cursor, and where something waits, each place once."""
    admitted = desk.admit(
        inbound("1", "a"), inbound("2", "b", address=OTHER), inbound("3", "c"), cursor="99"
    )  # fmt: skip
    assert admitted.arrived == (HOME, OTHER)
    assert admitted.ended == ()
    assert [(row["native_id"], row["text"], row["kind"], row["state"]) for row in rows(desk)] == [
        ("1", "a", "message", "queued"), ("2", "b", "message", "queued"), ("3", "c", "message", "queued"),
    ]  # fmt: skip
    assert accounts.cursor(desk.con, "tg") == "99"
    row = desk.row("1")
    assert (row.sender, row.sender_name, row.received_at, row.turn) == ("alice", "Alice", desk.now, None)


def rows(desk: Desk) -> list[dict[str, object]]:
    return [dict(row) for row in desk.con.execute("SELECT * FROM inbox ORDER BY id")]


def test_a_batch_without_a_cursor_moves_none(desk: Desk) -> None:
    """Where the platform counts nothing there is nothing to store."""
    desk.admit(cursor="5")
    desk.admit(inbound("1", "a"))
    assert accounts.cursor(desk.con, "tg") == "5"


@pytest.mark.parametrize(
    "text", ["hello", "/queue more", "/steer more", "/stop", "/status", "/new", "/retry", "/busy queue", "/nonsense"]
)
def test_a_message_that_is_known_changes_nothing(desk: Desk, text: str) -> None:
    """I-01: whatever it says, a message that is delivered again, also under a running turn, changes no row."""
    desk.answered("earlier")
    desk.says("work")
    desk.turn()
    desk.says(text)
    if desk.begin() is not None:
        desk.now += 1
    before = desk.dump()
    admitted = desk.admit(desk.last)
    assert desk.dump() == before
    assert (admitted.arrived, admitted.ended) == ((), ())


def test_a_message_twice_in_one_batch(desk: Desk) -> None:
    """The same message twice in one batch is one message, and interrupts nobody."""
    one = inbound("1", "hello")
    assert desk.admit(one, one).arrived == (HOME,)
    assert desk.states() == ["queued"]


def test_a_known_message_still_moves_the_cursor(desk: Desk) -> None:
    """A batch of known messages is confirmed all the same."""
    desk.admit(inbound("1", "hello"), cursor="1")
    desk.admit(inbound("1", "hello"), cursor="2")
    assert accounts.cursor(desk.con, "tg") == "2"


def test_the_same_id_in_another_chat_is_another_message(desk: Desk) -> None:
    """Native ids are unique in their chat, not beyond it."""
    desk.admit(inbound("1", "hello"), inbound("1", "hello", address=OTHER))
    assert desk.states() == ["queued", "queued"]


def test_what_cannot_be_read_is_kept_and_told(desk: Desk) -> None:
    """I-06: a message that cannot be understood keeps its payload, starts no turn, and has one notice."""
    desk.says("work")
    begun = desk.turn()
    row = desk.says("", unreadable="{payload}", anchor="8")
    assert (desk.state(row), row.text) == ("unreadable", "{payload}")
    assert desk.told(row) == notices.UNREADABLE
    assert obligations.get(desk.con, f"unreadable.{row.id}").anchor == "8"
    desk.answer(begun)
    assert desk.begin() is None


def test_a_dead_address_that_writes_is_alive(desk: Desk) -> None:
    """Whoever writes can be answered again."""
    accounts.mark_dead(desk.con, HOME, "blocked", desk.now)
    desk.says("I am back")
    assert not accounts.is_dead(desk.con, HOME)


# --- busy modes -------------------------------------------------------------------------------------------------------


def test_an_interrupt(desk: Desk) -> None:
    """A plain message under a turn of the same person ends it; the message runs next, and the turn never again."""
    first = desk.says("one")
    begun = desk.turn()
    desk.says("two")
    second = desk.row(desk.last.native_id)
    assert (desk.state(first), desk.state(second)) == ("interrupted", "queued")
    assert desk.reply(begun).state == "withdrawing"
    assert desk.turn().inbound.id == second.id


def test_an_interrupt_names_the_turn_to_cancel(desk: Desk) -> None:
    """Whoever admitted the batch knows whose scope to cancel, once, and not before it is durable."""
    desk.says("one")
    begun = desk.turn()
    admitted = desk.admit(inbound("90", "two"), inbound("91", "three"))
    assert admitted.ended == ((HOME, begun.turn.id),)
    assert desk.states() == ["interrupted", "queued", "queued"]


def test_an_interrupted_preview_stays_with_its_notice(desk: Desk) -> None:
    """Q-05: what was visible of a superseded answer is closed by a notice."""
    desk.says("one")
    begun = desk.turn()
    desk.shows(begun, "Half an")
    desk.says("two")
    assert desk.reply(begun).content == f"Half an\n\n{notices.INTERRUPTED}"


def test_a_committed_answer_is_not_interrupted(desk: Desk) -> None:
    """Q-04: once an answer is committed the next message only waits its turn; the answer stays owed."""
    row = desk.says("one")
    begun = desk.turn()
    desk.answer(begun)
    assert desk.admit(inbound("90", "two")).ended == ()
    assert desk.state(row) == "answered"
    assert desk.reply(begun).state == "pending"


def test_busy_queue(desk: Desk) -> None:
    """In queue mode messages wait, first in first out, each for a turn of its own (Q-01)."""
    desk.busy("queue")
    desk.says("one")
    begun = desk.turn()
    waiting = [desk.says(text).id for text in ("two", "three", "four")]
    desk.answer(begun)
    order = []
    while isinstance(begun := desk.begin(), Begun):
        order.append(begun.inbound.id)
        desk.answer(begun)
    assert order == waiting


def test_busy_steer(desk: Desk) -> None:
    """In steer mode a plain message enters the running turn."""
    desk.busy("steer")
    desk.says("one")
    begun = desk.turn()
    row = desk.says("rather this")
    assert desk.state(row) == "queued"
    assert desk.steers(begun) == ("rather this",)


def test_busy_is_set_per_chat(desk: Desk) -> None:
    """/busy holds for its chat with all its threads, and for no other."""
    desk.says("/busy queue", address=GROUP)
    for address, state in ((GROUP, "running"), (evolve(GROUP, thread="9"), "running"), (HOME, "interrupted")):
        row = desk.says("one", address=address)
        desk.turn(address)
        desk.says("two", address=address)
        assert desk.state(row) == state, address


@pytest.mark.parametrize("mode", ["interrupt", "queue", "steer"])
def test_another_persons_message_waits(desk: Desk, mode: str) -> None:
    """In a shared chat one person's plain message waits behind another's turn, whatever the busy mode."""
    desk.busy(mode)
    first = desk.says("one", "alice", GROUP)
    begun = desk.turn(GROUP)
    second = desk.says("two", "bob", GROUP)
    assert (desk.state(first), desk.state(second)) == ("running", "queued")
    assert desk.steers(begun) == ()


def test_others_may_interrupt_where_configured(desk: Desk) -> None:
    """Unless the operator says that others may."""
    desk.rules = evolve(desk.rules, others_interrupt=True)
    first = desk.says("one", "alice", GROUP)
    desk.turn(GROUP)
    desk.says("two", "bob", GROUP)
    assert desk.state(first) == "interrupted"


def test_threads_do_not_disturb_each_other(desk: Desk) -> None:
    """B3: each thread has a conversation of its own."""
    other = evolve(GROUP, thread="4")
    first = desk.says("one", address=GROUP)
    desk.turn(GROUP)
    second = desk.says("two", address=other)
    assert desk.turn(other).inbound.id == second.id
    assert desk.state(first) == "running"


# --- commands on the way in -------------------------------------------------------------------------------------------


def test_a_command_is_answered_and_never_runs(desk: Desk) -> None:
    """A command has its answer owed at once, anchored to it, and no turn."""
    row = desk.says("/whoami", address=GROUP, native="55")
    assert (row.kind, row.state) == ("command", "answered")
    assert "alice" in desk.told(row)
    obligation = obligations.get(desk.con, f"command.{row.id}")
    assert (obligation.kind, obligation.state, obligation.address, obligation.anchor) == (
        "control", "pending", GROUP, "55",
    )  # fmt: skip
    assert not obligation.progress["reserve"]
    assert desk.begin(GROUP) is None
    assert desk.transcript(GROUP) == []


def test_control_messages_are_reserved_where_configured(desk: Desk) -> None:
    """reserve = "all" reserves the answers of commands too."""
    desk.rules = evolve(desk.rules, reserve=True)
    row = desk.says("/whoami")
    assert obligations.get(desk.con, f"command.{row.id}").progress["reserve"]


def test_stop(desk: Desk) -> None:
    """Q-06: /stop ends the turn as stopped, says so, and names the turn to cancel; the next message runs."""
    first = desk.says("one")
    begun = desk.turn()
    desk.shows(begun, "Half an")
    admitted = desk.admit(inbound("90", "/stop"))
    assert admitted.ended == ((HOME, begun.turn.id),)
    assert desk.state(first) == "stopped"
    assert "Stopped" in desk.told(desk.row("90"))
    assert desk.reply(begun).content == f"Half an\n\n{notices.STOPPED}"
    assert desk.begin() is None
    again = desk.says("two")
    assert desk.turn().inbound.id == again.id


def test_stop_before_any_text_leaves_its_word(desk: Desk) -> None:
    """Q-06: a turn that is stopped before it showed text leaves no placeholder, but the answer of the command."""
    desk.says("one")
    begun = desk.turn()
    row = desk.says("/stop")
    assert desk.reply(begun).state == "withdrawing"
    assert "Stopped" in desk.told(row)


def test_steer_when_nothing_runs_is_a_message(desk: Desk) -> None:
    """/steer TEXT at rest is a turn like any other."""
    row = desk.says("/steer hello")
    assert (row.kind, row.text) == ("message", "hello")
    assert desk.turn().inbound.id == row.id


def test_a_command_does_not_interrupt(desk: Desk) -> None:
    """Q-08: commands pass a running turn."""
    first = desk.says("one")
    desk.turn()
    for text in ("/status", "/queue", "/queue later", "/steer so", "/help", "/busy", "!status", "/nonsense"):
        desk.says(text)
    assert desk.state(first) == "running"


# --- what is not meant for the bot ------------------------------------------------------------------------------------


def test_what_is_overheard_is_context(desk: Desk) -> None:
    """In a group what does not address the bot is kept for the model, with its sender, and is not answered."""
    row = desk.says("nice weather", "bob", GROUP, direct=False)
    assert desk.state(row) == "context"
    assert desk.begin(GROUP) is None
    assert desk.transcript(GROUP) == [("context", "Bob: nice weather")]
    desk.says("is it?", "alice", GROUP)
    assert [(m.role, m.content) for m in desk.turn(GROUP).rows] == [
        ("context", "Bob: nice weather"), ("user", "Alice: is it?"),
    ]  # fmt: skip


def test_what_is_overheard_disturbs_nobody(desk: Desk) -> None:
    """It interrupts no turn, and what looks like a command in it does nothing."""
    first = desk.says("one", "alice", GROUP)
    desk.turn(GROUP)
    for text in ("two", "/stop"):
        assert desk.state(desk.says(text, "alice", GROUP, direct=False)) == "context"
    assert desk.state(first) == "running"


def test_a_group_in_which_everything_is_answered(desk: Desk) -> None:
    """groups = "always" takes every message for the bot."""
    desk.rules = evolve(desk.rules, always=True)
    row = desk.says("nice weather", "bob", GROUP, direct=False)
    assert desk.turn(GROUP).inbound.id == row.id


# --- what was sent as one ---------------------------------------------------------------------------------------------


def photo(native: str, text: str = "", **more: object) -> object:
    return inbound(native, text, group="album", attachments=(Attachment("photo", native),), **more)


@pytest.mark.parametrize("caption", [0, 2])
def test_an_album_never_interrupts_itself(desk: Desk, caption: int) -> None:
    """I-05: an album at t = 0, 6 and 12 s, its caption first or last, is one turn; late parts enter it."""
    texts = ["", "", ""]
    texts[caption] = "what is this?"
    desk.admit(photo("1", texts[0]))
    begun = desk.turn()
    for native, text in (("2", texts[1]), ("3", texts[2])):
        desk.now += 6
        desk.admit(photo(native, text))
    assert desk.states() == ["running", "queued", "queued"]
    assert len(desk.steers(begun)) == 2
    assert desk.states() == ["running", "consumed", "consumed"]
    assert {desk.turn_of(desk.row(native)).id for native in "123"} == {begun.turn.id}


def test_a_part_that_comes_after_the_answer(desk: Desk) -> None:
    """A part of an album whose turn was answered is known to the model, and is not answered again."""
    desk.admit(photo("1", "what is this?"))
    begun = desk.turn()
    desk.answer(begun)
    desk.now += 6
    desk.admit(photo("2"))
    late = desk.row("2")
    assert (late.state, late.turn) == ("consumed", begun.turn.id)
    assert desk.begin() is None
    assert desk.transcript()[-1] == ("context", "[the user sent a photo]")


@pytest.mark.parametrize("end", ["answer", "/stop"])
def test_words_behind_a_turn_that_is_over_are_answered(desk: Desk, end: str) -> None:
    """A late caption, or what follows a long text whose turn has ended, gets a turn of its own: never silence."""
    for first, late in ((photo("1"), photo("2", "what is this?")), (inbound("3", LONG), inbound("4", "and?"))):
        desk.admit(first)
        begun = desk.turn()
        if end == "answer":
            desk.answer(begun)
        else:
            desk.says(end)
        desk.admit(late)
        assert desk.state(desk.row(late.native_id)) == "queued"
        desk.answer(desk.turn())


def test_a_part_of_an_album_that_still_waits(desk: Desk) -> None:
    """Parts of an album that waits behind a turn wait with it, in every busy mode, and interrupt nobody."""
    desk.says("work")
    begun = desk.turn()
    desk.says("/queue look", group="album", native="1")
    desk.admit(photo("2"), photo("3"))
    assert desk.states() == ["running", "queued", "queued", "queued"]
    assert desk.steers(begun) == ()
    desk.answer(begun)
    assert desk.turn().inbound.native_id == "1"
    assert desk.states() == ["answered", "running", "consumed", "consumed"]


def test_a_question_behind_parts_that_were_only_overheard(desk: Desk) -> None:
    """I-05 in a group: an album whose last part addresses the bot is answered; the others are context."""
    desk.admit(photo("1", address=GROUP, direct=False), photo("2", "@bot what is this?", address=GROUP))
    assert desk.states() == ["context", "queued"]
    assert desk.turn(GROUP).inbound.native_id == "2"


def test_a_part_behind_a_dropped_one(desk: Desk) -> None:
    """A part whose first was dropped from the queue enters nobody else's turn: it waits for its own."""
    desk.says("work")
    begun = desk.turn()
    desk.says("/queue look", group="album")
    desk.says("/queue clear")
    desk.busy("queue")
    desk.admit(photo("2"))
    assert desk.steers(begun) == ()
    assert desk.state(desk.row("2")) == "queued"
    desk.answer(begun)
    assert desk.turn().inbound.native_id == "2"


def test_a_part_behind_a_steer_that_came_too_late(desk: Desk) -> None:
    """A part of what was said to a turn that is over waits with its first part, and both share a turn."""
    desk.busy("steer")
    desk.says("work")
    begun = desk.turn()
    desk.admit(photo("1"))
    desk.answer(begun)
    desk.admit(photo("2"))
    assert desk.states() == ["answered", "queued", "queued"]
    assert desk.turn().inbound.native_id == "1"
    assert desk.states() == ["answered", "running", "consumed"]


def test_an_interrupted_album_takes_its_late_parts_along(desk: Desk) -> None:
    """A late part of an album that was interrupted starts nothing and interrupts nothing."""
    desk.admit(photo("1"))
    begun = desk.turn()
    desk.says("something else")
    desk.turn()
    desk.admit(photo("2"))
    assert desk.states() == ["interrupted", "running", "consumed"]
    assert desk.row("2").turn == begun.turn.id


def test_a_cut_paste_is_one_turn(desk: Desk) -> None:
    """I-05: a text that the client had to cut, 200 ms apart, is one turn; the first piece waits for the others."""
    first = desk.says(LONG)
    assert not isinstance(desk.begin(gather=False), Begun), "the turn began with half a text"
    desk.now += 0.2
    desk.says(LONG)
    desk.now += 0.2
    desk.says("the end")
    begun = desk.turn()
    assert begun.inbound.id == first.id
    assert desk.states() == ["running", "consumed", "consumed"]
    assert desk.transcript() == [("user", f"{LONG}\n{LONG}\nthe end")]


def test_a_piece_that_comes_while_the_first_runs(desk: Desk) -> None:
    """A piece that is later than the turn waits for it enters the turn; it never interrupts it."""
    first = desk.says(LONG)
    begun = desk.turn()
    desk.now = first.received_at + CUT_WITHIN
    row = desk.says("the end")
    assert desk.state(first) == "running"
    assert desk.steers(begun) == ("the end",)
    assert desk.state(row) == "consumed"


@pytest.mark.parametrize(
    ("text", "after", "sender", "joined"),
    [
        ("x" * int(CUT_SHARE * LIMIT), CUT_WITHIN, "alice", True),
        ("x" * int(CUT_SHARE * LIMIT - 1), 0.1, "alice", False),
        (LONG, CUT_WITHIN + 0.1, "alice", False),
        (LONG, 0.1, "bob", False),
    ],
)
def test_what_counts_as_cut(desk: Desk, text: str, after: float, sender: str, joined: bool) -> None:
    """Only what follows a text near the limit, soon, from the same person, belongs to it."""
    desk.rules = evolve(desk.rules, others_interrupt=True)
    first = desk.says(text)
    desk.turn()
    desk.now = first.received_at + after
    desk.says("more", sender)
    assert desk.state(first) == ("running" if joined else "interrupted")


def test_only_the_last_piece_decides(desk: Desk) -> None:
    """A short piece ends a paste: what follows it is a message of its own."""
    desk.busy("queue")
    for text in (LONG, "the end", "and another thing"):
        desk.says(text)
    desk.turn()
    assert desk.states() == ["running", "consumed", "queued"]


def test_a_short_message_waits_for_nothing(desk: Desk) -> None:
    """An ordinary message is answered at once, without the time that a paste needs."""
    desk.says("hello")
    before = desk.now
    assert isinstance(desk.begin(gather=False), Begun)
    assert desk.now == before
    assert GATHER < CUT_WITHIN


def test_sessions_are_made_where_they_are_needed(desk: Desk) -> None:
    """A message makes no session before its turn; what is overheard does."""
    desk.says("hello")
    assert transcript.route(desk.con, HOME) is None
    desk.says("aha", address=GROUP, direct=False)
    assert transcript.route(desk.con, GROUP) is not None


def test_what_arrives_at_once_after_a_downtime_is_not_one_text(desk: Desk) -> None:
    """Hours lie between two messages by the platform's clock: the second is no rest of the first, however they come."""
    desk.admit(inbound("1", LONG, sent_at=1000.0), inbound("2", "good morning", sent_at=40000.0))
    desk.answer(desk.turn())
    assert desk.turn().inbound.native_id == "2"


def test_a_message_at_which_our_own_code_fails_is_kept(desk: Desk) -> None:
    """The others of its batch go on, the person gets a word, and the row keeps what it was."""

    def fail(call: CommandCall) -> Outcome:
        raise RuntimeError("a fault of our own")

    registry = desk.rules.registry
    broken = Registry((*registry.commands, Command("broken", "fails", fail)))
    desk.rules = evolve(desk.rules, registry=broken)
    desk.admit(inbound("1", "before"), inbound("2", "/broken now"), inbound("3", "behind"))
    assert desk.states() == ["queued", "unreadable", "queued"]
    assert "/broken now" in desk.row("2").text
    assert obligations.get(desk.con, f"unreadable.{desk.row('2').id}").content == notices.UNREADABLE


def test_what_cannot_be_read_and_was_not_said_to_us_gets_no_word(desk: Desk) -> None:
    """In a group a strange message that addresses nobody is stored and not answered."""
    desk.admit(inbound("1", "", address=GROUP, direct=False, shared=True, unreadable="{}"))
    assert desk.states() == ["unreadable"]
    assert obligations.open_at(desk.con, GROUP, 10) == ()


@pytest.mark.parametrize("digits", ["9" * 5000, "٣" * 5000])
def test_a_number_beyond_measure_is_no_number(desk: Desk, digits: str) -> None:
    """A number of thousands of digits in a command is answered like any other that is not there."""
    desk.says("work")
    desk.turn()
    desk.says(f"/queue drop {digits}")
    desk.says(f"/resume {digits}")
    assert desk.states()[0] == "running"
