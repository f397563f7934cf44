"""Sheer numbers: ten thousand kills and restarts of the real runtime, two thousand of them with every byte of HTTP.

Each world is one conversation that is killed again and again at boundaries that its seed chooses, so most kills meet
the consequences of earlier ones. The tests of this file share the volume, so that several workers can take part; each
asserts its own.
"""

from __future__ import annotations

import random
from itertools import accumulate

import pytest
from rows import answer, foot

from hermes_trio.conversation.notices import GAVE_UP
from hermes_trio.testing import World, direct_bot, run_world, runtime_bot
from hermes_trio.testing.life import Bot

RESTARTS, THROUGH_BYTES = 10_000, 2_000
SHARES = 20
SHARE = RESTARTS // SHARES
QUESTIONS = 8
GAP = 25
"""Boundaries between two kills, at most; an undisturbed turn passes about as many."""


async def conversation(world: World) -> None:
    """Two people ask, with and without a tool, in short and in long; each question has one answer, or one word of
    apology when it was killed too often."""
    people = [world.telegram.user("alice"), world.telegram.user("bob")]
    asked: list[list[str]] = [[], []]
    for number in range(QUESTIONS):
        row, who = f"V{number}", number % 2
        asked[who].append(row)
        script = world.model.when(f"{row},")
        if number % 3 == 0:
            script = script.calls("clock", {}, id=f"call-{number}").then()
        script.says(answer(row, 40 * number), chunks=1 + number % 4, interval=0.2)
        await people[who].says(f"{row}, please")
        if who:
            await world.quiet()
    for person, rows in zip(people, asked, strict=True):
        text = "\n".join(person.reads())
        missing = [row for row in rows if text.count(foot(row)) == 0]
        assert all(text.count(foot(row)) <= 1 for row in rows), person.sees()
        assert text.count(GAVE_UP) == len(missing), person.sees()


def kills(seed: int) -> list[int]:
    """The boundaries at which a world is killed."""
    chance = random.Random(f"kills {seed}")
    return list(accumulate(chance.randint(1, GAP) for _ in range(1000)))


def restarts(share: int, bot: Bot) -> int:
    """Plays worlds until the share is full; how often their bots were killed and started again."""
    done, seed = 0, 1000 * share
    while done < SHARE:
        done += run_world(conversation, seed, bot=bot, crash_at=kills(seed)).lives - 1
        seed += 1
    return done


@pytest.mark.parametrize("share", range(SHARES * THROUGH_BYTES // RESTARTS))
def test_killed_through_bytes(share: int) -> None:
    """Every request goes through HTTP."""
    assert restarts(share, runtime_bot) >= SHARE


@pytest.mark.parametrize("share", range(SHARES * THROUGH_BYTES // RESTARTS, SHARES))
def test_killed(share: int) -> None:
    """The short way."""
    assert restarts(share, direct_bot) >= SHARE
