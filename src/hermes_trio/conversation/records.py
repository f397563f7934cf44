"""The transactions of a turn: each is one function of the connection, handed to the ledger whole.

The rule that must not be broken: the answer, the end of the turn, the end of the inbound and the obligation to show
the answer are one transaction, and every commit of a turn first expects the turn to be running.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from hermes_trio.access import Access
from hermes_trio.agent import PROGRESS
from hermes_trio.conversation import notices
from hermes_trio.conversation.history import open_calls, user_text
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.planning import Plan, add_control, commit_reply, may_show_text, open_reply, withdraw_reply
from hermes_trio.ledger import Connection, accounts, inbox, transcript, turns
from hermes_trio.ledger.rows import InboxRow, MessageRow, TurnRow
from hermes_trio.model.base import ToolCall, Usage
from hermes_trio.platforms.base import Attachment
from hermes_trio.text.fences import close_fence
from hermes_trio.values import Address

GATHER = 1.0
"""Seconds without a further part after which what was sent as one (an album, a cut paste) is taken for complete."""
MAX_RESUMES = 20
"""Restarts that one turn survives; more would mean that nobody will ever see its answer."""
MAX_CHARGED = 2
"""Restarts that the turn itself may have caused: a call was in flight, or the process died soon after the resume."""
SOON = 10.0
"""Seconds after a resume in which a death without any new row is charged to the turn."""


@frozen
class Begun:
    """A turn to be run now."""

    turn: TurnRow
    inbound: InboxRow
    rows: tuple[MessageRow, ...]
    """The transcript of its session, the turn's own messages included."""
    open_calls: tuple[ToolCall, ...]
    """Calls of the turn that were asked for and never started."""
    resumed: bool
    model: str | None
    """The model that was chosen for the session; None: the configured one."""
    last_context: int
    """Tokens of the session's latest request, as the server counted them; 0: nobody did."""
    attachments: tuple[Attachment, ...] = ()
    """What came with the messages that the turn answers."""


@frozen
class Gathering:
    """The next message is still arriving in parts."""

    until: float
    """Wall-clock seconds at which it is worth looking again."""


@frozen
class Compress:
    """The next thing to do is to compress the session."""

    inbound: InboxRow
    session: str
    rows: tuple[MessageRow, ...]

    @property
    def id(self) -> str:
        """What it is called while it is at work."""
        return compression_id(self.inbound)


def compression_id(row: InboxRow) -> str:
    """The name of the compression that a waiting /compress asks for."""
    return f"compress.{row.id}"


@frozen
class Ended:
    """A row came to its end without a run: given up, or its sender may not speak any more."""


def begin_next(
    con: Connection,
    address: Address,
    access: Access,
    reserve: bool,
    turn_id: str,
    session_id: str,
    gave_up: Plan,
    previous_death: float,
    alive: frozenset[str],
    now: float,
) -> Begun | Gathering | Compress | Ended | None:
    """The next turn of an address: the one that a restart interrupted, else one for the oldest queued row.

    None: nothing waits there, or a turn that this process runs is at work. turn_id, session_id: for new rows, where
    they are needed. alive: the turns that this process runs; two may stand at one address when its chat has moved.
    """
    running = turns.all_running(con, address)
    for turn in running:
        if turn.id not in alive:
            return _resume(con, turn, access, gave_up, previous_death, now)
    if running:
        return None
    rows = inbox.queued(con, address)
    if not rows:
        return None
    row = rows[0]
    if not access.allows(address.account, row.sender):
        inbox.move(con, row.id, "drop", now)
        return Ended()
    session = transcript.current_session(con, address, session_id, now)
    if row.kind == "command":
        return Compress(row, session, transcript.messages(con, session))
    parts = [row]
    if row.group is not None:
        parts = [other for other in rows if other.group == row.group and other.kind != "command"]
    complete = parts[-1].received_at + GATHER
    if row.group is not None and complete - GATHER <= now < complete:  # else the clock was stepped
        return Gathering(complete)
    return _begin(con, parts, session, reserve, turn_id, now)


def _begin(con: Connection, parts: Sequence[InboxRow], session: str, reserve: bool, turn_id: str, now: float) -> Begun:
    """A turn for a row and those that were sent as one with it."""
    row = parts[0]
    turn = turns.insert(con, turn_id, row, session, now)
    inbox.move(con, row.id, "begin", now, turn=turn.id)
    for other in parts[1:]:
        inbox.move(con, other.id, "consume", now, turn=turn.id)
    text = "\n".join(user_text(part, named=part is row) for part in parts)
    transcript.append(con, session, turn.id, "user", text, now)
    open_reply(con, turn.reply, row.address, now, turn=turn.id, anchor=row.anchor, reserve=reserve)
    return _begun(con, turn, row, resumed=False)


def _begun(con: Connection, turn: TurnRow, row: InboxRow, *, resumed: bool) -> Begun:
    return Begun(
        turn,
        row,
        transcript.messages(con, turn.session),
        open_calls(transcript.messages_of_turn(con, turn.id)) if resumed else (),
        resumed,
        transcript.chosen_model(con, turn.session),
        turns.last_context(con, turn.session),
        tuple(attachment for part in inbox.parts_of(con, row, turn.id) for attachment in part.attachments),
    )


def _resume(
    con: Connection, turn: TurnRow, access: Access, gave_up: Plan, previous_death: float, now: float
) -> Begun | Ended:
    row = inbox.get(con, turn.inbox)
    own = transcript.messages_of_turn(con, turn.id)
    for waiting in inbox.queued(con, turn.address):
        if not access.allows(turn.address.account, waiting.sender):
            inbox.move(con, waiting.id, "drop", now)
    if not access.allows(turn.address.account, row.sender):
        _end(con, turn, "stop", now)
        withdraw_reply(con, turn.reply, gave_up.wire, now)
        return Ended()
    in_flight = [m for m in own if m.role == "tool" and m.started is not None and m.content is None]
    charge = bool(in_flight) or _died_soon(turn, own, previous_death)
    for message in in_flight:
        assert message.tool_call_id is not None
        transcript.finish_call(con, turn.id, message.tool_call_id, notices.UNKNOWN_EFFECT)
    turns.note_resume(con, turn.id, charge, now)
    if turn.charged + charge > MAX_CHARGED or turn.resumes + 1 > MAX_RESUMES:
        fail(con, turn, gave_up, "restarted too often", "", Usage(), now)
        return Ended()
    return _begun(con, turns.get(con, turn.id), row, resumed=True)


def _died_soon(turn: TurnRow, own: Sequence[MessageRow], previous_death: float) -> bool:
    if turn.resumed_at is None or previous_death - turn.resumed_at >= SOON:
        return False
    return not any(max(message.created_at, message.started or 0) > turn.resumed_at for message in own)


def record_calls(con: Connection, turn: TurnRow, text: str, calls: Sequence[ToolCall], now: float) -> None:
    """The model's message with its calls, before any of them starts."""
    turns.expect_running(con, turn.id)
    transcript.append(con, turn.session, turn.id, "assistant", text, now, calls=calls)


def record_start(con: Connection, turn: TurnRow, call_id: str, now: float) -> None:
    """The mark that a call is about to take effect."""
    turns.expect_running(con, turn.id)
    transcript.start_call(con, turn.id, call_id, now)


def record_result(con: Connection, turn: TurnRow, call_id: str, content: str) -> None:
    """The result of a call."""
    turns.expect_running(con, turn.id)
    transcript.finish_call(con, turn.id, call_id, content)


def take_steers(con: Connection, turn: TurnRow, now: float) -> tuple[str, ...]:
    """What was said to the running turn since it began: it enters the transcript behind the latest tool result.

    What was said to an earlier turn, and came too late for it, waits for a turn of its own.
    """
    turns.expect_running(con, turn.id)
    texts = []
    for row in inbox.queued(con, turn.address):
        if row.kind == "steer" and row.turn == turn.id:
            inbox.move(con, row.id, "consume", now, turn=turn.id)
            text = user_text(row, named=True)
            transcript.append(con, turn.session, turn.id, "user", text, now)
            texts.append(text)
    return tuple(texts)


def answer(con: Connection, turn: TurnRow, plan: Plan, usage: Usage, now: float) -> None:
    """The answer and the obligation to show it, born together. Raises TurnOver when the turn does not run any more."""
    _end(con, turn, "answer", now, usage=usage)
    transcript.append(con, turn.session, turn.id, "assistant", plan.content, now)
    commit_reply(con, turn.reply, plan, now)


def fail(con: Connection, turn: TurnRow, notice: Plan, error: str, partial: str, usage: Usage, now: float) -> None:
    """No answer: the user is told by a notice, and what there was of one stays in the transcript as interrupted."""
    _end(con, turn, "fail", now, usage=usage, error=error)
    if partial.strip():
        transcript.append(con, turn.session, turn.id, "assistant", partial, now, interrupted=True)
    commit_reply(con, turn.reply, notice, now)


def close(con: Connection, turn: TurnRow, event: str, notice: str, said: str, account: Account, now: float) -> None:
    """Ends a running turn from outside, by interrupt or stop. Raises TurnOver when it does not run any more.

    said: the Markdown that its preview was last made of; visible text is closed on screen with the notice and stays
    in the transcript as interrupted. A bare placeholder is withdrawn.
    """
    _end(con, turn, event, now)
    if not may_show_text(con, turn.reply, account.wire):
        withdraw_reply(con, turn.reply, account.wire, now)
        return
    spoken = _own_words(said, transcript.messages_of_turn(con, turn.id))
    if spoken:
        transcript.append(con, turn.session, turn.id, "assistant", spoken, now, interrupted=True)
    commit_reply(con, turn.reply, account.plan(f"{close_fence(said.rstrip())}\n\n{notice}".strip()), now)


def _own_words(said: str, own: Sequence[MessageRow]) -> str:
    """Of a preview what has no row of its own: neither the words before a tool call nor the tool's progress."""
    for row in own:
        if row.role == "assistant" and row.content:
            said = said.removeprefix(row.content).lstrip()
    if said.startswith(PROGRESS):
        said = said.partition("\n\n")[2]
    return said.strip()


def compress(
    con: Connection, job: Compress, summary: str, new_id: str, notice: Plan, reserve: bool, now: float
) -> bool:
    """The old session ends, a new one with its summary takes its route, and the user is told, in one transaction.

    False, with nothing changed, when the conversation has gone on in another session. Raises TurnOver when the command
    was dropped meanwhile.
    """
    row, session = job.inbound, job.session
    summarised = job.rows[-1].id if job.rows else 0
    _expect_waiting(con, row)
    if transcript.route(con, row.address) != session:
        return False  # /new or /resume came first
    transcript.start_session(con, row.address, new_id, now, reason="compression", parent=session)
    transcript.append(con, new_id, None, "summary", summary, now)
    transcript.copy_overheard(con, session, summarised, new_id)
    inbox.move(con, row.id, "answer", now)
    add_control(con, f"compressed.{row.id}", row.address, notice, now, reserve=reserve, anchor=row.anchor)
    return True


def compress_under_turn(
    con: Connection, begun: Begun, summary: str, new_id: str, notice: Plan, reserve: bool, now: float
) -> Begun:
    """A running turn moves to a new session behind a summary of the old one, and the user is told."""
    turn, row = begun.turn, begun.inbound
    turns.expect_running(con, turn.id)
    transcript.start_session(con, turn.address, new_id, now, reason="compression", parent=turn.session)
    transcript.append(con, new_id, None, "summary", summary, now)
    transcript.copy_overheard(con, turn.session, begun.rows[-1].id, new_id)
    transcript.move_turn(con, turn.id, new_id)
    turns.move(con, turn.id, new_id)
    add_control(con, f"compressed.{new_id}", turn.address, notice, now, reserve=reserve, anchor=row.anchor)
    return _begun(con, turns.get(con, turn.id), row, resumed=begun.resumed)


def not_compressed(con: Connection, row: InboxRow, notice: Plan, reserve: bool, now: float) -> None:
    """A failed summary changes nothing; the user is told. Raises TurnOver when the command was dropped meanwhile."""
    _expect_waiting(con, row)
    inbox.move(con, row.id, "answer", now)
    add_control(con, f"compressed.{row.id}", row.address, notice, now, reserve=reserve, anchor=row.anchor)


def _expect_waiting(con: Connection, row: InboxRow) -> None:
    state = inbox.get(con, row.id).state
    if state != "queued":
        raise turns.TurnOver(state)


def _end(
    con: Connection, turn: TurnRow, event: str, now: float, *, usage: Usage | None = None, error: str | None = None
) -> None:
    turns.end(con, turn.id, event, now, usage=usage, error=error)
    inbox.move(con, turn.inbox, event, now)


def addresses_with_work(con: Connection) -> tuple[Address, ...]:
    """Where conversations must be woken at a start."""
    return inbox.addresses_with_work(con)


def beat(con: Connection, now: float) -> None:
    """A sign of life in the database, so that a restart knows how long the process lived."""
    accounts.beat(con, now)
