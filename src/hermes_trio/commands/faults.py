"""`hermes-trio faults`: kills the bot at every effect boundary of a built-in conversation and shows what came of it.

The bot is the real runtime; network, clock, disk, chat and model are simulated. The one rule: nothing real is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import click

from hermes_trio.testing.direct import direct_bot
from hermes_trio.testing.explore import Exploration, explore_crashes
from hermes_trio.testing.world import World

ANSWER = "This is the **answer** to your question, in a few words."


async def conversation(world: World) -> None:
    """A question, an answer that calls a tool and streams, and a second question."""
    alice = world.telegram.user("alice")
    world.model.when("time").calls("clock", {}, id="call-1").then().says(ANSWER, chunks=8, interval=0.3)
    world.model.when("thanks").says("You are welcome.")
    await alice.says("what time is it?")
    await world.quiet()
    await alice.says("thanks")
    await world.quiet()


@click.command(short_help="Kill a simulated bot everywhere, and judge.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed is another schedule of tasks.")
@click.option("--pairs", is_flag=True, help="Kill at every pair of boundaries as well; takes minutes.")
def faults(seed: int, pairs: bool) -> None:
    """Kill the bot at every boundary between it and the world, start it again, and judge what people see.

    Exits 1 when a promise was broken anywhere.
    """
    with click.progressbar(length=1, label="crashes") as bar:
        found = explore_crashes(conversation, depth=2 if pairs else 1, seed=seed, progress=_steps(bar), bot=direct_bot)
    click.echo(matrix(found))
    click.echo(f"{len(found.verdicts)} runs, {len(found.failures)} broke a promise")
    for verdict in found.failures[:1]:
        click.echo(f"\nkilled at {' and '.join(verdict.labels)}:\n{verdict.problem}")
    if found.failures:
        raise SystemExit(1)


def _steps(bar: object) -> Callable[[int, int], None]:
    def progress(done: int, of: int) -> None:
        bar.length = of  # type: ignore[attr-defined]  # click does not export the class of its bar
        bar.update(1)  # type: ignore[attr-defined]  # as above

    return progress


def matrix(found: Exploration) -> str:
    """A line for each kind of boundary: of the crashes there, how many delivered, marked, doubled and lost."""
    rows: dict[str, Counter[str]] = {}
    labels = {passed.number: passed.label for passed in found.reference}
    for verdict in found.verdicts:
        rows.setdefault(labels[verdict.crash_at[0]], Counter())[verdict.outcome] += 1
    lines = [f"{'killed at':44} {'delivered':>9} {'marked':>7} {'doubled':>8} {'lost':>5} {'other':>6}"]
    for label, counts in rows.items():
        cells = (counts["delivered"], counts["marked"], counts["doubled"], counts["lost"], counts["other"])
        lines.append(f"{label:44.44} {cells[0]:9} {cells[1]:7} {cells[2]:8} {cells[3]:5} {cells[4]:6}")
    return "\n".join(lines)
