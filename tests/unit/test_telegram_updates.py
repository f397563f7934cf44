"""What a batch of updates says: whose message it is, what came with it, and whom it is for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.platforms.base import Attachment, Inbound
from hermes_trio.platforms.telegram.classify import decode
from hermes_trio.platforms.telegram.updates import PAYLOAD_LIMIT, Identity, read_batch, read_update
from hermes_trio.values import Address

ME = Identity(4711, "HermesBot")
ANN: dict[str, Any] = {"id": 42, "is_bot": False, "first_name": "Ann", "last_name": "Li", "username": "ann"}
PRIVATE: dict[str, Any] = {"id": 42, "type": "private", "first_name": "Ann"}
GROUP: dict[str, Any] = {"id": -100123, "type": "supergroup", "title": "Team", "is_forum": True}


def said(chat: dict[str, Any] = PRIVATE, **fields: Any) -> dict[str, Any]:
    """An update with a message of Ann's."""
    return {"update_id": 900, "message": {"message_id": 7, "from": ANN, "chat": chat, "date": 1, **fields}}


def read(update: object, me: Identity = ME) -> Inbound:
    inbound = read_update(update, "telegram", me)
    assert inbound is not None
    return inbound


def test_a_private_text() -> None:
    """A private message is direct, is named by its message id, and needs no anchor."""
    assert read(said(text="Hello")) == Inbound(
        address=Address("telegram", "42"), native_id="7", sender="42", sender_name="Ann Li", text="Hello", sent_at=1.0
    )


def test_a_message_in_a_topic_of_a_group() -> None:
    """A group message carries its topic and an anchor, and is not for the bot unless it says so."""
    inbound = read(said(GROUP, text="Hello all", message_thread_id=5, is_topic_message=True))
    assert inbound.address == Address("telegram", "-100123", "5")
    assert (inbound.anchor, inbound.direct) == ("7", False)


def test_a_thread_of_replies_is_no_topic() -> None:
    """message_thread_id without is_topic_message is no place to send to."""
    assert read(said(GROUP, text="x", message_thread_id=5)).address.thread == ""


def test_a_topic_in_a_private_chat() -> None:
    """Private chats may have topics, and still need no anchor."""
    inbound = read(said(text="x", message_thread_id=5, is_topic_message=True))
    assert (inbound.address.thread, inbound.anchor) == ("5", None)


@pytest.mark.parametrize(
    ("fields", "attachment"),
    [
        (
            {
                "photo": [
                    {"file_id": "s", "width": 90, "height": 90, "file_size": 900},
                    {"file_id": "L", "width": 1280, "height": 960, "file_size": 90_000},
                    {"file_id": "m", "width": 320, "height": 240},
                ]
            },
            Attachment("photo", "L", size=90_000),
        ),
        (
            {"voice": {"file_id": "v", "duration": 3, "mime_type": "audio/ogg", "file_size": 12}},
            Attachment("voice", "v", mime="audio/ogg", size=12),
        ),
        (
            {"audio": {"file_id": "a", "title": "Song", "mime_type": "audio/mpeg"}},
            Attachment("audio", "a", name="Song", mime="audio/mpeg"),
        ),
        (
            {"video": {"file_id": "f", "file_name": "a.mp4", "mime_type": "video/mp4"}},
            Attachment("video", "f", name="a.mp4", mime="video/mp4"),
        ),
        ({"video_note": {"file_id": "n"}}, Attachment("video note", "n")),
        (
            {"document": {"file_id": "d", "file_name": "report.pdf", "mime_type": "application/pdf", "file_size": 5}},
            Attachment("file", "d", name="report.pdf", mime="application/pdf", size=5),
        ),
        ({"sticker": {"file_id": "t", "emoji": "🎉"}}, Attachment("sticker", "t", name="🎉")),
        (
            {"animation": {"file_id": "g", "file_name": "c.gif"}, "document": {"file_id": "g"}},
            Attachment("animation", "g", name="c.gif"),
        ),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, Attachment("location", "", name="52.5, 13.4")),
        (
            {"venue": {"title": "Café", "address": "Main St 1"}, "location": {"latitude": 1.0, "longitude": 2.0}},
            Attachment("venue", "", name="Café, Main St 1"),
        ),
        (
            {"contact": {"first_name": "Bo", "phone_number": "+491"}},
            Attachment("contact", "", name="Bo +491"),
        ),
        ({"poll": {"question": "Tea?", "options": []}}, Attachment("poll", "", name="Tea?")),
        ({"dice": {"emoji": "🎲", "value": 6}}, Attachment("dice", "", name="🎲 6")),
        ({"story": {"id": 1}}, Attachment("story", "")),
        ({"game": {"title": "Snake"}}, Attachment("game", "", name="Snake")),
        ({"paid_media": {"star_count": 3}}, Attachment("paid media", "")),
        ({"hologram": {"file_id": "h"}}, Attachment("unknown", "")),
        ({}, Attachment("unknown", "")),
        ({"photo": "garbage"}, Attachment("photo", "")),
        ({"document": {"file_id": 5, "file_size": 2**80, "file_name": "\ud800"}}, Attachment("file", "", "\ufffd")),
    ],
)
def test_a_message_without_text_says_what_came(fields: dict[str, Any], attachment: Attachment) -> None:
    """Every kind of content, also one that is newer than this code, is one attachment with an empty text."""
    inbound = read(said(**fields))
    assert (inbound.text, inbound.attachments) == ("", (attachment,))
    assert inbound.unreadable is None


def test_a_caption_is_the_text() -> None:
    """What stands below a photo is what the user said; the album that it is of is named."""
    photo = [{"file_id": "p", "width": 1, "height": 1}]
    inbound = read(said(photo=photo, caption="Look", media_group_id="1357"))
    assert (inbound.text, inbound.group) == ("Look", "1357")
    assert [attachment.kind for attachment in inbound.attachments] == ["photo"]


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("fields", "direct"),
    [
        ({"text": "hi"}, False),
        ({"text": "@HermesBot hi", "entities": [entity("mention", 0, 10)]}, True),
        ({"text": "😀 @hermesbot", "entities": [entity("mention", 3, 10)]}, True),
        ({"text": "@HermesBotX hi", "entities": [entity("mention", 0, 11)]}, False),
        ({"text": "@HermesBot in code", "entities": [entity("code", 0, 10)]}, False),
        ({"text": "you", "entities": [entity("text_mention", 0, 3, user={"id": 4711})]}, True),
        ({"text": "you", "entities": [entity("text_mention", 0, 3, user={"id": 1})]}, False),
        ({"caption": "@HermesBot", "caption_entities": [entity("mention", 0, 10)], "dice": {}}, True),
        ({"text": "yes", "reply_to_message": {"message_id": 1, "from": {"id": 4711, "is_bot": True}}}, True),
        ({"text": "yes", "reply_to_message": {"message_id": 1, "from": {"id": 5}}}, False),
        ({"text": "x", "reply_to_message": {"from": {"id": 4711}, "forum_topic_created": {"name": "T"}}}, False),
        ({"text": "/stop@HermesBot", "entities": [entity("bot_command", 0, 15)]}, True),
        ({"text": "/stop@OtherBot", "entities": [entity("bot_command", 0, 14)]}, False),
        (
            {
                "text": "/stop@OtherBot",
                "entities": [entity("bot_command", 0, 14)],
                "reply_to_message": {"from": {"id": 4711}},
            },
            False,
        ),
        ({"text": "/stop", "entities": [entity("bot_command", 0, 5)]}, True),
        ({"text": "/Stop", "entities": [entity("bot_command", 0, 5)]}, True),
        ({"text": "/weather", "entities": [entity("bot_command", 0, 8)]}, False),
        ({"text": "see /stop", "entities": [entity("bot_command", 4, 5)]}, False),
        ({"text": "hi", "entities": "garbage"}, False),
        ({"text": "hi", "entities": [None, entity("mention", -1, 3), entity("mention", 9, 3), {"type": []}]}, False),
    ],
)
def test_a_group_message_is_for_the_bot_only_when_it_says_so(fields: dict[str, Any], direct: bool) -> None:
    """A command, a mention or a reply addresses the bot; a command of another bot does not, not even as a reply."""
    assert read(said(GROUP, **fields), Identity(4711, "HermesBot", commands=frozenset({"stop"}))).direct is direct


def test_the_bots_own_name_behind_a_command_is_dropped() -> None:
    """`/queue@ourname text` reads as `/queue text`; the rest of the text stays."""
    update = said(GROUP, text="/queue@hermesbot x @hermesbot", entities=[entity("bot_command", 0, 16)])
    assert read(update).text == "/queue x @hermesbot"


def test_a_bare_command_is_ours_while_no_menu_is_known() -> None:
    """Before the bot's commands are known every bare command counts."""
    assert read(said(GROUP, text="/stop", entities=[entity("bot_command", 0, 5)])).direct


@pytest.mark.parametrize(
    "update",
    [
        said(text="hi", **{"from": {"id": 4711, "is_bot": True, "first_name": "Hermes"}}),
        said(GROUP, text="hi", **{"from": {"id": 4711, "first_name": "Hermes"}}),
        said(GROUP, text="hi", **{"from": {"id": 99, "is_bot": True, "first_name": "Other"}}),
        said(GROUP, new_chat_members=[ANN]),
        said(GROUP, pinned_message={"message_id": 3}),
        said(GROUP, forum_topic_created={"name": "T"}, message_thread_id=3, is_topic_message=True),
        said(GROUP, migrate_to_chat_id=-1001),
        {"update_id": 1, "edited_message": {"message_id": 7, "from": ANN, "chat": PRIVATE, "text": "edited"}},
        {"update_id": 1, "callback_query": {"id": "9", "from": ANN, "data": "x"}},
        {"update_id": 1, "my_chat_member": {"chat": PRIVATE, "from": ANN}},
        {"update_id": 1, "something_new": {}},
        {"update_id": 1},
    ],
)
def test_what_no_user_said_is_nothing_and_moves_the_cursor(update: dict[str, Any]) -> None:
    """Bots, service messages, edits, presses and memberships start no turn, and are confirmed."""
    batch = read_batch([update], "telegram", ME)
    assert (batch.inbound, batch.next_offset) == ((), update["update_id"] + 1)


def test_who_speaks_in_the_name_of_a_chat_is_that_chat() -> None:
    """An anonymous administrator is heard under the group's id, although Telegram's stand-in is marked as a bot."""
    stand_in = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    inbound = read(said(GROUP, text="hi", sender_chat={"id": -100123, "title": "Team"}, **{"from": stand_in}))
    assert (inbound.sender, inbound.sender_name) == ("-100123", "Team")


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ({"id": 1, "first_name": "A\nB", "last_name": "C"}, "A B C"),
        ({"id": 1, "username": "ann"}, "@ann"),
        ({"id": 1, "first_name": "", "username": "ann"}, "@ann"),
        ({"id": 1}, ""),
        ({"id": 1, "first_name": 5}, ""),
        ({"id": 1, "first_name": "\ud83d\ude00"}, "😀"),
        ({"id": 1, "first_name": "x" * 500}, "x" * 128),
    ],
)
def test_a_readable_name(user: dict[str, Any], name: str) -> None:
    """The name is one line of bounded length that can be stored."""
    assert read(said(text="hi", **{"from": user})).sender_name == name


def test_text_is_repaired() -> None:
    """Lone surrogates and NUL do not get past the border."""
    assert read(said(text="a\ud800b\x00c\ud83d\ude00")).text == "a\ufffdbc😀"


@pytest.mark.parametrize(
    "message",
    [
        None,
        "garbage",
        [],
        {},
        {"message_id": "7", "from": ANN, "chat": PRIVATE, "text": "hi"},
        {"message_id": True, "from": ANN, "chat": PRIVATE, "text": "hi"},
        {"message_id": 2**70, "from": ANN, "chat": PRIVATE, "text": "hi"},
        {"message_id": float("inf"), "from": ANN, "chat": PRIVATE, "text": "hi"},
        {"message_id": 7, "from": ANN, "chat": {"id": "x"}, "text": "hi"},
        {"message_id": 7, "from": ANN, "text": "hi"},
        {"message_id": 7, "chat": PRIVATE, "text": "hi"},
        {"message_id": 7, "from": {"id": None}, "chat": PRIVATE, "text": "hi"},
        {"message_id": 7, "from": ANN, "chat": PRIVATE, "text": ["hi"]},
        {"message_id": 7, "from": ANN, "chat": PRIVATE, "text": "x" * 99_999, "caption": {}, "chat_": 0} | {"text": 1},
    ],
)
def test_what_cannot_be_understood_is_kept_escaped(message: object) -> None:
    """A message without what a turn needs becomes an unreadable row under its update id; the cursor moves on."""
    update = {"update_id": 31, "message": message}
    batch = read_batch([update, said(text="next")], "telegram", ME)
    broken, following = batch.inbound
    assert broken.native_id == "update:31"
    assert broken.text == ""
    assert broken.unreadable == json.dumps(update)[:PAYLOAD_LIMIT]
    assert following.text == "next"
    assert batch.next_offset == 901


def test_an_unreadable_message_keeps_the_place_and_person_that_are_known() -> None:
    """The notice about it can go to where it came from."""
    broken = read({"update_id": 1, "message": {"from": ANN, "chat": PRIVATE, "text": 1}})
    assert (broken.address, broken.sender, broken.direct) == (Address("telegram", "42"), "42", True)


def test_an_unreadable_payload_is_bounded() -> None:
    """A huge payload is cut; what is kept is ASCII."""
    broken = read({"update_id": 1, "message": {"text": "é\ud800" * 99_999}})
    assert broken.unreadable is not None
    assert len(broken.unreadable) == PAYLOAD_LIMIT
    assert broken.unreadable.isascii()


def test_redelivery_has_the_same_identity() -> None:
    """However often an update comes, its native id is the same, also for what is unreadable."""
    for update in (said(text="x"), {"update_id": 1, "message": 3}, "junk", {"message": {"no": "id"}}):
        first, second = read(update), read(json.loads(json.dumps(update)))
        assert (first.address, first.native_id) == (second.address, second.native_id)


def test_a_number_that_is_too_long_spoils_only_its_own_message() -> None:
    """Thousands of digits in one update leave the rest of the batch readable."""
    spoiled = json.dumps(said(text="a")).replace('"message_id": 7', f'"message_id": {"9" * 5000}')
    body = f"[{spoiled}, {json.dumps(said(text='b'))}]".encode()
    first, second = read_batch(decode(body), "telegram", ME).inbound
    assert first.unreadable is not None
    assert second.text == "b"


def test_the_offset_is_behind_the_newest() -> None:
    """The next offset confirms the whole batch; ids that are none do not count."""
    batch = [{"update_id": 12}, {"update_id": 10}, {"update_id": "99"}, {"update_id": True}, {"update_id": 2**70}, 5]
    assert read_batch(batch, "telegram", ME).next_offset == 13
    assert read_batch([{"update_id": None}], "telegram", ME).next_offset is None


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800")
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@given(data=st.data())
def test_nothing_raises_and_no_message_is_lost(data: st.DataObject) -> None:
    """Whichever parts of a message are replaced by anything, it stays a message, unless a bot is now its author."""
    full = said(
        GROUP,
        text="/a",
        photo=[{"file_id": "p", "width": 1, "height": 1}],
        entities=[entity("bot_command", 0, 2)],
        reply_to_message={"from": {"id": 4711}},
        location={"latitude": 1.0, "longitude": 2.0},
        media_group_id="1",
    )
    message = full["message"]
    for key in data.draw(st.sets(st.sampled_from(sorted(message)), max_size=4)):
        if isinstance(message[key], dict) and data.draw(st.booleans()):
            inner = data.draw(st.sampled_from(sorted(message[key])))
            message[key] = {**message[key], inner: data.draw(values)}
        else:
            message[key] = data.draw(values)
    inbound = read_update(full, "telegram", ME)
    if inbound is None:
        assert message["from"]["is_bot"] is True or message["from"]["id"] == ME.user_id
        return
    for text in (inbound.text, inbound.sender_name, inbound.native_id, *(a.name for a in inbound.attachments)):
        text.encode()
        assert "\x00" not in text


@given(update=values)
def test_anything_at_all_can_be_read(update: object) -> None:
    """What is no update raises nothing either; unless it is an object without a message, it is kept."""
    inbound = read_update(update, "telegram", ME)
    assert (inbound is None) == (isinstance(update, dict) and "message" not in update)


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("Hermes, what time is it?", True),
        ("hermes what", True),
        ("Hermes", True),
        ("  HERMES! now", True),
        ("Hermesian things", False),
        ("ask Hermes", False),
        ("", False),
    ],
)
def test_a_message_that_begins_with_the_bots_name_is_for_it(text: str, direct: bool) -> None:
    """In a group the bot is called like a person: by its name at the beginning."""
    found = read(said(GROUP, text=text), Identity(4711, "HermesBot", "Hermes"))
    assert found is not None
    assert found.direct is direct


def test_two_words_are_a_name() -> None:
    """A name of several words counts when all of them stand at the beginning."""
    me = Identity(4711, "HermesBot", "Hermes Trio")
    assert read(said(GROUP, text="hermes trio: hello"), me).direct
    assert not read(said(GROUP, text="hermes: hello"), me).direct


def test_a_bot_without_a_name_is_not_called_by_it() -> None:
    """An empty name stands at the beginning of every message and calls nobody."""
    assert not read(said(GROUP, text="hello"), Identity(4711, "HermesBot", "")).direct
