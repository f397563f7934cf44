"""The pytest plugin: a `world` fixture for asynchronous tests, and options to see one run again.

    async def test_hello(world):
        ...

A test with this fixture is run inside the world, with or without pytest-trio; behind its last line the world comes to
rest, every promise is checked, and a fault that never struck fails the test.

    @pytest.mark.world(faults=[Fault("ack_lost", "wire? sendMessage")], seeds=5, crashes=True)

`seeds` plays it under so many schedules, `crashes=True` kills it at every boundary as well (2: at every pair); what
else the mark holds are settings of World. `--hermes-seed N` and `--hermes-crash-at N,M` play exactly one run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest

from hermes_trio.testing import coverage
from hermes_trio.testing.explore import verify_crashes
from hermes_trio.testing.world import World

MARK = "world"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that play one run again."""
    group = parser.getgroup("hermes_trio")
    group.addoption("--hermes-seed", type=int, default=None, metavar="N", help="play worlds under this seed only")
    group.addoption(
        "--hermes-crash-at",
        default=None,
        metavar="N[,M...]",
        help="kill the bot at these boundaries of every world, and explore nothing else",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line("markers", f"{MARK}(seeds, crashes, **settings): how the world of a test is made")


@pytest.fixture
def world(request: pytest.FixtureRequest) -> None:
    """The simulated world; an asynchronous test that asks for it runs inside of it."""
    if request.node not in _ours:
        pytest.fail(
            "only an `async def` test can use the fixture `world`; elsewhere call hermes_trio.testing.run_world"
        )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Makes a plain function of an asynchronous test with a world, before anybody else wants to run it."""
    if isinstance(item, pytest.Function) and "world" in item.fixturenames and inspect.iscoroutinefunction(item.obj):
        item.obj = _played(item, item.obj)
        _ours.add(item)


_ours: set[pytest.Item] = set()
"""The tests that run inside a world."""


def _played(item: pytest.Function, test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    mark = item.get_closest_marker(MARK)
    settings: dict[str, Any] = dict(mark.kwargs) if mark is not None else {}
    seeds, crashes = int(settings.pop("seeds", 1)), int(settings.pop("crashes", 0))

    @wraps(test)
    def play(world: None, **fixtures: Any) -> None:
        __tracebackhide__ = True

        async def scenario(world: World) -> None:
            await test(world=world, **fixtures)

        _play(item.config, scenario, seeds, crashes, settings)

    return play


def _play(
    config: pytest.Config,
    scenario: Callable[[World], Awaitable[None]],
    seeds: int,
    crashes: int,
    settings: dict[str, Any],
) -> None:
    __tracebackhide__ = True
    seed: int | None = config.getoption("hermes_seed")
    crash_at: str | None = config.getoption("hermes_crash_at")
    points = [int(number) for number in crash_at.split(",")] if crash_at else settings.pop("crash_at", ())
    for chosen in range(seeds) if seed is None else [seed]:
        World(chosen, crash_at=points, **settings).run(scenario)
        if crashes and not crash_at:
            verify_crashes(scenario, depth=crashes, seed=chosen, **settings)


NOTES = "hermes_trio"
"""The name under which a worker of pytest-xdist hands over what it has counted."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist has ended: adds what it has counted."""
    if notes := getattr(node, "workeroutput", {}).get(NOTES):
        coverage.add(notes)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a whole run in which a branch that `sometimes` declared was never reached."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[NOTES] = coverage.notes()
    elif _whole(session.config) and exitstatus == pytest.ExitCode.OK and coverage.never():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _whole(config: pytest.Config) -> bool:
    """Whole folders were played: no file, no part of one, and no single run."""
    options = ("keyword", "markexpr", "lf", "collectonly", "hermes_crash_at")
    return not any(config.getoption(option, False) for option in options) and not any(
        "::" in argument or argument.endswith(".py") for argument in config.args
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says how often bots were killed and started again, and names the branches that were never reached."""
    if restarts := coverage.restarts():
        ways = ", ".join(f"{times:,} {way}" for way, times in sorted(restarts.items()))
        terminalreporter.write_line(f"simulated worlds: {sum(restarts.values()):,} crash-restarts ({ways})")
    for name in coverage.never() if _whole(config) else ():
        terminalreporter.write_line(f"sometimes({name!r}) was never true", red=True)
