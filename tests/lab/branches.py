"""The branches of delivery and recovery that the lab must reach, read from rows, screens and requests.

A suite in which none of these ever happens has shown nothing, however green it is. `noted` notes them at the end of
each story; `STORIES` are the ones that no row of the conformance list reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio
from attrs import frozen

from hermes_trio.conversation import notices
from hermes_trio.delivery.view import NOTICE_EXPIRED
from hermes_trio.testing import World, sometimes
from hermes_trio.testing.checker import MARKER
from hermes_trio.testing.coverage import declare
from hermes_trio.testing.faults import Fault
from hermes_trio.testing.people import PLACEHOLDER
from hermes_trio.testing.truth import Rows
from hermes_trio.testing.world import Scenario

EXPIRED = {NOTICE_EXPIRED, notices.EXPIRED}
"""What says that an answer came too late: in the place of its beginning, or as a message of its own."""


def _states(world: World) -> set[str]:
    return {row["state"] for row in Rows(world.disk.connection).obligations}


def _bot_texts(world: World) -> list[str]:
    fake = world.telegram.fake
    return [text for chat in fake.chats for text in fake.bot_texts(chat)]


def _again(world: World, method: str, *, accepted: bool) -> bool:
    """The same request was made again after one that took effect, or that did not as far as anybody knows."""
    first: dict[object, bool] = {}
    for call in world.telegram.fake.requests:
        if call.method == method:
            what = (call.args.get("chat_id"), call.args.get("message_id"), call.text)
            if first.get(what) is accepted:
                return True
            first[what] = call.outcome == "accepted"
    return False


BRANCHES: Mapping[str, Callable[[World], bool]] = {
    "retried": lambda world: _again(world, "editMessageText", accepted=False),
    "re-asserted": lambda world: _again(world, "editMessageText", accepted=True),
    "forgotten placeholder": lambda world: PLACEHOLDER in _bot_texts(world),
    "marked": lambda world: any(text.startswith(MARKER) for text in _bot_texts(world)),
    "held": lambda world: "held" in _states(world),
    "withdrawn": lambda world: "withdrawn" in _states(world),
    "resumed": lambda world: any(row["resumes"] > 0 for row in Rows(world.disk.connection).turns),
    "expired": lambda world: bool(EXPIRED.intersection(_bot_texts(world))),
}
declare(BRANCHES)


def noted(story: Scenario) -> Scenario:
    """The story, which notes at its end what it has reached."""

    async def told(world: World) -> None:
        await story(world)
        await world.quiet()
        for name, reached in BRANCHES.items():
            sometimes(name, reached(world))

    return told


async def held(world: World) -> None:
    """A command's answer of which nobody knows whether it was delivered: the operator decides about a second copy."""
    world.inject(Fault("ack_lost", "wire? sendMessage"))
    alice = world.telegram.user("alice")
    await alice.says("/help")
    await world.quiet()
    assert len(alice.reads()) <= 1, alice.sees()  # none, when it was killed before the request had left


async def withdrawn(world: World) -> None:
    """A second question while nothing of the first answer is on screen: its empty message goes away."""
    alice = world.telegram.user("alice")
    world.model.when("first").waits(9).says("Too late.")
    world.model.when("second").says("Here you are.")
    await alice.says("first")
    await trio.sleep(2)
    await alice.says("second")
    await world.quiet()
    assert alice.reads()[-1] == "Here you are.", alice.sees()


async def expired(world: World) -> None:
    """The platform cannot be reached for longer than an answer may wait: one notice says so."""
    alice = world.telegram.user("alice")
    world.model.when("late").says("It is late.", chunks=3, interval=0.5).does(lambda: world.telegram.fake.outage(50))
    await alice.says("late?")
    await trio.sleep(90)
    await world.quiet()
    assert len(alice.reads()) == 1, alice.sees()
    assert alice.reads()[0] in {*EXPIRED, "It is late."}, alice.sees()


@frozen
class Story:
    """A story and what its world is configured with."""

    tell: Scenario
    delivery: Mapping[str, Any]


STORIES = {
    "held": Story(held, {"on_uncertain": "hold"}),
    "withdrawn": Story(withdrawn, {}),
    "expired": Story(expired, {"expire": 20}),
}
