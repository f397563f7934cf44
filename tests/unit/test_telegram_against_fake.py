"""The Telegram adapter and the real HTTP client against the Telegram fake on loopback: what people see and say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from attrs import define, field, frozen

from hermes_fakes.faults import AckLost, ErrorAfter, ResetBefore
from hermes_fakes.loopback import listen
from hermes_fakes.telegram import TelegramFake, open_telegram_fake
from hermes_trio.http import open_http_client
from hermes_trio.platforms.base import AccountRefused, Disconnected, Inbound
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.platforms.telegram import TelegramPlatform
from hermes_trio.text.body import Body, Span
from hermes_trio.values import Address

PATIENCE = 10.0
"""Seconds of real time after which a test that waits has failed."""


@define
class Inbox:
    """A Receiver that keeps what it is given and lets a test wait for it."""

    inbound: list[Inbound] = field(factory=list)
    stored: str | None = None
    arrived: trio.Event = field(factory=trio.Event)

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        self.inbound += batch
        self.stored = cursor
        self.arrived.set()
        self.arrived = trio.Event()

    async def cursor(self) -> str | None:
        return self.stored

    def alive(self) -> None:
        pass

    async def wait_for(self, count: int) -> list[Inbound]:
        with trio.fail_after(PATIENCE):
            while len(self.inbound) < count:
                await self.arrived.wait()
        return self.inbound


@frozen
class World:
    """One fake, one adapter on it, and the base of both."""

    fake: TelegramFake
    platform: TelegramPlatform
    inbox: Inbox
    nursery: trio.Nursery

    def start(self) -> None:
        self.nursery.start_soon(self.platform.run, self.inbox)

    def address(self, chat: int, thread: int | None = None) -> Address:
        return Address("telegram", str(chat), "" if thread is None else str(thread))

    async def create(self, address: Address, text: str, reply_to: int | None = None) -> Outcome:
        anchor = None if reply_to is None else str(reply_to)
        return await self.platform.create(address, Body(text), key="k", reply_to=anchor)


@asynccontextmanager
async def open_world(token: str = "") -> AsyncIterator[World]:
    async with open_telegram_fake() as fake, trio.open_nursery() as nursery, open_http_client() as client:
        port = await listen(fake, nursery)
        base = f"http://127.0.0.1:{port}"
        platform = TelegramPlatform(
            client, "telegram", token or fake.token, base_url=base, poll_timeout=5, request_timeout=0.5
        )
        yield World(fake, platform, Inbox(), nursery)
        nursery.cancel_scope.cancel()


async def sent(world: World, address: Address, text: str) -> str:
    outcome = await world.create(address, text)
    assert isinstance(outcome, Accepted)
    assert outcome.message_id is not None
    return outcome.message_id


async def test_a_conversation() -> None:
    """What a person writes comes in, and what the bot creates, edits and deletes is what she then sees."""
    async with open_world() as world:
        alice = world.fake.user("alice")
        alice.says("hi")
        world.start()
        (first,) = await world.inbox.wait_for(1)
        assert (first.text, first.sender, first.direct) == ("hi", str(alice.id), True)
        await world.platform.typing(first.address)
        assert world.fake.is_typing(alice)
        message = await sent(world, first.address, "…")
        body = Body("😀 bold", (Span(2, 4, "bold"),))
        assert await world.platform.edit(first.address, message, body) == Accepted()
        assert await world.platform.edit(first.address, message, body) == Accepted()
        assert world.fake.bot_texts(alice) == ["😀 bold"]
        shown = world.fake.screen(alice)[-1]
        assert [(e["type"], e["offset"], e["length"]) for e in shown.entities] == [("bold", 3, 4)]
        assert await world.platform.delete(first.address, message) == Accepted()
        assert world.fake.bot_texts(alice) == []


async def test_what_people_send_besides_text() -> None:
    """A photo can be fetched, an album is one group, a sticker and a location are told apart, an edit is nothing."""
    async with open_world() as world:
        alice = world.fake.user("alice")
        world.start()
        alice.sends_photo("look", b"\xff\xd8\xffpicture")
        alice.sends_album(b"1", b"2", caption="both")
        alice.sends_sticker()
        alice.sends_anything("location", {"latitude": 1.5, "longitude": 2.5})
        alice.says("first")
        alice.edits("second")
        alice.says("last")
        inbound = await world.inbox.wait_for(7)
        kinds = [[attachment.kind for attachment in message.attachments] for message in inbound]
        assert kinds == [["photo"], ["photo"], ["photo"], ["sticker"], ["location"], [], []]
        assert [message.text for message in inbound] == ["look", "both", "", "", "", "first", "last"]
        assert inbound[1].group == inbound[2].group is not None
        assert await world.platform.fetch(inbound[0].attachments[0]) == ("image/jpeg", b"\xff\xd8\xffpicture")


async def test_a_forum_a_mention_and_a_reply() -> None:
    """In a topic only what addresses the bot is direct; the answer goes to the topic and shows its anchor."""
    async with open_world() as world:
        alice, forum = world.fake.user("alice"), world.fake.group("Team", forum=True)
        thread = world.fake.topic(forum, "Plans")
        world.start()
        alice.says("just talking", chat=forum, thread=thread)
        alice.says("@hermes_bot what now", chat=forum, thread=thread)
        quiet, asked = await world.inbox.wait_for(2)
        assert (quiet.direct, asked.direct) == (False, True)
        assert asked.address == world.address(forum.id, thread)
        assert isinstance(await world.create(asked.address, "this", reply_to=int(asked.native_id)), Accepted)
        shown = world.fake.screen(forum)[-1]
        assert (shown.thread, shown.reply_to) == (thread, int(asked.native_id))
        alice.says("thanks", chat=forum, thread=thread, reply_to=shown)
        assert (await world.inbox.wait_for(3))[2].direct


async def test_redelivery_has_the_same_native_id() -> None:
    """The same update once more is the same message."""
    async with open_world() as world:
        world.start()
        update = world.fake.user("alice").says("hi")
        await world.inbox.wait_for(1)
        world.fake.redeliver(update)
        first, second = await world.inbox.wait_for(2)
        assert first == second


async def test_a_deleted_anchor_is_dropped_in_the_same_request() -> None:
    """A reply to a message that is gone arrives without its anchor, by one create."""
    async with open_world() as world:
        alice = world.fake.user("alice")
        world.start()
        alice.says("hi")
        (first,) = await world.inbox.wait_for(1)
        alice.deletes(int(first.native_id))
        assert isinstance(await world.create(first.address, "answer", reply_to=int(first.native_id)), Accepted)
        assert world.fake.screen(alice)[-1].reply_to is None


async def test_refusals() -> None:
    """Deleted, blocked, kicked, moved and closed are told apart by what the server really says."""
    async with open_world() as world:
        alice, fake = world.fake.user("alice"), world.fake
        alice.says("hi")
        here = world.address(alice.chat)
        message = await sent(world, here, "x")
        alice.deletes(int(message))
        assert reason(await world.platform.edit(here, message, Body("y"))) is Reason.NOT_FOUND
        assert reason(await world.platform.delete(here, message)) is Reason.NOT_FOUND
        assert reason(await world.create(here, "x" * 4097)) is Reason.TOO_LONG
        assert reason(await world.create(world.address(999), "x")) is Reason.DEAD_ADDRESS
        alice.blocks()
        assert reason(await world.create(here, "x")) is Reason.DEAD_ADDRESS
        forum = fake.group("Forum", forum=True)
        thread = fake.topic(forum, "Plans")
        fake.closes_topic(forum, thread)
        assert reason(await world.create(world.address(forum.id, thread), "x")) is Reason.TOPIC_GONE
        fake.kick(forum)
        assert reason(await world.create(world.address(forum.id), "x")) is Reason.DEAD_ADDRESS
        group = fake.group("Group")
        moved = fake.migrate(group)
        outcome = await world.create(world.address(group.id), "x")
        assert isinstance(outcome, Refused)
        assert (outcome.reason, outcome.moved_to) == (Reason.MOVED, str(moved.id))


def reason(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Refused), outcome
    return outcome.reason


@pytest.mark.parametrize(
    ("effect", "copies"),
    [(AckLost(), 1), (AckLost(silent=True), 1), (ResetBefore(), 0), (ErrorAfter(500), 1)],
)
async def test_a_lost_answer_is_unknown(effect: AckLost | ResetBefore | ErrorAfter, copies: int) -> None:
    """Whether the server took the create or not: without its answer the outcome is unknown, and it was asked once."""
    async with open_world() as world:
        alice = world.fake.user("alice")
        alice.says("hi")
        world.fake.faults.add(effect, "sendMessage")
        assert isinstance(await world.create(world.address(alice.chat), "x"), Unknown)
        assert len(world.fake.bot_texts(alice)) == copies
        assert world.fake.faults.unhit() == []


async def test_a_closed_door_is_nothing_left() -> None:
    """A refused connection proves that nothing arrived."""
    async with open_world() as world:
        alice = world.fake.user("alice")
        alice.says("hi")
        world.fake.refuse()
        await trio.testing.wait_all_tasks_blocked()
        assert reason(await world.create(world.address(alice.chat), "x")) is Reason.NOTHING_LEFT
        assert world.fake.bot_texts(alice) == []


async def test_a_wrong_token_and_a_second_poller() -> None:
    """A wrong token is for the operator; a second poller on the same token makes the first step back."""
    async with open_world(token="123456:wrong") as world:
        with pytest.raises(AccountRefused):
            await world.platform.run(world.inbox)
    async with open_world() as world:
        with trio.fail_after(PATIENCE), pytest.raises(ExceptionGroup) as caught:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(world.platform.run, world.inbox)
                await world.fake.wait_for(lambda: any(call.method == "getUpdates" for call in world.fake.requests))
                nursery.start_soon(world.platform.run, Inbox())
        assert caught.group_contains(Disconnected, match="Another program")


async def test_the_menu() -> None:
    """The commands are the ones that the server then shows."""
    async with open_world() as world:
        assert await world.platform.set_commands({"stop": "Stops the answer"}) == Accepted()
        assert world.fake.commands() == {"stop": "Stops the answer"}
