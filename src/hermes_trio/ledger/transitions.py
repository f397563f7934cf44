"""The lifecycles of rows, as data. Pure.

Each table is `{state: {event: next_state}}` with every state present; final states have no events. The schema's CHECK
constraints and the diagrams in the documents are made from the same tables, and every UPDATE of a state goes through
`advance`, so that an illegal event raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

Lifecycle = Mapping[str, Mapping[str, str]]

INBOX: Lifecycle = {
    "queued": {"begin": "running", "consume": "consumed", "drop": "dropped", "answer": "answered"},
    "running": {"answer": "answered", "fail": "failed", "interrupt": "interrupted", "stop": "stopped"},
    "answered": {},
    "failed": {},
    "interrupted": {},
    "stopped": {},
    "consumed": {},
    "dropped": {},
    "context": {},
    "unreadable": {},
}
"""One inbound. consumed: a steer that entered a running turn; context: kept for the model, not addressed to us."""

TURN: Lifecycle = {
    "running": {"answer": "answered", "fail": "failed", "interrupt": "interrupted", "stop": "stopped"},
    "answered": {},
    "failed": {},
    "interrupted": {},
    "stopped": {},
}
"""One run of the model and its tools. A resume after a crash is the same turn, still running."""

OBLIGATION: Lifecycle = {
    "streaming": {"commit": "pending", "withdraw": "withdrawing", "abandon": "abandoned"},
    "pending": {
        "attempt": "attempting",
        "settle": "delivered",
        "abandon": "abandoned",
        "hold": "held",
        "withdraw": "withdrawing",
    },
    "attempting": {"attempt": "attempting", "settle": "delivered", "abandon": "abandoned", "hold": "held"},
    "held": {"release": "pending", "abandon": "abandoned"},
    "withdrawing": {"attempt": "withdrawing", "settle": "withdrawn", "abandon": "abandoned"},
    "delivered": {},
    "abandoned": {},
    "withdrawn": {},
}
"""The debt of one visible message. attempting: an attempt at its final text was durably intended."""

POST: Lifecycle = {
    "intended": {"accept": "live", "doubt": "unknown"},
    "unknown": {"accept": "live", "doubt": "doubtful"},
    "doubtful": {},
    "live": {"exceed": "surplus"},
    "surplus": {},
}
"""A message that we created. A post that was refused, or is gone, has no row any more."""

MESSAGE_ROLES = ("user", "assistant", "tool", "context", "summary")
"""Who speaks in a transcript. context: said in a group without addressing the bot; summary: of a compressed session."""


class IllegalTransition(AssertionError):
    """A row is not in a state that knows this event: a mistake in our own code, or a decision that came too late."""


def advance(lifecycle: Lifecycle, state: str, event: str) -> str:
    """The state after an event. Raises IllegalTransition for an event that the state does not know."""
    try:
        return lifecycle[state][event]
    except KeyError:
        raise IllegalTransition(f"{event!r} in state {state!r}") from None


def open_states(lifecycle: Lifecycle) -> tuple[str, ...]:
    """The states that some event still leaves, in the table's order."""
    return tuple(state for state, events in lifecycle.items() if events)


def diagram(lifecycle: Lifecycle) -> str:
    """The lifecycle as a Mermaid state diagram, for the documents."""
    lines = ["stateDiagram-v2"]
    for state, events in lifecycle.items():
        lines += [f"    {state} --> {target}: {event}" for event, target in events.items()]
        if not events:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines)
