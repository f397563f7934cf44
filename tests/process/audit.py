"""The verdict on a world, from ground truth only: what people see, what the database holds, what was asked.

It knows Telegram's screen, SQL and the scripted answers; nothing of the program is imported. The rule that must not
be broken: it renders the stored text in its own way, so that a mistake in the program's rendering cannot hide in the
comparison.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from hermes_fakes.model import ModelFake, ModelRequest
from hermes_fakes.telegram import TelegramFake
from hermes_fakes.telegram.values import ScreenMessage

MARKER = "[may be a duplicate] "
PLACEHOLDER = "…"
LIMIT = 4096
"""UTF-16 units of one message."""
ENDED = frozenset({"delivered", "abandoned", "withdrawn"})
NOTE = "\n\n[note from the runtime:"
"""Begins what a resumed request says behind its last message."""

_HEADER = re.compile(r"<<(A-\w+)>>")
_FOOTER = re.compile(r"<</(A-\w+)>>")
_FENCE = re.compile(r"^```.*$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*+•]) ", re.MULTILINE)
_STYLES = {
    "bold": re.compile(r"\*\*(.+?)\*\*", re.DOTALL),
    "italic": re.compile(r"(?<!\*)\*([^*]+?)\*(?!\*)"),
    "code": re.compile(r"(?<!`)`([^`\n]+)`(?!`)"),
}


# --- an independent rendering -------------------------------------------------------------------------------------


def squeezed(text: str) -> str:
    """Text without white space and without the signs of list items."""
    return "".join(_ITEM.sub("", text).split())


def rendered(markdown: str) -> str:
    """What is visible of Markdown, squeezed. Only of the markup that the scripted answers use."""
    blocks = _FENCE.split(markdown)
    prose = [_prose(block) if index % 2 == 0 else block for index, block in enumerate(blocks)]
    return squeezed("\n".join(prose))


def _prose(block: str) -> str:
    block = _LINK.sub(r"\1", block)
    for style in _STYLES.values():
        block = style.sub(r"\1", block)
    return block


def styles(markdown: str) -> dict[str, str]:
    """What is bold, italic, code and so on, squeezed and in order."""
    blocks = _FENCE.split(markdown)
    prose, fences = "\n\n".join(blocks[::2]), "".join(blocks[1::2])
    found = {kind: squeezed("".join(style.findall(prose))) for kind, style in _STYLES.items()}
    return {**found, "pre": squeezed(fences), "text_link": squeezed("".join(_LINK.findall(prose)))}


def styles_shown(messages: Sequence[ScreenMessage]) -> dict[str, str]:
    """The same as the screen shows it."""
    found = dict.fromkeys((*_STYLES, "pre", "text_link"), "")
    for message in messages:
        units = message.text.encode("utf-16-le")
        for entity in message.entities:
            start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
            found[entity["type"]] = found.get(entity["type"], "") + squeezed(units[start:end].decode("utf-16-le"))
    return found


# --- the screen ---------------------------------------------------------------------------------------------------


@frozen
class Copy:
    """An answer, or a piece of one, on a screen."""

    label: str
    messages: tuple[ScreenMessage, ...]
    complete: bool
    """From its header to its footer."""

    @property
    def marked(self) -> bool:
        """A person is told that it may be a duplicate."""
        return self.messages[0].text.startswith(MARKER)

    @property
    def text(self) -> str:
        """Squeezed, without markers."""
        return squeezed("\n".join(message.text.removeprefix(MARKER) for message in self.messages))


@frozen
class Screen:
    """What one person sees of the bot, understood."""

    copies: tuple[Copy, ...]
    placeholders: tuple[ScreenMessage, ...]
    others: tuple[ScreenMessage, ...]
    """Neither: notices, and what nobody can explain."""


def read_screen(messages: Sequence[ScreenMessage]) -> Screen:
    """Sorts the bot's messages of one chat."""
    copies: list[Copy] = []
    placeholders: list[ScreenMessage] = []
    others: list[ScreenMessage] = []
    running: Copy | None = None
    for message in messages:
        if not message.from_bot:
            continue
        header, footer = _HEADER.search(message.text), _FOOTER.search(message.text)
        if message.text == PLACEHOLDER:
            placeholders.append(message)
            continue
        if header is not None:
            if running is not None:
                copies.append(running)
            running = Copy(header[1], (message,), False)
        elif running is not None:
            running = evolve(running, messages=(*running.messages, message))
        else:
            others.append(message)
            continue
        if footer is not None:
            copies.append(evolve(running, complete=footer[1] == running.label))
            running = None
    if running is not None:
        copies.append(running)
    return Screen(tuple(copies), tuple(placeholders), tuple(others))


# --- the database -------------------------------------------------------------------------------------------------


@frozen
class Inbound:
    """One row of the inbox, and what came of it."""

    id: int
    chat: str
    native_id: str
    text: str
    state: str
    turn: str | None
    answers: tuple[str, ...]
    """The assistant's texts of its turn that call no tool."""
    users: int
    """User rows of its turn."""


@frozen
class Ledger:
    """The database file. Every look opens it for reading only, and closes it."""

    path: Path

    def query(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Rows; none while there is no database."""
        if not self.path.exists():
            return []
        connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    def ready(self) -> bool:
        """The tables are there."""
        return bool(self.query("SELECT 1 FROM sqlite_master WHERE name = 'async_delegations'"))

    def inbounds(self) -> list[Inbound]:
        """The inbox in order of arrival."""
        if not self.ready():
            return []
        return [self._inbound(row) for row in self.query("SELECT * FROM inbox ORDER BY id")]

    def _inbound(self, row: sqlite3.Row) -> Inbound:
        said = self.query(
            "SELECT content FROM messages WHERE turn = ? AND role = 'assistant' AND tool_calls IS NULL"
            " AND interrupted = 0 ORDER BY id",
            row["turn"],
        )
        users = self.query("SELECT 1 FROM messages WHERE turn = ? AND role = 'user'", row["turn"])
        answers = tuple(message["content"] for message in said)
        return Inbound(
            row["id"], row["chat"], row["native_id"], row["text"], row["state"], row["turn"], answers, len(users)
        )

    def obligations(self) -> list[sqlite3.Row]:
        """All of them, in order."""
        return self.query("SELECT * FROM delivery_obligations ORDER BY seq") if self.ready() else []

    def post_ids(self, turn: str) -> set[str]:
        """The message ids of the posts of a turn's reply."""
        rows = self.query(
            "SELECT message_id FROM posts JOIN delivery_obligations AS o ON o.id = obligation WHERE o.turn = ?", turn
        )
        return {row["message_id"] for row in rows}

    def committed(self, label: str) -> bool:
        """The answer with this label is in the transcript."""
        return any(f"<<{label}>>" in text for inbound in self.inbounds() for text in inbound.answers)

    def knows(self, text: str) -> bool:
        """The inbox has a message with this text."""
        return any(inbound.text == text for inbound in self.inbounds())

    def lives(self) -> int:
        """How often the program has opened it."""
        return int(self.query("SELECT lives FROM incarnations")[0]["lives"]) if self.ready() else 0

    def uncertain_creates(self) -> int:
        """How many messages may or may not be on the platform, as far as the program knows."""
        return len(self.query("SELECT 1 FROM posts WHERE state IN ('intended', 'unknown')")) if self.ready() else 0

    def confirmed(self, parts: int) -> bool:
        """So many posts are known to show their final text."""
        rows = self.query("SELECT progress FROM posts") if self.ready() else []
        return sum(json.loads(row["progress"]).get("confirmed") is not None for row in rows) == parts

    def unanswered(self) -> list[str]:
        """The texts of what waits for an answer."""
        return [inbound.text for inbound in self.inbounds() if inbound.state in ("queued", "running")]

    def open_work(self) -> list[str]:
        """What is not finished: inbound messages and obligations."""
        debts = [f"{row['id']} {row['state']}" for row in self.obligations() if row["state"] not in ENDED]
        return self.unanswered() + debts


# --- the verdict --------------------------------------------------------------------------------------------------


def judge(
    telegram: TelegramFake, model: ModelFake, ledger: Ledger, crashed: Mapping[str, int], *,
    strays: int, notices: tuple[str, ...], deleted: frozenset[str], marked: int = 0,
) -> list[str]:  # fmt: skip
    """Every broken promise, in words; see CONFORMANCE, "How it is judged"."""
    inbounds = ledger.inbounds()
    return [
        *_inbox(telegram, inbounds),
        *_turns(model, inbounds, crashed),
        *(f"an obligation did not end: {row['id']} is {row['state']}" for row in ledger.obligations()
          if row["state"] not in ENDED),
        *(f"a fault was never hit: {fault.effect}" for fake in (telegram, model) for fault in fake.faults.unhit()),
        *(f"the model refused a request: {why}" for why in model.rejected),
        *_screens(telegram, ledger, inbounds, strays, notices, deleted, marked),
    ]  # fmt: skip


def _inbox(telegram: TelegramFake, inbounds: Sequence[Inbound]) -> Iterator[str]:
    """Each message of a person is one row with one user row; nothing else is in the inbox."""
    written = Counter(
        (str(chat.id), str(message.message_id))
        for chat in telegram.chats.values()
        for message in chat.messages.values()
        if not message.from_bot
    )
    stored = Counter((inbound.chat, inbound.native_id) for inbound in inbounds)
    if written != stored:
        yield f"the inbox is not what was written: missing {written - stored}, too much {stored - written}"
    for inbound in inbounds:
        if inbound.turn is None or inbound.users != 1:
            yield f"{inbound.text!r} has {inbound.users} user rows"


def _turns(model: ModelFake, inbounds: Sequence[Inbound], crashed: Mapping[str, int]) -> Iterator[str]:
    """One turn for each question, and one more for each crash that found it unanswered."""
    asked = Counter((_question(request), request.answers_so_far) for request in model.requests)
    for (question, round_), times in asked.items():
        if times > 1 + crashed.get(question, 0):
            yield f"{question!r} (round {round_}) was asked {times} times, with {crashed.get(question, 0)} crashes"
    for inbound in inbounds:
        if asked[inbound.text, 0] == 0:
            yield f"{inbound.text!r} was never asked"


def _question(request: ModelRequest) -> str:
    return request.last_user_text.partition(NOTE)[0]


def _screens(
    telegram: TelegramFake, ledger: Ledger, inbounds: Sequence[Inbound], strays: int, notices: tuple[str, ...],
    deleted: frozenset[str], marked: int,
) -> Iterator[str]:  # fmt: skip
    placeholders = 0
    for chat in telegram.chats.values():
        screen = read_screen(tuple(chat.messages.values()))
        placeholders += len(screen.placeholders)
        mine = [inbound for inbound in inbounds if inbound.chat == str(chat.id)]
        yield from _chat(ledger, screen, mine, notices, deleted, marked)
    if placeholders > strays:
        yield f"{placeholders} stray placeholders; {strays} may be there"


def _chat(
    ledger: Ledger, screen: Screen, inbounds: Sequence[Inbound], notices: tuple[str, ...], deleted: frozenset[str],
    marked: int,
) -> Iterator[str]:  # fmt: skip
    """The complete copies of one chat are the stored answers, in order, and nothing is there besides."""
    expected: list[tuple[str, str, str]] = []
    failed = 0
    for inbound in inbounds:
        if inbound.state == "failed" and notices:
            failed += 1
        elif inbound.state != "answered" or len(inbound.answers) != 1 or inbound.turn is None:
            yield f"{inbound.text!r} is {inbound.state} with {len(inbound.answers)} stored answers"
        else:
            label = _HEADER.search(inbound.answers[0])
            assert label is not None, f"the stored answer to {inbound.text!r} has no header"
            if label[1] not in deleted:
                expected.append((label[1], inbound.answers[0], inbound.turn))
    closed = [copy for copy in screen.copies if not copy.complete and _says(copy.messages, notices)]
    copies = [copy for copy in screen.copies if copy not in closed]
    more = [copy for copy in copies if copy.marked]
    if len(more) > marked:
        yield f"{len(more)} copies are marked; {marked} may be"
    labels = _without_repeats(copies)
    if labels != [label for label, _, _ in expected]:
        yield f"on screen are the answers {labels}, stored are {[label for label, _, _ in expected]}"
    for copy in copies:
        repeated = sum(other.label == copy.label for other in copies) > 1
        yield from _copy(copy, {label: (text, turn) for label, text, turn in expected}, ledger, repeated)
    words = [message for message in screen.others if _says((message,), notices)]
    if len(words) + len(closed) != failed:
        yield f"{failed} turns failed and {len(words) + len(closed)} notices are on screen"
    yield from (f"nobody can explain this message: {each.text!r}" for each in screen.others if each not in words)


def _without_repeats(copies: Sequence[Copy]) -> list[str]:
    """The labels in order; a marked copy counts only where it is the only one of its answer."""
    single = {copy.label for copy in copies if not copy.marked}
    return [copy.label for copy in copies if not (copy.marked and copy.label in single)]


def _says(messages: Sequence[ScreenMessage], notices: tuple[str, ...]) -> bool:
    """One of the notices stands in these messages."""
    return any(notice in message.text for notice in notices for message in messages)


def _copy(copy: Copy, stored: Mapping[str, tuple[str, str]], ledger: Ledger, repeated: bool) -> Iterator[str]:
    if not copy.complete:
        yield f"a partial copy of {copy.label}: {copy.text[-200:]!r}"
    if copy.label not in stored:
        return
    text, turn = stored[copy.label]
    if copy.text != rendered(text):
        yield f"{copy.label} is not its stored text:\n  shown  {copy.text[:3000]}\n  stored {rendered(text)[:3000]}"
    elif styles_shown(copy.messages) != styles(text):
        yield f"{copy.label} has other markup:\n  shown  {styles_shown(copy.messages)}\n  stored {styles(text)}"
    unknown = {str(message.message_id) for message in copy.messages} - ledger.post_ids(turn)
    if unknown and not repeated:
        yield f"{copy.label} stands in messages that no row knows: {sorted(unknown)}"
    if any(len(message.text.encode("utf-16-le")) > 2 * LIMIT for message in copy.messages):
        yield f"{copy.label} has a message over the limit"
