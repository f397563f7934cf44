"""The lifecycles of rows: which arrows there are, that nothing else moves a row, and that schema and diagram agree."""

from __future__ import annotations

import re
import sqlite3

import pytest

from hermes_trio.ledger.database import prepare
from hermes_trio.ledger.transitions import (
    INBOX,
    MESSAGE_ROLES,
    OBLIGATION,
    POST,
    TURN,
    IllegalTransition,
    Lifecycle,
    advance,
    diagram,
    open_states,
)

LIFECYCLES: dict[str, Lifecycle] = {"inbox": INBOX, "turns": TURN, "delivery_obligations": OBLIGATION, "posts": POST}
BEGINS = {
    "inbox": {"queued", "context", "unreadable"},
    "turns": {"running"},
    "delivery_obligations": {"streaming", "pending"},
    "posts": {"intended"},
}
"""The states in which a row of the table is born."""

ARROWS = {
    "inbox": """
        queued begin running        queued consume consumed      queued drop dropped        queued answer answered
        running answer answered     running fail failed          running interrupt interrupted
        running stop stopped
    """,
    "turns": """
        running answer answered     running fail failed          running interrupt interrupted
        running stop stopped
    """,
    "delivery_obligations": """
        streaming commit pending    streaming withdraw withdrawing      streaming abandon abandoned
        pending attempt attempting  pending settle delivered            pending abandon abandoned
        pending hold held           pending withdraw withdrawing
        attempting attempt attempting   attempting settle delivered     attempting abandon abandoned
        attempting hold held
        held release pending        held abandon abandoned
        withdrawing attempt withdrawing     withdrawing settle withdrawn    withdrawing abandon abandoned
    """,
    "posts": """
        intended accept live        intended doubt unknown       unknown accept live        unknown doubt doubtful
        live exceed surplus
    """,
}
"""The contract, written a second time on purpose: a changed table must be meant."""


def arrows(table: str) -> dict[tuple[str, str], str]:
    """The contract as a mapping of (state, event) to the next state."""
    words = ARROWS[table].split()
    return {(words[at], words[at + 1]): words[at + 2] for at in range(0, len(words), 3)}


EVENTS = sorted({event for table in ARROWS for _, event in arrows(table)} | {"no such event"})
CASES = [
    (table, state, event)
    for table, lifecycle in LIFECYCLES.items()
    for state in (*lifecycle, "no such state")
    for event in EVENTS
]


@pytest.mark.parametrize(("table", "state", "event"), CASES)
def test_every_state_and_event(table: str, state: str, event: str) -> None:
    """Each pair leads where the contract says; every other pair raises and names both."""
    target = arrows(table).get((state, event))
    if target is not None:
        assert advance(LIFECYCLES[table], state, event) == target
    else:
        with pytest.raises(IllegalTransition, match=f"'{event}' in state '{state}'"):
            advance(LIFECYCLES[table], state, event)


@pytest.mark.parametrize("table", LIFECYCLES)
def test_every_arrow_of_the_contract_is_tried(table: str) -> None:
    """No arrow of the contract starts from a state that the table lacks."""
    assert {state for state, _ in arrows(table)} <= set(LIFECYCLES[table])


@pytest.mark.parametrize("table", LIFECYCLES)
def test_tables_are_closed(table: str) -> None:
    """Every target is a state of its own, and every state can be reached from where rows are born."""
    lifecycle = LIFECYCLES[table]
    reached = set(BEGINS[table])
    while new := {target for state in reached for target in lifecycle[state].values()} - reached:
        reached |= new
    assert reached == set(lifecycle)


@pytest.mark.parametrize("table", LIFECYCLES)
def test_open_states_are_those_with_a_way_out(table: str) -> None:
    """Open is what some event still leaves; a closed state knows no event."""
    assert set(open_states(LIFECYCLES[table])) == {state for state, _ in arrows(table)}


@pytest.mark.parametrize("table", ["turns", "delivery_obligations", "inbox"])
def test_every_open_row_can_end(table: str) -> None:
    """From every open state some way leads to a closed one: no row is owed for ever."""
    lifecycle = LIFECYCLES[table]
    ending = {state for state, events in lifecycle.items() if not events}
    while new := {state for state in lifecycle if set(lifecycle[state].values()) & ending} - ending:
        ending |= new
    assert ending == set(lifecycle)


@pytest.mark.parametrize("table", LIFECYCLES)
def test_the_diagram_draws_every_arrow(table: str) -> None:
    """The Mermaid diagram holds each arrow with its event, an end for each closed state, and nothing else."""
    head, *lines = diagram(LIFECYCLES[table]).splitlines()
    assert head == "stateDiagram-v2"
    drawn = {f"{state} --> {target}: {event}" for (state, event), target in arrows(table).items()}
    ends = {f"{state} --> [*]" for state, events in LIFECYCLES[table].items() if not events}
    assert sorted(line.strip() for line in lines) == sorted(drawn | ends)


def checked_values(table: str, column: str) -> set[str]:
    """The values that the schema's CHECK of a column allows, read from a fresh database."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, "memory")
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    found = re.search(rf"CHECK \({column} IN \(([^)]*)\)\)", sql)
    assert found, f"{table}.{column} has no CHECK"
    return set(re.findall(r"'([^']*)'", found[1]))


@pytest.mark.parametrize("table", LIFECYCLES)
def test_the_schema_checks_the_states(table: str) -> None:
    """The CHECK of each table's state allows exactly the states of its lifecycle."""
    assert checked_values(table, "state") == set(LIFECYCLES[table])


def test_the_schema_checks_the_roles() -> None:
    """A message of a transcript has one of the five roles."""
    assert (
        checked_values("messages", "role")
        == set(MESSAGE_ROLES)
        == {
            "user",
            "assistant",
            "tool",
            "context",
            "summary",
        }
    )


def test_a_nonsense_state_is_refused_by_the_database() -> None:
    """The CHECK is not only written, it works: SQLite refuses a state that no table knows."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, "memory")
    connection.execute("PRAGMA foreign_keys = OFF")
    columns = "INSERT INTO posts (key, obligation, serial, ordinal, state, created_at, ended_at)"
    connection.execute(f"{columns} VALUES ('a', 'o', 0, 0, 'live', 0, 0)")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute(f"{columns} VALUES ('b', 'o', 0, 0, 'lively', 0, 0)")
    connection.close()
