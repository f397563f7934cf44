"""From rows of a transcript to a request that every model server accepts. Pure.

The rule that must not be broken: every call of an assistant's message is answered by exactly one result directly
behind it, and no result stands without its call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_trio.conversation.notices import CUT_SHORT, NEVER_FINISHED
from hermes_trio.ledger.rows import InboxRow, MessageRow
from hermes_trio.model.base import Image, Message, ToolCall
from hermes_trio.platforms.base import Attachment


def request_of(
    system: str,
    rows: Sequence[MessageRow],
    *,
    turn: str | None = None,
    images: tuple[Image, ...] = (),
    remark: str = "",
) -> list[Message]:
    """The messages of a request: the system's words and the transcript.

    turn: the running turn, whose calls that never started are left open for the loop to run; the request ends with
    them, so that their results stand directly behind their calls. What was overheard since is for the next turn.
    images, remark: what the turn's own message shows, and words about what it cannot show.
    """
    messages = [Message("system", system)] if system else []
    begun = False
    position = 0
    while position < len(rows):
        row = rows[position]
        position += 1
        begun = begun or row.turn == turn is not None
        if begun and row.turn != turn:
            continue  # overheard while the turn ran: the model would take it for what it is asked
        if row.role == "user" and row.turn == turn is not None and (images or remark):
            content = f"{row.content or ''}\n{remark}".strip()
            messages.append(Message("user", content, images=images))
            images, remark = (), ""  # what was steered to the turn stands in rows of the same turn
        elif row.role in ("user", "context", "summary"):
            messages.append(Message("user", row.content or ""))
        elif row.role == "assistant":
            results = _results(rows[position:])
            position += len(results)
            exchange = _exchange(row, results, row.turn == turn)
            messages += exchange
            if len(exchange) <= len(row.tool_calls):
                break
    return messages


def open_calls(rows: Sequence[MessageRow]) -> tuple[ToolCall, ...]:
    """The calls of a turn's last assistant message that never started, in the model's order."""
    last = next((i for i in reversed(range(len(rows))) if rows[i].role == "assistant"), None)
    if last is None:
        return ()
    waiting = {row.tool_call_id for row in _results(rows[last + 1 :]) if row.content is None and row.started is None}
    return tuple(call for call in rows[last].tool_calls if call.id in waiting)


def _results(rows: Iterable[MessageRow]) -> list[MessageRow]:
    results = []
    for row in rows:
        if row.role != "tool":
            break
        results.append(row)
    return results


def _exchange(row: MessageRow, results: Sequence[MessageRow], running: bool) -> list[Message]:
    by_id = {result.tool_call_id: result for result in results}
    content = f"{row.content or ''} {CUT_SHORT}" if row.interrupted else row.content or ""
    messages = [Message("assistant", content, tool_calls=row.tool_calls)]
    for call in row.tool_calls:
        result = by_id.get(call.id)
        if result is not None and result.content is None and result.started is None and running:
            continue  # the loop runs it and appends its result
        content = NEVER_FINISHED if result is None or result.content is None else result.content
        messages.append(Message("tool", content, tool_call_id=call.id, name=call.name))
    return messages


def user_text(row: InboxRow, *, named: bool) -> str:
    """What the model reads of an inbound: its text, behind a line for each thing that came with it.

    named: where several people speak, behind the name of who says it.
    """
    lines = [_described(attachment) for attachment in row.attachments]
    text = "\n".join([*lines, row.text]).strip() or "[an empty message]"
    return f"{row.sender_name or row.sender}: {text}" if named and row.shared else text


def _described(attachment: Attachment) -> str:
    details = [detail for detail in (attachment.name, attachment.mime) if detail]
    if attachment.size is not None:
        details.append(f"{attachment.size} bytes")
    return f"[the user sent a {attachment.kind}{': ' + ', '.join(details) if details else ''}]"
