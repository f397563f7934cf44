"""What an answer of the Bot API means: (method, status, headers, body) to an outcome. Pure.

Telegram tells its errors apart by an English description only, so the tables below hold lower-case pieces of those
descriptions, the first hit counts, and each kind of method has its own table: what is a missing anchor for a create
is a missing message for an edit.

The rule that must not be broken: only an answer in Telegram's own envelope, with a 4xx code, declines a request (and
429 and 413, which a proxy may say as well). Everything else that is no acceptance is Unknown.

Sources: Telegram Bot API, "Making requests", "ResponseParameters"; the descriptions are those of the server's source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown

CREATE = "sendMessage"
EDIT = "editMessageText"
DELETE = "deleteMessage"

DEFAULT_RETRY_AFTER = 5.0
"""Seconds to wait after a 429 that does not say for how long; as long as the shortest waits that Telegram gives."""

DETAIL_LIMIT = 200
"""Characters of a description that are kept; Telegram's own are shorter, a proxy's page is not."""


@frozen
class Envelope:
    """An answer in the Bot API's own form."""

    ok: bool
    code: int
    """The error code; for an accepted request the HTTP status."""
    result: Any
    description: str
    parameters: Mapping[str, Any]


DIGITS_LIMIT = 20
"""Characters of a whole number that is read as one; no number of 64 bits is longer."""


def decode(body: bytes) -> Any:
    """The JSON value in `body`. Raises ValueError when there is none.

    One odd element must not make a whole batch of updates unreadable for ever: wrong UTF-8 is replaced, and a whole
    number that is too long for anything becomes infinite.
    """
    try:
        return json.loads(body.decode("utf-8", "replace"), parse_int=_whole_number)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= DIGITS_LIMIT else math.inf


def envelope(status: int, body: bytes) -> Envelope | None:
    """The answer's envelope, or None when it is not one: a proxy's page, half an answer, another service."""
    try:
        data = decode(body)
    except ValueError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("ok"), bool):
        return None
    code, parameters, description = data.get("error_code"), data.get("parameters"), data.get("description")
    return Envelope(
        ok=data["ok"],
        code=code if type(code) is int and not data["ok"] else status,
        result=data.get("result"),
        description=description if isinstance(description, str) else "",
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def retry_after(headers: Mapping[str, str], found: Envelope | None) -> float:
    """Seconds that a 429 asks to wait: the longest that it names (body or header), or DEFAULT_RETRY_AFTER."""
    named = [found.parameters.get("retry_after") if found else None, headers.get("retry-after")]
    waits = [wait for wait in map(_seconds, named) if wait is not None]
    return max(waits) if waits else DEFAULT_RETRY_AFTER


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def classify(method: str, status: int, headers: Mapping[str, str], body: bytes) -> Outcome:
    """The outcome of a request that was answered with this status and body.

    method: the Bot API's name of it. headers: lower-case names. An accepted create without a message id is Unknown:
    it happened, but there is no receipt to edit.
    """
    found = envelope(status, body)
    if status == 429 or (found is not None and not found.ok and found.code in (420, 429) and status < 500):
        detail = _cut(found.description if found else "")
        return Refused(Reason.RATE_LIMITED, retry_after=retry_after(headers, found), scope="bucket", detail=detail)
    if status == 413:
        return Refused(Reason.TOO_LONG, detail=_cut(found.description if found else "the request is too large"))
    if found is None or status >= 500:
        return Unknown(f"{method} was answered with status {status}" + (" and no envelope" if found is None else ""))
    if found.ok and 200 <= status < 300:
        return _accepted(method, found.result)
    if not found.ok and 400 <= found.code < 500:
        return _declined(method, found)
    return Unknown(f"{method} was answered with status {status}, code {found.code}")


def _accepted(method: str, result: object) -> Outcome:
    if method != CREATE:
        return Accepted()
    message_id = result.get("message_id") if isinstance(result, dict) else None
    if type(message_id) is not int:
        return Unknown("sendMessage was accepted without a message id")
    return Accepted(message_id=str(message_id))


def _declined(method: str, found: Envelope) -> Outcome:
    detail = _cut(found.description)
    if found.code in (401, 404):
        return _fatal(detail)
    moved_to = found.parameters.get("migrate_to_chat_id")
    if type(moved_to) is int:
        return Refused(Reason.MOVED, scope="address", moved_to=str(moved_to), detail=detail)
    if found.code == 413:
        return Refused(Reason.TOO_LONG, detail=detail)
    text = found.description.lower()
    for pieces, meaning in _TABLES.get(method, _COMMON):
        if any(piece in text for piece in pieces):
            return meaning(detail)
    if found.code == 403:
        return _dead(detail) if method == CREATE else _of(Reason.FORBIDDEN)(detail)
    return Refused(Reason.CONTENT, detail=detail)


def _cut(description: str) -> str:
    return description[:DETAIL_LIMIT]


Meaning = Callable[[str], Outcome]
Table = tuple[tuple[tuple[str, ...], Meaning], ...]


def _of(reason: Reason) -> Meaning:
    return lambda detail: Refused(reason, detail=detail)


def _dead(detail: str) -> Outcome:
    return Refused(Reason.DEAD_ADDRESS, scope="address", detail=detail)


def _fatal(detail: str) -> Outcome:
    return Refused(Reason.ACCOUNT_FATAL, scope="account", detail=detail)


def _fine(detail: str) -> Outcome:
    return Accepted()


_DEAD: tuple[str, ...] = (
    "chat not found",
    "chat_id is empty",
    "chat_id_invalid",
    "user not found",
    "peer_id_invalid",
    "bot was blocked",
    "user_is_blocked",
    "user is deactivated",
    "input_user_deactivated",
    "can't initiate conversation",
    "bot was kicked",
    "not a member",
    "group chat was deleted",
    "chat was deactivated",
    "group chat was upgraded",
    "can't send messages to bots",
    "can't send messages to the bot",
    "user_is_bot",
    "channel_private",
    "chat_forbidden",
)
"""The chat takes nothing from this bot, whatever the method."""

_MUTED: tuple[str, ...] = (
    "not enough rights",
    "no rights to send",
    "need administrator rights",
    "chat_write_forbidden",
    "chat_send_plain_forbidden",
    "chat_admin_required",
    "chat_restricted",
    "chat_guest_send_forbidden",
    "user_banned_in_channel",
)
"""The bot is in the chat and may not speak there."""

_COMMON: Table = (
    (("logged out",), _fatal),
    (_DEAD, _dead),
    (("message is too long", "text is too long", "message_too_long"), _of(Reason.TOO_LONG)),
    (("can't parse", "entit"), _of(Reason.FORMATTING)),
    (("must be non-empty", "text is empty", "message_empty"), _of(Reason.CONTENT)),
)

_TABLES: Mapping[str, Table] = {
    CREATE: (
        # The anchor is the only message that a create names.
        (
            ("replied not found", "reply message not found", "replied message not found", "message_id_invalid"),
            _of(Reason.ANCHOR_GONE),
        ),
        (("reply_to_invalid",), _of(Reason.ANCHOR_GONE)),
        (("thread not found", "topic_deleted", "topic_closed", "topic_id_invalid"), _of(Reason.TOPIC_GONE)),
        (_MUTED, _dead),
        *_COMMON,
    ),
    EDIT: (
        (("message is not modified", "message_not_modified"), _fine),
        # A deleted topic took its messages along; "topic gone" is an answer for a create, which can go elsewhere.
        (
            ("message to edit not found", "message_id_invalid", "thread not found", "topic_deleted"),
            _of(Reason.NOT_FOUND),
        ),
        (
            ("can't be edited", "message_edit_time_expired", "message_author_required", "topic_closed"),
            _of(Reason.FORBIDDEN),
        ),
        (_MUTED, _of(Reason.FORBIDDEN)),
        *_COMMON,
    ),
    DELETE: (
        (
            ("message to delete not found", "message_id_invalid", "thread not found", "topic_deleted"),
            _of(Reason.NOT_FOUND),
        ),
        (("can't be deleted", "message_delete_forbidden", "topic_closed"), _of(Reason.FORBIDDEN)),
        (_MUTED, _of(Reason.FORBIDDEN)),
        (_DEAD, _dead),
        # Whatever else declines a delete, the message stays where it is.
        (("",), _of(Reason.FORBIDDEN)),
    ),
}
"""Pieces of descriptions by method, in the order in which they count."""
