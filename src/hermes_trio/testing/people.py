"""People and the model in the words of a test.

    alice = world.telegram.user("alice")
    world.model.says("Hello, Alice.")
    await alice.says("hi")
    await world.quiet()
    assert alice.sees() == ["Hello, Alice."]

Nothing here knows the bot: people see what the fake platform shows. The rule that must not be broken: what a person
sees is read from the fake, never from the bot's database.
"""

from __future__ import annotations

from typing import Any

import trio

from hermes_fakes.model import ModelFake, ModelRequest, Script
from hermes_fakes.telegram import ScreenMessage, TelegramFake, User
from hermes_trio.conversation.notices import RESTARTED

PLACEHOLDER = "…"
"""What a reserved message shows before there is any text, unless the configuration says otherwise."""


class Person:
    """Somebody who chats with the bot."""

    def __init__(self, fake: TelegramFake, user: User) -> None:
        self.fake = fake
        self.user = user
        """The fake's own view of this person, which can do more."""
        self.said: list[tuple[float, str]] = []
        """When, on trio's clock, and what."""

    @property
    def name(self) -> str:
        """What others call them."""
        return self.user.name

    async def says(self, text: str, **more: Any) -> int:
        """Writes a message, by default in the private chat; returns the id of its update."""
        self.said.append((trio.current_time(), text))
        update = self.user.says(text, **more)
        await trio.lowlevel.checkpoint()
        return update

    async def deletes(self, message: ScreenMessage) -> None:
        """Removes a message from the screen; the bot is not told."""
        self.user.deletes(message)
        await trio.lowlevel.checkpoint()

    def screen(self) -> list[ScreenMessage]:
        """Everything that is visible in the private chat now, in order."""
        return self.fake.screen(self.user)

    def sees(self) -> list[str]:
        """The texts of the bot that are on the screen now, in order."""
        return self.fake.bot_texts(self.user)

    def reads(self) -> list[str]:
        """Like `sees`, without reserved messages that stayed empty: the price of a crash on an editable wire."""
        return [text for text in self.sees() if text != PLACEHOLDER]


class TelegramSide:
    """Telegram, and the people on it."""

    def __init__(self, epoch: float) -> None:
        self.fake = TelegramFake(epoch=epoch)
        self._people: dict[str, Person] = {}

    def user(self, name: str) -> Person:
        """The person with this name; the same one each time."""
        if name not in self._people:
            self._people[name] = Person(self.fake, self.fake.user(name))
        return self._people[name]

    @property
    def people(self) -> list[Person]:
        """Everyone who was named so far."""
        return list(self._people.values())

    def written(self) -> list[ScreenMessage]:
        """Every message that people wrote and that is still on a screen, chat by chat."""
        return [m for chat in self.fake.chats.values() for m in chat.messages.values() if not m.from_bot]

    def moved_to(self, chat: int) -> int | None:
        """The id that this chat has now; None: it never moved."""
        trouble = self.fake.chats[chat].trouble
        moved = None if trouble is None else trouble.parameters.get("migrate_to_chat_id")
        return None if moved is None else int(moved)

    def deleted_by_bot(self, chat: int) -> set[int]:
        """The ids of the messages that the bot has deleted there."""
        return {
            change.message_id
            for change in self.fake.history
            if change.method == "deleteMessage" and change.chat_id == chat and change.message_id is not None
        }

    async def redeliver(self, update: int) -> None:
        """The platform delivers this update once more, although it may have been confirmed."""
        self.fake.redeliver(update)
        await trio.lowlevel.checkpoint()


class ModelSide(ModelFake):
    """The model. A request that a restart repeats is given the same queued answer again.

    What makes a repeated request the same is its last user text, how many messages of the user stand before it, and
    how many answers stand behind it. Chats that say the same words at once should use `when`.
    """

    def __init__(self, epoch: float) -> None:
        super().__init__(epoch=epoch)
        self._given: dict[tuple[str, int, int], Script] = {}

    def _choose(self, request: ModelRequest) -> Script:
        users = sum(message["role"] == "user" for message in request.messages)
        key = (without_note(request.last_user_text), users, request.answers_so_far)
        if key in self._given:
            return self._given[key]
        queued = bool(self.queue)
        script = super()._choose(request)
        if queued:
            self._given[key] = script
        return script


def without_note(text: str) -> str:
    """A user's text without the note that a resumed request ends with."""
    return text.removesuffix(RESTARTED).rstrip()
