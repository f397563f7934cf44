"""An embedder that cancels the runtime from outside: equal to a crash, and nothing but the cancellation comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf

import pytest
import trio
from rows import answer, reads_once

from hermes_trio.testing import Life, World, run_world, runtime_bot


def cancelled_at(moment: float) -> Callable[[Life], AbstractAsyncContextManager[None]]:
    """The runtime, cancelled at that moment of its first life and at none of later ones."""
    moments = iter([moment])

    @asynccontextmanager
    async def bot(life: Life) -> AsyncIterator[None]:
        async def live() -> None:
            with trio.move_on_after(next(moments, inf)):
                async with runtime_bot(life):
                    await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(live)
            yield
            nursery.cancel_scope.cancel()

    return bot


@pytest.mark.parametrize("step", range(40))
def test_cancelling_from_outside_raises_nothing(step: int) -> None:
    """At any moment of a turn: no exception escapes, and the next start answers."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.when("CA").says(answer("CA"), chunks=9, interval=0.05)
        await alice.says("CA, please")
        await trio.sleep(1)
        await world.restart()
        await world.quiet()
        reads_once(alice, "CA")

    run_world(story, bot=cancelled_at(0.02 * (step + 1)))
