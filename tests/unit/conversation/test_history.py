"""From rows to a request: whatever the rows are, a model server accepts it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.conversation import notices
from hermes_trio.conversation.history import request_of, user_text
from hermes_trio.ledger.rows import MessageRow
from hermes_trio.model.base import Message, ToolCall
from hermes_trio.platforms.base import Attachment

from .desk import GROUP, Desk


def complaint(messages: Sequence[Message], still_open: Sequence[ToolCall] = ()) -> str:
    """Why a server would refuse this request once the loop has run the open calls; empty: it would not."""
    messages = [*messages, *(Message("tool", "late", tool_call_id=call.id) for call in still_open)]
    owed: list[str] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in owed:
                return f"{number}: a result without its call"
            owed.remove(message.tool_call_id)
        elif owed:
            return f"{number}: {message.role}, but {owed} have no results"
        owed = [*owed, *(call.id for call in message.tool_calls)]
    return f"at the end {owed} have no results" if owed else ""


IDS = ("a", "b", "c")


@st.composite
def transcripts(draw: st.DrawFn) -> list[MessageRow]:
    """Rows in any order: exchanges cut short anywhere, results without calls, anybody between."""
    rows: list[MessageRow] = []

    def add(role: str, content: str | None, **more: object) -> None:
        fields: dict[str, object] = {
            "turn": None, "tool_calls": (), "tool_call_id": None, "tool_name": None, "started": None,
            "interrupted": False, "created_at": 0.0, **more,
        }  # fmt: skip
        rows.append(MessageRow(id=len(rows) + 1, role=role, content=content, **fields))

    for turn in draw(st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=8)):
        kind = draw(st.sampled_from(["user", "context", "summary", "answer", "interrupted", "calls", "orphan"]))
        if kind in ("user", "context", "summary"):
            add(kind, draw(st.sampled_from(["", "text"])), turn=turn)
        elif kind in ("answer", "interrupted"):
            add("assistant", "text", turn=turn, interrupted=kind == "interrupted")
        elif kind == "orphan":
            add("tool", "r", turn=turn, tool_call_id=draw(st.sampled_from(IDS)), tool_name="tool")
        else:
            calls = tuple(ToolCall(each, "tool", "{}") for each in draw(st.sets(st.sampled_from(IDS), min_size=1)))
            add("assistant", draw(st.sampled_from([None, "", "text"])), turn=turn, tool_calls=calls)
            for call in calls[: draw(st.integers(0, len(calls)))]:
                started, content = draw(st.sampled_from([(None, None), (1.0, None), (1.0, "r")]))
                add("tool", content, turn=turn, tool_call_id=call.id, tool_name="tool", started=started)
    return rows


@given(transcripts(), st.sampled_from(["", "system"]))
def test_a_request_is_valid(rows: list[MessageRow], system: str) -> None:
    """R-05: each call is answered by one result directly behind it and no result stands alone, whatever was cut."""
    messages = request_of(system, rows)
    assert complaint(messages) == ""
    assert [m for m in messages if m.role == "system"] == ([Message("system", system)] if system else [])


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_open_calls_end_the_request(desk: Desk) -> None:
    """D8 in a group: what was overheard after the calls does not come between them and their results."""
    desk.says("work", "alice", GROUP)
    begun = desk.turn(GROUP)
    desk.calls(begun, "done", "waiting")
    desk.started(begun, "done")
    desk.finished(begun, "done", "42")
    desk.says("nice weather", "bob", GROUP, direct=False)
    again = desk.turn(GROUP)
    assert [call.id for call in again.open_calls] == ["waiting"]
    messages = request_of("", again.rows, turn=again.turn.id)
    assert complaint(messages, again.open_calls) == ""
    assert messages[-1] == Message("tool", "42", tool_call_id="done", name="tool")


def test_what_was_overheard_is_read_by_the_next_turn(desk: Desk) -> None:
    """Words that came between a turn's calls and its answer are in the next request, in a valid place."""
    desk.says("work", "alice", GROUP)
    begun = desk.turn(GROUP)
    desk.calls(begun, "a")
    desk.says("nice weather", "bob", GROUP, direct=False)
    desk.started(begun, "a")
    desk.finished(begun, "a", "42")
    desk.answer(begun)
    desk.says("and now?", "alice", GROUP)
    messages = request_of("", desk.turn(GROUP).rows)
    assert complaint(messages) == ""
    assert [m.content for m in messages] == [
        "Alice: work", "", "42", "Bob: nice weather", "An answer.", "Alice: and now?",
    ]  # fmt: skip


def test_an_interrupted_call_is_closed(desk: Desk) -> None:
    """R-05: calls of a turn that was stopped have a result that says so, also those that never started."""
    desk.says("work")
    begun = desk.turn()
    desk.calls(begun, "a", "b", text="I look.")
    desk.started(begun, "a")
    desk.says("/stop")
    desk.says("continue")
    messages = request_of("", desk.turn().rows)
    assert complaint(messages) == ""
    assert [m.content for m in messages] == [
        "work", "I look.", notices.NEVER_FINISHED, notices.NEVER_FINISHED, "continue",
    ]  # fmt: skip


def test_an_interrupted_answer_says_so(desk: Desk) -> None:
    """The model is told that its words were cut short."""
    desk.says("hello")
    begun = desk.turn()
    desk.shows(begun, "Half an")
    desk.says("wait")
    assert [m.content for m in request_of("", desk.turn().rows)] == ["hello", f"Half an {notices.CUT_SHORT}", "wait"]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"text": "hello"}, "hello"),
        ({"text": ""}, "[an empty message]"),
        ({"text": " \n"}, "[an empty message]"),
        ({"text": "", "attachments": (Attachment("voice", "f"),)}, "[the user sent a voice]"),
        (
            {"text": "see", "attachments": (Attachment("file", "f", "a.pdf", "application/pdf", 12),)},
            "[the user sent a file: a.pdf, application/pdf, 12 bytes]\nsee",
        ),
        ({"text": "hello", "address": GROUP, "sender": "bob"}, "Bob: hello"),
        ({"text": "hello", "address": GROUP, "sender": "bob", "sender_name": ""}, "bob: hello"),
    ],
)
def test_what_the_model_reads(desk: Desk, more: dict[str, object], text: str) -> None:
    """A message without text is named for what it is, and never empty; in a group it has its sender."""
    sender_name = more.pop("sender_name", None)
    row = desk.says(**more, **({} if sender_name is None else {"sender_name": sender_name}))
    assert user_text(row, named=True) == text


def test_a_private_message_has_no_name(desk: Desk) -> None:
    """Where one person speaks, or somebody else has named the sender, no name stands before the text."""
    assert user_text(desk.says("hello"), named=True) == "hello"
    assert user_text(desk.says("hello", address=GROUP), named=False) == "hello"
