"""The platform of a program's own questions: no network, no people, only calls of `Runtime.ask` that wait.

It is an account like any other, so that a program's question has its row, its turn and its obligation. Its wire is
honest: a create is known by its key and may be repeated for ever, because nothing is kept of it; what is delivered is
only the word that there is something to read in the ledger. The rule that must not be broken: a create wakes whoever
waits at its chat, before it is accepted.
"""

from __future__ import annotations

import trio

from hermes_trio.platforms.base import Capabilities, Receiver
from hermes_trio.platforms.outcomes import Accepted, Outcome, Unknown
from hermes_trio.text.body import Body
from hermes_trio.values import Address

SCRIPT = "@script"
"""The name of the account; no configuration can give this name to another."""
SENDER = "program"
"""Who asks."""
FOR_EVER = 100 * 365 * 86400.0
"""Seconds for which a key is known: longer than any ledger lives."""
LIMIT = 1_000_000
"""Code points of one message: nothing that a model says comes near it."""


class ScriptPlatform:
    """The far side of `Runtime.ask`; a Platform."""

    def __init__(self) -> None:
        self.capabilities = Capabilities(
            limit=LIMIT,
            unit="codepoints",
            edits=False,
            deletes=False,
            key_window=FOR_EVER,
            request_timeout=1.0,
            lateness=0.0,
        )
        self._waiting: dict[str, trio.Event] = {}

    def next_word(self, chat: str) -> trio.Event:
        """Is set when something is next delivered to this chat."""
        return self._waiting.setdefault(chat, trio.Event())

    async def run(self, receiver: Receiver) -> None:
        """Sleeps: questions do not come over a wire."""
        await trio.sleep_forever()

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        """Wakes whoever waits at this chat. The same key is the same message."""
        await trio.lowlevel.checkpoint()
        self._wake(address.chat)
        return Accepted(key)

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        """Unknown: there is nothing to edit."""
        return Unknown("there are no messages to edit")

    async def delete(self, address: Address, message_id: str) -> Outcome:
        """Unknown: there is nothing to delete."""
        return Unknown("there are no messages to delete")

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome:
        """Unknown: nothing is kept."""
        return Unknown("there are no messages to find")

    async def typing(self, address: Address) -> None:
        """Nobody looks."""

    def _wake(self, chat: str) -> None:
        event = self._waiting.pop(chat, None)
        if event is not None:
            event.set()
