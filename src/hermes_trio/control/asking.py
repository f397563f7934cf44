"""A program's own questions: the same inbox, turn, answer and delivery as everybody's, and a call that waits.

The question is durable under its key before the model is asked, and the answer is read from the ledger, so whoever
asks again under the same key, also in a later life of the process, gets the answer that there is. The rule that must
not be broken: what is returned is a committed answer, never what a model was about to say.
"""

from __future__ import annotations

import trio
from attrs import frozen

from hermes_trio.clock import Clock, Ids
from hermes_trio.control.desk import checked_key
from hermes_trio.control.ending import Ending
from hermes_trio.conversation.actor import Conversations
from hermes_trio.delivery.operating import RequestRefused
from hermes_trio.ledger import Connection, Ledger, LedgerClosed, inbox, operating
from hermes_trio.ledger.operating import Question
from hermes_trio.platforms.base import Inbound
from hermes_trio.platforms.script import SCRIPT, SENDER, ScriptPlatform
from hermes_trio.text.repair import repair
from hermes_trio.values import Address


class AskFailed(Exception):
    """There is no answer. The text is what a user would have been told.

    After it, the same key gives the same failure; another key asks anew.
    """

    def __init__(self, notice: str, detail: str = "") -> None:
        super().__init__(notice)
        self.detail = detail
        """What went wrong, for the operator; without secrets."""


class AskInterrupted(Exception):
    """The runtime ends before there is an answer. The question stays open: the next start goes on with it, and the
    same key then waits for its answer."""


@frozen
class Asker:
    """Asks on behalf of the program around the runtime."""

    ledger: Ledger
    conversations: Conversations
    platform: ScriptPlatform
    clock: Clock
    ids: Ids
    ending: Ending

    async def ask(self, text: str, session: str, key: str | None) -> str:
        """See `Runtime.ask`."""
        place = _place(session)
        native_id = self.ids() if key is None else checked_key(key)
        text = repair(text)
        if not text.strip():
            raise RequestRefused("the text is blank: there is nothing to ask")
        inbound = Inbound(place, native_id, SENDER, SENDER, text)
        await self.ledger.insist(_enter, inbound, self.clock.now())
        self.conversations.wake(place)
        try:
            return _answer(await self._wait_end(place, native_id))
        except LedgerClosed:
            raise _interrupted() from None

    async def _wait_end(self, place: Address, native_id: str) -> Question:
        while True:
            word: trio.Event = self.platform.next_word(place.chat)
            question = await self.ledger.insist(operating.question, place, native_id)
            if question.ended:
                return question
            if self.ending.over:
                raise _interrupted()
            with self.ending.cuts_short():
                await word.wait()


def _enter(con: Connection, inbound: Inbound, now: float) -> None:
    """The question waits for its turn behind those before it; one whose key is known changes nothing."""
    inbox.store(con, inbound, "queue", "queued", now)


def _interrupted() -> AskInterrupted:
    return AskInterrupted("the runtime ends; the same key gets the answer after the next start")


def _answer(question: Question) -> str:
    if question.state == "answered":
        return question.text
    raise AskFailed(question.text or f"the question was {question.state}", question.error)


def _place(session: str) -> Address:
    """The address of a session. Raises RequestRefused."""
    if not session or "/" in session or not session.isprintable() or any(map(str.isspace, session)):
        raise RequestRefused(f"{session!r} is not a session: write a name without white space and without /")
    return Address(SCRIPT, session)
