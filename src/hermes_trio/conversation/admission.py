"""Admission: what one receive batch does to the ledger, in one transaction.

Each message is stored, decided upon and handed to its owner; the turn that it interrupts ends, the command that it is
is carried out, and the cursor behind it moves, together. The rule that must not be broken: what is decided here is
decided on rows, so that no turn and no message is ever taken for something that it no longer is.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from attrs import evolve, field, frozen

from hermes_trio.conversation import notices, records
from hermes_trio.conversation.commands import CommandCall, Facts, Outcome, Parsed, Registry, parse, run_command
from hermes_trio.conversation.history import user_text
from hermes_trio.conversation.policy import Arrival, Busy, Decision, Situation, decide
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.planning import add_control
from hermes_trio.ledger import Connection, accounts, inbox, is_environment, transcript, turns, undone_on_error
from hermes_trio.ledger.rows import InboxRow, TurnRow
from hermes_trio.platforms.base import Inbound
from hermes_trio.values import Address

CUT_WITHIN = 2.0
"""Seconds within which the pieces of a text arrive that the user's client had to cut."""
PAYLOAD_LIMIT = 4000
"""Characters of a message that could not be admitted which its row keeps."""
CUT_SHARE = 0.9
"""A text of at least this share of the wire's limit may have been cut by the client."""
CUT = "cut."
"""Begins the group of a text that may have been cut; no platform names its groups so."""


log = structlog.get_logger(__name__)


@frozen
class Rules:
    """How an account admits, from the configuration."""

    account: Account
    registry: Registry
    facts: Facts
    reserve: bool
    """Whether control messages are reserved too."""
    always: bool
    """Whether everything that is said in a group is answered, or only what addresses the bot."""
    others_interrupt: bool
    """Whether one person's message interrupts another's turn in a shared chat."""


@frozen
class Batch:
    """What is stored in one transaction."""

    inbound: tuple[Inbound, ...]
    cursor: str | None
    said: Mapping[str, str]
    """By reply: the Markdown that its preview shows, where it streams."""
    new_ids: tuple[str, ...]
    """An unused id for each inbound."""


@frozen
class Admitted:
    """What to do when it is durable."""

    arrived: tuple[Address, ...] = ()
    """Where something new waits, for a turn or for delivery."""
    ended: tuple[tuple[Address, str], ...] = ()
    """The turns and compressions that were ended: their scopes are to be cancelled."""


@frozen
class _Admission:
    """One transaction at work."""

    con: Connection
    rules: Rules
    batch: Batch
    now: float
    ended: list[tuple[Address, str]] = field(factory=list)

    def take(self, inbound: Inbound, new_id: str) -> Address | None:
        """Like `admit`; a message at which our own code fails is kept as unreadable, and the others go on."""
        ended = len(self.ended)
        try:
            with undone_on_error(self.con):
                return self.admit(inbound, new_id)
        except Exception as error:  # a supervision border: the account would be deaf for ever behind such a message
            if is_environment(error):
                raise  # the whole batch is tried again
            log.exception("a message could not be admitted", address=str(inbound.address), native_id=inbound.native_id)
            del self.ended[ended:]
            return self.admit(evolve(inbound, text="", unreadable=ascii(inbound)[:PAYLOAD_LIMIT]), new_id)

    def admit(self, inbound: Inbound, new_id: str) -> Address | None:
        """Stores one message and what follows from it; returns where, or None when it is known."""
        if inbox.is_known(self.con, inbound):
            return None
        moved = accounts.moved_to(self.con, inbound.address)
        if moved is not None:
            native_id = f"{inbound.address.chat}:{inbound.native_id}"
            inbound = evolve(inbound, address=evolve(inbound.address, chat=moved), native_id=native_id, anchor=None)
            if inbox.is_known(self.con, inbound):
                return None
        accounts.mark_living(self.con, inbound.address)
        if inbound.unreadable is not None:
            self._unreadable(inbound)
        elif not (inbound.direct or self.rules.always):
            self._overheard(inbound, new_id)
        elif parsed := parse(inbound.text, self.rules.registry.find):
            self._command(inbound, parsed, new_id)
        else:
            self._message(inbound, Arrival.PLAIN, "message")
        return inbound.address

    def _unreadable(self, inbound: Inbound) -> None:
        row = self._store(inbound, "message", "unreadable")
        if inbound.direct or self.rules.always:
            self._say(f"unreadable.{row.id}", row, notices.UNREADABLE)

    def _overheard(self, inbound: Inbound, new_id: str) -> None:
        row = self._store(inbound, "message", "context")
        session = transcript.current_session(self.con, inbound.address, new_id, self.now)
        transcript.append(self.con, session, None, "context", user_text(row, named=True), self.now)

    def _command(self, inbound: Inbound, parsed: Parsed, new_id: str) -> None:
        running = turns.running(self.con, inbound.address)
        call = CommandCall(
            con=self.con,
            address=inbound.address,
            sender=inbound.sender,
            sender_name=inbound.sender_name,
            shared=inbound.shared,
            arguments=parsed.arguments,
            running=running,
            account=self.rules.account,
            facts=self.rules.facts,
            new_id=new_id,
            now=self.now,
            stop=lambda turn: self._close(turn, "stop", notices.STOPPED),
            drop=self._drop,
        )
        outcome: Outcome = run_command(self.rules.registry, parsed, call)
        if outcome.enqueue is None:
            row = self._store(inbound, "command", "answered")
        else:
            steered = running.id if running is not None and outcome.kind == "steer" else None
            attachments = (*inbound.attachments, *outcome.attachments)
            meant = evolve(inbound, text=outcome.enqueue, attachments=attachments)
            row = self._store(meant, outcome.kind, "queued", turn=steered)
        if outcome.text:
            self._say(f"command.{row.id}", row, outcome.text)

    def _message(self, inbound: Inbound, arrival: Arrival, kind: str) -> None:
        inbound, head = self._joined(inbound)
        running = turns.running(self.con, inbound.address)
        if head is not None and inbound.text and not _is_open(head, running):
            head = None  # words behind a turn that is over would never be answered by it
        decision = decide(self._situation(inbound, running), Arrival.PART if head else arrival, self._busy(inbound))
        match decision:
            case Decision.INTERRUPT:
                assert running is not None
                self._close(running, "interrupt", notices.INTERRUPTED)
                self._store(inbound, kind, "queued")
            case Decision.STEER:
                assert running is not None
                self._store(inbound, "steer", "queued", turn=running.id)
            case Decision.JOIN:
                assert head is not None
                self._join(inbound, head, running)
            case _:
                self._store(inbound, kind, "queued")

    def _joined(self, inbound: Inbound) -> tuple[Inbound, InboxRow | None]:
        """The message with its group, and the latest earlier part of the same that waits or has a turn.

        A text that the client may have had to cut is a group of its own from the start, so that its turn waits for
        the rest.
        """
        if inbound.group is not None:
            return inbound, _head(inbox.newest_of_group(self.con, inbound.address, inbound.group))
        previous = inbox.newest(self.con, inbound.address, inbound.sender)
        if previous is not None and self._goes_on(previous, inbound) and (head := _head(previous)) is not None:
            return evolve(inbound, group=head.group), head
        if self._may_be_cut(inbound.text):
            return evolve(inbound, group=f"{CUT}{inbound.native_id}"), None
        return inbound, None

    def _goes_on(self, previous: InboxRow, inbound: Inbound) -> bool:
        """Whether what arrives now may be the rest of this message. After a downtime much arrives at once."""
        cut = previous.group is not None and previous.group.startswith(CUT)
        gap = self.now - previous.received_at
        if inbound.sent_at is not None and previous.sent_at is not None:
            gap = inbound.sent_at - previous.sent_at
        return cut and gap <= CUT_WITHIN and self._may_be_cut(previous.text)

    def _may_be_cut(self, text: str) -> bool:
        account = self.rules.account
        return account.measure(text) >= CUT_SHARE * account.capabilities.limit

    def _join(self, inbound: Inbound, head: InboxRow, running: TurnRow | None) -> None:
        """A further part shares the turn of the first: before it begins, while it runs, or as what it should know."""
        if running is not None and head.turn == running.id:
            self._store(inbound, "steer", "queued", turn=running.id)
        elif head.state == "queued":
            self._store(inbound, "message", "queued")
        else:
            row = self._store(inbound, "steer", "consumed", turn=head.turn)
            session = transcript.route(self.con, inbound.address)
            if session is not None:
                transcript.append(self.con, session, head.turn, "context", user_text(row, named=True), self.now)

    def _situation(self, inbound: Inbound, running: TurnRow | None) -> Situation:
        if running is None:
            return Situation.IDLE
        owner = inbox.get(self.con, running.inbox).sender
        if owner != inbound.sender and not self.rules.others_interrupt:
            return Situation.ANOTHERS
        return Situation.RUNNING

    def _busy(self, inbound: Inbound) -> Busy:
        chosen = accounts.chat_setting(self.con, inbound.address, "busy")
        return Busy(chosen or self.rules.facts.busy)

    def _close(self, turn: TurnRow, event: str, notice: str) -> None:
        said = self.batch.said.get(turn.reply, "")
        records.close(self.con, turn, event, notice, said, self.rules.account, self.now)
        self.ended.append((turn.address, turn.id))

    def _drop(self, row: InboxRow) -> None:
        inbox.move(self.con, row.id, "drop", self.now)
        if row.kind == "command":
            self.ended.append((row.address, records.compression_id(row)))

    def _store(self, inbound: Inbound, kind: str, state: str, turn: str | None = None) -> InboxRow:
        row_id = inbox.store(self.con, inbound, kind, state, self.now, turn=turn)
        assert row_id is not None, "a message that was looked up is known all the same"
        return inbox.get(self.con, row_id)

    def _say(self, control: str, row: InboxRow, text: str) -> None:
        plan = self.rules.account.plan(text)
        add_control(self.con, control, row.address, plan, self.now, reserve=self.rules.reserve, anchor=row.anchor)


def _head(row: InboxRow | None) -> InboxRow | None:
    """A part that later ones can share a turn with: it waits for one, or has one."""
    return row if row is not None and (row.state == "queued" or row.turn is not None) else None


def _is_open(head: InboxRow, running: TurnRow | None) -> bool:
    """Whether the turn of an earlier part has not ended, or not even begun."""
    return head.state == "queued" or (running is not None and head.turn == running.id)


def admit(con: Connection, rules: Rules, batch: Batch, now: float) -> Admitted:
    """Stores a batch in order and its cursor; what is known already changes nothing."""
    work = _Admission(con, rules, batch, now)
    places = [work.take(inbound, new_id) for inbound, new_id in zip(batch.inbound, batch.new_ids, strict=True)]
    if batch.cursor is not None:
        accounts.set_cursor(con, rules.account.name, batch.cursor, now)
    arrived = dict.fromkeys(place for place in places if place is not None)
    return Admitted(tuple(arrived), tuple(work.ended))
