"""The witness: what can only be judged at the moment when it happens.

It stands between the network and the fakes and compares each request with the rows of that instant. The rule that must
not be broken: a request is judged before it takes effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from math import inf
from typing import Any

import trio
from attrs import frozen

from hermes_fakes.faults import Call
from hermes_fakes.telegram import TelegramFake
from hermes_trio.ledger import obligations
from hermes_trio.testing.fence import Incarnation
from hermes_trio.testing.ledger_rules import Violation
from hermes_trio.testing.people import without_note
from hermes_trio.testing.truth import Rows
from hermes_trio.values import Address

CREATE, EDIT, DELETE, COMPLETION = "sendMessage", "editMessageText", "deleteMessage", "chat.completions"

EVERYTHING = 1_000_000
"""More open obligations of one address than any world has."""

ON_THE_WAY = 0.5
"""Seconds that a request to the model may have been on its way when its turn was ended by somebody else."""
GRACE = 10.0
"""Seconds after the answer to a create within which a bot that lives has recorded it."""


@frozen
class Created:
    """A create that the platform took."""

    call: Call
    incarnation: Incarnation
    message_id: int
    time: float


class Witness:
    """Judges requests against the rows of one database."""

    def __init__(self, connection: sqlite3.Connection, account: str, now: Callable[[], float]) -> None:
        self._now = now
        """Wall-clock seconds, as rows hold them."""
        self.noticed: list[Violation] = []
        self._connection = connection
        self._account = account
        self._unrecorded: list[Created] = []
        """The creates whose message has not yet stood in a row."""
        self._seen: set[int] = set()
        """The messages whose create took effect while its connection stood."""

    def accepted(self, call: Call, incarnation: Incarnation, message_id: int) -> None:
        """A create took effect."""
        self._seen.add(message_id)
        self._unrecorded.append(Created(call, incarnation, message_id, trio.current_time()))

    def committed(self) -> None:
        """Rows have changed."""
        if self._unrecorded:
            known = {post["message_id"] for post in Rows(self._connection).posts}
            self._unrecorded = [made for made in self._unrecorded if str(made.message_id) not in known]

    def uncertain(self, fake: TelegramFake, chat: int, text: str) -> int:
        """How many creates of this text the platform took and no bot could learn of, for a reason that we know."""
        late = [
            change
            for change in fake.history
            if change.method == "sendMessage" and change.chat_id == chat and change.message_id not in self._seen
        ]
        lost = [
            made
            for made in self._unrecorded
            if made.call.args.get("chat_id") == chat
            and (made.call.fault is not None or made.incarnation.died_at < made.time + GRACE)
        ]
        arguments = [*(change.args for change in late), *(made.call.args for made in lost)]
        return [given.get("text") for given in arguments].count(text)

    def see(self, call: Call) -> None:
        """A request is about to take effect."""
        match call.method:
            case "sendMessage":
                self._created(call.args)
            case "editMessageText" | "deleteMessage":
                self._changed(call)
            case "chat.completions":
                self._asked(call.text)

    def _posts(self, args: dict[str, Any]) -> list[Any]:
        address = Address(self._account, str(args.get("chat_id")))
        threads = {address, Address(self._account, address.chat, str(args.get("message_thread_id", "")))}
        if "message_id" in args and int(address.chat) < 0:  # an edit names no topic
            own = [row for row in Rows(self._connection).obligations if row["chat_id"] == address.chat]
            threads = {Address(self._account, address.chat, row["thread_id"]) for row in own}
        return [
            post
            for place in threads
            for row in obligations.open_at(self._connection, place, EVERYTHING)
            for post in obligations.posts_of(self._connection, row.id)
        ]

    def _created(self, args: dict[str, Any]) -> None:
        for post in self._posts(args):
            if post.state in ("intended", "unknown") and post.body is not None and post.body.text == args.get("text"):
                return
        self.noticed.append(Violation("I6", f"{args.get('text')!r:.60} is sent, and no row has decided that"))

    def _changed(self, call: Call) -> None:
        number = str(call.args.get("message_id"))
        for post in self._posts(call.args):
            if post.message_id == number and (call.method == DELETE or post.progress.get("editing")):
                return
        verb = "edited" if call.method == EDIT else "deleted"
        self.noticed.append(Violation("I6", f"message {number} is {verb}, and no row has decided that"))

    def _asked(self, text: str) -> None:
        """A turn that has ended is not run again."""
        rows = Rows(self._connection)
        asked = without_note(text)
        turns = {row["turn"] for row in rows.messages if row["role"] == "user" and row["content"] == asked}
        latest = self._now() - ON_THE_WAY
        states = [
            "running" if (turn["ended_at"] or inf) > latest else turn["state"]
            for turn in rows.turns
            if turn["id"] in turns
        ]
        if states and "running" not in states:
            self.noticed.append(Violation("I7", f"{asked!r:.60} is put to the model again, its turn is {states[-1]}"))
