"""What each command does: functions of the connection, inside the transaction that stores the command's message."""

from __future__ import annotations

from datetime import UTC, datetime

from attrs import evolve

from hermes_trio.conversation.commands import Command, CommandCall, Outcome, Registry, help_text
from hermes_trio.conversation.policy import Busy
from hermes_trio.ledger import accounts, inbox, obligations, transcript, turns
from hermes_trio.ledger.rows import InboxRow

LISTED = 20
"""Entries of a list that a command shows; more would fill the screen."""
MAX_DIGITS = 6
"""Of a number in a command; no list is longer."""
EXCERPT = 60
"""Characters of a message that a list shows."""


def _stop(call: CommandCall) -> Outcome:
    rows = inbox.queued(call.con, call.address)
    compression = next((row for row in rows if row.kind == "command"), None)
    waiting = len(rows) - (call.running is None and compression is not None)
    tail = f" {waiting} more waiting; /queue clear drops them." if waiting else ""
    if call.running is not None:
        call.stop(call.running)
    elif compression is not None:
        call.drop(compression)
    else:
        return Outcome(f"Nothing is running.{tail}")
    return Outcome(f"⏹ Stopped.{tail}")


def _queue(call: CommandCall) -> Outcome:
    words = call.arguments.split()
    rows = inbox.queued(call.con, call.address)
    if words in ([], ["list"]):
        return Outcome(_listed(rows))
    if words == ["clear"]:
        for row in rows:
            call.drop(row)
        return Outcome(f"Dropped {len(rows)} waiting message{'s' * (len(rows) != 1)}.")
    if words[0] == "drop" and len(words) == 2 and (number := _number(words[1])) is not None:
        if not 1 <= number <= len(rows):
            return Outcome(f"There is no number {number} in the queue. {_listed(rows)}")
        call.drop(rows[number - 1])
        return Outcome(f"Dropped number {number}: {_excerpt(rows[number - 1].text)}")
    busy = call.running is not None or bool(rows)
    return Outcome(f"⏳ Queued as number {len(rows) + 1}." if busy else "", enqueue=call.arguments)


def _steer(call: CommandCall) -> Outcome:
    if not call.arguments:
        return Outcome("Write what I should know behind it: /steer use the other file")
    return Outcome("", enqueue=call.arguments, kind="message" if call.running is None else "steer")


def _busy(call: CommandCall) -> Outcome:
    mode = call.arguments.lower()
    if not mode:
        current = accounts.chat_setting(call.con, call.address, "busy") or call.facts.busy
        return Outcome(f"While I work, a message of yours is handled as: {current}. Others: {', '.join(Busy)}.")
    if mode not in tuple(Busy):
        return Outcome(f"I know {', '.join(Busy)}, not {mode!r}.")
    accounts.set_chat_setting(call.con, call.address, "busy", mode)
    return Outcome(f"From now on, while I work, a message of yours is handled as: {mode}.")


def _new(call: CommandCall) -> Outcome:
    if call.running is not None:
        call.stop(call.running)
    transcript.start_session(call.con, call.address, call.new_id, call.now, reason="new")
    if call.arguments:
        transcript.set_title(call.con, call.new_id, call.arguments[:EXCERPT])
    return Outcome("✨ A new conversation begins. /sessions lists the earlier ones.")


def _sessions(call: CommandCall) -> Outcome:
    rows = transcript.sessions(call.con, call.address)
    if not rows:
        return Outcome("There is no conversation yet.")
    current = transcript.route(call.con, call.address)
    lines = [
        f"{number}. {row.title or 'untitled'}, {_date(row.started_at)}, {row.messages} messages"
        f"{' ← this one' if row.id == current else ''}"
        for number, row in enumerate(rows[:LISTED], 1)
    ]
    return Outcome("\n".join(lines) + "\n\n/resume N goes on with one of them.")


def _resume(call: CommandCall) -> Outcome:
    rows = transcript.sessions(call.con, call.address)[:LISTED]
    number = _number(call.arguments)
    if number is None or not 1 <= number <= len(rows):
        return Outcome("Say which one, by its number in /sessions: /resume 2")
    chosen = rows[number - 1]
    if chosen.id == transcript.route(call.con, call.address):
        return Outcome("That is the current conversation.")
    transcript.resume_session(call.con, call.address, chosen.id, call.now)
    return Outcome(f"We go on with: {chosen.title or 'untitled'} of {_date(chosen.started_at)}.")


def _title(call: CommandCall) -> Outcome:
    session = transcript.current_session(call.con, call.address, call.new_id, call.now)
    if not call.arguments:
        return Outcome("Write the title behind it: /title Holiday plans")
    transcript.set_title(call.con, session, call.arguments[:EXCERPT])
    return Outcome(f"This conversation is now called: {call.arguments[:EXCERPT]}")


def _undo(call: CommandCall) -> Outcome:
    row = _take_back(call)
    return Outcome("There is nothing to take back." if row is None else f"Taken back: {_excerpt(row.text)}")


def _retry(call: CommandCall) -> Outcome:
    row = _take_back(call)
    if row is None:
        return Outcome("There is nothing to try again.")
    return Outcome("", enqueue=row.text, attachments=row.attachments)


def _take_back(call: CommandCall) -> InboxRow | None:
    """Hides the latest exchange of the session and returns what began it: the message, with all its parts."""
    session = transcript.route(call.con, call.address)
    turn = None if session is None else transcript.last_turn(call.con, session)
    if turn is None:
        return None
    row = inbox.get(call.con, turns.get(call.con, turn).inbox)
    parts = inbox.parts_of(call.con, row, turn)
    transcript.hide_turn(call.con, turn)
    text = "\n".join(part.text for part in parts if part.text)
    return evolve(row, text=text, attachments=tuple(each for part in parts for each in part.attachments))


def _compress(call: CommandCall) -> Outcome:
    if transcript.route(call.con, call.address) is None:
        return Outcome("There is no conversation yet.")
    return Outcome("", enqueue=call.arguments or "compress", kind="command")


def _status(call: CommandCall) -> Outcome:
    session = transcript.route(call.con, call.address)
    chosen = None if session is None else transcript.chosen_model(call.con, session)
    counts = obligations.counts(call.con, call.address)
    deliveries = ", ".join(f"{count} {state}" for state, count in counts.items()) or "none open"
    running = "none" if call.running is None else f"one, for {call.now - call.running.started_at:.0f} s"
    return Outcome(
        "\n".join(
            (
                f"- turn: {running}",
                f"- queue: {len(inbox.queued(call.con, call.address))}",
                f"- deliveries: {deliveries}",
                f"- model: {chosen or call.facts.models[0]}",
                f"- guarantee: {call.account.capabilities.guarantee}",
            )
        )
    )


def _usage(call: CommandCall) -> Outcome:
    session = transcript.route(call.con, call.address)
    if session is None:
        return Outcome("Nothing has been used yet.")
    used = turns.usage(call.con, session)
    return Outcome(f"This conversation: {used.turns} turns, {used.prompt} tokens read, {used.completion} written.")


def _model(call: CommandCall) -> Outcome:
    session = transcript.current_session(call.con, call.address, call.new_id, call.now)
    current = transcript.chosen_model(call.con, session) or call.facts.models[0]
    if not call.arguments:
        return Outcome(f"This conversation uses {current}. There are: {', '.join(call.facts.models)}.")
    if call.arguments not in call.facts.models:
        return Outcome(f"There is no model {call.arguments!r}. There are: {', '.join(call.facts.models)}.")
    transcript.choose_model(call.con, session, call.arguments)
    return Outcome(f"This conversation now uses {call.arguments}.")


def _whoami(call: CommandCall) -> Outcome:
    owner = call.facts.access.owns(call.address.account, call.sender)
    return Outcome(
        f"You are {call.sender_name or 'someone without a name'}, `{call.address.account}:{call.sender}`"
        f"{', an owner of this bot' if owner else ''}. This place is `{call.address}`."
    )


def _help(call: CommandCall) -> Outcome:
    return Outcome(help_text(COMMANDS, call.facts.access.owns(call.address.account, call.sender)))


def _start(call: CommandCall) -> Outcome:
    return Outcome("Hello! Write me anything. /help lists what else I can do.")


COMMANDS = (
    Command("help", "lists the commands", _help),
    Command("start", "says hello", _start),
    Command("stop", "ends what I am doing", _stop, aliases=("cancel", "abort")),
    Command("queue", "answers a text after what I am doing", _queue, "TEXT | list | drop N | clear", ("q",)),
    Command("steer", "tells me something while I work", _steer, "TEXT"),
    Command("busy", "says what a message does while I work", _busy, "interrupt | queue | steer"),
    Command("new", "begins a new conversation", _new, "[TITLE]", ("reset",)),
    Command("sessions", "lists the conversations here", _sessions),
    Command("resume", "goes on with an earlier conversation", _resume, "N", while_busy=False),
    Command("title", "names this conversation", _title, "TEXT"),
    Command("retry", "answers your last message again", _retry, while_busy=False),
    Command("undo", "takes your last message and its answer back", _undo, while_busy=False),
    Command("compress", "shortens this conversation to a summary", _compress, while_busy=False),
    Command("status", "shows what is going on here", _status),
    Command("usage", "shows how much of the model was used", _usage),
    Command("model", "shows or chooses the model", _model, "[NAME]", who="owners"),
    Command("whoami", "shows who you are to me", _whoami),
)
REGISTRY = Registry(COMMANDS)


def _number(text: str) -> int | None:
    """A number that a person may mean; None for anything else."""
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def _listed(rows: tuple[InboxRow, ...]) -> str:
    if not rows:
        return "The queue is empty."
    lines = [f"{number}. {_excerpt(row.text)}" for number, row in enumerate(rows[:LISTED], 1)]
    return "Waiting:\n" + "\n".join(lines)


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"


def _date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
