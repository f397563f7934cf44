"""B7, D9: a crowd that talks at once. No promise is broken, wherever it is killed, and no chat waits for another.

Everybody writes three messages. Those of the one half interrupt each other, those of the other half queue. The first
chat's model says nothing for two minutes, and the second chat's wire swallows its first two requests: that is their
trouble and nobody else's.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import pytest
import trio

from hermes_fakes.faults import NeverSeen
from hermes_fakes.model import ModelRequest, Script
from hermes_trio.conversation.notices import INTERRUPTED
from hermes_trio.testing import World, direct_bot, run_world, verify_crashes
from hermes_trio.testing.people import Person

MESSAGES = 3
STREAM = 2.4
"""Seconds that each answer streams."""
SLOW = 120.0
"""Seconds for which the model is silent in the first chat."""
OWN_TIME = STREAM + 12.0
"""Seconds after the end of what is before it in its own chat in which an answer is on the screen: its stream, and a few
commits of which the world's disk makes one in 300 three seconds slow. It is the same for a crowd of any size."""
CROWD, FEW = 200, 24
APART = (0.1, 1.2)
"""Seconds that a life of the bot lasts in a storm, at least and at most."""


def label(chat: int, number: int) -> str:
    """What stands in a message and in its answer, and in no other."""
    return f"chat{chat:03}.{number}"


def said(name: str) -> str:
    """The answer to the message with this label."""
    return f"<<{name}>> {'some words of an answer ' * 4}<</{name}>>"


def answer(request: ModelRequest) -> Script:
    """The model: every answer takes its time."""
    name = next(word for word in request.last_user_text.split() if word.startswith("chat"))
    text = said(name)
    script = Script()
    if name == label(0, 0):
        script.waits(SLOW)
    return script.says(text, chunks=len(text) // 8, interval=STREAM / 8)


async def impatient(person: Person, chat: int) -> None:
    """Each message comes as soon as the answer to the one before it begins to stream, or does not for a while."""
    for number in range(MESSAGES):
        name = label(chat, number)
        await person.says(f"tell me {name} please")
        with trio.move_on_after(STREAM):
            await person.fake.wait_for(partial(_shows, person, name))


def _shows(person: Person, name: str) -> bool:
    return any(name in text for text in person.sees())


async def patient(person: Person, chat: int) -> None:
    """Each message waits in the queue for the one before it."""
    for number in range(MESSAGES):
        await person.says(f"{'/queue ' if number else ''}tell me {label(chat, number)} please")
        await trio.sleep(0.3)


def crowd(size: int) -> Callable[[World], Awaitable[None]]:
    """The story of so many chats."""

    async def story(world: World) -> None:
        world.model.default = answer
        people = [world.telegram.user(f"person {chat}") for chat in range(size)]
        to_the_second = str(people[1].user.chat)
        world.telegram.fake.faults.add(
            NeverSeen(), "sendMessage", when=lambda call: str(call.args["chat_id"]) == to_the_second, count=2
        )
        async with trio.open_nursery() as nursery:
            for chat, person in enumerate(people):
                nursery.start_soon(patient if chat % 2 else impatient, person, chat)
        await world.quiet()
        for chat, person in enumerate(people):
            _has_its_answers(world, person, chat)
        if not world.boundaries.crashes:
            late = [delay for chat in range(2, size) for delay in _delays(world, people[chat], chat)]
            assert max(late) < OWN_TIME, sorted(late)[-10:]

    return story


def _has_its_answers(world: World, person: Person, chat: int) -> None:
    """One outcome for each message, and the screen says the same: nothing is doubled, open or missing."""
    states = _states(world, person)
    for number in range(MESSAGES):
        name = label(chat, number)
        complete = sum(said(name) in text for text in person.sees())
        assert complete == (states[name] == "answered"), (states, person.sees())
        assert states[name] == "answered" or (not chat % 2 and number < MESSAGES - 1 and states[name] == "interrupted")
        pieces = [text for text in person.sees() if f"<<{name}>>" in text and said(name) not in text]
        assert all(text.endswith(INTERRUPTED.replace("*", "")) for text in pieces), pieces


def _states(world: World, person: Person) -> dict[str, str]:
    """By the label of each message: what became of it."""
    rows = world.disk.connection.execute("SELECT text, state FROM inbox WHERE chat = ?", (str(person.user.chat),))
    return {row["text"].split()[2]: row["state"] for row in rows}


def _delays(world: World, person: Person, chat: int) -> Iterator[float]:
    """For each answer: the seconds from its question, or from the answer before it, until it is there in full."""
    shown = [entry for entry in world.telegram.fake.history if entry.chat_id == person.user.chat]
    before = 0.0
    for number, (asked, _) in enumerate(person.said):
        whole = said(label(chat, number))
        times = [entry.time for entry in shown if whole in str(entry.args.get("text"))]
        if times:
            yield times[0] - max(asked, before)
            before = times[0]


def chosen(count: int, seed: int = 7) -> Callable[[Sequence[int]], Sequence[int]]:
    """So many boundaries, by a seed."""
    return lambda numbers: sorted(random.Random(seed).sample(list(numbers), count))


def test_b7_a_crowd() -> None:
    """200 chats at once: every message has its one outcome, and no chat waits for another."""
    run_world(crowd(CROWD), bot=direct_bot)


@pytest.mark.parametrize("seed", range(3))
def test_b7_a_few_over_sockets(seed: int) -> None:
    """The same for a few chats with HTTP between, under several schedules."""
    run_world(crowd(FEW), seed)


def test_b7_killed() -> None:
    """A smaller crowd, killed at five boundaries in turn."""
    verify_crashes(crowd(FEW), points=chosen(5), bot=direct_bot)


@pytest.mark.soak
def test_b7_the_whole_crowd_killed() -> None:
    """200 chats, killed at fifty boundaries in turn."""
    verify_crashes(crowd(CROWD), points=chosen(50), bot=direct_bot)


def d9_storm(size: int, kills: int, seed: int) -> Callable[[World], Awaitable[None]]:
    """The crowd, and a bot that is killed again and again at random times: a turn that dies again each time soon after
    it was resumed is given up with a word, everything else is as without kills."""

    async def story(world: World) -> None:
        world.model.default = answer
        people = [world.telegram.user(f"person {chat}") for chat in range(size)]
        chance = random.Random(seed)
        async with trio.open_nursery() as nursery:
            for chat, person in enumerate(people):
                nursery.start_soon(patient if chat % 2 else impatient, person, chat)
            for _ in range(kills):
                await trio.sleep(chance.uniform(*APART))
                await world.restart()
        await world.quiet()
        assert world.lives == 1 + kills
        for chat, person in enumerate(people):
            for name, state in _states(world, person).items():
                assert sum(said(name) in text for text in person.sees()) == (state == "answered")
                assert state in ("answered", "failed") or (state == "interrupted" and not chat % 2)

    return story


@pytest.mark.parametrize("seed", range(3))
def test_d9_a_storm(seed: int) -> None:
    """D9, in short: 8 chats, 12 kills."""
    run_world(d9_storm(8, 12, seed), seed, bot=direct_bot)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_d9_the_whole_storm(seed: int) -> None:
    """D9: 30 chats, 60 kills."""
    run_world(d9_storm(30, 60, seed), seed, bot=direct_bot)
