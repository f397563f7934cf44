"""What the fake knows: chats, messages, files, and what it tells a test about them.

A message is a frozen value; the chat that holds it is what changes.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

JSON = dict[str, Any]

NOT_FOUND_CHAT = "Bad Request: chat not found"
BLOCKED = "Forbidden: bot was blocked by the user"
DEACTIVATED = "Forbidden: user is deactivated"
UPGRADED = "Bad Request: group chat was upgraded to a supergroup chat"


class ApiError(Exception):
    """What a method answers instead of a result. `parameters` may hold retry_after and migrate_to_chat_id."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


@frozen
class ScreenMessage:
    """One message as it is visible now."""

    message_id: int
    chat_id: int
    text: str
    """The text, or the caption of a medium."""
    date: int
    """Unix time of the sending."""
    from_bot: bool
    sender: int
    """The id of the user or bot that sent it."""
    entities: tuple[JSON, ...] = ()
    reply_to: int | None = None
    thread: int | None = None
    edits: int = 0
    edit_date: int | None = None
    kind: str = "text"
    """text, photo, voice, sticker, document."""
    markup: JSON | None = None
    """The reply_markup as the bot gave it."""
    extra: JSON = field(factory=dict)
    """Further fields of the Message object: the medium, media_group_id."""

    @property
    def buttons(self) -> tuple[str, ...]:
        """The texts of the inline keyboard, row by row."""
        rows = (self.markup or {}).get("inline_keyboard", [])
        return tuple(button["text"] for row in rows for button in row)


@define(eq=False)
class Chat:
    """A chat and everything visible in it."""

    id: int
    kind: str
    """private, group or supergroup."""
    title: str
    forum: bool = False
    threads: dict[int, str] = field(factory=dict)
    """Topics of a forum: id and name."""
    messages: dict[int, ScreenMessage] = field(factory=dict)
    trouble: ApiError | None = None
    """What the bot gets instead of any answer here: blocked, kicked, migrated, ..."""
    typing_until: float = float("-inf")
    """On trio's clock."""

    def payload(self) -> JSON:
        """The Chat object of the API."""
        if self.kind == "private":
            return {"id": self.id, "type": "private", "first_name": self.title, "username": self.title}
        payload: JSON = {"id": self.id, "type": self.kind, "title": self.title}
        return {**payload, "is_forum": True} if self.forum else payload


@frozen
class StoredFile:
    """A file that a user sent."""

    file_id: str
    path: str
    content: bytes

    def payload(self) -> JSON:
        """The File object of the API."""
        unique = f"u{self.file_id}"
        return {
            "file_id": self.file_id,
            "file_unique_id": unique,
            "file_size": len(self.content),
            "file_path": self.path,
        }


@frozen
class Accepted:
    """One request of the bot that changed something."""

    time: float
    """When it took effect, on trio's clock."""
    method: str
    args: JSON
    chat_id: int | None
    message_id: int | None


@define(eq=False)
class Pressed:
    """A press of an inline button and what the bot answered."""

    id: str
    data: str
    date: float
    """On trio's clock."""
    answered: bool = False
    answer: str = ""
    """The text that the user sees on top of the screen."""
