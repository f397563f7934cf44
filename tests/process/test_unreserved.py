"""Without placeholders (`reserve = "off"`, no streaming) Telegram is a plain wire: an uncertain create costs at most
one more copy, and that one carries the marker. The plain column of the conformance list, as far as it is due.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermes_fakes.faults import AckLost, ErrorAfter, ErrorBefore, LateAccept, NeverSeen, RateLimited, ResetBefore

from .audit import read_screen
from .harness import LATENESS, REQUEST_TIMEOUT, BotWorld, open_bot_world

FOOTER = "<</A-1>>"
PLAIN: dict[str, Any] = {"delivery": {"reserve": "off"}, "chat": {"stream": False}}


def copies(world: BotWorld) -> list[bool]:
    """For each copy on alice's screen, in order: whether it is marked."""
    screen = read_screen(world.telegram.screen(world.telegram.user("alice")))
    return [copy.marked for copy in screen.copies]


@pytest.mark.parametrize(
    ("effect", "shown"),
    [
        (RateLimited(0.3), [False]),
        (ErrorBefore(502), [True]),
        (NeverSeen(), [True]),
        (ResetBefore(), [True]),
        (AckLost(), [False, True]),
        (ErrorAfter(500), [False, True]),
        (LateAccept(REQUEST_TIMEOUT + 0.8 * LATENESS), [True, False]),
    ],
    ids=["a7_rate_limit", "a17_5xx_before", "a9_send_timeout", "a9_reset", "a10_ack_lost", "a17_5xx_after", "a16_late"],
)
async def test_a_fault_at_the_create(effect: Any, shown: list[bool]) -> None:
    """A7, A9, A10, A16, A17, plain: never two unmarked copies; what was provably refused is never marked."""
    async with open_bot_world(**PLAIN) as world:
        await world.start()
        world.faults(effect, "sendMessage", contains=FOOTER)
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_settled()
        await world.wait(world.telegram, lambda: len(copies(world)) == len(shown))
        assert sorted(copies(world)) == sorted(shown)
        world.verdict(marked=shown.count(True))


@pytest.mark.parametrize(("stage", "shown"), [("?", [True]), ("~", [False, True])])
async def test_a_crash_at_the_create(stage: str, shown: list[bool]) -> None:
    """D3, D4, plain: killed with the create in flight: one copy may be marked, and there is no second unmarked one."""
    async with open_bot_world(**PLAIN) as world:
        await world.start()
        point = world.kill_at(stage, "sendMessage", contains=FOOTER)
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_death(point)
        await world.start()
        await world.wait_settled()
        assert copies(world) == shown
        world.verdict(marked=1)


async def test_a8_connection_refused() -> None:
    """A8, plain: what provably never left is sent again without a marker."""
    async with open_bot_world(**PLAIN) as world:
        await world.start()
        world.answers("A-1").does(lambda: world.telegram.outage(1.5))
        world.asks("please A-1")
        await world.wait_settled()
        assert copies(world) == [False]
        world.verdict()
