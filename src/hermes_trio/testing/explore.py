"""The crash explorer: the same scenario again and again, killed at every effect boundary in turn.

The reference run is made twice; if the two differ the scenario depends on something that no seed decides, and nothing
else is believed. The rule that must not be broken: up to its crash a run is the same as the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen

from hermes_trio.testing.checker import MARKER
from hermes_trio.testing.fence import Passed
from hermes_trio.testing.forks import in_fork
from hermes_trio.testing.world import Scenario, World


class Diverged(AssertionError):
    """Two runs with the same seed were not the same."""


@frozen
class Verdict:
    """What became of one run."""

    crash_at: tuple[int, ...]
    labels: tuple[str, ...]
    """The boundaries at which it was killed."""
    problem: str
    """Empty: every promise was kept."""
    outcome: str
    """delivered, marked (with a copy that says that it may be one), doubled, lost, or other."""


@define
class Exploration:
    """The reference and all its crashes."""

    reference: list[Passed]
    verdicts: list[Verdict] = field(factory=list)
    seed: int = 0

    @property
    def failures(self) -> list[Verdict]:
        """The runs in which a promise was broken."""
        return [verdict for verdict in self.verdicts if verdict.problem]

    def table(self) -> str:
        """A line for each boundary of the reference: how many crashes there, and what came of them."""
        lines = []
        for passed in self.reference:
            own = [verdict for verdict in self.verdicts if verdict.crash_at[0] == passed.number]
            bad = [verdict for verdict in own if verdict.problem]
            said = bad[0].problem.splitlines()[0] if bad else "ok"
            lines.append(f"{passed.number:4} {passed.label:40.40} {passed.occurrence:3} {len(own):5} runs  {said}")
        return "\n".join(lines)

    def verify(self) -> None:
        """Raises AssertionError with the first failure, the table, and a test to paste, unless all is well."""
        __tracebackhide__ = True
        if not self.failures:
            return
        first = self.failures[0]
        raise AssertionError(
            f"{len(self.failures)} of {len(self.verdicts)} crashes broke a promise. The first, killed at "
            f"{' and '.join(first.labels)}:\n\n{first.problem}\n\n{self.table()}\n\nTo see it again:\n\n"
            f"    run_world(scenario, seed={self.seed}, crash_at={first.crash_at})"
        )


def run_world(scenario: Scenario, seed: int = 0, *, crash_at: Sequence[int] = (), **settings: Any) -> World:
    """Plays a scenario until it is quiet and checks every promise. Returns the world, for questions.

    settings: those of World.
    """
    world = World(seed, crash_at=crash_at, **settings)
    world.run(scenario)
    return world


def explore_crashes(
    scenario: Scenario,
    *,
    depth: int = 1,
    seed: int = 0,
    points: Callable[[Sequence[int]], Iterable[int]] = lambda numbers: numbers,
    forked: int = 0,
    progress: Callable[[int, int], None] = lambda done, of: None,
    **settings: Any,
) -> Exploration:
    """Crashes the scenario at every boundary, with depth 2 at every pair, and judges each run.

    points: chooses among the numbers of boundaries, to explore a part. forked: so many of the runs are made again in
    processes of their own and must end alike. progress: is told of the boundaries of the reference that are done.
    settings: those of World. Call `verify` of the result to fail. Raises what the reference raises, and Diverged.
    """
    reference = run_world(scenario, seed, **settings).boundaries.trace
    _same(reference, run_world(scenario, seed, **settings).boundaries.trace)
    found = Exploration(reference, seed=seed)
    chosen = list(points(range(1, len(reference) + 1)))
    for done, number in enumerate(chosen, 1):
        found.verdicts.extend(_crashes(scenario, seed, (number,), depth, points, settings))
        progress(done, len(chosen))
    for verdict in found.verdicts[:: max(1, len(found.verdicts) // forked)][:forked] if forked else ():
        other = in_fork(partial(_play, scenario, seed, verdict.crash_at, settings))[0]
        if other != verdict:
            raise Diverged(f"in a process of its own {verdict.crash_at} ends otherwise:\n{verdict}\n{other}")
    return found


def verify_crashes(scenario: Scenario, **options: Any) -> Exploration:
    """`explore_crashes`, which fails with the table and a test to paste unless every promise was kept."""
    __tracebackhide__ = True
    found = explore_crashes(scenario, **options)
    found.verify()
    return found


def _play(scenario: Scenario, seed: int, crash_at: tuple[int, ...], settings: dict[str, Any]) -> tuple[Verdict, int]:
    """What became of one run, and how many boundaries it had."""
    world = World(seed, crash_at=crash_at, **settings)
    problem = ""
    try:
        world.run(scenario)
    except Exception as error:  # noqa: BLE001 -- whatever a run says, the exploration goes on and tells it at the end
        problem = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    labels = tuple(str(passed) for passed in world.boundaries.crashes)
    return Verdict(crash_at, labels, problem, _outcome(world, problem)), len(world.boundaries.trace)


def _outcome(world: World, problem: str) -> str:
    if "a second time" in problem:
        return "doubled"
    if "nothing of it is on screen" in problem or "rows in the inbox" in problem or "not quiet" in problem:
        return "lost"
    if problem:
        return "other"
    fake = world.telegram.fake
    marked = any(text.startswith(MARKER) for chat in fake.chats for text in fake.bot_texts(chat))
    return "marked" if marked else "delivered"


def _crashes(
    scenario: Scenario,
    seed: int,
    crash_at: tuple[int, ...],
    depth: int,
    points: Callable[[Sequence[int]], Iterable[int]],
    settings: dict[str, Any],
) -> Iterator[Verdict]:
    verdict, length = _play(scenario, seed, crash_at, settings)
    yield verdict
    if depth > 1:
        for number in points(range(crash_at[-1] + 1, length + 1)):
            yield from _crashes(scenario, seed, (*crash_at, number), depth - 1, points, settings)


def _same(one: list[Passed], other: list[Passed]) -> None:
    if one == other:
        return
    for left, right in zip(one, other, strict=False):
        if left != right:
            raise Diverged(f"two runs with the same seed differ: {left} at {left.time}, {right} at {right.time}")
    raise Diverged(f"two runs with the same seed differ: {len(one)} and {len(other)} boundaries")
