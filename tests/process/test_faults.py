"""One message, exactly one reply, whatever the wire does meanwhile: section A of the conformance list, on Telegram.

What concerns several messages, or the pace of the platform, stands in test_width.

Times are the list's, scaled down: what the wire needs 25 s for takes a second here, by configuration.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from hermes_fakes.faults import (
    AckLost,
    CutStream,
    Garbage,
    LateAccept,
    NeverSeen,
    RateLimited,
    Refuse,
    ResetBefore,
)

from .answers import answer, long_answer
from .audit import read_screen
from .harness import LATENESS, REQUEST_TIMEOUT, SETTLE, BotWorld, open_bot_world

FOOTER = "<</A-1>>"
SHORT_OUTAGE = 3.0
"""Seconds; longer than several backoffs."""


def streamed(label: str, chunk: int = 40) -> Sequence[str]:
    """The usual answer in pieces."""
    text = answer(label)
    return [text[start : start + chunk] for start in range(0, len(text), chunk)]


async def finish(world: BotWorld, *, strays: int = 0) -> None:
    """Waits for the end of everything, and judges."""
    await world.wait_settled()
    world.verdict(strays=strays)


async def ask_streamed(world: BotWorld) -> None:
    """Alice asks; the model streams its answer, and waits with the end of it until a preview is visible."""
    go_on = trio.Event()
    pieces = streamed("A-1")
    script = world.model.when("A-1").says("", chunks=pieces[:-2], interval=0.02).holds(go_on)
    script.says("", chunks=pieces[-2:])
    world.asks("please A-1")
    await world.wait_shown("Bold words")
    go_on.set()


async def test_a1_clean() -> None:
    """A1: a short answer without any fault is one copy, and its markup is Telegram's."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world)


async def test_a2_tool_then_answer() -> None:
    """A2: a call of a tool, with words before it, and then the answer: the words of the answer are all that stays."""
    async with open_bot_world() as world:
        await world.start()
        rule = world.model.when("A-1")
        rule.calls("clock", {}, text="Let me look at the clock.").then().says(answer("A-1"))
        world.asks("please A-1")
        await finish(world)
        (result,) = world.model.requests[-1].tool_results.values()
        assert "UTC" in result
        assert "Let me look" not in world.shown()


async def test_a3_long_split() -> None:
    """A3: 8,100 characters in one piece become two messages within the limit, once and in order."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1", long_answer("A-1"))
        world.asks("please A-1")
        await finish(world)
        (copy,) = read_screen(world.telegram.screen(world.telegram.user("alice"))).copies
        assert len(copy.messages) == 2


async def test_a6_slow_stream() -> None:
    """A6: a slow stream is seen to grow, and ends as one copy."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1", chunks=8, interval=0.06)
        world.asks("please A-1")
        await finish(world)
        edits = [entry for entry in world.telegram.history if entry.method == "editMessageText"]
        assert len(edits) >= 4, "no previews"


FINAL_FAULTS = {
    "a7_rate_limit": RateLimited(0.3),
    "a9_send_timeout": NeverSeen(),
    "a9_reset_unseen": ResetBefore(),
    "a10_ack_lost": AckLost(),
    "a10_ack_lost_silently": AckLost(silent=True),
    "a10_ack_cut": CutStream(),
    "a10_ack_garbled": Garbage(),
    "a16_late_accept": LateAccept(REQUEST_TIMEOUT + 0.8 * LATENESS),
}


async def test_a7_the_wait_is_kept() -> None:
    """A7: when the platform says to wait, nothing that changes its screen is asked for before that time."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(RateLimited(1.2), contains=FOOTER)
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world)
        first, *later = [call.time for call in world.telegram.requests if call.method == "editMessageText"]
        assert later[0] >= first + 1.2


@pytest.mark.parametrize("name", FINAL_FAULTS)
async def test_a7_fault_at_the_footer(name: str) -> None:
    """A7, A9, A10, A16: whatever becomes of the first request that carries the footer, one copy, unmarked."""
    async with open_bot_world() as world:
        await world.start()
        fault = world.faults(FINAL_FAULTS[name], contains=FOOTER)
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world)
        assert fault.hits == 1


async def test_a8_connection_refused() -> None:
    """A8: the request with the footer meets a closed door; what provably never left costs nothing."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(Refuse(0.7), "sendMessage")
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world)
        (sent,) = [entry for entry in world.telegram.history if entry.method == "sendMessage"]
        (shown,) = [entry for entry in world.telegram.history if "<<A-1>>" in entry.args.get("text", "")]
        assert shown.time >= sent.time + 0.7


@pytest.mark.parametrize(
    "effect",
    [NeverSeen(), AckLost(), LateAccept(REQUEST_TIMEOUT + 0.8 * LATENESS)],
    ids=["a12_timeout", "a13_ack_lost", "a16_late"],
)
async def test_a12_streamed_fault_at_the_final(effect: NeverSeen) -> None:
    """A12, A13, A16: previews are visible, and the edit that completes them runs into a fault: one copy, unmarked."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(effect, "editMessageText", contains=FOOTER)
        await ask_streamed(world)
        await finish(world)


async def test_a14_first_request_never_seen() -> None:
    """A14: the first request of a streamed reply is never seen: one copy, and nothing else stays."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(NeverSeen(), "sendMessage")
        await ask_streamed(world)
        await finish(world)


async def test_a15_first_acknowledgement_lost() -> None:
    """A15: the first request is accepted and its answer lost: one copy, and at most one empty placeholder beside it."""
    async with open_bot_world() as world:
        await world.start()
        world.faults(AckLost(), "sendMessage")
        await ask_streamed(world)
        await finish(world, strays=1)


async def test_a16_late_create() -> None:
    """A16: a placeholder that the client gave up appears later: it stays empty beside the one copy."""
    async with open_bot_world() as world:
        await world.start()
        late = REQUEST_TIMEOUT + 0.8 * LATENESS
        world.faults(LateAccept(late), "sendMessage")
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_settled()
        screen = world.telegram.screen(world.telegram.user("alice"))
        await world.wait(world.telegram, lambda: world.count_accepted("sendMessage") == 2)
        assert "<<A-1>>" in screen[-1].text
        world.verdict(strays=1)


async def test_a16_late_preview_lands_on_the_final() -> None:
    """A16: a preview that the client gave up lands on top of the final text: after the settle time it is said again."""
    async with open_bot_world() as world:
        await world.start()
        fault = world.faults(LateAccept(REQUEST_TIMEOUT + 0.8 * LATENESS), "editMessageText")
        go_on = trio.Event()
        first, *rest = streamed("A-1", 60)
        world.model.when("A-1").says(first).holds(go_on).says("", chunks=rest)
        world.asks("please A-1")
        with trio.fail_after(SETTLE * 10):
            await fault.struck.wait()
        go_on.set()
        await world.wait_shown(FOOTER)
        await world.wait(world.telegram, lambda: FOOTER not in world.shown())
        await finish(world)
        assert world.count("editMessageText") <= 6, "it was said again before the settle time"


async def test_a18m_black_hole() -> None:
    """A18m: for a while every create is accepted and every answer lost: one copy; each create costs a placeholder."""
    async with open_bot_world() as world:
        await world.start()
        hole = world.telegram.faults.black_hole(SHORT_OUTAGE, "sendMessage")
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_settled()
        world.verdict(strays=hole.hits)
        assert hole.hits >= 2


async def test_a18m_black_hole_for_everything() -> None:
    """A18m: the same when edits, deletes and polls fall into it too."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1", chunks=60, interval=0.1)
        asked = world.asks("please A-1")
        await world.wait_rows(lambda ledger: ledger.knows(asked.text))
        hole = world.telegram.faults.black_hole(SHORT_OUTAGE)
        await world.wait_settled()
        creates = [call for call in world.telegram.requests if call.fault is hole and call.method == "sendMessage"]
        world.verdict(strays=len(creates))


async def test_a18d_deleted() -> None:
    """A18d: an answer that its user deleted stays deleted, over a restart too."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        world.asks("please A-1")
        await finish(world)
        alice = world.telegram.user("alice")
        alice.deletes(world.telegram.screen(alice)[-1])
        await world.restart()
        await world.wait_quiet()
        world.verdict(deleted={"A-1"})
        assert world.shown() == ""


async def test_a18d_deleted_while_an_edit_may_land() -> None:
    """A18d: deleted while an uncertain preview may still land: it is not posted again, nor after a restart."""
    async with open_bot_world() as world:
        await world.start()
        fault = world.faults(NeverSeen(), "editMessageText")
        go_on = trio.Event()
        first, *rest = streamed("A-1", 60)
        world.model.when("A-1").says(first).holds(go_on).says("", chunks=rest)
        world.asks("please A-1")
        with trio.fail_after(SETTLE * 10):
            await fault.struck.wait()
        go_on.set()
        await world.wait_shown(FOOTER)
        await world.wait_rows(lambda ledger: ledger.committed("A-1"))
        alice = world.telegram.user("alice")
        await world.wait_rows(lambda ledger: ledger.confirmed(1))
        alice.deletes(world.telegram.screen(alice)[-1])
        await world.restart()
        await world.wait_settled()
        world.verdict(deleted={"A-1"})
        assert world.shown() == ""


@pytest.mark.parametrize("streams", [False, True], ids=["before_any_text", "behind_a_preview"])
async def test_a19_outage(streams: bool) -> None:
    """A19: the platform is unreachable for a while: one copy, unmarked, soon after its return, without a restart."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        pieces = streamed("A-1")
        script = world.model.when("A-1").says("", chunks=pieces[:-1] if streams else []).holds(go_on)
        script.says("", chunks=pieces[-1:] if streams else pieces)
        asked = world.asks("please A-1")
        await world.wait_rows(lambda ledger: ledger.knows(asked.text))
        if streams:
            await world.wait_shown("Bold words")
        world.telegram.outage(SHORT_OUTAGE)
        go_on.set()
        await world.wait_rows(lambda ledger: ledger.committed("A-1"))
        await world.wait(world.telegram, lambda: not world.telegram.refusing)
        returned = trio.current_time()
        await world.wait_shown(FOOTER)
        assert trio.current_time() - returned < 10
        await finish(world, strays=0 if streams else 1)


async def test_a19_outage_across_restarts() -> None:
    """A19: the same when the program is killed and started three times while the platform is away."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        world.model.when("A-1").holds(go_on).says(answer("A-1"))
        asked = world.asks("please A-1")
        await world.wait_shown("…")
        await world.wait_rows(lambda ledger: ledger.knows(asked.text))
        world.telegram.outage()
        go_on.set()
        await world.wait_rows(lambda ledger: ledger.committed("A-1"))
        for life in range(2, 5):
            await world.kill()
            bot = await world.launch()
            await world.wait_rows(lambda ledger, life=life, bot=bot: ledger.lives() == life or not bot.alive)
            assert bot.alive
        world.telegram.admit()
        returned = trio.current_time()
        await world.wait_shown(FOOTER)
        assert trio.current_time() - returned < 10
        await finish(world)


CLOSING = "⚠"
"""Begins every notice."""


async def test_a_failing_model_leaves_a_word() -> None:
    """I2: a model that refuses, and one that says nothing, end in one visible notice each; the next turn works."""
    async with open_bot_world() as world:
        await world.start()
        world.model.when("A-1").fails(400, message="no such luck")
        world.model.when("A-2").says("")
        world.answers("A-3")
        for number, name in ((1, "alice"), (2, "bob"), (3, "alice")):
            world.asks(f"please A-{number}", name)
        await world.wait_settled()
        world.crashed["please A-2"] += 1  # an empty answer is asked for once more
        world.verdict(notices=[CLOSING])


async def test_a_stream_that_breaks_off_is_no_answer() -> None:
    """I2: what is visible of an answer that broke off is closed by a notice, and is not taken for an answer."""
    async with open_bot_world(model={"retries": 0}) as world:
        await world.start()
        world.model.when("A-1").says(answer("A-1")[:200]).cuts()
        world.asks("please A-1")
        await world.wait_settled()
        (inbound,) = world.ledger.inbounds()
        assert inbound.state == "failed"
        assert inbound.answers == ()
        assert "Bold words" in world.shown()
        world.verdict(notices=[CLOSING])
