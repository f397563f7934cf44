"""Commands: one registry that feeds the parser, `/help`, the platforms' menus and the documents.

A command is carried out in the transaction that stores its message, so it happens once however often it is delivered,
and its answer is owed from the same instant. The rule that must not be broken: a command never reaches the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from attrs import field, frozen

from hermes_trio.access import Access
from hermes_trio.delivery.account import Account
from hermes_trio.ledger import Connection
from hermes_trio.ledger.rows import InboxRow, TurnRow
from hermes_trio.platforms.base import Attachment
from hermes_trio.values import Address

_COMMAND = re.compile(r"[/!]([A-Za-z][A-Za-z0-9_]*)(?:@[A-Za-z0-9_]+)?(?:\s+|$)(.*)", re.DOTALL)


@frozen
class Facts:
    """What commands may tell of the configuration."""

    access: Access
    models: tuple[str, ...]
    """The configured models, in order."""
    busy: str
    """What a plain message does while a turn runs, as configured for the account."""


@frozen
class CommandCall:
    """One use of a command."""

    con: Connection
    address: Address
    sender: str
    sender_name: str
    shared: bool
    arguments: str
    """What stands behind the command, trimmed."""
    running: TurnRow | None
    """The turn that runs at the address."""
    account: Account
    facts: Facts
    new_id: str
    """An id that nobody has used, for what the command may have to create."""
    now: float
    stop: Callable[[TurnRow], None]
    """Ends the running turn as stopped, with its partial closed on screen."""
    drop: Callable[[InboxRow], None]
    """Takes a waiting message out of the queue; a compression that it asked for is ended."""


@frozen
class Outcome:
    """What a command did."""

    text: str
    """The answer, as Markdown; empty: the message itself will be answered."""
    enqueue: str | None = None
    """A text that becomes a turn of its own, in the place of the command."""
    kind: str = "queue"
    """The kind of that inbox row."""
    attachments: tuple[Attachment, ...] = ()
    """What came with the text, besides what came with the command."""


@frozen
class Command:
    """One command."""

    name: str
    summary: str
    handler: Callable[[CommandCall], Outcome]
    usage: str = ""
    """Its arguments, for people."""
    aliases: tuple[str, ...] = ()
    who: Literal["everyone", "owners"] = "everyone"
    while_busy: bool = True
    """Whether it may be used while a turn runs."""


@frozen
class Registry:
    """The commands of a bot."""

    commands: tuple[Command, ...]
    _by_name: Mapping[str, Command] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        by_name: dict[str, Command] = {}
        for command in self.commands:
            for name in (command.name, *command.aliases):
                assert name not in by_name, f"two commands are called /{name}"
                by_name[name] = command
        object.__setattr__(self, "_by_name", by_name)

    def find(self, name: str) -> Command | None:
        """The command of this name or alias."""
        return self._by_name.get(name)

    def nearest(self, name: str) -> str | None:
        """The name that was probably meant."""
        found = get_close_matches(name, self._by_name, n=1, cutoff=0.5)
        return found[0] if found else None

    @property
    def spellings(self) -> frozenset[str]:
        """Every name and alias that is understood."""
        return frozenset(self._by_name)

    def menu(self) -> Mapping[str, str]:
        """Names and summaries for the menu of a platform; what only owners may use is left out."""
        return {command.name: command.summary for command in self.commands if command.who == "everyone"}

    def as_markdown(self) -> str:
        """The table of the documents."""
        lines = ["| command | what it does | who | while a turn runs |", "|---|---|---|---|"]
        for command in self.commands:
            also = f" (also {', '.join(f'`/{alias}`' for alias in command.aliases)})" if command.aliases else ""
            usage = f" {command.usage}".replace("|", "\\|") if command.usage else ""
            busy = "yes" if command.while_busy else "no"
            lines.append(f"| `/{command.name}{usage}`{also} | {command.summary} | {command.who} | {busy} |")
        return "\n".join(lines)


@frozen
class Parsed:
    """A text that looks like a command."""

    name: str
    arguments: str


def parse(text: str, known: Callable[[str], object]) -> Parsed | None:
    """The command that a text is, or None. A `!` instead of the `/` counts only before a known command's name."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    name = found[1].lower()
    if text.lstrip().startswith("!") and not known(name):
        return None
    return Parsed(name, found[2].strip())


def run_command(registry: Registry, parsed: Parsed, call: CommandCall) -> Outcome:
    """Carries a command out, or says why not."""
    command = registry.find(parsed.name)
    if command is None:
        nearest = registry.nearest(parsed.name)
        hint = f" Did you mean /{nearest}?" if nearest else ""
        return Outcome(f"There is no command /{parsed.name}.{hint} /help lists all of them.")
    if command.who == "owners" and not call.facts.access.owns(call.address.account, call.sender):
        return Outcome(f"/{command.name} is for the owners of this bot only.")
    if call.running is not None and not command.while_busy:
        return Outcome(f"I am still working. Use /stop first, then /{command.name}.")
    return command.handler(call)


def help_text(commands: Sequence[Command], owner: bool) -> str:
    """The answer of /help."""
    lines = [
        f"/{command.name}{' ' + command.usage if command.usage else ''} — {command.summary}"
        for command in commands
        if owner or command.who == "everyone"
    ]
    return "\n".join(lines)
