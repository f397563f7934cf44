"""Images: what people send is looked at by a model that can, and told in words to one that cannot."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from hermes_fakes.faults import ErrorBefore
from hermes_trio.conversation.history import request_of
from hermes_trio.conversation.images import MAX_IMAGE_BYTES, MAX_IMAGES, UNSEEN
from hermes_trio.ledger.rows import MessageRow
from hermes_trio.model.base import Image
from hermes_trio.testing import World, run_world, verify_crashes

SEES = {"model": {"images": True}}
JPEG, PNG = b"\xff\xd8\xffpixels", b"\x89PNG\r\n\x1a\nmore pixels"


def content_of(world: World, request: int = -1) -> Any:
    """What the model read as the last message of a user."""
    users = [message for message in world.model.requests[request].messages if message["role"] == "user"]
    return users[-1]["content"]


def urls(content: Any) -> list[str]:
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def url(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


async def a_photo(world: World) -> None:
    """A photo with a caption, and a question after it."""
    alice = world.telegram.user("alice")
    world.model.when("what is this").says("A cat.")
    alice.user.sends_photo("what is this?", JPEG)
    await world.quiet()
    assert "".join(alice.reads()) == "A cat."
    content = content_of(world)
    assert urls(content) == [url("image/jpeg", JPEG)]
    assert "what is this?" in text_of(content)


def test_a_photo_is_shown_to_the_model() -> None:
    """The model gets the bytes that the user sent, once, beside the caption."""
    run_world(a_photo, config=SEES)


def test_a_photo_survives_a_kill_anywhere() -> None:
    """A turn that a restart resumes fetches its photo again: what the model is shown never depends on a crash."""
    verify_crashes(a_photo, config=SEES)


def test_a_later_turn_has_words_instead() -> None:
    """Nothing of an image is stored: the next turn reads that there was a photo, and is not shown it."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        alice.user.sends_photo("look", JPEG)
        await world.quiet()
        await alice.says("and now?")
        await world.quiet()
        messages = world.model.requests[-1].messages
        assert all(isinstance(message["content"], str) for message in messages)
        assert any("[the user sent a photo" in message["content"] for message in messages)
        dump = "\n".join(world.disk.connection.iterdump())
        assert base64.b64encode(JPEG).decode() not in dump
        assert JPEG.hex() not in dump.lower()

    run_world(story, config=SEES)


def test_an_album_is_one_look() -> None:
    """All photos of an album, and an image sent as a file, are shown in their order in one request."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        alice.user.sends_album(JPEG + b"1", PNG + b"2", JPEG + b"3", caption="compare")
        await world.quiet()
        assert urls(content_of(world)) == [
            url("image/jpeg", JPEG + b"1"),
            url("image/png", PNG + b"2"),
            url("image/jpeg", JPEG + b"3"),
        ]
        alice.user.sends_document("a.png", PNG, caption="this one", mime="image/png")
        await world.quiet()
        assert urls(content_of(world)) == [url("image/png", PNG)]
        assert len(world.model.requests) == 2

    run_world(story, config=SEES)


@pytest.mark.parametrize(
    ("send", "words"),
    [
        (lambda user: user.sends_photo("look", b"\xff\xd8\xff" + bytes(MAX_IMAGE_BYTES)), "too large"),
        (
            lambda user: user.sends_document("a.png", b"no image", mime="image/png", caption="look"),
            "no image of a kind",
        ),
    ],
)
def test_what_cannot_be_shown_is_told(send: Any, words: str) -> None:
    """Too large, or no image at all: the model reads why, the turn goes on, and the user gets an answer."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        send(alice.user)
        await world.quiet()
        content = content_of(world)
        assert isinstance(content, str)
        assert words in content
        assert len(alice.reads()) == 1

    run_world(story, config=SEES)


def test_a_photo_that_cannot_be_fetched_is_told() -> None:
    """One photo of two is refused by the platform: the other is shown, and the model reads about the first."""

    async def story(world: World) -> None:
        world.telegram.fake.faults.add(ErrorBefore(500), "file")
        alice = world.telegram.user("alice")
        alice.user.sends_album(JPEG, PNG, caption="look")
        await world.quiet()
        content = content_of(world)
        assert urls(content) == [url("image/png", PNG)]
        assert "[the photo cannot be shown: " in text_of(content)

    run_world(story, config=SEES)


def test_too_many_are_told() -> None:
    """More photos than a turn shows: the first are shown, the number of the others is told."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        alice.user.sends_album(*[JPEG + bytes([n]) for n in range(MAX_IMAGES + 2)], caption="look")
        await world.quiet()
        content = content_of(world)
        assert len(urls(content)) == MAX_IMAGES
        assert "[2 more cannot be shown" in text_of(content)

    run_world(story, config=SEES)


def test_a_model_without_eyes_is_told() -> None:
    """By default nothing is fetched, and the request says that images cannot be seen."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        alice.user.sends_photo("look", JPEG)
        await world.quiet()
        assert UNSEEN in content_of(world)
        assert "getFile" not in {call.method for call in world.telegram.fake.requests}
        assert len(alice.reads()) == 1

    run_world(story)


def test_a_fallback_without_eyes_is_told() -> None:
    """When the model that takes images fails, the one that answers in its place reads that there was one."""
    blind = {"kind": "openai", "base_url": "http://model.test/v1", "name": "blind"}

    async def story(world: World) -> None:
        world.model.fails(401)
        world.model.says("I cannot see it.")
        alice = world.telegram.user("alice")
        alice.user.sends_photo("look", JPEG)
        await world.quiet()
        assert alice.reads() == ["I cannot see it."]
        assert urls(content_of(world, 0)) == [url("image/jpeg", JPEG)]
        assert "1 image came with this" in content_of(world)

    run_world(story, config={"model": {"images": True, "fallback": [blind]}})


def test_images_stand_at_the_turns_own_message() -> None:
    """Neither an earlier turn, nor what was steered to this one, is shown with its images."""

    def said(number: int, turn: str, text: str) -> MessageRow:
        return MessageRow(number, turn, "user", text, (), None, None, None, False, 0.0)

    image = Image("image/png", PNG)
    rows = [said(1, "old", "before"), said(2, "now", "look"), said(3, "now", "and hurry")]
    request = request_of("", rows, turn="now", images=(image,), remark="[one is missing]")
    assert [(message.content, message.images) for message in request] == [
        ("before", ()),
        ("look\n[one is missing]", (image,)),
        ("and hurry", ()),
    ]
