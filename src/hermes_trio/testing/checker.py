"""The checker: I1 to I9, judged from ground truth: what people see, what the platform was asked, what the rows hold.

A row is a claim ("this message shows that part"); the screen is the truth. Every message of the bot on a screen must
be claimed by exactly one row and show what it claims; the few exceptions are the price that the account's guarantee
class allows. The rule that must not be broken: nothing is taken from the memory of the bot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field

from hermes_fakes.telegram import ScreenMessage
from hermes_trio.delivery.view import NOTICE_WITHDRAWN, Wire
from hermes_trio.ledger import connect_readonly
from hermes_trio.testing.ledger_rules import Violation, in_rows
from hermes_trio.testing.truth import Row, Rows, essence, parts_of, progress_of

if TYPE_CHECKING:
    from hermes_trio.testing.world import World

MARKER = Wire(edits=True).marker
ACCOUNT = "telegram"


class Broken(AssertionError):
    """A promise is broken; the text says which."""


def violations(world: World) -> list[Violation]:
    """Everything that is broken in a quiet world, worst first; empty: nothing."""
    rows = Rows(world.disk.connection)
    found = [*world.witness.noticed, *_inbound(world, rows), *in_rows(rows, at_rest=True)]
    for chat in world.telegram.fake.chats:
        if world.telegram.moved_to(chat) is not None:
            continue  # nobody can change that screen any more
        found += _Chat(world, rows, chat).judge()
    return sorted(found, key=lambda violation: violation.invariant)


def check(world: World) -> None:
    """Raises Broken with the first broken invariant. For a quiet world."""
    if found := violations(world):
        more = "".join(f"\n  also {violation}" for violation in found[1:6])
        raise Broken(f"{found[0]}{more}")


def check_database(path: Path) -> list[Violation]:
    """What the rows of a database on disk break, also beside a running bot. Reads only. Raises LedgerUnusable."""
    connection = connect_readonly(path)
    try:
        with connection:
            return list(in_rows(Rows(connection), at_rest=False))
    finally:
        connection.close()


def _inbound(world: World, rows: Rows) -> Iterator[Violation]:
    """I1 and I9: each message of whoever may speak has one row, each of a stranger none."""
    known = Counter((row["chat"], row["native_id"]) for row in rows.inbox)
    asked = [request.text for request in world.model.requests]
    access = world.config.access.rules
    for message in world.telegram.written():
        moved = str(world.telegram.moved_to(message.chat_id))
        number = known[str(message.chat_id), str(message.message_id)]
        number += known[moved, f"{message.chat_id}:{message.message_id}"]
        if access.allows(ACCOUNT, str(message.sender)):
            if number != 1:
                yield Violation("I1", f"{message.text!r} has {number} rows in the inbox")
            continue
        if number:
            yield Violation("I9", f"{message.text!r} of a stranger is in the inbox")
        if any(message.text and message.text in text for text in asked):
            yield Violation("I9", f"{message.text!r} of a stranger was put to the model")


@define(eq=False)
class _Chat:
    """The screen of one chat against the rows that claim it."""

    world: World
    rows: Rows
    chat: int
    screen: dict[int, ScreenMessage] = field(init=False)
    claimed: dict[int, str] = field(factory=dict)
    """By message id: the obligation that claims it."""

    def __attrs_post_init__(self) -> None:
        self.screen = {m.message_id: m for m in self.world.telegram.fake.screen(self.chat) if m.from_bot}

    def judge(self) -> Iterator[Violation]:
        """The violations of this chat."""
        own = [row for row in self.rows.obligations if row["platform"] == ACCOUNT and row["chat_id"] == str(self.chat)]
        for row in own:
            yield from self._claims(row)
        yield from self._order(own)
        yield from self._unclaimed(own)

    def _claims(self, row: Row) -> Iterator[Violation]:
        posts = [p for p in self.rows.posts_of(row["id"]) if p["message_id"] and p["state"] in ("live", "surplus")]
        visible: list[str] = []
        gone = False
        for post in posts:
            number = int(post["message_id"])
            if number in self.claimed:
                yield Violation("I2", f"{row['id']} and {self.claimed[number]} claim the same message {number}")
            self.claimed[number] = row["id"]
            if number in self.screen:
                visible.append(self.screen[number].text)
            else:
                gone = True
                if number in self.world.telegram.deleted_by_bot(self.chat):
                    yield Violation("I2", f"{row['id']} claims message {number}, which the bot has deleted")
        if row["state"] == "delivered" and not gone and not self._seen(row):
            yield from self._shows(row, visible)
        elif row["state"] == "withdrawn" and any(text != NOTICE_WITHDRAWN for text in visible):
            yield Violation("I2", f"{row['id']} is withdrawn and still visible: {visible!r:.80}")

    def _seen(self, row: Row) -> bool:
        """A part of it was seen and deleted by its user, and is not shown again."""
        return any(form > 0 for form in progress_of(row).get("forms", ()))

    def _shows(self, row: Row, visible: list[str]) -> Iterator[Violation]:
        shown = essence("".join(text.removeprefix(MARKER) for text in visible))
        wanted = essence(row["content"])
        if shown == wanted:
            return
        if not visible:
            yield Violation("I2", f"{row['id']} counts as delivered, and nothing of it is on screen: {_short(row)}")
        elif wanted.startswith(shown):
            yield Violation("I2", f"{row['id']} is on screen only in part: {''.join(visible)!r:.80}")
        else:
            yield Violation("I3", f"{row['id']} shows {''.join(visible)!r:.80} instead of {_short(row)}")

    def _order(self, own: list[Row]) -> Iterator[Violation]:
        inbox = {turn["id"]: turn["inbox"] for turn in self.rows.turns}
        here = str(self.chat)  # what was written before the chat moved stands in its own order, elsewhere
        elsewhere = {row["id"] for row in self.rows.inbox if row["chat"] != here or ":" in row["native_id"]}
        replies = sorted(
            (
                row
                for row in own
                if row["kind"] == "reply" and row["thread_id"] == "" and inbox.get(row["turn"]) not in elsewhere
            ),
            key=lambda row: inbox.get(row["turn"], 0),
        )
        last, last_row = 0, None
        for row in replies:
            numbers = [number for number, claim in self.claimed.items() if claim == row["id"] and number in self.screen]
            if not numbers:
                continue
            if min(numbers) < last and last_row is not None:
                yield Violation("I5", f"{row['id']} stands before the end of {last_row['id']}, which it answers after")
            if numbers != sorted(numbers):
                yield Violation("I5", f"the parts of {row['id']} are out of order: {numbers}")
            last, last_row = max(numbers), row

    def _unclaimed(self, own: list[Row]) -> Iterator[Violation]:
        placeholder = self.world.config.chat.placeholder
        doubts = self._doubts(own)
        strays = 0
        for number, message in self.screen.items():
            if number in self.claimed:
                if message.text.startswith(MARKER) and not self._may_have_arrived(message.text.removeprefix(MARKER)):
                    yield Violation("I4", f"{message.text!r:.60} is marked, and there was no doubt about it")
            elif message.text == placeholder:
                strays += 1
            elif doubts[essence(message.text.removeprefix(MARKER))] > 0:
                doubts[essence(message.text.removeprefix(MARKER))] -= 1
            else:
                yield Violation("I2", f"{message.text!r:.60} is on screen a second time, or nobody's: no row claims it")
        allowed = self.world.witness.uncertain(self.world.telegram.fake, self.chat, placeholder)
        if strays > allowed:
            yield Violation("I2", f"{strays} empty reserved messages are left, {allowed} creates were uncertain")

    def _may_have_arrived(self, text: str) -> bool:
        """The platform was asked to create this text and did not decline it, or a kill left that open."""
        wanted = essence(text)
        if self.world.lives > 1:
            return True
        return any(
            call.method == "sendMessage" and essence(call.text) == wanted and not _declined(call.outcome)
            for call in self.world.telegram.fake.requests
        )

    def _doubts(self, own: list[Row]) -> Counter[str]:
        """How many copies of each part the rows themselves doubt; of a held one the operator will decide."""
        doubts: Counter[str] = Counter()
        for row in own:
            parts = parts_of(row)
            open_doubt = ("doubtful", "unknown") if row["state"] == "held" else ("doubtful",)
            for post in self.rows.posts_of(row["id"]):
                if post["state"] in open_doubt and post["ordinal"] < len(parts):
                    doubts[essence(parts[post["ordinal"]])] += 1
        return doubts


def _declined(outcome: str) -> bool:
    """The platform said that it did not do it; a 5xx says nothing."""
    return outcome.startswith("refused") and not outcome.startswith("refused: 5")


def _short(row: Row) -> str:
    return f"{row['content']!r:.60}"
