"""The invariants that a database alone can break. Pure questions about rows.

The rule that must not be broken: a rule holds at every instant of a running bot, unless it is only asked `at_rest`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import frozen

from hermes_trio.testing.truth import Row, Rows, essence, parts_of

RAN = ("running", "answered", "failed", "interrupted", "stopped")
ENDED = ("delivered", "abandoned", "withdrawn", "held")


@frozen
class Violation:
    """One broken promise."""

    invariant: str
    """I1 to I9."""
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


def in_rows(rows: Rows, *, at_rest: bool) -> Iterator[Violation]:
    """What the rows themselves say against I1, I2, I3, I4, I7 and I8. at_rest: everything should have ended."""
    yield from _once_processed(rows, at_rest)
    yield from _one_reply(rows, at_rest)
    yield from _stored_once(rows)
    yield from _marked_with_reason(rows)
    yield from _ended_with_word(rows)
    yield from _delegations(rows)


def _once_processed(rows: Rows, at_rest: bool) -> Iterator[Violation]:
    turns: dict[int, list[Row]] = {}
    for turn in rows.turns:
        turns.setdefault(turn["inbox"], []).append(turn)
    said = Counter(row["turn"] for row in rows.messages if row["role"] == "user")
    steers = Counter(row["turn"] for row in rows.inbox if (row["kind"], row["state"]) == ("steer", "consumed"))
    for row in rows.inbox:
        own = turns.get(row["id"], [])
        name = f"message {row['native_id']} of chat {row['chat']} ({row['text']!r:.40})"
        if at_rest and row["state"] in ("queued", "running"):
            yield Violation("I1", f"{name} is still {row['state']}")
        if row["state"] in RAN and len(own) != (row["kind"] != "command"):
            yield Violation("I1", f"{name} has {len(own)} turns")
        for turn in own:
            if turn["state"] != row["state"]:
                yield Violation("I1", f"{name} is {row['state']}, its turn {turn['state']}")
            if not 1 <= said[turn["id"]] <= 1 + steers[turn["id"]]:
                yield Violation("I1", f"{name} stands {said[turn['id']]} times in the transcript")


def _one_reply(rows: Rows, at_rest: bool) -> Iterator[Violation]:
    replies: dict[str, list[Row]] = {}
    for obligation in rows.obligations:
        if obligation["kind"] == "reply":
            replies.setdefault(obligation["turn"], []).append(obligation)
        if at_rest and obligation["state"] not in ENDED:
            yield Violation("I7", f"the obligation {obligation['id']} is still {obligation['state']}")
    for turn in rows.turns:
        own = replies.get(turn["id"], [])
        if len(own) != 1:
            yield Violation("I2", f"the turn {turn['id']} has {len(own)} replies")
        elif turn["state"] in ("answered", "failed") and own[0]["state"] in ("streaming", "withdrawing", "withdrawn"):
            yield Violation("I2", f"the turn {turn['id']} is {turn['state']}, its reply {own[0]['state']}")
        elif turn["state"] == "running" and own[0]["state"] not in ("streaming", "abandoned"):
            yield Violation("I2", f"the turn {turn['id']} runs, but its reply is {own[0]['state']}")


def _stored_once(rows: Rows) -> Iterator[Violation]:
    answers: dict[str, list[str]] = {}
    for message in rows.messages:
        if message["role"] == "assistant" and not message["tool_calls"] and not message["interrupted"]:
            answers.setdefault(message["turn"], []).append(message["content"])
    contents = {row["turn"]: row for row in rows.obligations if row["kind"] == "reply"}
    for turn in rows.turns:
        said = answers.get(turn["id"], [])
        if len(said) != (turn["state"] == "answered"):
            yield Violation("I3", f"the turn {turn['id']} is {turn['state']} and has {len(said)} answers")
        elif said and turn["id"] in contents and said[0] != contents[turn["id"]]["content"]:
            yield Violation("I3", f"the reply of {turn['id']} is not what its transcript says")
    for obligation in rows.obligations:
        planned = essence("".join(parts_of(obligation)))
        if obligation["state"] == "delivered" and planned != essence(obligation["content"]):
            yield Violation("I3", f"the parts of {obligation['id']} are not its content")


def _marked_with_reason(rows: Rows) -> Iterator[Violation]:
    doubtful = {(post["obligation"], post["ordinal"]) for post in rows.posts if post["state"] == "doubtful"}
    for post in rows.posts:
        if post["marked"] and (post["obligation"], post["ordinal"]) not in doubtful:
            yield Violation("I4", f"{post['key']} is marked, and no earlier copy of it is in doubt")


def _ended_with_word(rows: Rows) -> Iterator[Violation]:
    notices = {row["id"].rpartition(".")[0] for row in rows.obligations if row["kind"] == "control"}
    for row in rows.obligations:
        if row["state"] != "abandoned" or (row["platform"], row["chat_id"]) in rows.dead:
            continue
        silent = row["kind"] == "reply" and row["id"] not in notices and not parts_of(row)
        if silent and not any(post["state"] == "live" for post in rows.posts_of(row["id"])):
            yield Violation("I2", f"{row['id']} was abandoned without a word")


def _delegations(rows: Rows) -> Iterator[Violation]:
    for row in rows.delegations:
        name = f"the delegation {row['delegation_id']}"
        if row["delivery_state"] == "pending" and row["delivery_claim"] is not None:
            yield Violation("I8", f"{name} is pending and claimed")
        if row["delivery_state"] == "dropped" and not row["reason"]:
            yield Violation("I8", f"{name} was dropped without a reason")
