"""Conformance rows about long and streamed answers on the Telegram wire, with crashes at every boundary of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from stories import CREATE, EDIT, answer, ask, foot, read, words

from hermes_fakes.faults import ErrorBefore
from hermes_fakes.telegram import Limits
from hermes_trio.testing import World, run_world, verify_crashes
from hermes_trio.testing.faults import Fault

LONG = 8100
THREE_PARTS = 11_000
IN_PART_2 = "word0600"
"""Stands in the second of three parts only."""


def some(numbers: Sequence[int]) -> Sequence[int]:
    """A sample of boundaries: long streams have hundreds that are alike."""
    return numbers[:: max(1, len(numbers) // 10)]


async def a4_long_streamed(world: World) -> None:
    """8,100 characters, 2,500 a second in chunks."""
    alice = await ask(world, "A4", LONG, chunks=50, interval=0.02)
    assert len(alice.reads()) == 2
    assert all(len(text) <= 4096 for text in alice.sees())


async def a5_burst_overflow(world: World) -> None:
    """Two bursts of about 4,500 characters, 3 s apart: the first overflows its message at once."""
    alice = world.telegram.user("alice")
    whole = answer("A5", 9000)
    world.model.when("A5").says(whole[:4500]).waits(3).says(whole[4500:])
    await alice.says("A5, please")
    await world.quiet()
    assert words(alice.reads()) == read("A5", 9000)


async def a11_stream_429_final(world: World) -> None:
    """The final edit of a streamed answer is told to wait: it waits, and edits the same message."""
    world.inject(Fault("rate_limited", EDIT, contains=foot("A11"), retry_after=0.3))
    await ask(world, "A11", chunks=4, interval=0.3)


async def a17_5xx_before(world: World) -> None:
    """A gateway says 502 and the request with the footer had no effect."""
    world.inject(Fault("error_before", EDIT, contains=foot("A17"), status=502))
    await ask(world, "A17")


async def a17_5xx_after(world: World) -> None:
    """The request with the footer takes effect, and its answer is 500."""
    world.inject(Fault("error_after", EDIT, contains=foot("A17"), status=500))
    await ask(world, "A17")


@pytest.mark.parametrize("story", [a4_long_streamed, a5_burst_overflow, a11_stream_429_final])
def test_a_streamed_row(story: object) -> None:
    """A4, A5, A11: one complete copy, also when the bot is killed on the way."""
    verify_crashes(story, points=some)  # type: ignore[arg-type]  # parametrised stories have no common type name


@pytest.mark.parametrize("story", [a17_5xx_before, a17_5xx_after])
def test_a17_a_server_error(story: object) -> None:
    """A17: whether a 5xx hid an effect or not, one copy, unmarked."""
    verify_crashes(story)  # type: ignore[arg-type]  # as above


EFFECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "429": ("rate_limited", {"retry_after": 0.3}),
    "503": ("error_before", {"status": 503}),
    "reset": ("reset_before", {}),
    "answer lost": ("ack_lost", {}),
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("at", ["create", "text"])
def test_a18_part_2_of_3(effect: str, at: str) -> None:
    """A18, D-04: whatever happens to the second part, every part is there once, in order, and none is marked."""
    name, options = EFFECTS[effect]

    async def story(world: World) -> None:
        if at == "create":
            world.inject(Fault(name, CREATE, nth=2, **options))
        else:
            world.inject(Fault(name, EDIT, contains=IN_PART_2, **options))
        alice = await ask(world, "A18", THREE_PARTS)
        assert len(alice.reads()) == 3

    verify_crashes(story, points=some)


def test_a18r_a_refused_part() -> None:
    """A18r, D-04: a part that is refused for its content, as plain text too, leaves a note; the others stand once."""

    async def story(world: World) -> None:
        refusal = ErrorBefore(400, "Bad Request: text must be non-empty")
        world.telegram.fake.faults.add(refusal, when=lambda call: IN_PART_2 in call.text, count=None)
        alice = world.telegram.user("alice")
        world.model.when("A18r").says(answer("A18r", THREE_PARTS))
        await alice.says("A18r, please")
        await world.quiet()
        first, note, last = alice.reads()
        assert first.startswith("<<A-A18r>>")
        assert last.endswith(foot("A18r"))
        assert len(note) < 200
        assert "2" in note
        whole = read("A18r", THREE_PARTS)
        assert whole.startswith(words([first]))
        assert whole.endswith(words([last]))

    run_world(story)


def test_a20_flood() -> None:
    """A20, L-03: 20,000 streamed characters against 1 edit a second and 20 messages a minute, with bans that grow: one
    complete copy; no preview is ever one too many, and the final, which does not wait for the pace of previews, is
    refused once at most."""

    async def story(world: World) -> None:
        world.telegram.fake.limits = Limits(edit_interval=1.0, messages_per_minute=20, ban=5.0)
        await ask(world, "A20", 20_000, chunks=50, interval=0.1)
        violations = world.telegram.fake.violations
        assert len(violations) <= 1
        assert all(foot("A20") in violation.text for violation in violations)

    for seed in range(3):
        run_world(story, seed)


def test_a20_flood_with_others() -> None:
    """A20: the limit of messages is used up by commands; the answer waits, is complete, and bans do not grow."""

    async def story(world: World) -> None:
        world.telegram.fake.limits = Limits(edit_interval=1.0, messages_per_minute=6, ban=5.0)
        alice = world.telegram.user("alice")
        world.model.when("A20").says(answer("A20", 9000), chunks=50, interval=0.1)
        await alice.says("A20, please")
        for _ in range(8):
            await trio.sleep(1)
            await alice.says("/whoami")
        await world.quiet()
        said = [text for text in alice.reads() if "telegram:" not in text]
        assert words(said) == read("A20", 9000)
        assert len(world.telegram.fake.violations) <= 8, world.telegram.fake.violations

    run_world(story)


async def c3_again_after_a_reconnect(world: World) -> None:
    """The connection is lost, the adapter reconnects by itself, and the same update comes again."""
    alice = world.telegram.user("alice")
    world.model.when("C3").says(answer("C3"), chunks=6, interval=0.3)
    update = await alice.says("C3, please")
    await trio.sleep(1)
    world.telegram.fake.outage(3)
    await world.telegram.redeliver(update)
    await trio.sleep(10)
    await world.quiet()
    world.telegram.fake.outage(3)
    await world.telegram.redeliver(update)
    await trio.sleep(10)
    await world.quiet()
    assert words(alice.reads()) == read("C3")
    assert len({request.text for request in world.model.requests}) <= world.lives


def test_c3_again_after_a_reconnect() -> None:
    """C3, I-01: nothing new, during the turn and after it, also when the bot is killed anywhere."""
    verify_crashes(c3_again_after_a_reconnect)
