"""D9: traffic in many chats while the program is killed again and again at random times."""

from __future__ import annotations

import random

import pytest
import trio

from hermes_fakes.model import Script

from .answers import answer
from .harness import BotWorld, open_bot_world
from .talk import talk_verdict

AWAY = (0.05, 0.9)
"""Seconds that a life of the program lasts beyond its first poll, at least and at most."""


def replies(request: object) -> Script:
    """What the model says: the usual answer with the label that the question names, in a few chunks."""
    text = request.last_user_text  # type: ignore[attr-defined]  # a request of the model's fake
    label = next(word for word in text.split() if word.startswith("A-"))
    return Script().says(answer(label), chunks=60, interval=0.1)


class Traffic:
    """People who write what impatient people write, each message with a label of its own."""

    def __init__(self, world: BotWorld, chats: int, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.people = [f"user{number}" for number in range(chats)]
        self.written = 0

    def one(self) -> None:
        """Somebody writes something."""
        self.written += 1
        question = f"please A-{self.written}"
        text = self.random.choice(
            [question, question, question, f"/queue {question}", f"/q {question}", "/stop", "/status"]
        )
        self.world.asks(text, self.random.choice(self.people))

    async def run(self, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        """Writes until cancelled."""
        with trio.CancelScope() as scope:
            task_status.started(scope)
            while True:
                self.one()
                await trio.sleep(self.random.uniform(1, 7) / len(self.people))


async def storm(chats: int, kills: int, seed: int) -> None:
    """The audit holds at the end, and a quiet restart changes nothing. With lives so short a turn may be given up."""
    async with open_bot_world(chat={"busy": "interrupt"}) as world:
        world.model.default = replies
        traffic = Traffic(world, chats, seed)
        await world.start()
        async with trio.open_nursery() as nursery:
            writing = await nursery.start(traffic.run)
            for _ in range(kills):
                await trio.sleep(traffic.random.uniform(*AWAY))
                await world.kill()
                await world.start()
            writing.cancel()
        await world.wait_settled()
        talk_verdict(world, strays=chats * kills, failures=True)
        await world.restart()
        await world.wait_quiet()
        talk_verdict(world, strays=chats * kills, failures=True)


async def test_d9_a_storm() -> None:
    """D9, in short: 8 chats, 12 kills."""
    await storm(8, 12, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
async def test_d9_the_whole_storm(seed: int) -> None:
    """D9: 30 chats in traffic, 60 kills at random times."""
    await storm(30, 60, seed)
