"""`hermes-trio faults`: kills the bot at every effect boundary of a conversation and shows what came of it.

The bot is the real runtime, with the prompts and tools of a configuration if one is named; network, clock, disk, chat
and model are simulated, and a tool is called and does nothing. The one rule: nothing real is touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import trio
from attrs import frozen

from hermes_trio.assembly import tools_of
from hermes_trio.commands.configured import configured
from hermes_trio.model.base import ToolSpec
from hermes_trio.testing.direct import direct_bot
from hermes_trio.testing.explore import Exploration, explore_crashes
from hermes_trio.testing.world import World
from hermes_trio.tools.base import Tool, ToolContext
from hermes_trio.tools.clock import ClockTool

ANSWER = "This is the **answer** to your question, in a few words."
TOOL_TIME = 1.0
"""Seconds that a tool takes here, so that the bot can be killed meanwhile."""
_SAMPLES: Mapping[str, Any] = {"integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}


@frozen
class StandIn:
    """A tool of the configuration as the model sees it, which does nothing."""

    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Takes its time."""
        await trio.sleep(TOOL_TIME)
        return f"{self.spec.name} was called"


def sample(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit a JSON Schema of an object: a value for each one that must be there."""
    properties = parameters.get("properties", {})
    return {name: _sample(properties.get(name, {})) for name in parameters.get("required", ())}


def _sample(schema: Mapping[str, Any]) -> Any:
    choices = schema.get("enum")
    return choices[0] if choices else _SAMPLES.get(str(schema.get("type")), "something")


def conversation(tools: Sequence[Tool]) -> Callable[[World], Any]:
    """A question, an answer that calls each tool and streams, and a second question."""

    async def tell(world: World) -> None:
        alice = world.telegram.user("alice")
        script: Any = world.model.when("question")
        for number, tool in enumerate(tools, 1):
            script = script.calls(tool.spec.name, sample(tool.spec.parameters), id=f"call-{number}").then()
        script.says(ANSWER, chunks=8, interval=0.3)
        world.model.when("thanks").says("You are welcome.")
        await alice.says("a question")
        await world.quiet()
        await alice.says("thanks")
        await world.quiet()

    return tell


@click.command()
@click.option(
    "--config", "path", type=click.Path(path_type=Path), help="Use the prompts and tools of this configuration file."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed is another schedule of tasks.")
@click.option("--pairs", is_flag=True, help="Kill at every pair of boundaries as well; takes minutes.")
def faults(path: Path | None, seed: int, pairs: bool) -> None:
    """Kill the bot at every boundary between it and the world, start it again, and judge what people see.

    Nothing real is touched: the model's answers are written beforehand, and tools are called but do nothing. Exits 1
    when a promise was broken anywhere, 78 when the configuration is wrong.
    """
    config = None if path is None else configured(path).config
    tools = [StandIn(tool.spec) for tool in (tools_of(config) if config is not None else [ClockTool()])]
    with click.progressbar(length=1, label="crashes") as bar:
        found = explore_crashes(
            conversation(tools),
            depth=2 if pairs else 1,
            seed=seed,
            progress=_steps(bar),
            bot=direct_bot,
            tools=tools,
            config=config,
        )
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
    lines += [_line(label, counts) for label, counts in rows.items()]
    total = Counter(verdict.outcome for verdict in found.verdicts)
    lines.append(_line("in all", total))
    return "\n".join(lines)


def _line(label: str, counts: Counter[str]) -> str:
    cells = (counts["delivered"], counts["marked"], counts["doubled"], counts["lost"], counts["other"])
    return f"{label:44.44} {cells[0]:9} {cells[1]:7} {cells[2]:8} {cells[3]:5} {cells[4]:6}"
