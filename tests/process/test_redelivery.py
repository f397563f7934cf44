"""A message that comes more than once is answered once: section C of the conformance list, on Telegram."""

from __future__ import annotations

import trio

from hermes_fakes.faults import AckLost, Call

from .answers import answer
from .harness import open_bot_world

FOOTER = "<</A-1>>"


async def test_c1_during_the_turn() -> None:
    """C1: the same message again while it is being answered: one turn, one reply."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        world.model.when("A-1").says(answer("A-1")[:200]).holds(go_on).says(answer("A-1")[200:])
        asked = world.asks("please A-1")
        await world.wait_shown("Bold words")
        await world.redeliver(asked)
        go_on.set()
        await world.wait_settled()
        await world.wait_quiet()
        world.verdict()


async def test_c2_after_the_turn() -> None:
    """C2: the same message again after it was answered: nothing new."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        asked = world.asks("please A-1")
        await world.wait_settled()
        await world.redeliver(asked)
        await world.wait_quiet()
        world.verdict()


async def test_c3_after_a_reconnect() -> None:
    """C3: again after the adapter lost its connection and came back by itself: nothing new."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        asked = world.asks("please A-1")
        await world.wait_settled()
        greetings = world.count("getMe")
        world.telegram.outage(1)
        await world.wait(world.telegram, lambda: world.count("getMe") > greetings)
        await world.redeliver(asked)
        await world.wait_quiet()
        world.verdict()


async def test_c3_lost_batches() -> None:
    """C3: the answers of several polls are lost on the way, so the same updates come again: each answered once."""
    async with open_bot_world() as world:
        lost = world.faults(AckLost(), "getUpdates", count=2)
        for number in (1, 2, 3):
            world.answers(f"A-{number}")
            world.asks(f"please A-{number}")
        await world.start()
        await world.wait_settled()
        assert lost.hits == 2
        world.verdict()


async def test_c4_after_a_kill_before_the_reply() -> None:
    """C4: killed in the turn; the message comes again besides being known: the reply is delivered once."""
    async with open_bot_world() as world:
        await world.start()
        stuck = trio.Event()
        world.model.when("A-1", once=True).says(answer("A-1")[:200]).holds(stuck)
        asked = world.asks("please A-1")
        await world.wait_shown("Bold words")
        await world.kill()
        world.model.rules.clear()
        world.answers("A-1")
        world.telegram.redeliver(asked.update)
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_c4_after_a_kill_behind_the_reply() -> None:
    """C4: killed after the reply was delivered; the message comes again: nothing new."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        asked = world.asks("please A-1")
        await world.wait_settled()
        await world.kill()
        world.telegram.redeliver(asked.update)
        await world.start()
        await world.wait_quiet()
        world.verdict()


async def test_c4_killed_with_the_batch_in_hand() -> None:
    """C4: killed when a batch has just arrived, whatever of it was stored: the platform still has what we have not."""
    async with open_bot_world() as world:
        await world.start()
        point = world.kill_at("!", "getUpdates", when=lambda call: bool(world.telegram.unconfirmed))
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_death(point)
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_c4_killed_at_the_acknowledgement() -> None:
    """I1: when the platform learns that we have a message, the inbox has it: killed right then, it is answered."""
    async with open_bot_world() as world:
        world.answers("A-1")
        asked = world.asks("please A-1")
        known: list[bool] = []

        def acknowledges(call: Call) -> bool:
            if int(call.args.get("offset", 0)) > asked.update:
                known.append(world.ledger.knows(asked.text))
            return bool(known)

        point = world.kill_at("~", "getUpdates", when=acknowledges)
        await world.launch()
        await world.wait_death(point)
        assert known == [True], "acknowledged before it was stored"
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_c5_down_while_users_write() -> None:
    """C5: nobody was there while three people wrote several messages: each is answered once, in order."""
    async with open_bot_world() as world:
        for number in range(1, 7):
            world.answers(f"A-{number}")
            world.asks(f"please A-{number}", user=("alice", "bob", "carol")[number % 3])
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_c5_down_again() -> None:
    """C5: the same when the program ran before, was killed, and people wrote to a dead program."""
    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")
        world.asks("please A-1")
        await world.wait_settled()
        await world.kill()
        for number in (2, 3):
            world.answers(f"A-{number}")
            world.asks(f"please A-{number}", user=("alice", "bob")[number % 2])
        await world.start()
        await world.wait_settled()
        world.verdict()


async def test_order_of_arrival() -> None:
    """I5: what arrives while a turn runs is durable, and is answered after it in order, over a kill too."""
    async with open_bot_world() as world:
        await world.start()
        stuck = trio.Event()
        world.model.when("A-1", once=True).says(answer("A-1")[:200]).holds(stuck)
        world.asks("please A-1")
        await world.wait_shown("Bold words")
        for number in (2, 3):
            world.answers(f"A-{number}")
            world.asks(f"please A-{number}")
        await world.wait_rows(lambda ledger: ledger.knows("please A-3"))
        await world.kill()
        world.answers("A-1")
        await world.start()
        await world.wait_settled()
        world.verdict()
