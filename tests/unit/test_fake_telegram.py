"""The fake Telegram says what Telegram says, and forgets nothing when a connection ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest
import trio
from attrs import define

from hermes_fakes.client import Client, connect_memory
from hermes_fakes.telegram import DEFAULT_TOKEN, Limits, TelegramFake, User, open_telegram_fake

LONG_MESSAGE = "Bad Request: message is too long"


@define
class Bot:
    """A fake, and the bot's end of one connection."""

    fake: TelegramFake
    client: Client
    nursery: trio.Nursery

    async def answer(self, method: str, **args: Any) -> dict[str, Any]:
        """The envelope; its error_code is the HTTP status."""
        response = await self.client.request("POST", f"/bot{DEFAULT_TOKEN}/{method}", json=args)
        body: dict[str, Any] = response.json()
        assert response.status == (200 if body["ok"] else body["error_code"])
        return body

    async def call(self, method: str, **args: Any) -> Any:
        body = await self.answer(method, **args)
        assert body["ok"], body
        return body["result"]

    async def refusal(self, method: str, **args: Any) -> tuple[int, str]:
        body = await self.answer(method, **args)
        assert not body["ok"], body
        return body["error_code"], body["description"]

    def another(self) -> Bot:
        return Bot(self.fake, connect_memory(self.nursery, self.fake.serve), self.nursery)


@asynccontextmanager
async def open_bot(**options: Any) -> AsyncIterator[tuple[Bot, User]]:
    """A bot, and alice, who has written to it."""
    async with open_telegram_fake(**options) as fake, trio.open_nursery() as nursery:
        alice = fake.user("alice")
        alice.says("hi")
        yield Bot(fake, connect_memory(nursery, fake.serve), nursery), alice
        nursery.cancel_scope.cancel()


# --- transport --------------------------------------------------------------------------------------------------------


async def test_a_sent_message_is_on_the_screen(autojump_clock: trio.testing.MockClock) -> None:
    """What sendMessage accepted is what the user sees below the own message."""
    async with open_bot() as (bot, alice):
        sent = await bot.call("sendMessage", chat_id=alice.chat, text="  hello there\n")
        user_message, bot_message = bot.fake.screen(alice.chat)
        assert (user_message.text, user_message.from_bot) == ("hi", False)
        assert (bot_message.text, bot_message.from_bot) == ("hello there", True)
        assert (sent["message_id"], sent["text"]) == (bot_message.message_id, "hello there")
        assert [entry.method for entry in bot.fake.history] == ["sendMessage"]


@pytest.mark.parametrize("method", ["getMe", "getme", "GETME"])
async def test_method_names_are_case_insensitive(method: str, autojump_clock: trio.testing.MockClock) -> None:
    """A method is found in any case."""
    async with open_bot() as (bot, _):
        assert (await bot.call(method))["username"] == "hermes_bot"
        assert bot.fake.requests[-1].method == "getMe"


async def test_arguments_come_from_query_form_and_json(autojump_clock: trio.testing.MockClock) -> None:
    """The three ways of giving arguments mean the same; nested ones are JSON strings in a form."""
    async with open_bot() as (bot, alice):
        base = f"/bot{DEFAULT_TOKEN}/sendMessage"
        await bot.client.request("GET", f"{base}?chat_id={alice.chat}&text=one%20%2B")
        bold = json.dumps([{"type": "bold", "offset": 0, "length": 3}])
        form = urlencode({"chat_id": alice.chat, "text": "two", "entities": bold})
        kind = {"content-type": "application/x-www-form-urlencoded"}
        await bot.client.request("POST", base, body=form.encode(), headers=kind)
        await bot.call("sendMessage", chat_id=str(alice.chat), text="three")
        assert bot.fake.bot_texts(alice.chat) == ["one +", "two", "three"]
        assert bot.fake.screen(alice.chat)[2].entities == ({"type": "bold", "offset": 0, "length": 3},)


@pytest.mark.parametrize(
    ("target", "status", "description"),
    [
        ("/bot1:wrong/getMe", 401, "Unauthorized"),
        ("/botnonsense/getMe", 401, "Unauthorized: invalid token specified"),
        (f"/bot{DEFAULT_TOKEN}/makeCoffee", 404, "Not Found: method not found"),
        ("/", 404, "Not Found"),
    ],
)
async def test_wrong_addresses(
    target: str, status: int, description: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A wrong token, method or path gets Telegram's refusal, and is seen by the test."""
    async with open_bot() as (bot, _):
        response = await bot.client.request("GET", target)
        assert response.status == status
        assert response.json() == {"ok": False, "error_code": status, "description": description}
        assert bot.fake.requests[-1].outcome == f"refused: {description}"


async def test_a_body_that_is_no_json(autojump_clock: trio.testing.MockClock) -> None:
    """An unreadable body is a 400, and the connection goes on."""
    async with open_bot() as (bot, _):
        kind = {"content-type": "application/json"}
        response = await bot.client.request("POST", f"/bot{DEFAULT_TOKEN}/getMe", body=b"{", headers=kind)
        assert response.status == 400
        await bot.call("getMe")


# --- sendMessage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "description"),
    [
        ({}, "Bad Request: message text is empty"),
        ({"text": ""}, "Bad Request: message text is empty"),
        ({"text": " \n\t "}, "Bad Request: text must be non-empty"),
        ({"text": "x" * 4097}, LONG_MESSAGE),
        ({"text": "\U0001f600" * 4097}, LONG_MESSAGE),
        ({"text": "x" * 32769}, "Bad Request: text is too long"),
        ({"text": "\ud83d"}, "Bad Request: text must be encoded in UTF-8"),
        ({"text": "x", "reply_parameters": {"message_id": 99}}, "Bad Request: message to be replied not found"),
        ({"text": "x", "message_thread_id": 7}, "Bad Request: message thread not found"),
        ({"text": "x", "chat_id": ""}, "Bad Request: chat_id is empty"),
        ({"text": "x", "chat_id": 424242}, "Bad Request: chat not found"),
        ({"text": "x", "chat_id": "@nobody"}, "Bad Request: chat not found"),
        (
            {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "x" * 65}]]}},
            "Bad Request: BUTTON_DATA_INVALID",
        ),
    ],
)
async def test_refused_texts(args: dict[str, Any], description: str, autojump_clock: trio.testing.MockClock) -> None:
    """Each mistake gets Telegram's own words, and nothing appears."""
    async with open_bot() as (bot, alice):
        assert await bot.refusal("sendMessage", **{"chat_id": alice.chat, **args}) == (400, description)
        assert bot.fake.bot_texts(alice.chat) == []
        assert bot.fake.history == []


@pytest.mark.parametrize("text", ["x" * 4096, "\U0001f600" * 4096, "  " + "x" * 4096 + "\n"])
async def test_the_longest_texts(text: str, autojump_clock: trio.testing.MockClock) -> None:
    """4096 code points after trimming are accepted, however many UTF-16 units they are."""
    async with open_bot() as (bot, alice):
        await bot.call("sendMessage", chat_id=alice.chat, text=text)
        assert bot.fake.bot_texts(alice.chat) == [text.strip()]


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        ({"type": "bold", "offset": 0, "length": 4}, "ends after the end of the text at UTF-16 offset 3"),
        ({"type": "bold", "offset": -1, "length": 1}, "incorrect offset -1"),
        ({"type": "bold", "offset": 0, "length": -1}, "incorrect length -1"),
        ({"type": "bold", "offset": 1, "length": 2}, "in a middle of a UTF-16 symbol"),
        ({"type": "bold", "offset": 0, "length": 1}, "in a middle of a UTF-16 symbol"),
        ({"type": "blink", "offset": 0, "length": 2}, "unsupported entity type"),
        ({"type": "text_link", "offset": 0, "length": 2}, "url"),
    ],
)
async def test_refused_entities(entity: dict[str, Any], words: str, autojump_clock: trio.testing.MockClock) -> None:
    """Entities must lie in the text, in UTF-16 units, on the borders of characters."""
    async with open_bot() as (bot, alice):
        code, description = await bot.refusal("sendMessage", chat_id=alice.chat, text="\U0001f600x", entities=[entity])
        assert code == 400
        assert words in description


async def test_entities_follow_the_trimmed_text(autojump_clock: trio.testing.MockClock) -> None:
    """Trimming moves the entities, cuts them, and drops those that cover nothing any more."""
    async with open_bot() as (bot, alice):
        bold = {"type": "bold", "offset": 0, "length": 4}
        code = {"type": "code", "offset": 4, "length": 3}
        await bot.call("sendMessage", chat_id=alice.chat, text="  abcd ", entities=[bold, code])
        (message,) = [m for m in bot.fake.screen(alice.chat) if m.from_bot]
        assert message.entities == (
            {"type": "bold", "offset": 0, "length": 2},
            {"type": "code", "offset": 2, "length": 2},
        )


async def test_replies(autojump_clock: trio.testing.MockClock) -> None:
    """A reply shows its target; a missing target is refused unless the bot allows to go without."""
    async with open_bot() as (bot, alice):
        target = alice.last.message_id
        sent = await bot.call("sendMessage", chat_id=alice.chat, text="a", reply_parameters={"message_id": target})
        assert sent["reply_to_message"]["text"] == "hi"
        free = {"message_id": 99, "allow_sending_without_reply": True}
        await bot.call("sendMessage", chat_id=alice.chat, text="b", reply_parameters=free)
        assert [m.reply_to for m in bot.fake.screen(alice.chat) if m.from_bot] == [target, None]


async def test_topics_of_a_forum(autojump_clock: trio.testing.MockClock) -> None:
    """A topic exists until it is closed; its messages carry it."""
    async with open_bot() as (bot, alice):
        forum = bot.fake.group("team", forum=True)
        topic = bot.fake.topic(forum, "news")
        alice.says("in the topic", chat=forum, thread=topic)
        (update,) = await bot.call("getUpdates", offset=2)
        assert update["message"]["message_thread_id"] == topic
        assert update["message"]["is_topic_message"] is True
        await bot.call("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)
        assert bot.fake.screen(forum)[-1].thread == topic
        bot.fake.closes_topic(forum, topic)
        refusal = await bot.refusal("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic)
        assert refusal == (400, "Bad Request: message thread not found")


# --- states of a chat -------------------------------------------------------------------------------------------------


async def test_blocked_deactivated_kicked(autojump_clock: trio.testing.MockClock) -> None:
    """A chat that the bot may not write to says why."""
    async with open_bot() as (bot, alice):
        group = bot.fake.group("team")
        bot.fake.kick(group)
        alice.blocks()
        assert await bot.refusal("sendMessage", chat_id=alice.chat, text="x") == (
            403,
            "Forbidden: bot was blocked by the user",
        )
        alice.unblocks()
        await bot.call("sendMessage", chat_id=alice.chat, text="x")
        alice.deactivates()
        assert await bot.refusal("sendMessage", chat_id=alice.chat, text="x") == (
            403,
            "Forbidden: user is deactivated",
        )
        assert await bot.refusal("sendMessage", chat_id=group.id, text="x") == (
            403,
            "Forbidden: bot was kicked from the group chat",
        )
        kinds = [next(iter(update.keys() - {"update_id"})) for update in await bot.call("getUpdates")]
        assert kinds == ["message", "my_chat_member", "my_chat_member"]


async def test_a_migrated_group_names_its_new_id(autojump_clock: trio.testing.MockClock) -> None:
    """The old id answers 400 with migrate_to_chat_id, and the new one works."""
    async with open_bot() as (bot, _):
        old = bot.fake.group("team")
        new = bot.fake.migrate(old)
        answer = await bot.answer("sendMessage", chat_id=old.id, text="x")
        assert answer["description"] == "Bad Request: group chat was upgraded to a supergroup chat"
        assert answer["parameters"] == {"migrate_to_chat_id": new.id}
        await bot.call("sendMessage", chat_id=new.id, text="x")


async def test_a_private_chat_exists_from_the_first_message(autojump_clock: trio.testing.MockClock) -> None:
    """A user who never wrote cannot be written to."""
    async with open_bot() as (bot, _):
        bob = bot.fake.user("bob", id=777)
        assert await bot.refusal("sendMessage", chat_id=777, text="x") == (400, "Bad Request: chat not found")
        assert bot.fake.screen(bob.chat) == []
        bob.says("hello")
        await bot.call("sendMessage", chat_id=777, text="x")


# --- editing and deleting ---------------------------------------------------------------------------------------------


async def test_editing(autojump_clock: trio.testing.MockClock) -> None:
    """An edit replaces the text in place; the same content again is "not modified"."""
    async with open_bot() as (bot, alice):
        number = (await bot.call("sendMessage", chat_id=alice.chat, text="a"))["message_id"]
        edited = await bot.call("editMessageText", chat_id=alice.chat, message_id=number, text="b")
        assert edited["text"] == "b"
        code, words = await bot.refusal("editMessageText", chat_id=alice.chat, message_id=number, text=" b ")
        assert code == 400
        assert words.startswith("Bad Request: message is not modified: specified new message content and reply markup")
        assert [(m.text, m.edits) for m in bot.fake.screen(alice.chat)] == [("hi", 0), ("b", 1)]


async def test_refused_edits(autojump_clock: trio.testing.MockClock) -> None:
    """A missing message, a message of somebody else, a text that is too long."""
    async with open_bot() as (bot, alice):
        edit = {"chat_id": alice.chat, "text": "x"}
        foreign = alice.last.message_id
        assert await bot.refusal("editMessageText", message_id=99, **edit) == (
            400,
            "Bad Request: message to edit not found",
        )
        assert await bot.refusal("editMessageText", message_id=foreign, **edit) == (
            400,
            "Bad Request: message can't be edited",
        )
        own = (await bot.call("sendMessage", chat_id=alice.chat, text="a"))["message_id"]
        long = {**edit, "text": "x" * 4097}
        assert await bot.refusal("editMessageText", message_id=own, **long) == (400, LONG_MESSAGE)


async def test_deleting(autojump_clock: trio.testing.MockClock) -> None:
    """A deleted message is gone for everyone; after 48 hours it stays."""
    async with open_bot() as (bot, alice):
        own = (await bot.call("sendMessage", chat_id=alice.chat, text="a"))["message_id"]
        old = (await bot.call("sendMessage", chat_id=alice.chat, text="b"))["message_id"]
        assert await bot.call("deleteMessage", chat_id=alice.chat, message_id=own) is True
        again = await bot.refusal("deleteMessage", chat_id=alice.chat, message_id=own)
        assert again == (400, "Bad Request: message to delete not found")
        await trio.sleep(48 * 3600 + 1)
        late = await bot.refusal("deleteMessage", chat_id=alice.chat, message_id=old)
        assert late == (400, "Bad Request: message can't be deleted")
        assert bot.fake.bot_texts(alice.chat) == ["b"]


async def test_a_user_deletes_the_bots_message(autojump_clock: trio.testing.MockClock) -> None:
    """What the user removed is not on the screen and cannot be edited."""
    async with open_bot() as (bot, alice):
        await bot.call("sendMessage", chat_id=alice.chat, text="a")
        message = bot.fake.screen(alice.chat)[-1]
        alice.deletes(message)
        assert [m.text for m in bot.fake.screen(alice.chat)] == ["hi"]
        refusal = await bot.refusal("editMessageText", chat_id=alice.chat, message_id=message.message_id, text="b")
        assert refusal == (400, "Bad Request: message to edit not found")


# --- updates ----------------------------------------------------------------------------------------------------------


async def test_only_a_higher_offset_forgets(autojump_clock: trio.testing.MockClock) -> None:
    """Updates come again until a poll with a higher offset confirms them."""
    async with open_bot() as (bot, alice):
        second = alice.says("two")
        both = await bot.call("getUpdates")
        assert [u["message"]["text"] for u in both] == ["hi", "two"]
        assert await bot.call("getUpdates", timeout=5) == both
        assert await bot.call("getUpdates", offset=second, timeout=5) == both[1:]
        assert await bot.call("getUpdates", timeout=5) == both[1:]
        assert await bot.call("getUpdates", offset=second + 1, timeout=0) == []
        assert bot.fake.unconfirmed == 0


async def test_limit_and_negative_offset(autojump_clock: trio.testing.MockClock) -> None:
    """`limit` cuts the batch; a negative offset drops all but the last ones."""
    async with open_bot() as (bot, alice):
        for text in "abc":
            alice.says(text)
        assert len(await bot.call("getUpdates", limit=2)) == 2
        last = await bot.call("getUpdates", offset=-2, timeout=5)
        assert [u["message"]["text"] for u in last] == ["b", "c"]
        assert bot.fake.unconfirmed == 2


async def test_a_long_poll_ends_when_an_update_comes(autojump_clock: trio.testing.MockClock) -> None:
    """It waits as long as it was told, 50 s at most, and not a moment longer than needed."""
    async with open_bot() as (bot, alice):
        start = trio.current_time()
        assert await bot.call("getUpdates", offset=2, timeout=1000) == []
        assert trio.current_time() - start == pytest.approx(50)

        async def write_later() -> None:
            await trio.sleep(7)
            alice.says("now")

        bot.nursery.start_soon(write_later)
        (update,) = await bot.call("getUpdates", offset=3 - 1, timeout=40)
        assert update["message"]["text"] == "now"
        assert trio.current_time() - start == pytest.approx(57)


async def test_a_spinning_poll_is_slowed_down(autojump_clock: trio.testing.MockClock) -> None:
    """The same offset again at once waits 3 s although the bot said 0."""
    async with open_bot() as (bot, _):
        start = trio.current_time()
        await bot.call("getUpdates", offset=2, timeout=0)
        assert trio.current_time() == start
        await bot.call("getUpdates", offset=2, timeout=0)
        assert trio.current_time() - start == pytest.approx(3)


async def test_the_earlier_of_two_pollers_gets_409(autojump_clock: trio.testing.MockClock) -> None:
    """The second poll goes on waiting and gets the update."""
    async with open_bot() as (bot, alice):
        refusals: list[tuple[int, str]] = []

        async def first() -> None:
            refusals.append(await bot.refusal("getUpdates", offset=2, timeout=50))

        async def write_later() -> None:
            await trio.sleep(5)
            alice.says("for the second")

        bot.nursery.start_soon(first)
        await trio.sleep(1)
        bot.nursery.start_soon(write_later)
        (update,) = await bot.another().call("getUpdates", offset=2, timeout=50)
        assert update["message"]["text"] == "for the second"
        assert refusals == [
            (
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            )
        ]


async def test_a_poller_that_left_is_no_conflict(autojump_clock: trio.testing.MockClock) -> None:
    """After a closed connection the next poll waits undisturbed and loses nothing."""
    async with open_bot() as (bot, alice):
        await bot.client.send("POST", f"/bot{DEFAULT_TOKEN}/getUpdates", json={"offset": 2, "timeout": 50})
        await trio.sleep(1)
        await bot.client.aclose()
        await trio.sleep(1)
        alice.says("later")
        (update,) = await bot.another().call("getUpdates", offset=2, timeout=50)
        assert update["message"]["text"] == "later"


async def test_a_webhook_excludes_polling(autojump_clock: trio.testing.MockClock) -> None:
    """getUpdates is refused until the webhook is deleted."""
    async with open_bot() as (bot, _):
        await bot.call("setWebhook", url="https://example.org/hook")
        assert (await bot.call("getWebhookInfo"))["url"] == "https://example.org/hook"
        code, words = await bot.refusal("getUpdates")
        assert (code, words[:58]) == (409, "Conflict: can't use getUpdates method while webhook is act")
        await bot.call("deleteWebhook", drop_pending_updates=True)
        assert await bot.call("getUpdates") == []


async def test_allowed_updates_are_sticky_and_filter_at_the_door(autojump_clock: trio.testing.MockClock) -> None:
    """What was not allowed when it happened is lost; what was queued before still comes."""
    async with open_bot() as (bot, alice):
        await bot.call("getUpdates", allowed_updates=["edited_message"])
        alice.says("lost")
        alice.edits("changed")
        updates = await bot.call("getUpdates", timeout=5)
        assert [set(u) - {"update_id"} for u in updates] == [{"message"}, {"edited_message"}]


async def test_updates_expire_after_a_day(autojump_clock: trio.testing.MockClock) -> None:
    """An update that nobody fetched is lost after 24 hours."""
    async with open_bot() as (bot, _):
        await trio.sleep(24 * 3600 + 1)
        assert await bot.call("getUpdates") == []


async def test_redelivery(autojump_clock: trio.testing.MockClock) -> None:
    """The same update comes once more although it was confirmed, and then never again."""
    async with open_bot() as (bot, alice):
        number = alice.says("twice")
        first = (await bot.call("getUpdates"))[-1]
        await bot.call("getUpdates", offset=number + 1)
        bot.fake.redeliver(number)
        assert await bot.call("getUpdates", offset=number + 1, timeout=10) == [first]
        assert await bot.call("getUpdates", offset=number + 1, timeout=10) == []


# --- what people send -------------------------------------------------------------------------------------------------


async def test_commands_and_mentions_become_entities(autojump_clock: trio.testing.MockClock) -> None:
    """Telegram's servers mark them, in UTF-16 units."""
    async with open_bot() as (bot, alice):
        alice.says("/start@hermes_bot \U0001f600 @bob_b")
        entities = (await bot.call("getUpdates"))[-1]["message"]["entities"]
        assert entities == [
            {"type": "bot_command", "offset": 0, "length": 17},
            {"type": "mention", "offset": 21, "length": 6},
        ]


async def test_media_and_download(autojump_clock: trio.testing.MockClock) -> None:
    """A medium comes with a file id; getFile leads to its bytes."""
    async with open_bot() as (bot, alice):
        alice.sends_photo("look", b"jpeg bytes")
        alice.sends_voice()
        alice.sends_sticker()
        alice.sends_document("notes.md", b"# notes")
        alice.sends_album(b"1", b"2", caption="two")
        messages = [u["message"] for u in await bot.call("getUpdates")][1:]
        photo, voice, sticker, document, first, second = messages
        assert photo["caption"] == "look"
        assert voice["voice"]["mime_type"] == "audio/ogg"
        assert sticker["sticker"]["emoji"]
        assert document["document"]["file_name"] == "notes.md"
        assert first["media_group_id"] == second["media_group_id"]
        file = await bot.call("getFile", file_id=photo["photo"][0]["file_id"])
        downloaded = await bot.client.request("GET", f"/file/bot{DEFAULT_TOKEN}/{file['file_path']}")
        assert downloaded.body == b"jpeg bytes"
        missing = await bot.client.request("GET", f"/file/bot{DEFAULT_TOKEN}/nothing")
        assert missing.status == 404


async def test_buttons(autojump_clock: trio.testing.MockClock) -> None:
    """A press reaches the bot, whose answer the user sees; an edit without markup removes the keyboard."""
    async with open_bot() as (bot, alice):
        keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}, {"text": "No", "callback_data": "n"}]]}
        sent = await bot.call("sendMessage", chat_id=alice.chat, text="Sure?", reply_markup=keyboard)
        assert bot.fake.screen(alice.chat)[-1].buttons == ("Yes", "No")
        pressed = alice.presses("Yes")
        query = (await bot.call("getUpdates"))[-1]["callback_query"]
        assert (query["data"], query["message"]["message_id"]) == ("y", sent["message_id"])
        await bot.call("answerCallbackQuery", callback_query_id=query["id"], text="Thanks")
        assert (pressed.answered, pressed.answer) == (True, "Thanks")
        await bot.call("editMessageReplyMarkup", chat_id=alice.chat, message_id=sent["message_id"])
        assert bot.fake.screen(alice.chat)[-1].buttons == ()
        await trio.sleep(200)
        code, words = await bot.refusal("answerCallbackQuery", callback_query_id=query["id"])
        assert (code, words[:33]) == (400, "Bad Request: query is too old and")


async def test_typing_and_commands(autojump_clock: trio.testing.MockClock) -> None:
    """The typing sign lasts 5 s and ends with a message; commands are kept."""
    async with open_bot() as (bot, alice):
        await bot.call("sendChatAction", chat_id=alice.chat, action="typing")
        assert bot.fake.is_typing(alice)
        await trio.sleep(5.1)
        assert not bot.fake.is_typing(alice)
        await bot.call("sendChatAction", chat_id=alice.chat, action="typing")
        await bot.call("sendMessage", chat_id=alice.chat, text="x")
        assert not bot.fake.is_typing(alice)
        await bot.call("setMyCommands", commands=[{"command": "new", "description": "Start anew"}])
        assert bot.fake.commands() == {"new": "Start anew"}
        assert await bot.call("getMyCommands") == [{"command": "new", "description": "Start anew"}]
        bad = await bot.refusal("setMyCommands", commands=[{"command": "New!", "description": "x"}])
        assert bad == (400, "Bad Request: BOT_COMMAND_INVALID")


# --- rate limits and waiting ------------------------------------------------------------------------------------------


async def test_each_violation_prolongs_the_ban(autojump_clock: trio.testing.MockClock) -> None:
    """Two edits of one message within a second close the chat, and asking again makes it worse."""
    async with open_bot(limits=Limits(edit_interval=1, ban=5)) as (bot, alice):
        number = (await bot.call("sendMessage", chat_id=alice.chat, text="0"))["message_id"]
        edit = {"chat_id": alice.chat, "message_id": number}
        await bot.call("editMessageText", text="1", **edit)
        answer = await bot.answer("editMessageText", text="2", **edit)
        assert answer["parameters"] == {"retry_after": 5}
        assert answer["description"] == "Too Many Requests: retry after 5"
        await trio.sleep(2)
        assert (await bot.answer("sendMessage", chat_id=alice.chat, text="x"))["parameters"] == {"retry_after": 8}
        await trio.sleep(8)
        await bot.call("editMessageText", text="3", **edit)
        assert [violation.text for violation in bot.fake.violations] == ["2", "x"]


async def test_messages_per_minute(autojump_clock: trio.testing.MockClock) -> None:
    """The limit of one chat leaves other chats alone."""
    async with open_bot(limits=Limits(messages_per_minute=2)) as (bot, alice):
        bob = bot.fake.user("bob")
        bob.says("hi")
        for text in "ab":
            await bot.call("sendMessage", chat_id=alice.chat, text=text)
        assert (await bot.refusal("sendMessage", chat_id=alice.chat, text="c"))[0] == 429
        await bot.call("sendMessage", chat_id=bob.chat, text="c")
        await trio.sleep(61)
        await bot.call("sendMessage", chat_id=alice.chat, text="c")


async def test_wait_for_wakes_on_a_change(autojump_clock: trio.testing.MockClock) -> None:
    """A test waits for what the user sees, not for time."""
    async with open_bot() as (bot, alice):

        async def send_later() -> None:
            await trio.sleep(3)
            await bot.call("sendMessage", chat_id=alice.chat, text="here")

        bot.nursery.start_soon(send_later)
        assert await bot.fake.wait_for(lambda: bot.fake.bot_texts(alice.chat)) == ["here"]
        assert trio.current_time() == pytest.approx(3)


async def test_ids_are_per_chat_in_supergroups_only(autojump_clock: trio.testing.MockClock) -> None:
    """Private chats and groups share one counter; a supergroup counts for itself."""
    async with open_bot() as (bot, alice):
        group, supergroup = bot.fake.group("g"), bot.fake.group("s", supergroup=True)
        ids = [
            (await bot.call("sendMessage", chat_id=chat, text="x"))["message_id"]
            for chat in (alice.chat, group.id, supergroup.id)
        ]
        assert ids == [2, 3, 1]
