"""Who speaks when: what becomes of a message that arrives, decided by a table. Pure.

The rule that must not be broken: every pair of a situation and an arrival has exactly one decision, and a decision
hands the message to exactly one owner: the queue, the running turn, the question that waits, or a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Situation(StrEnum):
    """What the conversation is doing."""

    IDLE = "idle"
    """No turn runs."""
    RUNNING = "running"
    """A turn of the same person runs."""
    ANOTHERS = "another's"
    """A turn of another person runs: only in a shared chat."""
    WAITING = "waiting"
    """A turn runs and has asked this person a question."""
    COMMITTED = "committed"
    """The answer is durable and on its way to the screen; nothing can take it back."""


class Arrival(StrEnum):
    """What arrives."""

    PLAIN = "plain"
    QUEUE = "/queue"
    STEER = "/steer"
    PART = "part"
    """A further part of what the running turn, or the one that waits next, is about: an album, a cut paste."""
    COMMAND = "command"
    INTERNAL = "internal"
    """From the runtime itself: a delegation's result, a schedule."""


class Busy(StrEnum):
    """What a plain message does while a turn of the same person runs."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    STEER = "steer"


class Decision(StrEnum):
    """What becomes of it."""

    START = "start"
    """It enters the queue, which is at rest: its turn begins now."""
    ENQUEUE = "enqueue"
    """It waits for its turn."""
    INTERRUPT = "interrupt"
    """The running turn ends without an answer; it waits for its own turn, which begins when those before it ended."""
    STEER = "steer"
    """It enters the running turn behind the next tool result; what the turn does not take waits for its own turn."""
    JOIN = "join"
    """It belongs to a message that waits or runs, and shares its turn."""
    ANSWER = "answer"
    """It answers the question that the running turn has asked."""
    COMMAND = "command"
    """It is carried out at once."""


_REST: Mapping[Arrival, Decision] = {
    Arrival.PLAIN: Decision.START,
    Arrival.QUEUE: Decision.START,
    Arrival.STEER: Decision.START,
    Arrival.PART: Decision.JOIN,
    Arrival.COMMAND: Decision.COMMAND,
    Arrival.INTERNAL: Decision.START,
}
_BUSY: Mapping[Arrival, Decision] = {
    Arrival.PLAIN: Decision.ENQUEUE,
    Arrival.QUEUE: Decision.ENQUEUE,
    Arrival.STEER: Decision.STEER,
    Arrival.PART: Decision.JOIN,
    Arrival.COMMAND: Decision.COMMAND,
    Arrival.INTERNAL: Decision.ENQUEUE,
}
_PLAIN: Mapping[Busy, Decision] = {
    Busy.INTERRUPT: Decision.INTERRUPT,
    Busy.QUEUE: Decision.ENQUEUE,
    Busy.STEER: Decision.STEER,
}

TABLE: Mapping[Situation, Mapping[Arrival, Mapping[Busy, Decision]]] = {
    situation: {
        arrival: {
            busy: _PLAIN[busy]
            if (situation, arrival) == (Situation.RUNNING, Arrival.PLAIN)
            else Decision.ANSWER
            if (situation, arrival) == (Situation.WAITING, Arrival.PLAIN)
            else decision
            for busy in Busy
        }
        for arrival, decision in (_REST if situation in (Situation.IDLE, Situation.COMMITTED) else _BUSY).items()
    }
    for situation in Situation
}
"""Every decision. In a shared chat one person's plain message waits for the end of another's turn."""


def decide(situation: Situation, arrival: Arrival, busy: Busy) -> Decision:
    """What becomes of a message."""
    return TABLE[situation][arrival][busy]


def table_as_markdown() -> str:
    """The table for the documents."""
    lines = ["| situation | arrives | " + " | ".join(f"busy = {busy}" for busy in Busy) + " |", "|---|---|---|---|---|"]
    for situation, arrivals in TABLE.items():
        for arrival, decisions in arrivals.items():
            cells = " | ".join(str(decisions[busy]) for busy in Busy)
            lines.append(f"| {situation} | {arrival} | {cells} |")
    return "\n".join(lines)
