"""The policy: every pair of a situation and an arrival, and the tables that the documents show."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.conversation.policy import TABLE, Arrival, Busy, Decision, Situation, decide, table_as_markdown
from hermes_trio.ledger.transitions import INBOX, diagram

DOCUMENT = Path(__file__).parents[3] / "docs" / "conversations.md"
REST = (Situation.IDLE, Situation.COMMITTED)
EVERYTHING = list(product(Situation, Arrival, Busy))


def expected(situation: Situation, arrival: Arrival, busy: Busy) -> Decision:
    """The policy in other words than its own."""
    if arrival is Arrival.COMMAND:
        return Decision.COMMAND
    if arrival is Arrival.PART:
        return Decision.JOIN
    if situation in REST:
        return Decision.START
    if arrival is Arrival.STEER:
        return Decision.STEER
    if arrival is Arrival.PLAIN and situation is Situation.WAITING:
        return Decision.ANSWER
    if arrival is Arrival.PLAIN and situation is Situation.RUNNING:
        return Decision(str(busy).replace("queue", "enqueue"))
    return Decision.ENQUEUE


@pytest.mark.parametrize(("situation", "arrival", "busy"), EVERYTHING)
def test_every_pair(situation: Situation, arrival: Arrival, busy: Busy) -> None:
    """Every pair of a situation and an arrival has one decision, in every busy mode."""
    assert decide(situation, arrival, busy) is expected(situation, arrival, busy)


def test_only_a_plain_message_of_the_same_person_interrupts() -> None:
    """Nothing else ever ends a turn: no command by itself, no internal kind, no part, nobody else's message."""
    assert [each for each in EVERYTHING if decide(*each) is Decision.INTERRUPT] == [
        (Situation.RUNNING, Arrival.PLAIN, Busy.INTERRUPT)
    ]


def test_internal_kinds_always_queue() -> None:
    """What comes from the runtime itself waits for its turn, whatever the busy mode."""
    assert {decide(s, Arrival.INTERNAL, b) for s in Situation if s not in REST for b in Busy} == {Decision.ENQUEUE}


def test_the_busy_mode_matters_in_one_place_only() -> None:
    """/queue always queues and /steer always steers: only a plain message asks for the busy mode."""
    differing = {
        (situation, arrival)
        for situation, arrivals in TABLE.items()
        for arrival, decisions in arrivals.items()
        if len(set(decisions.values())) > 1
    }
    assert differing == {(Situation.RUNNING, Arrival.PLAIN)}


def test_the_table_has_a_row_for_each_pair() -> None:
    """The generated table names every situation and arrival, with a cell for each busy mode."""
    lines = table_as_markdown().splitlines()
    assert len(lines) == 2 + len(Situation) * len(Arrival)
    assert "| running | plain | interrupt | enqueue | steer |" in lines
    assert {line.count("|") for line in lines} == {6}


@pytest.mark.parametrize("table", [table_as_markdown(), REGISTRY.as_markdown(), diagram(INBOX)])
def test_the_document_shows_the_table(table: str) -> None:
    """docs/conversations.md holds what the code makes; `python docs/generate.py` puts it there."""
    assert table in DOCUMENT.read_text()
