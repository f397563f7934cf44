"""Cases of the section "streaming": a preview always becomes the final, whatever happens to its edits."""

from __future__ import annotations

import pytest
import trio
from stories import EDIT, answer, ask, foot, read, words

from hermes_fakes.faults import ErrorBefore, RateLimited
from hermes_trio.testing import World, run_world, verify_crashes
from hermes_trio.testing.faults import Fault


def count(world: World, method: str, outcome: str = "accepted") -> int:
    """How many requests of a method ended so."""
    return sum(call.method == method and call.outcome.startswith(outcome) for call in world.telegram.fake.requests)


def test_edits_that_stop_working_leave_no_partial() -> None:
    """S-01: from the fifth edit on every edit is refused for a while: the same message ends as the complete answer."""

    async def story(world: World) -> None:
        world.telegram.fake.faults.add(RateLimited(2), "editMessageText", nth=5, count=3)
        await ask(world, "S1", 3000, chunks=30, interval=0.1)
        assert count(world, "sendMessage") == 1

    verify_crashes(story, points=lambda numbers: numbers[:: max(1, len(numbers) // 10)])


@pytest.mark.parametrize("status", [500, 502])
def test_a_surplus_message_is_removed_in_the_end(status: int) -> None:
    """S-02, P-08: a long attempt breaks off, a short one follows; deletes that fail are repeated until all is gone."""

    async def story(world: World) -> None:
        world.telegram.fake.faults.add(ErrorBefore(status), "deleteMessage", count=2)
        alice = world.telegram.user("alice")
        world.model.when("S2").says(answer("short"))
        world.model.when("S2", once=True).says("word " * 1800, chunks=200, interval=0.1).cuts()
        await alice.says("S2, please")
        await world.quiet()
        assert words(alice.reads()) == read("short")
        assert count(world, "deleteMessage") >= 1

    run_world(story)


def test_a_lost_final_is_repeated_on_the_same_message() -> None:
    """S-04: the final edit lands and its answer is lost, or is answered 502: edited again, never sent anew."""
    for name in ("ack_lost", "error_before", "error_after", "never_seen"):

        async def story(world: World, name: str = name) -> None:
            world.inject(Fault(name, EDIT, contains=foot("S4")))
            await ask(world, "S4", chunks=6, interval=0.3)
            assert count(world, "sendMessage") == 1

        run_world(story)


@pytest.mark.parametrize("text", ["Hello", "Hello \n", "**Hello**", "Hello\n\n---\n"])
def test_a_final_that_the_preview_showed(text: str) -> None:
    """S-05: when the preview shows the final text already, no request asks for what is there."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.says(text).waits(4).says("")
        await alice.says("S5, please")
        await world.quiet()
        assert next(line.strip() for line in alice.reads()[0].splitlines()) == "Hello"
        assert count(world, "editMessageText", "refused") == 0

    run_world(story)


def test_a_flooded_final_waits_and_edits_the_same_message() -> None:
    """S-06: 429 with 20 s on the final edit: after the wait the same message is complete; other chats did not wait."""

    async def story(world: World) -> None:
        world.inject(Fault("rate_limited", EDIT, contains=foot("S6"), retry_after=20))
        alice, bob = world.telegram.user("alice"), world.telegram.user("bob")
        world.model.when("S6").says(answer("S6", 3000), chunks=100, interval=0.1)
        world.model.when("other").says(answer("other"))
        await alice.says("S6, please")
        await trio.sleep(6)
        began = trio.current_time()
        await bob.says("other, please")
        await world.telegram.fake.wait_for(lambda: words(bob.reads()) == read("other"))
        assert trio.current_time() - began < 3
        await world.quiet()
        assert words(alice.reads()) == read("S6", 3000)
        assert count(world, "sendMessage") <= 2 + world.lives - 1

    verify_crashes(story, points=lambda numbers: numbers[:: max(1, len(numbers) // 8)])


def test_an_overflowing_stream_makes_no_message_too_many() -> None:
    """S-07, S-08: 9,000 characters in small pieces: exactly as many messages are created as the answer has parts, and
    a part that is full is not edited again."""

    async def story(world: World) -> None:
        alice = await ask(world, "S8", 9000, chunks=50, interval=0.05)
        assert count(world, "sendMessage") == len(alice.reads()) == 3
        full = alice.reads()[0]
        edits = [call.text for call in world.telegram.fake.requests if call.method == "editMessageText"]
        assert edits.count(full) == 1

    run_world(story)


def test_text_before_a_tool_call_is_shown_whole() -> None:
    """S-10: what was said before the call is on the screen, to its last letter, while the tool works."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.when("S10").says("Ready to star", chunks=["Ready to star", "t now."]).calls(
            "clock", {}
        ).then().waits(5).says(answer("S10"))
        await alice.says("S10, please")
        await trio.sleep(4)
        assert alice.reads()[0].startswith("Ready to start now.")
        await world.quiet()
        assert words(alice.reads()) == read("S10")

    run_world(story)


def test_a_preview_that_its_reader_deletes() -> None:
    """M-04: the message is deleted while it streams: the answer comes in a new one, complete and once."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.when("M4").says(answer("M4", 600), chunks=60, interval=0.5)
        await alice.says("M4, please")
        await trio.sleep(2)
        await alice.deletes(alice.screen()[-1])
        await world.quiet()
        assert words(alice.reads()) == read("M4", 600)

    verify_crashes(story, points=lambda numbers: numbers[:: max(1, len(numbers) // 10)])


def test_streams_of_two_topics_do_not_mix() -> None:
    """M-06: two topics of one group stream at once, each in its own message."""

    async def story(world: World) -> None:
        fake = world.telegram.fake
        forum = fake.group("forum", forum=True)
        topics = {label: fake.topic(forum, label) for label in ("left", "right")}
        alice = world.telegram.user("alice")
        for label, thread in topics.items():
            world.model.when(label).says(answer(label, 400), chunks=40, interval=0.3)
            await alice.says(f"@hermes_bot {label}, please", chat=forum, thread=thread)
        await world.quiet()
        for label, thread in topics.items():
            texts = [m.text for m in fake.screen(forum) if m.from_bot and m.thread == thread and m.text != "…"]
            assert words(texts) == read(label, 400)

    run_world(story)
