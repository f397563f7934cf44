"""Compression: a conversation that has become too long goes on from a summary of itself.

The summary is asked of the model beforehand; then one transaction ends the old session, begins the new one and moves
what must go on. The rule that must not be broken: a summary that failed changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_trio.ledger.rows import MessageRow
from hermes_trio.model.base import Completion, ContextOverflow, Message, Model, ModelError
from hermes_trio.text.markdown import is_blank

INSTRUCTION = (
    "Summarise the conversation below for your own use when it goes on: who the user is, what was asked and answered, "
    "what was decided, facts and names worth keeping, and what is still open. Write plain text in the language of the "
    "conversation."
)
MAX_INPUT = 400_000
"""Characters of a conversation that a summary is asked of; of a longer one the latest."""
HALVINGS = 5
"""How often the input is halved when the model finds it too long."""


async def summarise(model: Model, rows: Sequence[MessageRow], wish: str = "") -> str:
    """A summary of these messages. wish: what the user wants it to be about; may be empty.

    Cancelled: nothing has happened. Raises ModelError when the model gives none.
    """
    text = "\n".join(_line(row) for row in rows if row.content)[-MAX_INPUT:]
    instruction = f"{INSTRUCTION} Above all: {wish}" if wish else INSTRUCTION
    for _ in range(HALVINGS):
        try:
            return await _ask(model, (Message("system", instruction), Message("user", text)))
        except ContextOverflow:
            text = text[len(text) // 2 :]
    raise ModelError("even a part of the conversation is too long for a summary", retryable=False)


async def _ask(model: Model, request: tuple[Message, ...]) -> str:
    async with model.stream(request, ()) as events:
        async for event in events:
            if isinstance(event, Completion):
                if is_blank(event.text):
                    break
                return event.text
    raise ModelError("the model gave no summary", retryable=True)


def _line(row: MessageRow) -> str:
    speaker = {"context": "user", "summary": "earlier"}.get(row.role, row.role)
    return f"{speaker}: {row.content}"
