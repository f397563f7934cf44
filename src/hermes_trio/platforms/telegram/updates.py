"""An Update of the Bot API to an inbound message, or to nothing. Pure.

A batch of getUpdates is read element by element. What is a user's message becomes an Inbound; what is none (a service
message, an edit, a bot's message, a membership change) becomes nothing. Of a message only what a turn needs must be
right: the chat, the message id, the sender and, if there is one, the text. The rest is taken where it is well formed
and left out where it is not.

The rule that must not be broken: whatever a batch holds, reading it raises nothing and loses no message. What cannot
be understood becomes an Inbound with its escaped payload in `unreadable`.

Edits of a message that was received are no new turn: they are left out, and the turn keeps the words it began with.

Sources: Telegram Bot API, "Update", "Message", "MessageEntity".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from hermes_trio.platforms.base import JSON, Attachment, Inbound
from hermes_trio.text.repair import repair
from hermes_trio.values import Address

PAYLOAD_LIMIT = 4000
"""Characters of an unreadable payload that are kept; enough to see what it was."""

NAME_LIMIT = 128
"""Characters of a name that are kept; Telegram's own limit is 64 for each of first and last name."""

UNKNOWN_CHAT = "unknown"
"""The chat of an unreadable payload that names none; no chat of Telegram has this id."""

_INT64 = 2**63


@frozen
class Identity:
    """Who the bot is, by getMe."""

    user_id: int
    username: str
    name: str = ""
    """What people call it; a message in a group that begins with it speaks to the bot."""
    commands: frozenset[str] | None = None
    """The bot's commands, without the slash: in a group these are for it also without its name. None: any."""


@frozen
class Batch:
    """What one answer of getUpdates holds for us."""

    inbound: tuple[Inbound, ...]
    next_offset: int | None
    """The offset that confirms it all; None when no element has a usable update id."""


class _Malformed(Exception):
    """A part without which the message cannot be understood is missing or of the wrong kind."""


def read_batch(result: list[Any], account: str, me: Identity) -> Batch:
    """Reads the `result` of getUpdates. Raises nothing, whatever is in it."""
    ids = [update["update_id"] for update in result if _has_id(update)]
    inbound = (read_update(update, account, me) for update in result)
    return Batch(
        inbound=tuple(message for message in inbound if message is not None),
        next_offset=max(ids) + 1 if ids else None,
    )


def read_update(update: object, account: str, me: Identity) -> Inbound | None:
    """The user's message in an Update, or None when it holds none. Raises nothing, whatever it is."""
    if isinstance(update, dict) and "message" not in update:
        return None
    message = update.get("message") if isinstance(update, dict) else None
    try:
        return _read_message(message, account, me)
    except _Malformed:
        return _unreadable(update, message, account, me)


def _has_id(update: object) -> bool:
    return isinstance(update, dict) and type(update.get("update_id")) is int and 0 <= update["update_id"] < _INT64


# -- one message --------------------------------------------------------------------------------------------------


def _read_message(message: object, account: str, me: Identity) -> Inbound | None:
    if not isinstance(message, dict):
        raise _Malformed
    sender = _sender(message, me)
    if sender is None or not _SERVICE.isdisjoint(message):
        return None
    chat = message.get("chat")
    if not isinstance(chat, dict):
        raise _Malformed
    chat_id, message_id = _integer(chat.get("id")), _integer(message.get("message_id"))
    text = message.get("text", message.get("caption", ""))
    if not isinstance(text, str):
        raise _Malformed
    marks = _marks(message, text)
    private = chat.get("type") == "private" or (chat.get("type") is None and chat_id > 0)
    group = message.get("media_group_id")
    return Inbound(
        address=Address(account, str(chat_id), _thread(message)),
        native_id=str(message_id),
        sender=sender[0],
        sender_name=sender[1],
        text=repair(_without_own_name(text, marks, me)),
        attachments=_attachments(message),
        anchor=None if private else str(message_id),
        direct=private or _addressed(message, marks, me),
        group=repair(group)[:NAME_LIMIT] if isinstance(group, str) and group else None,
        shared=not private,
        sent_at=float(date) if type(date := message.get("date")) is int and 0 <= date < _INT64 else None,
    )


def _sender(message: JSON, me: Identity) -> tuple[str, str] | None:
    """The id and name of who speaks; None for this and other bots. Raises _Malformed when nobody does.

    A message in the name of a chat (an anonymous administrator, a linked channel) is sent by a stand-in account that
    is marked as a bot: there the chat is the sender, so it is looked at first.
    """
    chat, user = message.get("sender_chat"), message.get("from")
    if isinstance(chat, dict) and type(chat.get("id")) is int:
        return str(chat["id"]), _name(chat)
    if not isinstance(user, dict):
        raise _Malformed
    if user.get("is_bot") is True or user.get("id") == me.user_id:
        return None
    return str(_integer(user.get("id"))), _name(user)


def _name(who: JSON) -> str:
    """A readable name of a user or chat on one line; empty when it has none."""
    parts = [part for key in ("title", "first_name", "last_name") if isinstance(part := who.get(key), str)]
    name = " ".join(repair(" ".join(parts)).split())
    username = who.get("username")
    if not name and isinstance(username, str):
        name = "@" + repair(username)
    return name[:NAME_LIMIT]


def _thread(message: JSON) -> str:
    """The topic; messages of the General topic and replies outside topics stand in none."""
    thread = message.get("message_thread_id")
    usable = message.get("is_topic_message") is True and type(thread) is int and 0 < thread < _INT64
    return str(thread) if usable else ""


def _integer(value: object) -> int:
    """A number that Telegram may use as an id. Raises _Malformed for anything else."""
    if type(value) is not int or not -_INT64 <= value < _INT64:
        raise _Malformed
    return value


# -- whom it is for -----------------------------------------------------------------------------------------------


@frozen
class _Mark:
    """An entity that may say whom the message is for."""

    kind: str
    at: int
    """UTF-16 units from the start of the text."""
    text: str
    user_id: object


def _marks(message: JSON, text: str) -> tuple[_Mark, ...]:
    """The mentions and commands in a text or caption. Entities that are not well formed are left out."""
    found = message.get("entities" if "text" in message else "caption_entities")
    return tuple(_read_marks(found, text.encode("utf-16-le", "surrogatepass"))) if isinstance(found, list) else ()


def _read_marks(found: list[Any], units: bytes) -> Iterable[_Mark]:
    for entity in found:
        if not isinstance(entity, dict) or entity.get("type") not in ("mention", "text_mention", "bot_command"):
            continue
        start, length = entity.get("offset"), entity.get("length")
        if type(start) is not int or type(length) is not int or start < 0 or length <= 0 or 2 * start >= len(units):
            continue
        user = entity.get("user")
        piece = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
        yield _Mark(entity["type"], start, piece, user.get("id") if isinstance(user, dict) else None)


def _addressed(message: JSON, marks: tuple[_Mark, ...], me: Identity) -> bool:
    """Whether a message in a group speaks to the bot: by a command, a mention, its name, or as a reply to it.

    A command decides alone: `/stop@other` is for the other one, even as a reply to this bot.
    """
    own = f"@{me.username}".lower()
    command = _command(marks)
    if command is not None:
        name, at, addressee = command.partition("@")
        if at:
            return addressee.lower() == me.username.lower()
        return me.commands is None or name[1:].lower() in me.commands
    if any(mark.user_id == me.user_id or (mark.kind == "mention" and mark.text.lower() == own) for mark in marks):
        return True
    if _begins_with_name(message, me):
        return True
    answered = message.get("reply_to_message")
    # In a topic every message answers the service message that made the topic, and the bot may have made it.
    if not isinstance(answered, dict) or not _SERVICE.isdisjoint(answered):
        return False
    author = answered.get("from")
    return isinstance(author, dict) and author.get("id") == me.user_id


def _begins_with_name(message: JSON, me: Identity) -> bool:
    text = str(message.get("text", message.get("caption", "")))
    words = re.split(r"[\s,:;.!?]+", text.strip() + " ", maxsplit=len(me.name.split()))
    return bool(me.name) and [word.casefold() for word in words[:-1]] == me.name.casefold().split()


def _command(marks: tuple[_Mark, ...]) -> str | None:
    return next((mark.text for mark in marks if mark.kind == "bot_command" and mark.at == 0), None)


def _without_own_name(text: str, marks: tuple[_Mark, ...], me: Identity) -> str:
    """The text with `/command@ourname` at its start shortened to `/command`."""
    command = _command(marks)
    name, at, addressee = (command or "").partition("@")
    if command and at and addressee.lower() == me.username.lower() and text.startswith(command):
        return name + text[len(command) :]
    return text


# -- what came with it --------------------------------------------------------------------------------------------

_FILES = {
    "animation": "animation",
    "audio": "audio",
    "document": "file",
    "photo": "photo",
    "sticker": "sticker",
    "video": "video",
    "video_note": "video note",
    "voice": "voice",
}
"""Fields of a message that hold a file, and what it is called."""

_OTHERS = (
    "venue",
    "location",
    "contact",
    "poll",
    "dice",
    "story",
    "checklist",
    "game",
    "invoice",
    "giveaway",
    "giveaway_winners",
    "paid_media",
)
"""Fields of a message that hold something to tell but nothing to fetch."""

_COVERED = {"animation": "document", "venue": "location"}
"""Fields that come along for old clients and repeat another one."""

_NOTICES = """
new_chat_members new_chat_member left_chat_member chat_owner_left chat_owner_changed new_chat_title new_chat_photo
delete_chat_photo group_chat_created supergroup_chat_created channel_chat_created migrate_to_chat_id
migrate_from_chat_id message_auto_delete_timer_changed pinned_message successful_payment refunded_payment
users_shared chat_shared gift unique_gift gift_upgrade_sent connected_website write_access_allowed passport_data
proximity_alert_triggered boost_added chat_background_set checklist_tasks_done checklist_tasks_added
direct_message_price_changed forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened
general_forum_topic_hidden general_forum_topic_unhidden giveaway_created giveaway_completed managed_bot_created
paid_message_price_changed poll_option_added poll_option_deleted suggested_post_approved
suggested_post_approval_failed suggested_post_declined suggested_post_paid suggested_post_refunded
video_chat_scheduled video_chat_started video_chat_ended video_chat_participants_invited web_app_data
"""
_SERVICE = frozenset(_NOTICES.split())
"""Fields that make a message a notice of the platform and not something that a user says."""


def _attachments(message: JSON) -> tuple[Attachment, ...]:
    """Everything in a message that is not text.

    A message with neither is of a kind that is newer than these lists; it then counts as an attachment of the kind
    "unknown", so that the user hears that it was not understood.
    """
    covered = {_COVERED[key] for key in _COVERED if key in message}
    files = [_file(kind, message[key]) for key, kind in _FILES.items() if key in message and key not in covered]
    others = [_other(key, message[key]) for key in _OTHERS if key in message and key not in covered]
    if not files and not others and not message.get("text"):
        return (Attachment("unknown", ""),)
    return (*files, *others)


def _file(kind: str, value: object) -> Attachment:
    """A file; of a photo, which comes in several sizes, the largest."""
    if isinstance(value, list):
        sizes = [size for size in value if isinstance(size, dict)]
        value = max(sizes, key=_area) if sizes else {}
    held = value if isinstance(value, dict) else {}
    size = held.get("file_size")
    return Attachment(
        kind=kind,
        reference=_string(held, "file_id", 1024),
        name=_string(held, "file_name") or _string(held, "title") or _string(held, "emoji"),
        mime=_string(held, "mime_type"),
        size=size if type(size) is int and 0 <= size < _INT64 else None,
    )


def _area(size: JSON) -> int:
    width, height = size.get("width"), size.get("height")
    return width * height if type(width) is int and type(height) is int else 0


def _other(key: str, value: object) -> Attachment:
    """Something to tell; its name says in short what it is."""
    held: JSON = value if isinstance(value, dict) else {}
    match key:
        case "location":
            name = _numbers(held, "latitude", "longitude")
        case "venue":
            name = ", ".join(filter(None, (_string(held, "title"), _string(held, "address"))))
        case "contact":
            name = " ".join(filter(None, (_name(held), _string(held, "phone_number"))))
        case "poll":
            name = _string(held, "question")
        case "dice":
            name = f"{_string(held, 'emoji')} {_numbers(held, 'value')}".strip()
        case _:
            name = _string(held, "title")
    return Attachment(kind=key.replace("_", " "), reference="", name=name)


def _string(held: JSON, key: str, limit: int = 512) -> str:
    value = held.get(key)
    return repair(value)[:limit] if isinstance(value, str) else ""


def _numbers(held: JSON, *keys: str) -> str:
    values = (held.get(key) for key in keys)
    numbers = [value for value in values if isinstance(value, float) or (type(value) is int and abs(value) < _INT64)]
    return ", ".join(map(str, numbers)) if len(numbers) == len(keys) else ""


# -- what is not understood ---------------------------------------------------------------------------------------


def _unreadable(update: object, message: object, account: str, me: Identity) -> Inbound:
    """The payload itself, where the chat and the sender are known under them."""
    held: JSON = message if isinstance(message, dict) else {}
    payload = _escaped(update)
    try:
        chat = held.get("chat")
        address = Address(account, str(_integer(chat.get("id") if isinstance(chat, dict) else None)), _thread(held))
    except _Malformed:
        chat, address = None, Address(account, UNKNOWN_CHAT)
    try:
        sender = _sender(held, me)
    except _Malformed:
        sender = None
    digest = hashlib.blake2b(payload.encode(), digest_size=12).hexdigest()
    return Inbound(
        address=address,
        native_id=f"update:{update['update_id']}" if isinstance(update, dict) and _has_id(update) else f"lost:{digest}",
        sender=sender[0] if sender else "",
        sender_name=sender[1] if sender else "",
        text="",
        direct=isinstance(chat, dict) and chat.get("type") == "private",
        unreadable=payload[:PAYLOAD_LIMIT],
    )


def _escaped(value: object) -> str:
    """ASCII that shows the value; lone surrogates and everything beyond are escapes in it."""
    try:
        return json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return f"a {type(value).__name__} that JSON cannot hold"
