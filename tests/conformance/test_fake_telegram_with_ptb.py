"""The fake Telegram under python-telegram-bot: a client written against the real Bot API must find nothing odd.

What it checks of the fake: shapes (the library parses every object strictly by its documentation), words of errors
(the library maps them to its own exceptions), and long polling as its updater does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import telegram
import trio
from attrs import frozen
from foreign_loop import Bridge, run_in_asyncio
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.ext import Application, ApplicationBuilder, CallbackQueryHandler, CommandHandler, MessageHandler, filters

from hermes_fakes.faults import ErrorBefore, RateLimited, ResetBefore
from hermes_fakes.loopback import listen
from hermes_fakes.telegram import DEFAULT_TOKEN, Limits, Pressed, TelegramFake, open_telegram_fake


@frozen
class Place:
    """A fake on loopback."""

    fake: TelegramFake
    bridge: Bridge
    base: str

    def bot(self, token: str = DEFAULT_TOKEN) -> telegram.Bot:
        return telegram.Bot(token, base_url=f"{self.base}/bot", base_file_url=f"{self.base}/file/bot")

    async def use(self, program: Callable[[telegram.Bot], Awaitable[None]], token: str = DEFAULT_TOKEN) -> None:
        """Runs the program with a bot that knows itself."""

        async def main() -> None:
            async with self.bot(token) as bot:
                await program(bot)

        await run_in_asyncio(main())


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_telegram_fake(limits=Limits(edit_interval=0.0, messages_per_minute=1000)) as fake:
        async with trio.open_nursery() as nursery:
            port = await listen(fake, nursery)
            yield Place(fake, Bridge.here(fake), f"http://127.0.0.1:{port}")
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def running(app: Application) -> AsyncIterator[None]:  # type: ignore[type-arg]  # six parameters of no interest
    """The application polls while the block runs."""
    async with app:
        await app.start()
        assert app.updater is not None
        await app.updater.start_polling(timeout=2)
        try:
            yield
        finally:
            await app.updater.stop()
            await app.stop()


async def test_an_echo_bot_answers_each_message_once(place: Place) -> None:
    """The library's own updater polls, confirms and goes on; private chat, group, command and caption arrive."""
    fake = place.fake
    alice, group = fake.user("alice"), fake.group("friends")

    async def echo(update: Update, context: object) -> None:
        message = update.effective_message
        assert message is not None
        await message.reply_text(f"echo {message.text or message.caption}", do_quote=True)

    async def main() -> None:
        builder = ApplicationBuilder().bot(place.bot())
        app = builder.build()
        app.add_handler(CommandHandler("start", echo))
        app.add_handler(MessageHandler(filters.TEXT | filters.PHOTO, echo))
        async with running(app):
            await place.bridge.until(lambda: len(fake.bot_texts(alice)) == 3 and len(fake.bot_texts(group)) == 1)

    alice.says("one")
    alice.says("/start now")
    alice.sends_photo("three")
    alice.says("@hermes_bot four", chat=group)
    await run_in_asyncio(main())
    assert fake.bot_texts(alice) == ["echo one", "echo /start now", "echo three"]
    assert fake.bot_texts(group) == ["echo @hermes_bot four"]
    assert fake.unconfirmed == 0
    quoted = [message.reply_to for message in fake.screen(alice) if message.from_bot]
    assert quoted == [message.message_id for message in fake.screen(alice) if not message.from_bot]


async def test_identity_chats_and_menu(place: Place) -> None:
    """Who the bot is, what a chat is, and the commands that it offers read as the library expects them."""
    place.fake.user("alice").says("hi")
    group = place.fake.group("forum", forum=True)

    async def program(bot: telegram.Bot) -> None:
        assert bot.username == "hermes_bot"
        assert (await bot.get_me()).is_bot
        assert (await bot.get_chat(place.fake.user("alice").chat)).type == "private"
        found = await bot.get_chat(group.id)
        assert (found.type, found.title, found.is_forum) == ("supergroup", "forum", True)
        assert await bot.set_my_commands([("help", "What I can do"), ("stop", "Stop")])
        assert [command.command for command in await bot.get_my_commands()] == ["help", "stop"]
        assert await bot.delete_my_commands()
        assert await bot.get_my_commands() == ()
        assert (await bot.get_webhook_info()).url == ""

    await place.use(program)


async def test_a_reply_grows_by_edits(place: Place) -> None:
    """Streaming as a bot does it: create, edits with entities, one that changes nothing, then the end."""
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")

    async def program(bot: telegram.Bot) -> None:
        chat = alice.chat
        assert await bot.send_chat_action(chat, "typing")
        sent = await bot.send_message(chat, "…")
        for text in ("one", "one two", "one two three"):
            edited = await bot.edit_message_text(text, chat, sent.message_id)
            assert isinstance(edited, telegram.Message)
            assert (edited.message_id, edited.text) == (sent.message_id, text)
            assert edited.edit_date is not None
        with pytest.raises(BadRequest, match="not modified"):
            await bot.edit_message_text("one two three", chat, sent.message_id)
        bold = MessageEntity(MessageEntity.BOLD, 4, 3)
        final = await bot.edit_message_text("one two three", chat, sent.message_id, entities=[bold])
        assert isinstance(final, telegram.Message)
        assert final.parse_entities() == {bold: "two"}

    await place.use(program)
    [message] = [message for message in fake.screen(alice) if message.from_bot]
    assert (message.text, message.edits) == ("one two three", 4)


async def test_marked_up_text_becomes_entities(place: Place) -> None:
    """Entities count UTF-16 units, and the library reads them back as what they cover."""
    alice = place.fake.user("alice")
    alice.says("hi")

    async def program(bot: telegram.Bot) -> None:
        text = "\N{PARTY POPPER} fine"
        entities = MessageEntity.adjust_message_entities_to_utf_16(text, [MessageEntity(MessageEntity.ITALIC, 2, 4)])
        sent = await bot.send_message(alice.chat, text, entities=entities)
        assert list(sent.parse_entities().values()) == ["fine"]

    await place.use(program)


async def test_buttons_are_pressed_and_answered(place: Place) -> None:
    """An inline keyboard survives the way, and a press of it reaches the handler and gets its answer."""
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")

    async def pressed(update: Update, context: object) -> None:
        query = update.callback_query
        assert query is not None
        await query.answer("noted")
        await query.edit_message_text(f"you chose {query.data}")

    async def main() -> None:
        app = ApplicationBuilder().bot(place.bot()).build()
        app.add_handler(CallbackQueryHandler(pressed))
        async with running(app):
            keys = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
            await app.bot.send_message(alice.chat, "sure?", reply_markup=keys)
            await place.bridge.until(lambda: fake.bot_texts(alice) == ["you chose yes"])

    presses: list[Pressed] = []

    async def press() -> None:
        await fake.wait_for(lambda: fake.bot_texts(alice) == ["sure?"])
        presses.append(alice.presses("Yes"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(press)
        await run_in_asyncio(main())
    assert presses[0].answer == "noted"


async def test_files_are_fetched(place: Place) -> None:
    """A photo is found by its id, and its bytes come back."""
    place.fake.user("alice").sends_photo("look", b"\xff\xd8\xffpixels")

    async def program(bot: telegram.Bot) -> None:
        [update] = await bot.get_updates(timeout=0)
        assert update.message is not None
        assert update.message.caption == "look"
        file = await update.message.photo[-1].get_file()
        assert bytes(await file.download_as_bytearray()) == b"\xff\xd8\xffpixels"
        with pytest.raises(BadRequest, match="Wrong file_id"):
            await bot.get_file("nonsense")

    await place.use(program)


async def test_what_was_not_confirmed_comes_again(place: Place) -> None:
    """A poll confirms by its offset only; a short poll with nothing to tell ends empty."""
    fake = place.fake
    first = fake.user("alice").says("hi")

    async def program(bot: telegram.Bot) -> None:
        assert [update.update_id for update in await bot.get_updates(timeout=0)] == [first]
        assert [update.update_id for update in await bot.get_updates(timeout=0)] == [first]
        assert await bot.get_updates(offset=first + 1, timeout=1) == ()

    await place.use(program)
    assert fake.unconfirmed == 0


async def test_refusals_map_to_the_librarys_exceptions(place: Place) -> None:
    """Each refusal has the status and the words by which the library knows it."""
    fake = place.fake
    alice, gone = fake.user("alice"), fake.user("gone")
    alice.says("hi")
    gone.says("bye")
    gone.blocks()
    old = fake.group("old")
    new = fake.migrate(old)

    async def program(bot: telegram.Bot) -> None:
        with pytest.raises(BadRequest, match="Chat not found"):
            await bot.send_message(404, "x")
        with pytest.raises(BadRequest, match="Text must be non-empty"):
            await bot.send_message(alice.chat, " ")
        with pytest.raises(BadRequest, match="Message is too long"):
            await bot.send_message(alice.chat, "x" * 4097)
        with pytest.raises(BadRequest, match="Message to edit not found"):
            await bot.edit_message_text("x", alice.chat, 999)
        with pytest.raises(BadRequest, match="Message to delete not found"):
            await bot.delete_message(alice.chat, 999)
        with pytest.raises(BadRequest, match="Message to be replied not found"):
            await bot.send_message(alice.chat, "x", reply_to_message_id=999)
        with pytest.raises(BadRequest, match="Can't parse entities"):
            await bot.send_message(alice.chat, "*x", parse_mode="Markdown")
        with pytest.raises(Forbidden, match="blocked by the user"):
            await bot.send_message(gone.chat, "x")
        with pytest.raises(telegram.error.ChatMigrated) as moved:
            await bot.send_message(old.id, "x")
        assert moved.value.new_chat_id == new.id

    await place.use(program)
    assert fake.bot_texts(alice) == []


async def test_trouble_maps_to_the_librarys_exceptions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flood control tells its seconds; a broken gateway and a broken connection are errors of the network."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # the library's own way to say that its next type of a time is welcome
    fake = place.fake
    alice = fake.user("alice")
    alice.says("hi")
    for effect in (RateLimited(3), ErrorBefore(502), ResetBefore()):
        fake.faults.add(effect, "sendMessage")

    async def program(bot: telegram.Bot) -> None:
        with pytest.raises(RetryAfter) as flood:
            await bot.send_message(alice.chat, "x")
        assert flood.value.retry_after == timedelta(seconds=3)
        for _ in range(2):
            with pytest.raises(NetworkError):
                await bot.send_message(alice.chat, "x")
        await bot.send_message(alice.chat, "at last")

    await place.use(program)
    assert fake.bot_texts(alice) == ["at last"]
    assert fake.faults.unhit() == []


async def test_a_wrong_token_is_told(place: Place) -> None:
    """The library recognises a token that Telegram does not know."""

    async def program(bot: telegram.Bot) -> None:
        raise AssertionError("it must not get so far")

    with pytest.raises(InvalidToken):
        await place.use(program, "123456:another")


async def test_two_pollers_conflict(place: Place) -> None:
    """The second long poll ends the first with the conflict that the library knows."""

    async def program(bot: telegram.Bot) -> None:
        first = asyncio.create_task(bot.get_updates(timeout=20))
        await place.bridge.until(lambda: "getUpdates" in [call.method for call in place.fake.requests])
        async with place.bot() as other:
            second = asyncio.create_task(other.get_updates(timeout=1))
            with pytest.raises(Conflict, match="terminated by other getUpdates request"):
                await first
            assert await second == ()

    await place.use(program)
