"""The people who chat with the bot: what a test makes them do.

Every act that Telegram reports to bots returns the id of its update.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import frozen

from hermes_fakes.telegram.store import Store
from hermes_fakes.telegram.texts import units
from hermes_fakes.telegram.values import (
    BLOCKED,
    DEACTIVATED,
    JSON,
    ApiError,
    Chat,
    Pressed,
    ScreenMessage,
    StoredFile,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMAND = re.compile(r"(?<![\w/])/[A-Za-z0-9_]{1,32}(?:@[A-Za-z0-9_]+)?")
_MENTION = re.compile(r"(?<![\w@/])@[A-Za-z0-9_]{3,32}")


@frozen(eq=False)
class User:
    """One person. `chat` is the id of the private chat with the bot, which exists from the first message on."""

    name: str
    id: int
    _store: Store
    _changed: Callable[[], None]

    @property
    def chat(self) -> int:
        return self.id

    @property
    def last(self) -> ScreenMessage:
        """The newest visible message of this user, in any chat."""
        for chat_id, message_id in reversed(self._store.written.get(self.id, [])):
            if (message := self._store.chats[chat_id].messages.get(message_id)) is not None:
                return message
        raise AssertionError(f"{self.name} has written nothing that is still visible")

    # --- writing --------------------------------------------------------------------------------------------------

    def says(
        self,
        text: str,
        *,
        chat: Chat | int | None = None,
        reply_to: ScreenMessage | int | None = None,
        thread: int | None = None,
        entities: list[JSON] | None = None,
    ) -> int:
        """Writes a message, by default in the private chat. Commands and mentions become entities by themselves."""
        found = _found_entities(text) if entities is None else tuple(entities)
        return self._send(chat, text, found, "text", {}, reply_to, thread)

    def sends_photo(
        self, caption: str = "", content: bytes = b"\xff\xd8\xff", *, chat: Chat | int | None = None, **more: Any
    ) -> int:
        """`more`: reply_to, thread, album (a media_group_id), here and in the other senders."""
        file = self._upload(content, "photos", "jpg")
        size = {**_reference(file), "width": 90, "height": 90}
        return self._send_medium(chat, caption, "photo", [size], more)

    def sends_voice(
        self, content: bytes = b"OggS", *, caption: str = "", chat: Chat | int | None = None, **more: Any
    ) -> int:
        voice = {**_reference(self._upload(content, "voice", "oga")), "duration": 2, "mime_type": "audio/ogg"}
        return self._send_medium(chat, caption, "voice", voice, more)

    def sends_document(
        self,
        name: str = "file.txt",
        content: bytes = b"text",
        *,
        caption: str = "",
        mime: str = "text/plain",
        chat: Chat | int | None = None,
        **more: Any,
    ) -> int:
        file = self._upload(content, "documents", name.rpartition(".")[2] or "bin")
        document = {**_reference(file), "file_name": name, "mime_type": mime}
        return self._send_medium(chat, caption, "document", document, more)

    def sends_sticker(self, emoji: str = "\N{GRINNING FACE}", *, chat: Chat | int | None = None, **more: Any) -> int:
        file = self._upload(b"RIFF", "stickers", "webp")
        kind = {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False}
        return self._send_medium(chat, "", "sticker", {**_reference(file), **kind, "emoji": emoji}, more)

    def sends_album(
        self, *contents: bytes, caption: str = "", chat: Chat | int | None = None, **more: Any
    ) -> list[int]:
        """Several photos as one album: one update each, the caption on the first."""
        group = f"album{len(self._store.files) + 1}"
        return [
            self.sends_photo(caption if index == 0 else "", content, chat=chat, album=group, **more)
            for index, content in enumerate(contents)
        ]

    def sends_anything(self, kind: str, payload: Any, *, chat: Chat | int | None = None, **more: Any) -> int:
        """A message of a kind that has no sender of its own: location, contact, dice, poll, ..."""
        return self._send_medium(chat, "", kind, payload, more)

    def edits(self, text: str, message: ScreenMessage | int | None = None, *, chat: Chat | int | None = None) -> int:
        """Changes an own message, by default the newest."""
        found = self.last if message is None else self._message(message, chat)
        edited = self._store.change(found, text=text, entities=_found_entities(text))
        return self._report("edited_message", self._store.payload(edited))

    # --- acting ---------------------------------------------------------------------------------------------------

    def deletes(self, message: ScreenMessage | int, *, chat: Chat | int | None = None) -> None:
        """Removes any message from the screen. Telegram tells the bot nothing."""
        found = self._message(message, chat)
        del self._store.chats[found.chat_id].messages[found.message_id]
        self._changed()

    def blocks(self) -> int:
        """Blocks the bot: it gets 403 from now on."""
        chat = self._open_chat(None)
        chat.trouble = ApiError(403, BLOCKED)
        return self._report_membership(chat, "member", "kicked")

    def unblocks(self) -> int:
        chat = self._open_chat(None)
        chat.trouble = None
        return self._report_membership(chat, "kicked", "member")

    def deactivates(self) -> None:
        """The account is closed: the bot gets 403 from now on."""
        self._open_chat(None).trouble = ApiError(403, DEACTIVATED)
        self._changed()

    def presses(
        self, button: str, *, message: ScreenMessage | int | None = None, chat: Chat | int | None = None
    ) -> Pressed:
        """Presses the inline button with this text or callback data, on the newest message that has it."""
        place = self._store.chats[self._chat_id(chat)]
        candidates = reversed(place.messages.values()) if message is None else [self._message(message, chat)]
        for candidate in candidates:
            for row in (candidate.markup or {}).get("inline_keyboard", []):
                for key in row:
                    if button in (key["text"], key.get("callback_data")):
                        return self._press(candidate, str(key.get("callback_data", "")))
        raise AssertionError(f"no message on the screen has a button {button!r}")

    # --- within ---------------------------------------------------------------------------------------------------

    def _chat_id(self, chat: Chat | int | None) -> int:
        return self.id if chat is None else chat.id if isinstance(chat, Chat) else chat

    def _open_chat(self, chat: Chat | int | None) -> Chat:
        number = self._chat_id(chat)
        if number == self.id and number not in self._store.chats:
            self._store.chats[number] = Chat(number, "private", self.name)
        return self._store.chats[number]

    def _message(self, message: ScreenMessage | int, chat: Chat | int | None) -> ScreenMessage:
        if isinstance(message, ScreenMessage):
            return self._store.chats[message.chat_id].messages[message.message_id]
        return self._store.chats[self._chat_id(chat)].messages[message]

    def _send(
        self,
        chat: Chat | int | None,
        text: str,
        entities: tuple[JSON, ...],
        kind: str,
        extra: JSON,
        reply_to: ScreenMessage | int | None,
        thread: int | None,
    ) -> int:
        place = self._open_chat(chat)
        if thread is not None and thread not in place.threads:
            raise AssertionError(f"the chat has no topic {thread}")
        target = reply_to.message_id if isinstance(reply_to, ScreenMessage) else reply_to
        message = self._store.add(
            place,
            text,
            sender=self.id,
            entities=entities,
            kind=kind,
            extra=extra,
            reply_to=target,
            thread=thread,
        )
        return self._report("message", self._store.payload(message))

    def _send_medium(self, chat: Chat | int | None, caption: str, kind: str, payload: Any, more: JSON) -> int:
        extra = {kind: payload}
        if album := more.get("album"):
            extra["media_group_id"] = album
        entities = _found_entities(caption)
        return self._send(chat, caption, entities, kind, extra, more.get("reply_to"), more.get("thread"))

    def _upload(self, content: bytes, folder: str, suffix: str) -> StoredFile:
        number = len(self._store.files) + 1
        file = StoredFile(f"file{number}", f"{folder}/file_{number}.{suffix}", content)
        self._store.files[file.file_id] = file
        return file

    def _press(self, message: ScreenMessage, data: str) -> Pressed:
        number = str(len(self._store.presses) + 1)
        pressed = Pressed(number, data, self._store.trio_now())
        self._store.presses[number] = pressed
        self._report(
            "callback_query",
            {
                "id": number,
                "from": self._store.author_payload(self.id),
                "message": self._store.payload(message),
                "chat_instance": str(message.chat_id),
                "data": data,
            },
        )
        return pressed

    def _report_membership(self, chat: Chat, old: str, new: str) -> int:
        bot = self._store.bot_payload()
        return self._report(
            "my_chat_member",
            {
                "chat": chat.payload(),
                "from": self._store.author_payload(self.id),
                "date": self._store.now(),
                "old_chat_member": {"user": bot, "status": old},
                "new_chat_member": {"user": bot, "status": new},
            },
        )

    def _report(self, kind: str, payload: JSON) -> int:
        number = self._store.updates.put(kind, payload)
        self._changed()
        return number


def _reference(file: StoredFile) -> JSON:
    return {name: value for name, value in file.payload().items() if name != "file_path"}


def _found_entities(text: str) -> tuple[JSON, ...]:
    """The commands and mentions that Telegram's servers would mark in a user's text."""
    found = [("bot_command", match) for match in _COMMAND.finditer(text)]
    found += [("mention", match) for match in _MENTION.finditer(text)]
    return tuple(
        {"type": kind, "offset": units(text[: match.start()]), "length": units(match.group())}
        for kind, match in sorted(found, key=lambda item: item[1].start())
    )
