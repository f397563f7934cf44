"""The transactions of a turn, one by one: what each leaves behind, and what it refuses."""

from __future__ import annotations

import pytest

from hermes_trio.access import Access
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.history import request_of
from hermes_trio.conversation.records import GATHER, MAX_CHARGED, MAX_RESUMES, SOON, Begun, Compress, Ended, Gathering
from hermes_trio.ledger import accounts, obligations, transcript, turns
from hermes_trio.ledger.turns import TurnOver
from hermes_trio.model.base import Usage
from hermes_trio.platforms.base import Attachment

from .desk import GROUP, HOME, START, Desk, inbound


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_turn_begins_with_everything_that_it_needs(desk: Desk) -> None:
    """A beginning turn has its row running, its text in the transcript once, and a reserved reply that streams."""
    row = desk.says("hello", anchor="5")
    begun = desk.turn()
    assert desk.state(row) == "running"
    assert begun.inbound.id == row.id
    assert not begun.resumed
    assert begun.open_calls == ()
    assert desk.transcript() == [("user", "hello")]
    assert [(message.role, message.content) for message in begun.rows] == [("user", "hello")]
    reply = desk.reply(begun)
    assert (reply.state, reply.kind, reply.turn, reply.address, reply.anchor) == (
        "streaming", "reply", begun.turn.id, HOME, "5",
    )  # fmt: skip
    assert reply.progress["reserve"]
    assert desk.turn_of(row).started_at == desk.now


def test_nothing_waits(desk: Desk) -> None:
    """Where nothing waits nothing begins, and no session is made."""
    before = desk.dump()
    assert desk.begin() is None
    assert desk.dump() == before


def test_an_answer_is_born_with_its_obligation(desk: Desk) -> None:
    """The answer ends turn and inbound, stands in the transcript once, and is owed: all at once."""
    row = desk.says("hello")
    begun = desk.turn()
    desk.now += 3
    desk.answer(begun, "# Hi\n\nthere", Usage(5, 2))
    assert desk.state(row) == "answered"
    assert desk.turn_of(row).state == "answered"
    assert desk.transcript() == [("user", "hello"), ("assistant", "# Hi\n\nthere")]
    reply = desk.reply(begun)
    assert (reply.state, reply.content) == ("pending", "# Hi\n\nthere")
    assert reply.parts == desk.account.plan("# Hi\n\nthere").parts
    assert reply.expires_at == desk.now + desk.account.expire
    assert turns.usage(desk.con, begun.turn.session).prompt == 5


def test_a_failure_says_so(desk: Desk) -> None:
    """A failed turn owes its notice; what there was of an answer stays in the transcript as interrupted."""
    row = desk.says("hello")
    begun = desk.turn()
    desk.fail(begun, partial="Half an")
    assert (desk.state(row), desk.turn_of(row).state) == ("failed", "failed")
    assert desk.reply(begun).content == notices.FAILED
    assert desk.reply(begun).state == "pending"
    message = transcript.messages(desk.con, begun.turn.session)[-1]
    assert (message.role, message.content, message.interrupted) == ("assistant", "Half an", True)


def test_a_failure_without_a_word_of_the_model(desk: Desk) -> None:
    """A failed turn without any text leaves only the question in the transcript."""
    desk.says("hello")
    desk.fail(desk.turn(), partial=" \n")
    assert desk.transcript() == [("user", "hello")]


@pytest.mark.parametrize("event", ["interrupt", "stop"])
def test_closing_what_shows_text(desk: Desk, event: str) -> None:
    """Visible text of a turn that is ended stays on screen behind a notice, and in the transcript as interrupted."""
    row = desk.says("hello")
    begun = desk.turn()
    desk.shows(begun, "Half an")
    desk.commit(records.close, begun.turn, event, "the notice", "Half an", desk.account, desk.now)
    assert desk.state(row) == desk.turn_of(row).state == {"interrupt": "interrupted", "stop": "stopped"}[event]
    assert (desk.reply(begun).state, desk.reply(begun).content) == ("pending", "Half an\n\nthe notice")
    message = transcript.messages(desk.con, begun.turn.session)[-1]
    assert (message.content, message.interrupted) == ("Half an", True)


def test_closing_what_may_show_text_that_nobody_remembers(desk: Desk) -> None:
    """After a crash the partial text is not known any more: the notice replaces it on screen."""
    desk.says("hello")
    begun = desk.turn()
    desk.shows(begun, "Half an")
    desk.commit(records.close, begun.turn, "stop", "the notice", "", desk.account, desk.now)
    assert (desk.reply(begun).state, desk.reply(begun).content) == ("pending", "the notice")
    assert desk.transcript() == [("user", "hello")]


def test_closing_a_bare_placeholder(desk: Desk) -> None:
    """A turn that showed nothing leaves nothing: its placeholder is withdrawn, its text is forgotten."""
    desk.says("hello")
    begun = desk.turn()
    desk.commit(records.close, begun.turn, "interrupt", "the notice", "not yet shown", desk.account, desk.now)
    assert desk.reply(begun).state == "withdrawing"
    assert desk.transcript() == [("user", "hello")]


@pytest.mark.parametrize("first", ["answer", "fail", "interrupt", "stop"])
@pytest.mark.parametrize("second", ["answer", "fail", "interrupt", "stop", "calls", "start", "result", "steers"])
def test_only_the_first_end_counts(desk: Desk, first: str, second: str) -> None:
    """Q-03, Q-05: whoever commits first decides how a turn ends; any later commit of it raises and changes nothing."""
    desk.says("hello")
    begun = desk.turn()
    desk.calls(begun, "a")
    if second == "result":
        desk.started(begun, "a")

    def close(event: str) -> None:
        desk.commit(records.close, begun.turn, event, "closed", "", desk.account, desk.now)

    steps = {
        "answer": lambda: desk.answer(begun),
        "fail": lambda: desk.fail(begun),
        "interrupt": lambda: close("interrupt"),
        "stop": lambda: close("stop"),
        "calls": lambda: desk.calls(begun, "b"),
        "start": lambda: desk.started(begun, "a"),
        "result": lambda: desk.finished(begun, "a"),
        "steers": lambda: desk.steers(begun),
    }
    steps[first]()
    before = desk.dump()
    with pytest.raises(TurnOver):
        steps[second]()
    assert desk.dump() == before


# --- resuming ---------------------------------------------------------------------------------------------------------


def resumed(desk: Desk, previous_death: float = 0.0) -> Begun:
    begun = desk.begin(previous_death=previous_death)
    assert isinstance(begun, Begun)
    assert begun.resumed
    return begun


def test_d8_three_calls_at_a_restart(desk: Desk) -> None:
    """D8: the finished result is kept, the started call is unknown, the one that never started is still to run."""
    desk.says("work")
    begun = desk.turn()
    calls = desk.calls(begun, "done", "begun", "waiting", text="I look.")
    desk.started(begun, "done")
    desk.finished(begun, "done", "42")
    desk.started(begun, "begun")
    again = resumed(desk)
    assert again.turn.id == begun.turn.id
    assert again.open_calls == calls[2:]
    results = {m.tool_call_id: m.content for m in again.rows if m.role == "tool"}
    assert results == {"done": "42", "begun": notices.UNKNOWN_EFFECT, "waiting": None}
    assert desk.transcript()[0] == ("user", "work")
    assert sum(role == "user" for role, _ in desk.transcript()) == 1
    with pytest.raises(AssertionError):
        desk.finished(again, "begun", "late")
    desk.started(again, "waiting")
    desk.finished(again, "waiting", "and 7")
    desk.answer(again)


def test_a_started_call_is_charged(desk: Desk) -> None:
    """A restart that found a call in flight counts against its turn, twice; the third time there is an apology."""
    row = desk.says("work")
    begun = desk.turn()
    for number in range(MAX_CHARGED):
        desk.calls(begun, f"call{number}")
        desk.started(begun, f"call{number}")
        desk.now += 100
        begun = resumed(desk)
        assert begun.turn.charged == number + 1
    desk.calls(begun, "last")
    desk.started(begun, "last")
    assert isinstance(desk.begin(), Ended)
    assert desk.state(row) == "failed"
    assert desk.reply(begun).content == notices.GAVE_UP
    assert desk.begin() is None


def test_patient_restarts_are_not_charged(desk: Desk) -> None:
    """Restarts without a call in flight, after a long life, are the turn's fault 20 times at most; then an apology."""
    row = desk.says("work")
    desk.turn()
    for number in range(MAX_RESUMES):
        desk.now += SOON + 90
        begun = resumed(desk, previous_death=desk.now - 1)
        assert (begun.turn.resumes, begun.turn.charged) == (number + 1, 0)
    desk.now += SOON + 90
    assert isinstance(desk.begin(previous_death=desk.now - 1), Ended)
    assert desk.state(row) == "failed"
    assert MAX_RESUMES == 20


@pytest.mark.parametrize(("lived", "charged"), [(0.0, 1), (SOON - 0.1, 1), (SOON, 0), (SOON + 5, 0)])
def test_dying_soon_after_a_resume_is_charged(desk: Desk, lived: float, charged: int) -> None:
    """A process that died within 10 s of resuming a turn, without a new row of it, may have died of it."""
    desk.says("work")
    desk.turn()
    desk.now += 1
    resumed(desk, previous_death=desk.now - 0.5)
    died = desk.now + lived
    desk.now = died + 60
    assert resumed(desk, previous_death=died).turn.charged == charged


def test_a_first_restart_is_never_charged_for_being_soon(desk: Desk) -> None:
    """A turn that was never resumed is not to blame for how soon the process died."""
    desk.says("work")
    desk.turn()
    assert resumed(desk, previous_death=desk.now + 0.1).turn.charged == 0


@pytest.mark.parametrize("how", ["said", "started"])
def test_a_new_row_shows_progress(desk: Desk, how: str) -> None:
    """A turn that made a durable step since its resume is not charged, however soon the process died."""
    desk.says("work")
    begun = desk.turn()
    desk.calls(begun, "a")
    desk.now += 1
    resumed(desk)
    desk.now += 1
    if how == "started":
        desk.started(begun, "a")
        desk.finished(begun, "a")
    else:
        desk.says("/steer more")
        desk.steers(begun)
    died = desk.now
    assert resumed(desk, previous_death=died).turn.charged == 0


def test_a_restart_after_the_list_changed(desk: Desk) -> None:
    """X-01: the open turn of somebody who may not speak any more is stopped, withdrawn, and never resumed."""
    row = desk.says("work", sender="mallory")
    waiting = desk.says("/queue more", sender="mallory")
    begun = desk.turn()
    desk.access = Access(["tg:alice"])
    assert isinstance(desk.begin(), Ended)
    assert desk.state(row) == "stopped"
    assert desk.reply(begun).state == "withdrawing"
    assert desk.state(waiting) == "dropped"
    assert desk.begin() is None
    assert [role for role, _ in desk.transcript()] == ["user"]


def test_what_a_banned_person_said_to_anothers_turn(desk: Desk) -> None:
    """X-01: what somebody who may not speak any more said to another's turn never enters it."""
    desk.says("work", "alice", GROUP)
    begun = desk.turn(GROUP)
    steer = desk.says("/steer do harm", "mallory", GROUP)
    desk.access = Access(["tg:alice"])
    assert isinstance(desk.begin(GROUP), Begun)
    assert desk.steers(begun) == ()
    assert desk.state(steer) == "dropped"


def test_a_queued_row_of_a_banned_person_holds_up_nobody(desk: Desk) -> None:
    """X-01: a row that may not run is dropped, and the next one begins."""
    banned = desk.says("mine", "mallory", GROUP)
    kept = desk.says("yours", "alice", GROUP)
    desk.access = Access(["tg:alice"])
    assert isinstance(desk.begin(GROUP), Ended)
    assert (desk.state(banned), desk.turn(GROUP).inbound.id) == ("dropped", kept.id)


# --- steering ---------------------------------------------------------------------------------------------------------


def test_a_steer_enters_its_turn(desk: Desk) -> None:
    """What was said to a running turn enters its transcript once, with its sender where several people speak."""
    desk.says("work", "alice", GROUP)
    begun = desk.turn(GROUP)
    row = desk.says("/steer the other file", "bob", GROUP)
    assert desk.steers(begun) == ("Bob: the other file",)
    assert (desk.state(row), desk.turn_of(row).id) == ("consumed", begun.turn.id)
    assert desk.transcript(GROUP)[-1] == ("user", "Bob: the other file")
    assert desk.steers(begun) == ()


def test_a_plain_waiting_message_is_no_steer(desk: Desk) -> None:
    """A running turn takes what was said to it, and nothing else that waits."""
    desk.says("work")
    begun = desk.turn()
    row = desk.says("/queue later")
    assert desk.steers(begun) == ()
    assert desk.state(row) == "queued"


@pytest.mark.parametrize("end", ["answer", "fail", "stop", "interrupt"])
def test_what_a_turn_did_not_take_has_a_turn_of_its_own(desk: Desk, end: str) -> None:
    """A steer that came too late for its turn goes back to the queue, in its place: the turn in front of it does not
    swallow it, however that begins."""
    desk.says("work")
    begun = desk.turn()
    first = desk.says("/queue first")
    steer = desk.says("/steer too late")
    last = desk.says("/queue last")
    if end == "answer":
        desk.answer(begun)
    elif end == "fail":
        desk.fail(begun)
    else:
        desk.commit(records.close, begun.turn, end, "over", "", desk.account, desk.now)
    order = []
    while (begun := desk.begin()) is not None:
        assert isinstance(begun, Begun)
        assert desk.steers(begun) == ()
        order.append(begun.inbound.id)
        desk.answer(begun)
    assert order == [first.id, steer.id, last.id]


def test_a_steer_survives_a_restart(desk: Desk) -> None:
    """A turn that resumes takes what was said to it before the crash."""
    desk.says("work")
    desk.turn()
    desk.says("/steer softly")
    assert desk.steers(resumed(desk)) == ("softly",)


# --- groups of messages -----------------------------------------------------------------------------------------------


def photo(native: str, text: str = "", group: str = "album") -> object:
    return inbound(native, text, group=group, attachments=(Attachment("photo", f"file{native}"),))


def test_an_album_is_one_turn(desk: Desk) -> None:
    """I-05: what was sent as one waits until it is complete, and is one turn with one user message."""
    desk.admit(photo("1", "look"))
    first = desk.begin(gather=False)
    assert isinstance(first, Gathering)
    assert first.until == START + GATHER
    desk.now += 0.8
    desk.admit(photo("2"), photo("3"))
    second = desk.begin(gather=False)
    assert isinstance(second, Gathering)
    assert second.until == START + 0.8 + GATHER
    desk.now = second.until
    begun = desk.turn()
    assert desk.states() == ["running", "consumed", "consumed"]
    assert {desk.turn_of(desk.row(native)).id for native in "123"} == {begun.turn.id}
    photo_line = "[the user sent a photo]"
    assert desk.transcript() == [("user", "\n".join([photo_line, "look", photo_line, photo_line]))]
    desk.answer(begun)
    assert desk.begin() is None


def test_a_message_between_the_parts_keeps_its_place(desk: Desk) -> None:
    """The parts of a group share the turn of the first; what stands between them waits for its own."""
    desk.admit(photo("1"), inbound("2", "and?", "bob"), photo("3"))
    begun = desk.turn()
    assert begun.inbound.native_id == "1"
    assert desk.states() == ["running", "queued", "consumed"]
    desk.answer(begun)
    assert desk.turn().inbound.native_id == "2"


def test_names_stand_once_in_a_group(desk: Desk) -> None:
    """Where several people speak, the joined text begins with the name of its sender, once."""
    parts = [inbound(str(n), f"piece {n}", "bob", GROUP, group="g") for n in (1, 2)]
    desk.admit(*parts)
    desk.turn(GROUP)
    assert desk.transcript(GROUP) == [("user", "Bob: piece 1\npiece 2")]


# --- compression ------------------------------------------------------------------------------------------------------


def compressing(desk: Desk) -> Compress:
    job = desk.begin()
    assert isinstance(job, Compress)
    return job


def test_compress(desk: Desk) -> None:
    """/compress: the old session ends, the new one has its summary and its parent, and the user is told."""
    desk.answered("hello")
    desk.says("/title Holidays")
    row = desk.says("/compress the dates")
    job = compressing(desk)
    assert job.inbound.text == "the dates"
    assert [(m.role, m.content) for m in job.rows] == [("user", "hello"), ("assistant", "An answer.")]
    desk.commit(records.compress, job, "the summary", "new", desk.account.plan("told"), False, desk.now)
    assert desk.state(row) == "answered"
    assert desk.told(row) == "told"
    assert transcript.route(desk.con, HOME) == "new"
    assert desk.transcript() == [("summary", "the summary")]
    new, old = transcript.sessions(desk.con, HOME)
    assert (new.id, new.title, new.ended_at) == ("new", "Holidays", None)
    assert (old.id, old.ended_at) == (job.session, desk.now)
    ended = desk.con.execute("SELECT * FROM sessions WHERE id = ?", (job.session,)).fetchone()
    assert ended["end_reason"] == "compression"
    assert desk.con.execute("SELECT parent_session_id AS p FROM sessions WHERE id = 'new'").fetchone()["p"] == old.id


def test_a_summary_of_a_session_that_was_left(desk: Desk) -> None:
    """A summary that comes after /new or /resume moves nobody, and says so: nothing was done."""
    desk.answered("hello")
    row = desk.says("/compress")
    job = compressing(desk)
    desk.says("/new")
    now_at = transcript.route(desk.con, HOME)
    assert not desk.commit(records.compress, job, "late", "newer", desk.account.plan("told"), False, desk.now)
    assert transcript.route(desk.con, HOME) == now_at
    assert desk.state(row) == "queued"
    assert desk.transcript() == []


def test_a_failed_summary_changes_nothing(desk: Desk) -> None:
    """C-01: without a summary the session is as it was, and the user is told."""
    desk.answered("hello")
    row = desk.says("/compress")
    job = compressing(desk)
    before = {name: desk.dump()[name] for name in ("sessions", "routes", "messages")}
    desk.commit(records.not_compressed, job.inbound, desk.account.plan("sorry"), False, desk.now)
    assert {name: desk.dump()[name] for name in ("sessions", "routes", "messages")} == before
    assert (desk.state(row), desk.told(row)) == ("answered", "sorry")


@pytest.mark.parametrize("how", ["compress", "not_compressed"])
def test_a_compression_that_was_dropped_meanwhile(desk: Desk, how: str) -> None:
    """/queue clear while the summary is made: what comes of it afterwards changes nothing and says nothing."""
    desk.answered("hello")
    row = desk.says("/compress")
    job = compressing(desk)
    desk.says("/queue clear")
    before = desk.dump()
    plan = desk.account.plan("told")
    with pytest.raises(TurnOver):
        if how == "compress":
            desk.commit(records.compress, job, "late", "newer", plan, False, desk.now)
        else:
            desk.commit(records.not_compressed, row, plan, False, desk.now)
    assert desk.dump() == before


def test_a_running_turn_moves(desk: Desk) -> None:
    """Compression under a turn: the turn goes on in the new session, behind the summary, with its own messages only."""
    desk.answered("earlier")
    row = desk.says("now")
    begun = desk.turn()
    desk.calls(begun, "a")
    desk.started(begun, "a")
    desk.finished(begun, "a", "found")
    moved = desk.commit(
        records.compress_under_turn, begun, "the summary", "new", desk.account.plan("told"), False, desk.now
    )
    assert (moved.turn.id, moved.turn.session) == (begun.turn.id, "new")
    assert [m.role for m in moved.rows] == ["summary", "user", "assistant", "tool"]
    assert request_of("", moved.rows)[-1].content == "found"
    assert transcript.route(desk.con, HOME) == "new"
    assert obligations.get(desk.con, "compressed.new").content == "told"
    desk.answer(moved, "done")
    assert desk.transcript()[-1] == ("assistant", "done")
    assert desk.state(row) == "answered"
    old = transcript.messages(desk.con, begun.turn.session)
    assert [m.content for m in old] == ["earlier", "An answer."]


def test_a_turn_that_is_over_does_not_move(desk: Desk) -> None:
    """A summary that comes after an interrupt changes nothing."""
    desk.answered("earlier")
    desk.says("now")
    begun = desk.turn()
    desk.says("stop that")
    before = desk.dump()
    with pytest.raises(TurnOver):
        desk.commit(records.compress_under_turn, begun, "late", "new", desk.account.plan("told"), False, desk.now)
    assert desk.dump() == before


def test_the_next_turn_knows_how_full_its_session_is(desk: Desk) -> None:
    """A turn knows the tokens of its session's latest answer, and of no other session."""
    desk.says("one")
    desk.answer(desk.turn(), usage=Usage(1500, 10, context=900))
    desk.now += 1
    desk.says("two")
    begun = desk.turn()
    assert begun.last_context == 900
    desk.answer(begun)
    desk.says("/new")
    desk.says("three")
    assert desk.turn().last_context == 0


def test_a_session_keeps_its_model(desk: Desk) -> None:
    """The model that was chosen for a session is the one of its turns."""
    desk.says("/model second", sender="owner")
    desk.says("hello")
    assert desk.turn().model == "second"


def test_beats_and_work(desk: Desk) -> None:
    """A start wakes every address at which something waits or runs, oldest first, and no other."""
    desk.commit(accounts.begin_life, desk.now)
    desk.answered("over")
    desk.says("runs", "bob", GROUP)
    desk.turn(GROUP)
    desk.says("waits")
    assert desk.commit(records.addresses_with_work) == (GROUP, HOME)
    desk.commit(records.beat, desk.now + 7)
    assert desk.con.execute("SELECT last_commit FROM incarnations").fetchone()[0] == desk.now + 7


def test_a_reply_that_was_given_up_keeps_its_content(desk: Desk) -> None:
    """An answer to a dead address ends its turn all the same, and stays readable for the operator."""
    row = desk.says("hello")
    begun = desk.turn()
    desk.commit(obligations.move, begun.turn.reply, "abandon", desk.now)
    desk.answer(begun, "for nobody")
    assert desk.state(row) == "answered"
    assert (desk.reply(begun).state, desk.reply(begun).content) == ("abandoned", "for nobody")


def test_what_is_overheard_during_a_compression_is_kept(desk: Desk) -> None:
    """What others say in a group while the summary is made stands behind it in the new session."""
    desk.admit(inbound("1", "hello bot", address=GROUP, shared=True))
    desk.answer(desk.turn(GROUP))
    desk.admit(inbound("2", "/compress", address=GROUP, shared=True))
    job = desk.begin(GROUP)
    assert isinstance(job, Compress)
    desk.admit(inbound("3", "by the way", address=GROUP, shared=True, direct=False))
    assert desk.commit(records.compress, job, "the summary", "new", desk.account.plan("told"), False, desk.now)
    rows = transcript.messages(desk.con, "new")
    assert [row.role for row in rows] == ["summary", "context"]
    assert rows[1].content is not None
    assert rows[1].content.endswith("by the way")


def test_two_turns_at_one_address_are_not_resumed_by_each_other(desk: Desk) -> None:
    """A chat has moved: the actor there finds a turn that this process runs already, and leaves it alone."""
    desk.says("work")
    begun = desk.turn()
    desk.says("/queue more")
    arguments = (desk.access, True, "t", "s", desk.account.plan(notices.GAVE_UP), 0.0)
    assert desk.commit(records.begin_next, HOME, *arguments, frozenset({begun.turn.id}), desk.now) is None
    resumed = desk.commit(records.begin_next, HOME, *arguments, frozenset(), desk.now)
    assert isinstance(resumed, Begun)
    assert resumed.resumed


def test_a_reply_to_a_dead_place_that_lives_again_is_owed_anew(desk: Desk) -> None:
    """Blocked while it streamed, unblocked and written from since: the answer is shown after all."""
    desk.says("work")
    begun = desk.turn()
    accounts.mark_dead(desk.con, HOME, "blocked", desk.now)
    obligations.move(desk.con, begun.turn.reply, "abandon", desk.now)
    desk.says("/status")
    desk.answer(begun)
    anew = obligations.get(desk.con, f"{begun.turn.reply}.anew")
    assert (anew.state, anew.content) == ("pending", "An answer.")


def test_a_reply_to_a_dead_place_is_kept_for_the_operator(desk: Desk) -> None:
    """Nobody has written since: nothing is sent, and what it says can be looked up."""
    desk.says("work")
    begun = desk.turn()
    accounts.mark_dead(desk.con, HOME, "blocked", desk.now)
    obligations.move(desk.con, begun.turn.reply, "abandon", desk.now)
    desk.answer(begun)
    row = obligations.get(desk.con, begun.turn.reply)
    assert (row.state, row.content) == ("abandoned", "An answer.")
    with pytest.raises(KeyError):
        obligations.get(desk.con, f"{begun.turn.reply}.anew")
