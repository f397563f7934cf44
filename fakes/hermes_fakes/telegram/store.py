"""Everything that the fake Telegram remembers, and the shapes in which the Bot API shows it.

Message ids: private chats and basic groups share one counter, a supergroup has its own, as on Telegram. So an id
alone says nothing without its chat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import attrs
import trio
from attrs import define, field

from hermes_fakes.telegram.limits import Meter
from hermes_fakes.telegram.updates import Updates
from hermes_fakes.telegram.values import JSON, Accepted, ApiError, Chat, Pressed, ScreenMessage, StoredFile


@define(eq=False)
class Store:
    """The state. It changes only through the bot's methods and the people."""

    bot_id: int
    bot_name: str
    epoch: float
    """Unix time of the fake's first moment."""
    message_ids: Iterator[int]
    updates: Updates
    meter: Meter
    chats: dict[int, Chat] = field(factory=dict)
    """Also private chats; one of those exists from the user's first message on."""
    names: dict[int, str] = field(factory=dict)
    """Of every person, by id."""
    history: list[Accepted] = field(factory=list)
    files: dict[str, StoredFile] = field(factory=dict)
    presses: dict[str, Pressed] = field(factory=dict)
    commands: dict[tuple[str, str], list[JSON]] = field(factory=dict)
    webhook: str = ""
    """Its URL; empty: none."""
    written: dict[int, list[tuple[int, int]]] = field(factory=dict)
    """Of every sender: chat id and message id of all messages, oldest first."""
    _counters: dict[int, Iterator[int]] = field(factory=dict)
    _born: float | None = None

    def now(self) -> int:
        """Unix time, from trio's clock."""
        if self._born is None:
            self._born = trio.current_time()
        return int(self.epoch + trio.current_time() - self._born)

    @staticmethod
    def trio_now() -> float:
        return trio.current_time()

    def next_message_id(self, chat: Chat) -> int:
        if chat.kind != "supergroup":
            return next(self.message_ids)
        return next(self._counters.setdefault(chat.id, itertools.count(1)))

    def chat_for_bot(self, chat_id: Any) -> Chat:
        """The chat, when the bot may act in it; else the ApiError that Telegram gives."""
        if chat_id is None or chat_id == "":
            raise ApiError(400, "Bad Request: chat_id is empty")
        try:
            chat = self.chats[int(chat_id)]
        except (KeyError, ValueError, TypeError):
            raise ApiError(400, "Bad Request: chat not found") from None
        if chat.trouble is not None:
            raise ApiError(chat.trouble.code, chat.trouble.description, **chat.trouble.parameters)
        return chat

    def add(self, chat: Chat, text: str, *, sender: int, **details: Any) -> ScreenMessage:
        """A new message at the end of the chat."""
        message = ScreenMessage(
            message_id=self.next_message_id(chat),
            chat_id=chat.id,
            text=text,
            date=self.now(),
            from_bot=sender == self.bot_id,
            sender=sender,
            **details,
        )
        chat.messages[message.message_id] = message
        self.written.setdefault(sender, []).append((chat.id, message.message_id))
        return message

    def change(self, message: ScreenMessage, **changes: Any) -> ScreenMessage:
        """The message with other contents, as one edit."""
        edited = attrs.evolve(message, edits=message.edits + 1, edit_date=self.now(), **changes)
        self.chats[message.chat_id].messages[message.message_id] = edited
        return edited

    def bot_payload(self) -> JSON:
        return {"id": self.bot_id, "is_bot": True, "first_name": self.bot_name, "username": self.bot_name}

    def author_payload(self, user_id: int) -> JSON:
        if user_id == self.bot_id:
            return self.bot_payload()
        name = self.names[user_id]
        return {"id": user_id, "is_bot": False, "first_name": name, "username": name, "language_code": "en"}

    def payload(self, message: ScreenMessage, *, nested: bool = True) -> JSON:
        """The Message object of the API."""
        chat = self.chats[message.chat_id]
        payload: JSON = {
            "message_id": message.message_id,
            "date": message.date,
            "chat": chat.payload(),
            "from": self.author_payload(message.sender),
            **message.extra,
        }
        text, spans = ("text", "entities") if message.kind == "text" else ("caption", "caption_entities")
        if message.text:
            payload[text] = message.text
        if message.entities:
            payload[spans] = list(message.entities)
        if message.edit_date is not None:
            payload["edit_date"] = message.edit_date
        if message.thread is not None:
            payload |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.markup and "inline_keyboard" in message.markup:
            payload["reply_markup"] = message.markup
        target = chat.messages.get(message.reply_to) if message.reply_to is not None else None
        if nested and target is not None:
            payload["reply_to_message"] = self.payload(target, nested=False)
        return payload
