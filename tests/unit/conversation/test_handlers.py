"""What each command does, as its user sees it."""

from __future__ import annotations

import pytest

from hermes_trio.conversation.handlers import EXCERPT, LISTED
from hermes_trio.conversation.records import Compress
from hermes_trio.ledger import transcript
from hermes_trio.model.base import Usage
from hermes_trio.platforms.base import Attachment

from .desk import GROUP, HOME, Desk, inbound


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- the queue --------------------------------------------------------------------------------------------------------


def test_queue_while_busy(desk: Desk) -> None:
    """Q-02: /queue TEXT says its place and waits, in every busy mode; its text has lost the command."""
    desk.says("work")
    desk.turn()
    rows = [desk.says(text) for text in ("/queue second task", "/q third", "/queue@bot fourth", "!queue fifth")]
    assert [row.text for row in rows] == ["second task", "third", "fourth", "fifth"]
    assert [(row.kind, row.state) for row in rows] == [("queue", "queued")] * 4
    assert [desk.told(row) for row in rows] == [f"⏳ Queued as number {n}." for n in (1, 2, 3, 4)]


def test_queue_when_idle(desk: Desk) -> None:
    """Q-02: /queue TEXT at rest is answered like any message, without a word about the queue."""
    row = desk.says("/queue task")
    assert desk.told(row) == ""
    assert desk.turn().inbound.id == row.id
    assert desk.transcript() == [("user", "task")]


@pytest.mark.parametrize("text", ["/queue", "/queue list", "/q"])
def test_queue_lists(desk: Desk, text: str) -> None:
    """/queue without a text lists what waits, shortened, and does nothing else."""
    assert desk.asks(text) == "The queue is empty."
    desk.says("work")
    desk.turn()
    desk.says("/queue one\ntwo")
    desk.says("/queue " + "y" * 200)
    said = desk.asks(text)
    assert said == f"Waiting:\n1. one two\n2. {'y' * (EXCERPT - 1)}…"


def test_a_long_queue_is_cut(desk: Desk) -> None:
    """A list shows as much as fits."""
    desk.says("work")
    desk.turn()
    for number in range(LISTED + 3):
        desk.says(f"/queue task {number}")
    assert len(desk.asks("/queue").splitlines()) == 1 + LISTED


def test_queue_drop(desk: Desk) -> None:
    """/queue drop N takes out the one that the list calls N."""
    desk.says("work")
    desk.turn()
    one, two, three = (desk.says(f"/queue {word}") for word in ("one", "two", "three"))
    assert desk.asks("/queue drop 2") == "Dropped number 2: two"
    assert [desk.state(row) for row in (one, two, three)] == ["queued", "dropped", "queued"]
    for wrong in ("/queue drop 3", "/queue drop 0"):
        assert "no number" in desk.asks(wrong)
    assert [desk.state(row) for row in (one, three)] == ["queued", "queued"]


def test_queue_clear(desk: Desk) -> None:
    """/queue clear drops all that waits and leaves the running turn alone."""
    first = desk.says("work")
    desk.turn()
    rows = [desk.says(f"/queue {word}") for word in ("one", "two")]
    assert desk.asks("/queue clear") == "Dropped 2 waiting messages."
    assert desk.asks("/queue clear") == "Dropped 0 waiting messages."
    assert [desk.state(row) for row in rows] == ["dropped", "dropped"]
    assert desk.state(first) == "running"


@pytest.mark.parametrize("text", ["list the files", "drop the ball", "drop 2 cups", "clear the table"])
def test_a_text_that_begins_like_a_word_of_queue(desk: Desk, text: str) -> None:
    """Only the exact words are for the queue itself; all else is a task."""
    row = desk.says(f"/queue {text}")
    assert (row.text, row.state) == (text, "queued")


# --- stop, steer, busy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["/stop", "/cancel", "/abort", "!stop", "/stop@bot", "/STOP"])
def test_stop(desk: Desk, text: str) -> None:
    """Q-08: each way to say stop ends the turn."""
    first = desk.says("work")
    desk.turn()
    assert desk.asks(text) == "⏹ Stopped."
    assert desk.state(first) == "stopped"


def test_stop_leaves_the_queue(desk: Desk) -> None:
    """/stop ends one turn; what waits runs next, and the answer says that something does."""
    desk.says("work")
    desk.turn()
    row = desk.says("/queue next")
    assert desk.asks("/stop") == "⏹ Stopped. 1 more waiting; /queue clear drops them."
    assert desk.turn().inbound.id == row.id


def test_stop_with_nothing_to_stop(desk: Desk) -> None:
    """/stop always has an answer, and never stops what was answered."""
    row = desk.answered("hello")
    assert desk.asks("/stop") == "Nothing is running."
    assert desk.state(row) == "answered"


def test_steer_needs_a_text(desk: Desk) -> None:
    """/steer alone says how it is used."""
    assert "/steer " in desk.asks("/steer")


def test_busy(desk: Desk) -> None:
    """/busy shows the mode, sets one, and refuses what is none."""
    assert "as: interrupt." in desk.asks("/busy")
    assert "as: queue." in desk.asks("/busy Queue")
    assert "as: queue." in desk.asks("/busy")
    assert "not 'wait'" in desk.asks("/busy wait")
    desk.says("work")
    desk.turn()
    assert desk.state(desk.says("more")) == "queued"
    assert desk.states().count("running") == 1


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_new(desk: Desk) -> None:
    """/new stops the running turn and begins a transcript without what came before."""
    desk.answered("earlier")
    first = desk.says("work")
    desk.turn()
    desk.asks("/new Holiday plans")
    assert desk.state(first) == "stopped"
    assert desk.transcript() == []
    desk.answered("fresh")
    assert desk.transcript() == [("user", "fresh"), ("assistant", "An answer.")]
    assert [s.title for s in transcript.sessions(desk.con, HOME)] == ["Holiday plans", ""]


def test_sessions_and_resume(desk: Desk) -> None:
    """/sessions lists this chat's conversations, newest first; /resume N goes on with one where it was left."""
    assert desk.asks("/sessions") == "There is no conversation yet."
    desk.answered("about boats")
    desk.says("/title Boats")
    desk.now += 60
    desk.says("/new")
    desk.answered("about cats", address=HOME)
    desk.answered("of another place", address=GROUP)
    lines = desk.asks("/sessions").splitlines()
    assert lines[0].startswith("1. untitled, 1970-01-01 00:17, 2 messages ← this one")
    assert lines[1].startswith("2. Boats, 1970-01-01 00:16, 2 messages")
    assert "Boats" in desk.asks("/resume 2")
    assert desk.transcript()[0] == ("user", "about boats")
    assert "current" in desk.asks("/resume 2")
    open_ones = [s.title for s in transcript.sessions(desk.con, HOME) if s.ended_at is None]
    assert open_ones == ["Boats"]
    desk.answered("more of them")
    assert len(desk.transcript()) == 4


@pytest.mark.parametrize("number", ["", "0", "3", "two", "-1", "²"])
def test_resume_of_what_is_not_there(desk: Desk, number: str) -> None:
    """/resume with anything but a number of the list says so and changes nothing."""
    desk.answered("hello")
    before = transcript.route(desk.con, HOME)
    assert "by its number" in desk.asks(f"/resume {number}")
    assert transcript.route(desk.con, HOME) == before


def test_title(desk: Desk) -> None:
    """/title names the conversation, also one that has not begun; a long title is cut."""
    assert "Holiday" in desk.asks("/title Holiday plans")
    desk.asks("/title " + "t" * 200)
    assert transcript.sessions(desk.con, HOME)[0].title == "t" * EXCERPT
    assert "Write the title" in desk.asks("/title")


# --- taking back ------------------------------------------------------------------------------------------------------


def test_undo(desk: Desk) -> None:
    """/undo takes the latest exchange out of what the model reads, one after the other; the rows stay."""
    desk.answered("one")
    desk.answered("two")
    assert desk.asks("/undo") == "Taken back: two"
    assert desk.transcript() == [("user", "one"), ("assistant", "An answer.")]
    assert desk.asks("/undo") == "Taken back: one"
    assert desk.transcript() == []
    assert "nothing" in desk.asks("/undo")
    assert desk.con.execute("SELECT count(*) FROM messages").fetchone()[0] == 4


def test_undo_takes_tools_and_steers_along(desk: Desk) -> None:
    """What a turn did in between goes with it."""
    desk.says("work")
    begun = desk.turn()
    desk.calls(begun, "a")
    desk.started(begun, "a")
    desk.finished(begun, "a")
    desk.says("/steer so")
    desk.steers(begun)
    desk.answer(begun)
    assert desk.asks("/undo") == "Taken back: work"
    assert desk.transcript() == []


def test_retry(desk: Desk) -> None:
    """/retry answers the latest message again, in its place; the first answer is not part of the conversation."""
    desk.answered("one")
    first = desk.answered("two", "bad")
    row = desk.says("/retry")
    assert (row.text, row.state) == ("two", "queued")
    desk.answer(desk.turn(), "good")
    assert desk.transcript()[2:] == [("user", "two"), ("assistant", "good")]
    assert desk.state(first) == "answered"


def test_retry_of_a_stopped_turn(desk: Desk) -> None:
    """What was stopped never resumes by itself, but may be asked for again."""
    desk.says("work")
    desk.turn()
    desk.says("/stop")
    assert desk.says("/retry").text == "work"


def test_retry_keeps_what_came_with_the_message(desk: Desk) -> None:
    """A photo that is tried again is still a photo."""
    desk.answered("", attachments=(Attachment("photo", "file1", "cat.jpg"),))
    row = desk.says("/retry")
    assert row.attachments == (Attachment("photo", "file1", "cat.jpg"),)
    desk.turn()
    assert desk.transcript() == [("user", "[the user sent a photo: cat.jpg]")]


def test_retry_of_an_album(desk: Desk) -> None:
    """What was sent as one is tried again as one: all its texts and all that came with them."""
    parts = [
        inbound(f"p{n}", text, group="album", attachments=(Attachment("photo", f"file{n}"),))
        for n, text in enumerate(("look", "", "at these"))
    ]
    desk.admit(*parts)
    desk.answer(desk.turn())
    row = desk.says("/retry")
    assert row.text == "look\nat these"
    assert [attachment.reference for attachment in row.attachments] == ["file0", "file1", "file2"]


def test_retry_of_nothing(desk: Desk) -> None:
    """There is an answer where there is nothing to try again."""
    assert "nothing" in desk.asks("/retry")


def test_compress_needs_a_conversation(desk: Desk) -> None:
    """/compress before anything was said has an answer and starts nothing."""
    assert desk.asks("/compress") == "There is no conversation yet."
    assert desk.begin() is None


@pytest.mark.parametrize("text", ["/stop", "/queue drop 1", "/queue clear"])
def test_a_compression_is_ended(desk: Desk, text: str) -> None:
    """A /compress that is at work can be stopped like anything else, and whoever admitted that knows what to cancel."""
    desk.answered("hello")
    row = desk.says("/compress")
    job = desk.begin()
    assert isinstance(job, Compress)
    admitted = desk.admit(inbound("90", text))
    assert admitted.ended == ((HOME, job.id),)
    assert desk.state(row) == "dropped"
    assert "topped" in desk.told(desk.row("90")) or "ropped" in desk.told(desk.row("90"))
    assert desk.begin() is None
    assert desk.transcript() == [("user", "hello"), ("assistant", "An answer.")]


def test_stop_of_a_compression_leaves_the_queue(desk: Desk) -> None:
    """/stop ends the compression that is at work; what waits behind it runs next."""
    desk.answered("hello")
    row = desk.says("/compress")
    first = desk.says("work", "bob")
    job = desk.begin()
    assert isinstance(job, Compress)
    assert desk.state(first) == "queued"
    assert "1 more waiting" in desk.asks("/stop")
    assert (desk.state(row), desk.state(first)) == ("dropped", "queued")


# --- telling ----------------------------------------------------------------------------------------------------------


def test_status(desk: Desk) -> None:
    """/status shows the turn, the queue, what is owed, the model and the guarantee, busy or not."""
    assert desk.asks("/status").splitlines() == [
        "- turn: none", "- queue: 0", "- deliveries: none open", "- model: first", "- guarantee: editable",
    ]  # fmt: skip
    desk.says("/model second", sender="owner")
    desk.says("work")
    desk.turn()
    desk.says("/queue more")
    desk.now += 12
    said = desk.asks("/status").splitlines()
    assert said[0] == "- turn: one, for 12 s"
    assert said[1] == "- queue: 1"
    assert "1 streaming" in said[2]
    assert said[3] == "- model: second"


def test_usage(desk: Desk) -> None:
    """/usage adds up what the turns of this conversation used."""
    assert desk.asks("/usage") == "Nothing has been used yet."
    for _ in range(2):
        desk.says("hello")
        desk.answer(desk.turn(), usage=Usage(100, 7))
    assert desk.asks("/usage") == "This conversation: 2 turns, 200 tokens read, 14 written."


def test_model(desk: Desk) -> None:
    """/model shows and chooses, and knows no other than the configured ones."""
    assert desk.asks("/model", sender="owner") == "This conversation uses first. There are: first, second."
    assert "no model 'third'" in desk.asks("/model third", sender="owner")
    assert desk.asks("/model second", sender="owner") == "This conversation now uses second."
    assert "uses second" in desk.asks("/model", sender="owner")


def test_whoami(desk: Desk) -> None:
    """/whoami gives the words that the configuration needs."""
    said = desk.asks("/whoami", address=GROUP)
    assert "`tg:alice`" in said
    assert "`tg:-7/3`" in said
    assert "owner" not in said
    assert "an owner of this bot" in desk.asks("/whoami", sender="owner")
