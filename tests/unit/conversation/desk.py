"""A desk at which conversations can be played by hand: the real transactions on a database in memory.

Nothing runs by itself. A test admits messages, begins turns and ends them, in any order, and reads the rows. Each
step is one transaction that is undone when it raises, as the ledger does it.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from attrs import define, evolve, field

from hermes_trio.access import Access
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.admission import Admitted, Batch, Rules, admit
from hermes_trio.conversation.commands import Facts
from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.conversation.records import Begun, Compress, Ended, Gathering
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.view import Wire
from hermes_trio.ledger import inbox, obligations, transcript, turns
from hermes_trio.ledger.database import prepare
from hermes_trio.ledger.rows import InboxRow, ObligationRow, PostRow, TurnRow
from hermes_trio.model.base import ToolCall, Usage
from hermes_trio.platforms.base import Capabilities, Inbound, Platform
from hermes_trio.platforms.outcomes import Accepted, Outcome
from hermes_trio.values import Address

T = TypeVar("T")
HOME = Address("tg", "1")
GROUP = Address("tg", "-7", "3")
LIMIT = 100
"""The longest message of the wire here: short, so that a cut paste is short too."""
START = 1000.0
EVERYONE = Access(["*"], ["tg:owner"])


class Wireless(Platform):
    """An adapter of which only the capabilities matter."""

    capabilities = Capabilities(limit=LIMIT, unit="codepoints", edits=True, deletes=True)

    async def create(self, address: Address, body: object, *, key: str, reply_to: str | None) -> Outcome:
        return Accepted("1")


@cache
def _empty() -> bytes:
    con = sqlite3.connect(":memory:", isolation_level=None)
    prepare(con, "memory")
    return con.serialize()


def open_memory() -> sqlite3.Connection:
    """An empty ledger."""
    con = sqlite3.connect(":memory:", isolation_level=None)
    con.deserialize(_empty())
    con.row_factory = sqlite3.Row
    con.execute("PRAGMA foreign_keys = ON")
    return con


def inbound(native: str, text: str, sender: str = "alice", address: Address = HOME, **more: Any) -> Inbound:
    """A message as an adapter hands it over."""
    known: dict[str, Any] = {"anchor": native if address == GROUP else None, "shared": address == GROUP}
    name = more.pop("sender_name", sender.title())
    return Inbound(address, native, sender, name, text, **{**known, **more})


@define(eq=False)
class Desk:
    """See the module's text."""

    con: sqlite3.Connection = field(factory=open_memory)
    now: float = START
    said: Mapping[str, str] = {}
    """What previews show, by reply."""
    account: Account = field(init=False)
    rules: Rules = field(init=False)
    access: Access = EVERYONE
    _ids: itertools.count[int] = field(factory=lambda: itertools.count(1))
    last: Inbound = field(init=False)
    """The latest message that `says` handed over."""

    def __attrs_post_init__(self) -> None:
        self.account = Account("tg", Wireless(), Wire(edits=True), 86400.0)
        facts = Facts(EVERYONE, ("first", "second"), "interrupt")
        self.rules = Rules(self.account, REGISTRY, facts, reserve=False, always=False, others_interrupt=False)

    def busy(self, mode: str) -> None:
        """Configures what a plain message does while a turn runs."""
        self.rules = evolve(self.rules, facts=evolve(self.rules.facts, busy=mode))

    def new_id(self) -> str:
        """An id that nobody has used."""
        return f"id{next(self._ids)}"

    def commit(self, fn: Callable[..., T], *args: Any, **more: Any) -> T:
        """One transaction; an error undoes it."""
        self.con.execute("BEGIN")
        try:
            value = fn(self.con, *args, **more)
        except BaseException:
            self.con.execute("ROLLBACK")
            raise
        self.con.execute("COMMIT")
        return value

    # --- people -----------------------------------------------------------------------------------------------------

    def says(self, text: str, sender: str = "alice", address: Address = HOME, **more: Any) -> InboxRow:
        """One message in a batch of its own; its row."""
        native = more.pop("native", None) or f"m{next(self._ids)}"
        self.last = inbound(native, text, sender, address, **more)
        self.admit(self.last)
        return self.row(native, address)

    def admit(self, *batch: Inbound, cursor: str | None = None) -> Admitted:
        """A receive batch."""
        return self.commit(
            admit, self.rules, Batch(batch, cursor, self.said, tuple(self.new_id() for _ in batch)), self.now
        )

    # --- turns ------------------------------------------------------------------------------------------------------

    def begin(
        self, address: Address = HOME, *, previous_death: float = 0.0, gather: bool = True
    ) -> Begun | Gathering | Compress | Ended | None:
        """What the actor of an address does next. gather: it lets the time pass that a group of messages needs."""
        while True:
            begun = self.commit(
                records.begin_next,
                address,
                self.access,
                True,
                self.new_id(),
                self.new_id(),
                self.account.plan(notices.GAVE_UP),
                previous_death,
                frozenset(),
                self.now,
            )
            if not (gather and isinstance(begun, Gathering)):
                return begun
            assert begun.until > self.now, "it waits for what is over"
            self.now = begun.until

    def turn(self, address: Address = HOME) -> Begun:
        """Begins a turn, where there is one to begin."""
        begun = self.begin(address)
        assert isinstance(begun, Begun), begun
        return begun

    def answer(self, begun: Begun, text: str = "An answer.", usage: Usage | None = None) -> None:
        """The turn ends well."""
        self.commit(records.answer, begun.turn, self.account.plan(text), usage or Usage(), self.now)

    def fail(self, begun: Begun, partial: str = "") -> None:
        """The turn ends badly."""
        plan = self.account.plan(notices.FAILED)
        self.commit(records.fail, begun.turn, plan, "broken", partial, Usage(), self.now)

    def answered(self, text: str, answer: str = "An answer.", **more: Any) -> InboxRow:
        """A whole exchange."""
        row = self.says(text, **more)
        self.answer(self.turn(row.address), answer)
        return self.row(row.native_id, row.address)

    def calls(self, begun: Begun, *ids: str, text: str = "") -> tuple[ToolCall, ...]:
        """The model asks for calls with these ids."""
        calls = tuple(ToolCall(each, "tool", "{}") for each in ids)
        self.commit(records.record_calls, begun.turn, text, calls, self.now)
        return calls

    def started(self, begun: Begun, call: str) -> None:
        """A call is about to take effect."""
        self.commit(records.record_start, begun.turn, call, self.now)

    def finished(self, begun: Begun, call: str, result: str = "a result") -> None:
        """A call ended."""
        self.commit(records.record_result, begun.turn, call, result)

    def steers(self, begun: Begun) -> tuple[str, ...]:
        """The turn looks for what was said to it."""
        return self.commit(records.take_steers, begun.turn, self.now)

    def shows(self, begun: Begun, text: str) -> None:
        """A preview with this text is on screen."""
        self.said = {**self.said, begun.turn.reply: text}
        post = PostRow(f"{begun.turn.reply}.0", 0, 0, "live", "77", None, "other", False, {}, self.now, self.now)
        obligations.save_post(self.con, begun.turn.reply, post)

    # --- rows -------------------------------------------------------------------------------------------------------

    def row(self, native: str, address: Address = HOME) -> InboxRow:
        """The inbox row of a message."""
        found = self.con.execute(
            "SELECT id FROM inbox WHERE chat = ? AND native_id = ?", (address.chat, native)
        ).fetchone()
        assert found is not None, f"{native} is not in the inbox"
        return inbox.get(self.con, found["id"])

    def state(self, row: InboxRow) -> str:
        """What has become of a message."""
        return inbox.get(self.con, row.id).state

    def states(self) -> list[str]:
        """What has become of all messages, in order of arrival."""
        return [row["state"] for row in self.con.execute("SELECT state FROM inbox ORDER BY id")]

    def turn_of(self, row: InboxRow) -> TurnRow:
        """The turn of a message."""
        turn = inbox.get(self.con, row.id).turn
        assert turn is not None
        return turns.get(self.con, turn)

    def reply(self, begun: Begun) -> ObligationRow:
        """The obligation of a turn."""
        return obligations.get(self.con, begun.turn.reply)

    def told(self, row: InboxRow) -> str:
        """The answer to a command, or a notice, for this message; empty: there is none."""
        found = self.con.execute(
            "SELECT content FROM delivery_obligations WHERE kind = 'control' AND id IN (?, ?, ?)",
            (f"command.{row.id}", f"unreadable.{row.id}", f"compressed.{row.id}"),
        ).fetchone()
        return "" if found is None else str(found["content"])

    def asks(self, text: str, **more: Any) -> str:
        """The answer to a command."""
        return self.told(self.says(text, **more))

    def transcript(self, address: Address = HOME) -> list[tuple[str, str | None]]:
        """Who said what in the current session."""
        session = transcript.route(self.con, address)
        return [] if session is None else [(m.role, m.content) for m in transcript.messages(self.con, session)]

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        names = [row[0] for row in self.con.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [tuple(row) for row in self.con.execute(f"SELECT * FROM {name}")] for name in sorted(names)}
