"""People who do not wait their turn, in the simulated world: rows B, C and D8, killed at every boundary.

What people read at the end of a story holds in every run, also in one that was killed anywhere. The promises
themselves (each message once, each turn one reply, nothing open on a screen) are judged by the checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from hermes_trio.conversation.notices import INTERRUPTED, STOPPED, UNKNOWN_EFFECT
from hermes_trio.model.base import ToolSpec
from hermes_trio.testing import World, run_world, verify_crashes
from hermes_trio.testing.people import Person

CONTEXT = 5
"""Tokens of a model that one exchange fills."""
HOLIDAY = 600.0
"""Seconds that a tool sleeps which nobody wants to wait for."""


def said(label: str) -> str:
    """A scripted answer: header, filling, footer."""
    return f"<<A-{label}>> {' '.join(f'word{number}' for number in range(12))} <</A-{label}>>"


def complete(person: Person, label: str) -> int:
    """How many complete copies of an answer a person sees."""
    return sum(said(label) in text for text in person.sees())


def open_partials(person: Person, label: str) -> list[str]:
    """Pieces of an answer that stand on the screen without their end and without a word about it."""
    return [
        text
        for text in person.sees()
        if f"<<A-{label}>>" in text and said(label) not in text and not closed(text)
    ]  # fmt: skip


def closed(text: str) -> bool:
    """It ends with a notice."""
    return any(text.endswith(notice.replace("*", "")) for notice in (INTERRUPTED, STOPPED))


def in_order(person: Person, *labels: str) -> None:
    """Each of these answers is there once and complete, in this order, and nothing of them is open."""
    assert [complete(person, label) for label in labels] == [1] * len(labels), person.sees()
    places = [next(n for n, text in enumerate(person.sees()) if said(label) in text) for label in labels]
    assert places == sorted(places), person.sees()
    for label in labels:
        assert not open_partials(person, label), person.sees()


def states(world: World) -> dict[str, str]:
    """What became of each message, by its text."""
    return {row["text"]: row["state"] for row in world.disk.connection.execute("SELECT text, state FROM inbox")}


class Steps:
    """Three tools in one, each of which takes a while and counts how often it took effect."""

    spec = ToolSpec("step", "Does a step.", {"type": "object", "properties": {"name": {"type": "string"}}})

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()

    async def run(self, arguments: Mapping[str, Any], context: object) -> str:
        """Takes a second; `sleep` takes ten minutes."""
        name = str(arguments["name"])
        self.runs[name] += 1
        with trio.CancelScope(shield=name == "hang"):  # as a thread that nothing can reach
            await trio.sleep(HOLIDAY if name in ("sleep", "hang") else 1)
        return f"{name} is done"


# --- B ----------------------------------------------------------------------------------------------------------------


async def b1_queue(world: World) -> None:
    """B1: a slow answer streams, /queue arrives: both are answered completely, in order, one turn each."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"), chunks=30, interval=0.5)
    world.model.when("two").says(said("2"))
    await alice.says("one, please")
    await trio.sleep(1)
    await alice.says("/queue two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert states(world) == {"one, please": "answered", "two, please": "answered"}


async def b1_three_in_the_queue(world: World) -> None:
    """B5, Q-01: everything that was queued is answered in the order in which it came."""
    alice = world.telegram.user("alice")
    for number in ("1", "2", "3"):
        world.model.when(f"number {number}").says(said(number), chunks=45, interval=0.5)
    await alice.says("number 1")
    await trio.sleep(0.6)
    await alice.says("/queue number 2")
    await alice.says("/q number 3")
    await world.quiet()
    in_order(alice, "1", "2", "3")


async def b2_interrupt(world: World) -> None:
    """B2: a follow-up while a preview is visible: it is answered once; what it ended is closed and not run again."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"), chunks=15, interval=0.7)
    world.model.when("two").says(said("2"))
    await alice.says("one, please")
    await trio.sleep(2)
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "2")
    assert complete(alice, "1") <= 1
    assert not open_partials(alice, "1"), alice.sees()
    assert states(world)["two, please"] == "answered"
    assert states(world)["one, please"] in ("interrupted", "answered")


def follow_up_after(seconds: float) -> Any:
    """B4 at one moment."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.when("one").waits(0.2).says(said("1"), chunks=20, interval=0.2)
        world.model.when("two").says(said("2"))
        await alice.says("one, please")
        await trio.sleep(seconds)
        await alice.says("two, please")
        await world.quiet()
        in_order(alice, "2")
        assert not open_partials(alice, "1"), alice.sees()
        ended = states(world)
        assert ended["two, please"] == "answered"
        assert complete(alice, "1") == (ended["one, please"] == "answered"), alice.sees()
        assert ended["one, please"] in ("interrupted", "answered")

    return story


async def b6_stop(world: World) -> None:
    """B6: /stop while a tool sleeps for ten minutes is answered within a second; the next message works."""
    alice = world.telegram.user("alice")
    world.model.when("nap").calls("step", {"name": "sleep"}, id="c1").then().says(said("1"))
    world.model.when("next").says(said("2"))
    await alice.says("have a nap")
    await trio.sleep(5)
    asked = trio.current_time()
    await alice.says("/stop")
    await trio.sleep(1)
    if world.lives == 1 and not world.boundaries.crashes:
        assert any("Stopped" in text for text in alice.sees()), alice.sees()
    await alice.says("next, please")
    await world.quiet()
    if not world.boundaries.crashes:
        assert trio.current_time() - asked < 60, "somebody waited for the tool"
        assert states(world)["have a nap"] == "stopped"
    in_order(alice, "2")
    if states(world)["have a nap"] == "stopped":  # killed before the /stop, it was interrupted by a restart
        assert complete(alice, "1") == 0


async def a_tool_that_hangs(world: World) -> None:
    """Q-08: /stop is answered at once also when a tool cannot be cancelled; its late result is nobody's."""
    alice = world.telegram.user("alice")
    world.model.when("nap").calls("step", {"name": "hang"}, id="c1").then().says(said("1"))
    world.model.when("next").says(said("2"))
    await alice.says("have a nap")
    await trio.sleep(5)
    await alice.says("/stop")
    await trio.sleep(1)
    assert any("Stopped" in text for text in alice.sees()), alice.sees()
    await alice.says("next, please")
    await trio.sleep(4)
    in_order(alice, "2")
    await trio.sleep(HOLIDAY)
    await world.quiet()
    assert states(world)["have a nap"] == "stopped"
    assert complete(alice, "1") == 0
    told = world.disk.connection.execute("SELECT content FROM messages WHERE role = 'tool'").fetchall()
    assert [row["content"] for row in told] == [None]


async def a_group(world: World) -> None:
    """In a group one person's message waits behind another's turn; a stranger's does nothing; answers are anchored."""
    alice, bob, mallory = map(world.telegram.user, ("alice", "bob", "mallory"))
    group = world.telegram.fake.group("friends")
    world.model.when("one").says(said("1"), chunks=15, interval=0.7)
    world.model.when("two").says(said("2"))
    await alice.says("@hermes_bot one, please", chat=group)
    await trio.sleep(1)
    await bob.says("how is the weather?", chat=group)
    await bob.says("@hermes_bot two, please", chat=group)
    for text in ("@hermes_bot I", "/stop@hermes_bot", "/queue@hermes_bot three", "/new@hermes_bot"):
        await mallory.says(text, chat=group)
    await world.quiet()
    messages = [message for message in world.telegram.fake.screen(group) if not message.from_bot]
    answers = [message for message in world.telegram.fake.screen(group) if message.from_bot and "A-" in message.text]
    assert [said("1") in answers[0].text, said("2") in answers[1].text, len(answers)] == [True, True, 2]
    assert [message.reply_to for message in answers] == [messages[0].message_id, messages[2].message_id]
    assert "bob: how is the weather?" in str(world.model.requests[-1].messages).lower()
    rows = world.disk.connection.execute("SELECT sender, state FROM inbox ORDER BY id").fetchall()
    assert [row["state"] for row in rows] == ["answered", "context", "answered"]


async def stopped_never_resumes(world: World) -> None:
    """Q-06: what was stopped is not run again by a restart; the stop has a word on the screen."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"), chunks=15, interval=0.7)
    await alice.says("one, please")
    await trio.sleep(2)
    await alice.says("/stop")
    await world.quiet()
    asked = len(world.model.requests)
    await world.restart()
    await world.quiet()
    assert len(world.model.requests) <= asked + len(world.boundaries.crashes)
    assert any("Stopped" in text or "Nothing is running" in text for text in alice.sees()), alice.sees()
    assert not open_partials(alice, "1"), alice.sees()


async def steered(world: World) -> None:
    """A steer enters the running turn behind the tool's result; it is answered once, within that turn or by its own."""
    alice = world.telegram.user("alice")
    world.model.when("work").calls("step", {"name": "a"}, id="c1").then().calls(
        "step", {"name": "b"}, id="c2"
    ).then().says(said("1"))
    world.model.when("softly").says(said("2"))
    await alice.says("work, please")
    await trio.sleep(0.7)
    await alice.says("/steer softly")
    await world.quiet()
    assert states(world)["softly"] in ("consumed", "answered")
    assert complete(alice, "2") == 1, alice.sees()


async def bursts(world: World) -> None:
    """Q-01: a burst of impatient messages: each has its end, the last is answered."""
    alice = world.telegram.user("alice")
    for number in range(1, 6):
        world.model.when(f"number {number}").says(said(str(number)), chunks=45, interval=0.5)
    for number in range(1, 6):
        await alice.says(f"number {number}")
        await trio.sleep(0.35)
    await world.quiet()
    assert states(world)["number 5"] == "answered"
    assert complete(alice, "5") == 1, alice.sees()
    for number in range(1, 6):
        ended = states(world)[f"number {number}"]
        assert complete(alice, str(number)) == (ended == "answered"), alice.sees()
        assert not open_partials(alice, str(number)), alice.sees()


async def compressed(world: World) -> None:
    """/compress with a message behind it: the summary is made once, the message is answered, nothing is lost."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("user: one").waits(1).says("They said one.")
    world.model.when("two").says(said("2"))
    await alice.says("one, please")
    await world.quiet()
    await alice.says("/compress")
    await trio.sleep(0.5)
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert not any("They said" in text for text in alice.sees())
    assert "They said one." in str(world.model.requests[-1].messages)
    assert any("I go on with a summary" in text for text in alice.sees())


SUMMARY = "They said one."
OVERFLOW = {"status": 400, "code": "context_length_exceeded"}


def too_long(request: Any) -> bool:
    """The second question with the whole of the first exchange before it."""
    return "two" in request.last_user_text and said("1") in str(request.messages[:-1])


def summaries(world: World) -> int:
    """How often the model was asked for one."""
    return sum(request.last_user_text.startswith("user: one") for request in world.model.requests)


async def overflow(world: World) -> None:
    """C-01: a request that the model finds too long goes on behind a summary, in its turn; the user is told."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("two").says(said("2"))
    world.model.when(too_long).fails(**OVERFLOW)
    world.model.when("user: one").says(SUMMARY)
    await alice.says("one, please")
    await world.quiet()
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert SUMMARY in str(world.model.requests[-1].messages)
    assert any("I go on with a summary" in text for text in alice.sees()), alice.sees()


async def overflow_all_the_same(world: World) -> None:
    """A request that stays too long is shortened once, and then the user is told: no loop, no silence."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("user: one").says(SUMMARY)
    world.model.when(lambda request: "two" in request.last_user_text).fails(**OVERFLOW)
    await alice.says("one, please")
    await world.quiet()
    await alice.says("two, please")
    await world.quiet()
    assert summaries(world) == 1
    assert any("longer than the model can read" in text for text in alice.sees()), alice.sees()
    assert states(world)["two, please"] == "failed"


async def no_summary(world: World) -> None:
    """C-01: where no summary can be had nothing changes: /compress says so, and the next question has its history."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("two").says(said("2"))
    world.model.when("user: one").fails(400, message="no")
    await alice.says("one, please")
    await world.quiet()
    await alice.says("/compress")
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert any("could not summarise" in text for text in alice.sees()), alice.sees()
    assert too_long(world.model.requests[-1])


async def full(world: World) -> None:
    """A session that fills the model's context is summarised before its next turn, once, and the user is told."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("two").says(said("2"))
    world.model.when("user: one").says(SUMMARY)
    await alice.says("one, please")
    await world.quiet()
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert summaries(world) == 1
    assert not any(too_long(request) for request in world.model.requests)


async def cleared_while_compressing(world: World) -> None:
    """/queue clear while a summary is made: the bot lives, and the conversation is as it was."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"))
    world.model.when("two").says(said("2"))
    world.model.when("user: one").waits(2).says(SUMMARY)
    await alice.says("one, please")
    await world.quiet()
    await alice.says("/compress")
    await trio.sleep(1)
    await alice.says("/queue clear")
    await trio.sleep(3)
    await alice.says("two, please")
    await world.quiet()
    in_order(alice, "1", "2")
    assert world.lives == 1
    assert too_long(world.model.requests[-1])


# --- C with interrupts ------------------------------------------------------------------------------------------------


async def c_redelivered_around_an_interrupt(world: World) -> None:
    """C1, C2 and C4: the interrupted and the interrupting message come again, at any time: nothing new comes."""
    alice = world.telegram.user("alice")
    world.model.when("one").says(said("1"), chunks=15, interval=0.7)
    world.model.when("two").says(said("2"), chunks=45, interval=0.5)
    first = await alice.says("one, please")
    await trio.sleep(1)
    await world.telegram.redeliver(first)
    await trio.sleep(1)
    second = await alice.says("two, please")
    await trio.sleep(0.3)
    await world.telegram.redeliver(first)
    await world.telegram.redeliver(second)
    await world.quiet()
    await world.telegram.redeliver(second)
    await world.telegram.redeliver(first)
    await world.quiet()
    world.kill()
    await world.telegram.redeliver(first)
    await world.up()
    await world.quiet()
    in_order(alice, "2")
    assert not open_partials(alice, "1"), alice.sees()
    asked = Counter(request.last_user_text.partition("\n")[0] for request in world.model.requests)
    assert asked["two, please"] <= 1 + len(world.boundaries.crashes)


# --- D8 ---------------------------------------------------------------------------------------------------------------


async def d8_three_calls(world: World) -> None:
    """D8: of three calls none runs twice, each has its result or is reported as unknown, and there is one reply."""
    steps.runs.clear()
    alice = world.telegram.user("alice")
    world.model.when("work").calls("step", {"name": "a"}, id="c1").calls("step", {"name": "b"}, id="c2").calls(
        "step", {"name": "c"}, id="c3"
    ).then().says(said("1"))
    await alice.says("work, please")
    await world.quiet()
    in_order(alice, "1")
    results = world.model.requests[-1].tool_results
    assert sorted(results) == ["c1", "c2", "c3"]
    for call, name in zip(("c1", "c2", "c3"), "abc", strict=True):
        told = results[call].partition("\n\n[note")[0]
        assert told in (f"{name} is done", UNKNOWN_EFFECT)
        assert steps.runs[name] <= 1, steps.runs
        assert steps.runs[name] == 1 or told == UNKNOWN_EFFECT
    crashes = len(world.boundaries.crashes)
    assert sum(result.startswith(UNKNOWN_EFFECT) for result in results.values()) <= crashes
    resumed = [
        request for request in world.model.requests if "interrupted by a restart; go on" in str(request.messages)
    ]
    assert bool(resumed) <= bool(crashes)


MOMENTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.1, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 2.0, 5.0)
STRIDE = {"bursts": 5}
"""Of a long story every fifth boundary."""
steps = Steps()
STORIES = {
    story.__name__: story
    for story in (
        b1_queue,
        b1_three_in_the_queue,
        b2_interrupt,
        b6_stop,
        stopped_never_resumes,
        steered,
        bursts,
        compressed,
        c_redelivered_around_an_interrupt,
        d8_three_calls,
    )
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STORIES)
def test_story(name: str, seed: int) -> None:
    """The story ends as it says, and no promise is broken, under several schedules."""
    run_world(STORIES[name], seed, tools=[steps])


@pytest.mark.parametrize("name", STORIES)
def test_story_killed_at_every_boundary(name: str) -> None:
    """The same, killed at any one boundary between the bot and its world, and started again."""
    verify_crashes(STORIES[name], tools=[steps], points=lambda numbers: numbers[:: STRIDE.get(name, 1)])


@pytest.mark.parametrize("seed", range(3))
def test_q08_a_tool_that_hangs(seed: int) -> None:
    """A tool that nothing can end does not hold up its conversation."""
    run_world(a_tool_that_hangs, seed, tools=[steps])


@pytest.mark.parametrize("story", [overflow_all_the_same, no_summary, cleared_while_compressing])
def test_compression(story: Any) -> None:
    """What may go wrong with a summary, under several schedules."""
    for seed in range(3):
        run_world(story, seed)


def test_a_full_session() -> None:
    """Automatic compression, with a context that the first exchange fills."""
    for seed in range(3):
        run_world(full, seed, config={"model": {"context": CONTEXT}})


def test_an_overflow_killed_at_every_boundary() -> None:
    """A turn that moves to a new session, killed anywhere."""
    verify_crashes(overflow)


def test_a_group() -> None:
    """X-01 and groups, as told, and killed at every boundary."""
    verify_crashes(a_group, config={"access": {"allow": ["telegram:1001", "telegram:1002"]}})


@pytest.mark.parametrize("moment", MOMENTS)
def test_b4_a_follow_up_at_any_moment(moment: float) -> None:
    """B4, Q-03 to Q-05: a follow-up before the first byte, within the stream, at its end, during and after the final
    send: each message has one end, and an answer that was committed is delivered."""
    for seed in range(4):
        run_world(follow_up_after(moment), seed)


@pytest.mark.parametrize("moment", [0.3, 1.2, 1.3])
def test_b4_killed_at_every_boundary(moment: float) -> None:
    """The same, killed anywhere."""
    verify_crashes(follow_up_after(moment))
