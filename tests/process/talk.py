"""What becomes of the messages of impatient people: the verdict that the tests of conversations share.

It counts outcomes from ground truth: what people see, what the database holds, what was asked of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from .audit import ENDED, NOTE, PLACEHOLDER, Inbound, read_screen, rendered
from .harness import BotWorld

NOTICES = ("⏹ interrupted by your next message", "⏹ stopped")
GAVE_UP = "restarted too often"
"""Stands in the notice of a turn that was given up."""
OUTCOMES = frozenset({"answered", "interrupted", "stopped", "consumed", "dropped"})


def talk_verdict(world: BotWorld, *, strays: int = 0, failures: bool = False) -> None:
    """Fails with every promise that is broken.

    strays: empty placeholders that crashes may have left, at most. failures: a turn that died again and again soon
    after it was resumed may have been given up, with one notice each.
    """
    complaints = [
        *_inbox(world, OUTCOMES | {"failed"} if failures else OUTCOMES),
        *_turns(world),
        *(f"{row['id']} is {row['state']}" for row in world.ledger.obligations() if row["state"] not in ENDED),
        *(f"the model refused a request: {why}" for why in world.model.rejected),
        *_screens(world, strays),
        *(f"in the log of life {number + 1}: {line}" for number, line in world._crashes()),
    ]
    assert not complaints, "\n" + "\n".join(complaints)


def kinds(world: BotWorld) -> dict[int, str]:
    """The kind of each row of the inbox."""
    return {row["id"]: row["kind"] for row in world.ledger.query("SELECT id, kind FROM inbox")}


def _inbox(world: BotWorld, outcomes: Set[str]) -> Iterator[str]:
    """Each message is there once and has exactly one outcome; a turn has its user row once, a command none."""
    written = Counter(
        (str(chat.id), str(message.message_id))
        for chat in world.telegram.chats.values()
        for message in chat.messages.values()
        if not message.from_bot
    )
    stored = Counter((inbound.chat, inbound.native_id) for inbound in world.ledger.inbounds())
    if written != stored:
        yield f"the inbox is not what was written: missing {written - stored}, too much {stored - written}"
    kind = kinds(world)
    for inbound in world.ledger.inbounds():
        if inbound.state not in outcomes:
            yield f"{inbound.text!r} ended as {inbound.state}"
        if kind[inbound.id] != "command" and len(inbound.answers) != (inbound.state == "answered"):
            yield f"{inbound.text!r} is {inbound.state} with {len(inbound.answers)} stored answers"
        if inbound.state in ("answered", "interrupted", "stopped") and inbound.users != (kind[inbound.id] != "command"):
            yield f"{inbound.text!r} has {inbound.users} user rows"


def _turns(world: BotWorld) -> Iterator[str]:
    """One request for each question and round, and one more for each crash that found it unanswered."""
    asked = Counter((r.last_user_text.partition(NOTE)[0], r.answers_so_far) for r in world.model.requests)
    for (question, round_), times in asked.items():
        if times > 1 + world.crashed[question]:
            yield f"{question!r} (round {round_}) was asked {times} times, with {world.crashed[question]} crashes"


def _screens(world: BotWorld, strays: int) -> Iterator[str]:
    placeholders = 0
    for chat in world.telegram.chats.values():
        screen = read_screen(tuple(chat.messages.values()))
        placeholders += sum(message.text == PLACEHOLDER for message in screen.placeholders)
        mine = [inbound for inbound in world.ledger.inbounds() if inbound.chat == str(chat.id)]
        failed = sum(inbound.state == "failed" for inbound in mine)
        notices = sum(GAVE_UP in message.text for message in chat.messages.values() if message.from_bot)
        if notices != failed:
            yield f"{failed} turns failed, and {notices} notices say so"
        yield from _answers(world, mine, [copy for copy in screen.copies if copy.complete])
        for copy in screen.copies:
            closed = any(notice in message.text for notice in (*NOTICES, GAVE_UP) for message in copy.messages)
            if not copy.complete and not closed:
                yield f"an open partial of {copy.label}: {copy.messages[0].text[-200:]!r}"
    if placeholders > strays:
        yield f"{placeholders} stray placeholders; {strays} may be there"


def _answers(world: BotWorld, inbounds: list[Inbound], copies: list) -> Iterator[str]:
    """The complete copies are the stored answers, in the order of their questions, each once and unmarked."""
    expected = [rendered(inbound.answers[0]) for inbound in inbounds if inbound.answers]
    shown = [copy.text for copy in copies]
    if shown != expected:
        yield f"shown are {[text[:20] for text in shown]}, stored {[text[:20] for text in expected]}"
    yield from (f"{copy.label} is marked" for copy in copies if copy.marked)
