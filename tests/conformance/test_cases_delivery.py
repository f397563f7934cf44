"""Cases of the section "delivery": a reply is identified, tried, resumed and ended as one thing."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from stories import CREATE, EDIT, MARKED, answer, ask, foot, read, words

from hermes_trio.conversation.notices import EMPTY, FAILED
from hermes_trio.testing import World, run_world, verify_crashes
from hermes_trio.testing.faults import Fault


def creates(world: World) -> list[str]:
    """The texts of all accepted creates."""
    return [change.args["text"] for change in world.telegram.fake.history if change.method == "sendMessage"]


def test_what_never_left_is_tried_again_unmarked() -> None:
    """D-02: a message whose request provably never left is sent when that is possible again: once, without a marker."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        await alice.says("hello")
        await world.quiet()
        world.telegram.fake.outage(20)
        alice.user.says("/whoami")
        world.telegram.fake.admit()
        await trio.sleep(0.02)
        world.telegram.fake.refuse(5)
        await world.quiet()
        answers = [text for text in alice.reads() if "telegram:" in text]
        assert len(answers) == 1
        assert not answers[0].startswith(MARKED)

    for seed in range(5):
        run_world(story, seed)


def test_one_identity_from_preview_to_recovery() -> None:
    """D-03: the final loses its acknowledgement, the bot is killed: preview, final and recovery are one message."""

    async def story(world: World) -> None:
        world.inject(Fault("ack_lost", EDIT, contains=foot("D3")))
        world.inject(Fault("crash", EDIT, contains=foot("D3"), nth=2))
        await ask(world, "D3", chunks=6, interval=0.3)
        assert len(creates(world)) == 1

    run_world(story)


def test_parts_of_two_replies_do_not_mix() -> None:
    """D-04: two replies of three parts each for one chat stand one after the other, whole."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        for label in ("one", "two"):
            world.model.when(label).says(answer(label, 9000))
        await alice.says("one, please")
        await alice.says("two, please")
        await world.quiet()
        assert words(alice.reads()) == read("one", 9000) + read("two", 9000)

    verify_crashes(
        story, config={"chat": {"busy": "queue"}}, points=lambda numbers: numbers[:: max(1, len(numbers) // 10)]
    )


def test_a_late_interrupt_does_not_fence_a_finished_answer() -> None:
    """D-07: the final request takes 8 s; a message in the meantime has its own answer, and both stand once."""

    async def story(world: World) -> None:
        world.inject(Fault("delay", EDIT, contains=foot("first"), seconds=8.0))
        alice = world.telegram.user("alice")
        for label in ("first", "second"):
            world.model.when(label).says(answer(label))
        await alice.says("first, please")
        await world.telegram.fake.wait_for(
            lambda: any(foot("first") in call.text for call in world.telegram.fake.requests)
        )
        await alice.says("second, please")
        await world.quiet()
        assert words(alice.reads()) == read("first") + read("second")

    run_world(story)


def test_what_was_said_before_a_tool_is_not_the_answer() -> None:
    """D-08: a sentence before a tool call does not satisfy the debt: the answer replaces it, once."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.when("D8").calls("clock", {}, text="Let me look.").then().says(answer("D8", 900))
        await alice.says("D8, please")
        await world.quiet()
        assert words(alice.reads()) == read("D8", 900)

    verify_crashes(story)


@pytest.mark.parametrize("nothing", ["", " \n\t ", "<!-- -->\n", "\u200b", "**  **", "---\n"])
def test_an_empty_answer_is_one_notice(nothing: str) -> None:
    """D-09: an answer that shows nothing becomes one notice; no request ever has a blank text."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        for _ in range(4):
            world.model.says(nothing)
        await alice.says("say nothing")
        await world.quiet()
        assert len(alice.reads()) == 1
        assert alice.reads()[0].strip()
        for call in world.telegram.fake.requests:
            assert call.method not in ("sendMessage", "editMessageText") or call.text.strip()
        if not nothing.strip():
            assert alice.reads() == [EMPTY]

    run_world(story)


SOON: Any = {"model": {"idle_timeout": 5, "retries": 1}}


def test_a_stream_that_hangs_is_replaced() -> None:
    """D-11, P-08: half an answer is visible and the stream hangs: the second attempt replaces it, and nothing of the
    first, or of the turn before, is left."""

    async def story(world: World) -> None:
        await ask(world, "before")
        alice = world.telegram.user("alice")
        world.model.when("again").says(answer("whole"))
        world.model.when("again", once=True).says("Half an answer that never", chunks=5, interval=0.2).stalls()
        await alice.says("again, please")
        await world.quiet()
        assert words(alice.reads()) == read("before") + read("whole")

    run_world(story, config=SOON)


def test_a_stream_that_says_nothing_is_one_notice() -> None:
    """D-11: it hangs without a word, also at the second attempt: one notice, and not the answer before."""

    async def story(world: World) -> None:
        await ask(world, "before")
        alice = world.telegram.user("alice")
        world.model.when("again").stalls()
        await alice.says("again, please")
        await world.quiet()
        assert words(alice.reads()[:1]) == read("before")
        assert alice.reads()[1:] == [FAILED]

    run_world(story, config=SOON)


def test_a_receipt_outlives_what_goes_wrong_behind_it() -> None:
    """D-06: the platform has accepted, and then the disk is full or the bot dies: no second copy of anything."""

    async def story(world: World) -> None:
        world.inject(Fault("disk_full", "wire~ sendMessage", seconds=8.0))
        await ask(world, "D6", chunks=6, interval=0.3)
        assert all(text == "…" for text in creates(world))

    verify_crashes(story)


def test_the_stored_text_is_what_a_restart_shows() -> None:
    """M-01: what recovery sends is the stored answer, markup included, and not something made anew."""

    async def story(world: World) -> None:
        world.inject(Fault("crash", "commit! answer"))
        alice = await ask(world, "M1")
        [message] = [message for message in alice.screen() if message.text.startswith("<<A-M1>>")]
        assert {entity["type"] for entity in message.entities} == {"bold", "code"}
        assert len(world.model.requests) == 1

    run_world(story)


def test_a_create_that_took_effect_unseen_leaves_one_copy() -> None:
    """D-01: the create is stored and its answer lost, cut off or a 500: the content stands once, unmarked."""
    for name, options in (("ack_lost", {"silent": True}), ("ack_lost", {}), ("error_after", {"status": 500})):

        async def story(world: World, name: str = name, options: dict[str, Any] = options) -> None:
            world.inject(Fault(name, CREATE, **options))
            alice = await ask(world, "D1")
            assert not any(text.startswith(MARKED) for text in alice.sees())

        run_world(story)
