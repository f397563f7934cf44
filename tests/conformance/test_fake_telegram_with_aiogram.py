"""The fake Telegram under aiogram: a second client of the real Bot API, which parses answers with strict models.

It sends forms where python-telegram-bot sends others, and knows errors by other words, so it looks where that one
does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from io import BytesIO

import pytest
import trio
from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiogram.types import (
    BotCommand,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
)
from attrs import frozen
from foreign_loop import Bridge, run_in_asyncio

from hermes_fakes.faults import AckLost, ErrorBefore, RateLimited
from hermes_fakes.loopback import listen
from hermes_fakes.telegram import DEFAULT_TOKEN, Pressed, TelegramFake, open_telegram_fake


@frozen
class Place:
    """A fake on loopback."""

    fake: TelegramFake
    bridge: Bridge
    base: str

    def bot(self, token: str = DEFAULT_TOKEN) -> Bot:
        return Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(self.base)))

    async def use(self, program: Callable[[Bot], Awaitable[None]], token: str = DEFAULT_TOKEN) -> None:
        async def main() -> None:
            async with self.bot(token) as bot:
                await program(bot)

        await run_in_asyncio(main())


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_telegram_fake() as fake:
        async with trio.open_nursery() as nursery:
            port = await listen(fake, nursery)
            yield Place(fake, Bridge.here(fake), f"http://127.0.0.1:{port}")
            nursery.cancel_scope.cancel()


async def polled(place: Place, bot: Bot, dispatcher: Dispatcher, done: Callable[[], object]) -> None:
    """Polls with the library's own loop until the condition holds."""
    polling = asyncio.create_task(dispatcher.start_polling(bot, polling_timeout=2, handle_signals=False))
    await place.bridge.until(done)
    await dispatcher.stop_polling()
    await polling


async def test_an_echo_bot_answers_each_message_once(place: Place) -> None:
    """The library's own poller, and models of every kind of message that a person can send."""
    fake = place.fake
    alice = fake.user("alice")
    forum = fake.group("forum", forum=True)
    topic = fake.topic(forum, "general talk")
    kinds = []

    async def program(bot: Bot) -> None:
        dispatcher = Dispatcher()

        @dispatcher.message()
        async def echo(message: Message) -> None:
            kinds.append(message.content_type.lower())
            await message.reply(f"echo {message.text or message.caption or message.content_type.lower()}")

        await polled(
            place, bot, dispatcher, lambda: len(fake.bot_texts(alice)) == 5 and len(fake.bot_texts(forum)) == 1
        )

    alice.says("one")
    alice.sends_photo("two")
    alice.sends_voice()
    alice.sends_document("notes.txt", b"x")
    alice.sends_sticker()
    alice.says("in a topic", chat=forum, thread=topic)
    await place.use(program)
    assert sorted(kinds) == ["document", "photo", "sticker", "text", "text", "voice"]
    assert set(fake.bot_texts(alice)) == {"echo one", "echo two", "echo voice", "echo document", "echo sticker"}
    [answer] = [message for message in fake.screen(forum) if message.from_bot]
    assert (answer.text, answer.thread) == ("echo in a topic", topic)
    assert fake.unconfirmed == 0


async def test_a_reply_grows_by_edits(place: Place) -> None:
    """Create, edits with entities, one that changes nothing, delete: each answer is the object that is documented."""
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")

    async def program(bot: Bot) -> None:
        await bot.send_chat_action(alice.chat, "typing")
        sent = await bot.send_message(alice.chat, "…", reply_parameters=ReplyParameters(message_id=1))
        assert sent.reply_to_message is not None
        for text in ("one", "one two"):
            edited = await bot.edit_message_text(text, chat_id=alice.chat, message_id=sent.message_id)
            assert isinstance(edited, Message)
            assert edited.text == text
        with pytest.raises(TelegramBadRequest, match="message is not modified"):
            await bot.edit_message_text("one two", chat_id=alice.chat, message_id=sent.message_id)
        entities = [MessageEntity(type="code", offset=4, length=3)]
        final = await bot.edit_message_text(
            "one two", chat_id=alice.chat, message_id=sent.message_id, entities=entities
        )
        assert isinstance(final, Message)
        assert final.html_text == "one <code>two</code>"
        extra = await bot.send_message(alice.chat, "surplus")
        assert await bot.delete_message(alice.chat, extra.message_id)

    await place.use(program)
    assert fake.bot_texts(alice) == ["one two"]


async def test_buttons_menu_and_identity(place: Place) -> None:
    """A press reaches its handler; the menu that was set is read back; the bot and the chat are strict models."""
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")
    presses: list[Pressed] = []

    async def program(bot: Bot) -> None:
        assert (await bot.me()).username == "hermes_bot"
        assert (await bot.get_chat(alice.chat)).first_name == "alice"
        await bot.set_my_commands([BotCommand(command="help", description="What I can do")])
        assert [command.command for command in await bot.get_my_commands()] == ["help"]
        dispatcher = Dispatcher()

        @dispatcher.callback_query()
        async def pressed(query: CallbackQuery) -> None:
            await query.answer(f"you chose {query.data}")

        keys = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="yes")]])
        await bot.send_message(alice.chat, "sure?", reply_markup=keys)
        await polled(place, bot, dispatcher, lambda: presses and presses[0].answered)

    async def press() -> None:
        await fake.wait_for(lambda: fake.bot_texts(alice) == ["sure?"])
        presses.append(alice.presses("Yes"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(press)
        await place.use(program)
    assert presses[0].answer == "you chose yes"


async def test_files_are_fetched(place: Place) -> None:
    """A document is found by its id, and its bytes come back."""
    place.fake.user("alice").sends_document("a.bin", b"\x00\x01", caption="see")

    async def program(bot: Bot) -> None:
        [update] = await bot.get_updates(timeout=0)
        assert update.message is not None
        assert update.message.document is not None
        target = BytesIO()
        await bot.download(update.message.document, target)
        assert target.getvalue() == b"\x00\x01"

    await place.use(program)


async def test_refusals_map_to_the_librarys_exceptions(place: Place) -> None:
    """Each refusal has the status and the parameters by which the library knows it."""
    fake = place.fake
    alice, gone = fake.user("alice"), fake.user("gone")
    alice.says("hi")
    gone.says("bye")
    gone.blocks()
    old = fake.group("old")
    new = fake.migrate(old)

    async def program(bot: Bot) -> None:
        with pytest.raises(TelegramBadRequest, match="chat not found"):
            await bot.send_message(404, "x")
        with pytest.raises(TelegramBadRequest, match="message is too long"):
            await bot.send_message(alice.chat, "x" * 4097)
        with pytest.raises(TelegramBadRequest, match="message to edit not found"):
            await bot.edit_message_text("x", chat_id=alice.chat, message_id=999)
        with pytest.raises(TelegramForbiddenError, match="blocked by the user"):
            await bot.send_message(gone.chat, "x")
        with pytest.raises(TelegramMigrateToChat) as moved:
            await bot.send_message(old.id, "x")
        assert moved.value.migrate_to_chat_id == new.id

    await place.use(program)
    assert fake.bot_texts(alice) == []


async def test_trouble_maps_to_the_librarys_exceptions(place: Place) -> None:
    """Flood, a broken gateway, a lost answer, a second poller and a wrong token are known for what they are."""
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")
    for effect in (RateLimited(3), ErrorBefore(502), AckLost()):
        fake.faults.add(effect, "sendMessage")

    async def program(bot: Bot) -> None:
        with pytest.raises(TelegramRetryAfter) as flood:
            await bot.send_message(alice.chat, "x")
        assert flood.value.retry_after == 3
        with pytest.raises(TelegramServerError):
            await bot.send_message(alice.chat, "x")
        with pytest.raises(TelegramNetworkError):
            await bot.send_message(alice.chat, "it arrived")
        first = asyncio.create_task(bot.get_updates(offset=100, timeout=20))
        await place.bridge.until(lambda: "getUpdates" in [call.method for call in place.fake.requests])
        second = asyncio.create_task(bot.get_updates(offset=101, timeout=1))
        with pytest.raises(TelegramConflictError):
            await first
        assert await second == []

    await place.use(program)
    assert fake.bot_texts(alice) == ["it arrived"]

    async def stranger(bot: Bot) -> None:
        with pytest.raises(TelegramUnauthorizedError):
            await bot.get_me()

    await place.use(stranger, "123456:another")
