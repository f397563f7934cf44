"""A state machine over admission and the records of turns: people, the platform, one actor, crashes, late commits.

It plays any order of what can happen at one address and keeps its own books of what must come of it. What it shows is
in the names of its invariants.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hermes_trio.access import Access
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.history import request_of
from hermes_trio.conversation.records import Begun, Compress, Ended
from hermes_trio.ledger import inbox, transcript
from hermes_trio.ledger.transitions import INBOX
from hermes_trio.ledger.turns import TurnOver
from hermes_trio.platforms.base import Inbound
from hermes_trio.testing.ledger_rules import in_rows
from hermes_trio.testing.truth import Rows

from .desk import GROUP, LIMIT, Desk, inbound
from .test_history import complaint

PEOPLE = st.sampled_from(["alice", "alice", "bob", "owner"])
TEXTS = st.sampled_from(
    [
        "hello", "hello", "hello", "x" * LIMIT, "/queue later", "/queue later", "/steer so", "/steer so", "/stop",
        "/status", "/queue drop 1", "/queue drop 2", "/queue clear", "/new", "/retry", "/undo", "/compress",
        "/resume 2", "/busy queue", "/busy interrupt", "/busy steer", "/nonsense", "",
    ]
)  # fmt: skip
ENDED = [state for state, events in INBOX.items() if not events]
WITH_TURN = ("running", "answered", "failed", "interrupted", "stopped")


class Conversation(RuleBasedStateMachine):
    """One shared place, because there everything may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.arrived: list[Inbound] = []
        self.begun: list[Begun] = []
        """Every turn as its task last held it, those that are over included."""
        self.ends: dict[str, str] = {}
        """By native id: how it ended, once it had."""
        self.job: Compress | None = None

    @initialize(busy=st.sampled_from(["interrupt", "queue", "steer"]), always=st.booleans(), others=st.booleans())
    def opens(self, busy: str, always: bool, others: bool) -> None:
        self.desk.busy(busy)
        self.desk.rules = evolve(self.desk.rules, always=always, others_interrupt=others)

    # --- people and the platform ----------------------------------------------------------------------------------

    @rule(
        who=PEOPLE,
        texts=st.lists(TEXTS, min_size=1, max_size=3),
        group=st.sampled_from([None, None, "album1", "album2"]),
        direct=st.sampled_from([True, True, True, False]),
        readable=st.sampled_from([True] * 9 + [False]),
    )
    def arrives(self, who: str, texts: list[str], group: str | None, direct: bool, readable: bool) -> None:
        if not self.desk.access.allows("tg", who):
            return  # ingress lets nobody in who may not speak
        more: dict[str, Any] = {} if readable else {"unreadable": "{}"}
        number = len(self.arrived)
        batch = [
            inbound(f"n{number + place}", text, who, GROUP, group=group, direct=direct, **more)
            for place, text in enumerate(texts)
        ]
        admitted = self.desk.admit(*batch)
        self.arrived += batch
        assert admitted.arrived == (GROUP,)

    @precondition(lambda self: self.arrived)
    @rule(data=st.data())
    def is_delivered_again(self, data: st.DataObject) -> None:
        """Redelivery changes nothing."""
        known = data.draw(st.lists(st.sampled_from(self.arrived), min_size=1, max_size=3))
        before = self.desk.dump()
        admitted = self.desk.admit(*known)
        assert self.desk.dump() == before
        assert (admitted.arrived, admitted.ended) == ((), ())

    @rule(seconds=st.sampled_from([0.1, 1.5, 5.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.desk.now += seconds

    # --- the actor ------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[int]:
        rows = self.desk.con.execute("SELECT id FROM inbox WHERE state = 'queued' ORDER BY id")
        return [row["id"] for row in rows]

    def _runs(self) -> Begun | None:
        """The turn that runs, as its task holds it."""
        running = self.desk.con.execute("SELECT id FROM turns WHERE state = 'running'").fetchone()
        return next((b for b in reversed(self.begun) if running is not None and b.turn.id == running["id"]), None)

    @precondition(lambda self: self._runs() is None and self.job is None)
    @rule()
    def the_actor_looks(self) -> None:
        """First in, first out: what begins is the oldest that waits."""
        waiting = self._waiting()
        begun = self.desk.begin(GROUP)
        if isinstance(begun, Begun):
            assert begun.inbound.id == waiting[0]
            assert not begun.resumed
            self._holds(begun)
        elif isinstance(begun, Compress):
            assert begun.inbound.id == waiting[0]
            self.job = begun
        elif isinstance(begun, Ended):
            oldest = inbox.get(self.desk.con, waiting[0])
            assert (oldest.state, self.desk.access.allows("tg", oldest.sender)) == ("dropped", False)
        else:
            assert begun is None
            assert not waiting

    def _holds(self, begun: Begun) -> None:
        self.begun.append(begun)
        messages = request_of("", begun.rows, turn=begun.turn.id)
        assert complaint(messages, begun.open_calls) == "", messages

    @precondition(lambda self: self.job is not None)
    @rule(well=st.booleans())
    def the_summary_comes(self, well: bool) -> None:
        job, desk = self.job, self.desk
        self.job = None
        assert job is not None
        plan = desk.account.plan("told")
        with suppress(TurnOver):
            if well:
                desk.commit(records.compress, job, "s", desk.new_id(), plan, False, desk.now)
            else:
                desk.commit(records.not_compressed, job.inbound, plan, False, desk.now)

    @rule(banned=st.sampled_from([None, None, None, "alice", "bob"]), lived=st.sampled_from([0.0, 100.0]))
    def the_process_dies(self, banned: str | None, lived: float) -> None:
        """A restart forgets every task; what ran resumes as the same turn, unless it may not, or has had enough."""
        self.job = None
        self.desk.said = {}
        died = self.desk.now = self.desk.now + lived
        self.desk.now += 5
        self.desk.access = Access(["tg:owner", *(f"tg:{who}" for who in ("alice", "bob") if who != banned)])
        before = self._runs()
        if before is not None:
            again = self.desk.begin(GROUP, previous_death=died)
            if isinstance(again, Begun):
                assert (again.turn.id, again.resumed) == (before.turn.id, True)
                self._holds(again)
            else:
                assert self._runs() is None

    # --- the turn -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.begun)
    @rule(data=st.data(), end=st.sampled_from(["answer", "fail"]))
    def a_turn_ends(self, data: st.DataObject, end: str) -> None:
        """Also a task that does not know yet that its turn is over: it changes nothing then."""
        begun = data.draw(st.sampled_from(self.begun))
        runs = self._runs()
        before = self.desk.dump()
        try:
            self.desk.answer(begun) if end == "answer" else self.desk.fail(begun, partial="Half")
        except TurnOver:
            assert runs is None or runs.turn.id != begun.turn.id
            assert self.desk.dump() == before
        else:
            assert runs is not None
            assert runs.turn.id == begun.turn.id

    @precondition(lambda self: self._runs() is not None)
    @rule(text=st.sampled_from(["", "Half an answer"]))
    def a_preview_shows(self, text: str) -> None:
        begun = self._runs()
        assert begun is not None
        self.desk.shows(begun, text)

    @precondition(lambda self: self._runs() is not None)
    @rule(steps=st.integers(0, 4))
    def a_turn_uses_tools(self, steps: int) -> None:
        """Two calls, cut off anywhere."""
        begun = self._runs()
        assert begun is not None
        desk, open_before = self.desk, self._unfinished(begun)
        if open_before:
            calls = open_before
        else:
            calls = [desk.new_id(), desk.new_id()]
            desk.calls(begun, *calls)
        for call in calls:
            if steps > 0:
                desk.started(begun, call)
            if steps > 1:
                desk.finished(begun, call)
            if steps < 4:
                break

    @precondition(lambda self: self._runs() is not None)
    @rule()
    def a_turn_listens(self) -> None:
        """What was said to this turn since it last looked enters it, in order; nothing else does."""
        begun, desk = self._runs(), self.desk
        assert begun is not None
        if self._unfinished(begun):
            return
        before = desk.con.execute(
            "SELECT id FROM inbox WHERE state = 'queued' AND kind = 'steer' AND turn = ?", (begun.turn.id,)
        ).fetchall()
        taken = desk.steers(begun)
        assert len(taken) == len(before)
        assert all(inbox.get(desk.con, row["id"]).state == "consumed" for row in before)

    def _unfinished(self, begun: Begun) -> list[str]:
        """Calls that never started; a call in flight is finished first."""
        rows = self.desk.con.execute(
            "SELECT tool_call_id AS id, started, content FROM messages WHERE turn = ? AND role = 'tool'"
            " ORDER BY messages.id",
            (begun.turn.id,),
        ).fetchall()
        for row in rows:
            if row["started"] is not None and row["content"] is None:
                self.desk.finished(begun, row["id"])
        return [row["id"] for row in rows if row["started"] is None]

    @precondition(lambda self: self._runs() is not None)
    @rule()
    def the_session_is_full(self) -> None:
        begun, desk = self._runs(), self.desk
        assert begun is not None
        if self._unfinished(begun):
            return
        plan = desk.account.plan("told")
        self._holds(desk.commit(records.compress_under_turn, begun, "s", desk.new_id(), plan, False, desk.now))

    # --- what must hold at every instant --------------------------------------------------------------------------

    @invariant()
    def every_message_is_there_once_and_ends_once(self) -> None:
        rows = self.desk.con.execute("SELECT native_id, state, ended_at FROM inbox ORDER BY id").fetchall()
        assert [row["native_id"] for row in rows] == [each.native_id for each in self.arrived]
        for row in rows:
            ended = row["state"] in ENDED
            assert ended == (row["ended_at"] is not None)
            if row["native_id"] in self.ends:
                assert self.ends[row["native_id"]] == row["state"], "it ended twice"
            elif ended:
                self.ends[row["native_id"]] = row["state"]

    @invariant()
    def every_message_has_one_owner(self) -> None:
        """The queue, its own running turn, or nobody any more; a turn belongs to exactly one message."""
        con = self.desk.con
        running = con.execute("SELECT id, inbox FROM turns WHERE state = 'running'").fetchall()
        assert len(running) <= 1, "two turns at one address"
        in_turn = [row["id"] for row in con.execute("SELECT id FROM inbox WHERE state = 'running'")]
        assert in_turn == [row["inbox"] for row in running]
        owners = Counter(row["inbox"] for row in con.execute("SELECT inbox FROM turns"))
        for row in con.execute("SELECT id, state, turn FROM inbox WHERE kind != 'command'"):
            assert owners[row["id"]] == (row["state"] in WITH_TURN), dict(row)
            if row["state"] in (*WITH_TURN, "consumed"):
                assert row["turn"] is not None, "it belongs to no turn"

    @invariant()
    def every_turn_is_owed_one_reply(self) -> None:
        broken = list(in_rows(Rows(self.desk.con), at_rest=False))
        assert not broken, broken
        for row in self.desk.con.execute(
            "SELECT t.state AS turn, o.state AS reply, o.content AS content FROM turns t"
            " JOIN delivery_obligations o ON o.turn = t.id AND o.kind = 'reply'"
        ):
            if row["turn"] == "running":
                assert row["reply"] == "streaming"
            elif row["turn"] == "answered":
                assert (row["reply"], row["content"]) == ("pending", "An answer.")
            elif row["turn"] == "failed":
                assert row["reply"] == "pending"
                assert row["content"] in (notices.FAILED, notices.GAVE_UP)
            else:
                assert row["reply"] in ("pending", "withdrawing")

    @invariant()
    def every_command_and_notice_has_a_word(self) -> None:
        for row in self.desk.con.execute("SELECT * FROM inbox WHERE kind = 'command' OR state = 'unreadable'"):
            if row["state"] in ("answered", "unreadable"):
                told = self.desk.con.execute(
                    "SELECT count(*) AS n FROM delivery_obligations WHERE kind = 'control' AND id IN (?, ?, ?)",
                    (f"command.{row['id']}", f"unreadable.{row['id']}", f"compressed.{row['id']}"),
                ).fetchone()
                unheard = row["state"] == "unreadable" and row["shared"]  # perhaps it was not meant for the bot
                assert told["n"] == 1 or (unheard and told["n"] == 0), dict(row)

    @invariant()
    def every_transcript_makes_a_valid_request(self) -> None:
        for row in self.desk.con.execute("SELECT id FROM sessions").fetchall():
            assert complaint(request_of("", transcript.messages(self.desk.con, row["id"]))) == ""

    def teardown(self) -> None:
        """Whatever happened: when everything has been worked off, each message has ended."""
        self.job = None
        while (begun := self.desk.begin(GROUP)) is not None:
            if isinstance(begun, Begun):
                self.desk.answer(begun)
            elif isinstance(begun, Compress):
                plan = self.desk.account.plan("told")
                self.desk.commit(records.not_compressed, begun.inbound, plan, False, self.desk.now)
        self.every_message_is_there_once_and_ends_once()
        self.every_message_has_one_owner()
        self.every_turn_is_owed_one_reply()
        self.every_command_and_notice_has_a_word()
        assert set(self.ends) == {each.native_id for each in self.arrived}
        self.desk.con.close()


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=40)
