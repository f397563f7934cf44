"""A world of processes: both fakes in the test's own trio loop, the real program in a child that can be killed.

    async with open_bot_world() as world:
        await world.start()
        world.answers("A-1")                      # what the model says to the next question
        world.asks("A-1")                         # alice writes
        await world.wait_settled()
        world.verdict()

Times are real, so they are short by configuration, and a test waits for conditions, never for time to pass. The rule
that must not be broken: nothing here imports hermes_trio or asks the program; the truth is what the fakes hold, and
the database file, opened for reading.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio
from attrs import define, field, frozen

from hermes_fakes.faults import Call, Fault
from hermes_fakes.loopback import listen
from hermes_fakes.model import ModelFake, Script, open_model_fake
from hermes_fakes.server import Server
from hermes_fakes.telegram import TelegramFake, open_telegram_fake

from .answers import answer
from .audit import Ledger, judge

T = TypeVar("T")

PATIENCE = 40.0
"""Seconds after which a wait has failed: more than ten times what any of them takes on an idle machine."""
WORLD = 240.0
"""Seconds after which a whole test has failed."""
POLL = 0.02
"""Seconds between two looks at what tells no one when it changes: the database, and a child."""
REQUEST_TIMEOUT, LATENESS = 1.0, 1.0
SETTLE = REQUEST_TIMEOUT + LATENESS
QUIET = SETTLE + 0.5
"""Seconds in which nothing may happen, where a test says that nothing more does: whatever waits for the platform's
lateness has moved by then. A window of real time, because an absence has no event."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "model": {"kind": "openai", "name": "fake-model", "api_key": "sk-secret", "timeout": 60, "idle_timeout": 30},
    "chat": {"system": "You are a test.", "busy": "queue"},
    "delivery": {"settle": SETTLE, "backoff": 0.5},
    "access": {"allow": ["*"]},
    "platforms.telegram": {
        "kind": "telegram", "poll_timeout": 2, "edit_interval": 0.1, "request_timeout": REQUEST_TIMEOUT,
        "connect_timeout": 0.5, "lateness": LATENESS,
    },
    "shutdown": {"drain": 20},
    "log": {"format": "json"},
}  # fmt: skip


@define(eq=False)
class Bot:
    """One life of the program."""

    process: trio.Process
    born: float
    """trio's time of the start."""
    log: Path
    """Everything that it wrote to standard output and standard error."""
    killed: bool = False

    @property
    def alive(self) -> bool:
        """It has not been waited for to its end."""
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        """Sends a signal to the program and all its children."""
        if self.alive:
            os.killpg(self.process.pid, number)

    async def kill(self) -> None:
        """SIGKILL; returns when it is dead. Shielded for a moment, so that no test leaves a process behind."""
        self.killed = True
        self.signal(signal.SIGKILL)
        with trio.move_on_after(10, shield=True):
            await self.process.wait()

    async def wait(self) -> int:
        """The exit code, when it ends by itself."""
        with trio.fail_after(PATIENCE):
            return await self.process.wait()

    async def terminate(self) -> int:
        """SIGTERM; the exit code, when it has ended."""
        self.signal(signal.SIGTERM)
        return await self.wait()

    def freeze(self) -> None:
        """SIGSTOP: it does nothing more until it is killed; what is sent to it lies in its sockets."""
        self.signal(signal.SIGSTOP)

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self.log.read_text(errors="replace")


@define(eq=False)
class KillPoint:
    """A place at which the program is killed once: a request of this method in this stage.

    `?`: it was read and will not be done; `~`: it was read and is done, the answer dies with the process; `!`: it is
    done and answered.
    """

    stage: str
    method: str
    contains: str = ""
    when: Callable[[Call], Any] = lambda call: True
    struck: trio.Event = field(factory=trio.Event)

    def wants(self, stage: str, call: Call) -> bool:
        """Whether the program dies now; `stage` as the fakes name it."""
        here = stage == ("!" if self.stage == "!" else "?")
        meant = here and call.method == self.method and self.contains in call.text
        return not self.struck.is_set() and meant and bool(self.when(call))


@frozen
class Asked:
    """A message that somebody wrote."""

    text: str
    update: int
    message: int
    """Its id on the platform."""


@define(eq=False)
class BotWorld:
    """See the module's text."""

    telegram: TelegramFake
    model: ModelFake
    directory: Path
    config: Path
    lives: list[Bot] = field(factory=list)
    kill_points: list[KillPoint] = field(factory=list)
    crashed: Counter[str] = field(factory=Counter)
    """For each question: how many crashes found it without an answer."""
    in_flight: int = 0
    """Creates that were in flight at a crash: each may leave an empty placeholder behind."""

    # --- the program ----------------------------------------------------------------------------------------------

    @property
    def bot(self) -> Bot:
        """The latest life."""
        return self.lives[-1]

    @property
    def ledger(self) -> Ledger:
        """The database file, for reading."""
        return Ledger(self.directory / "data" / "state.db")

    async def launch(self, *arguments: str) -> Bot:
        """A new process, without waiting for anything it does."""
        log = self.directory / f"life{len(self.lives) + 1}.log"
        command = [sys.executable, "-m", "hermes_trio", *(arguments or ("run", "--config", str(self.config)))]
        environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("HERMES_TRIO")}
        born = trio.current_time()
        with log.open("wb") as sink:
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
                env=environment, cwd=self.directory,
            )  # fmt: skip
        self.lives.append(Bot(process, born, log))
        return self.bot

    async def start(self) -> Bot:
        """A new process; returns when it polls for messages."""
        polls = self.count("getUpdates")
        bot = await self.launch()
        await self.wait(self.telegram, lambda: self.count("getUpdates") > polls or not bot.alive)
        assert bot.alive, f"the program ended with {bot.process.returncode} before its first poll"
        return bot

    async def kill(self) -> None:
        """SIGKILL; notes which questions had no answer yet."""
        await self.bot.kill()
        self.note_crash()

    def note_crash(self) -> None:
        """The program has just died: what had no answer may cost one more turn, a create in flight a placeholder."""
        self.crashed.update(self.ledger.unanswered())
        self.in_flight += self.ledger.uncertain_creates()

    async def restart(self) -> Bot:
        """SIGKILL, and a new process that polls."""
        await self.kill()
        return await self.start()

    def kill_at(
        self, stage: str, method: str, *, contains: str = "", when: Callable[[Call], Any] = lambda call: True
    ) -> KillPoint:
        """Plants a death; see KillPoint. `await world.wait_death(point)` waits for it."""
        point = KillPoint(stage, method, contains, when)
        self.kill_points.append(point)
        return point

    async def wait_death(self, point: KillPoint) -> None:
        """Returns when the program has died at this point."""
        with trio.fail_after(PATIENCE):
            await point.struck.wait()

    async def watch(self, stage: str, call: Call) -> None:
        """Follows the requests of both fakes, for the kill points."""
        for point in self.kill_points:
            if point.wants(stage, call):
                await self.bot.kill()
                self.note_crash()
                point.struck.set()
                if point.stage == "?":
                    await trio.sleep_forever()  # nobody does what nobody asks for any more

    # --- the people and the model ---------------------------------------------------------------------------------

    def asks(self, text: str, user: str = "alice") -> Asked:
        """A person writes."""
        person = self.telegram.user(user)
        update = person.says(text)
        return Asked(text, update, person.last.message_id)

    async def redeliver(self, asked: Asked) -> None:
        """Telegram delivers what somebody wrote once more; returns when the program has stored what came with it."""
        self.telegram.redeliver(asked.update)
        await self.wait(self.telegram, lambda: not self.telegram.updates.waiting)
        polls = self.count("getUpdates")
        await self.wait(self.telegram, lambda: self.count("getUpdates") > polls)

    def answers(self, label: str, text: str | None = None, **how: Any) -> Script:
        """What the model says to the question that contains `label`: by default the usual answer of that label."""
        said = answer(label) if text is None else text
        return self.model.when(label).says(said, **how)

    def faults(self, effect: Any, *methods: str, **options: Any) -> Fault:
        """A fault on Telegram's wire."""
        return self.telegram.faults.add(effect, *methods, **options)

    def count(self, method: str) -> int:
        """How many requests of this method Telegram has read."""
        return sum(call.method == method for call in self.telegram.requests)

    def count_accepted(self, method: str) -> int:
        """How many requests of this method changed something on the platform."""
        return sum(entry.method == method for entry in self.telegram.history)

    def shown(self, user: str = "alice") -> str:
        """Everything of the bot that a person sees now, in one."""
        return "\n".join(self.telegram.bot_texts(self.telegram.user(user)))

    # --- waiting --------------------------------------------------------------------------------------------------

    async def wait(self, fake: Server[Any], condition: Callable[[], T]) -> T:
        """The first true value of a condition on a fake; looks too when only a process has changed."""
        with trio.fail_after(PATIENCE):
            while True:
                with trio.move_on_after(0.25):
                    return await fake.wait_for(condition)

    async def wait_shown(self, text: str, user: str = "alice") -> None:
        """Returns when a person sees this text of the bot."""
        await self.wait(self.telegram, lambda: text in self.shown(user))

    async def wait_rows(self, condition: Callable[[Ledger], T]) -> T:
        """The first true value of a condition on the database."""
        with trio.fail_after(PATIENCE):
            while not (value := condition(self.ledger)):  # noqa: ASYNC110 -- a file tells no one that it changed
                await trio.sleep(POLL)
        return value

    async def wait_logged(self, text: str) -> None:
        """Returns when the latest life has written this to its log."""
        with trio.fail_after(PATIENCE):
            while text not in self.bot.output:  # noqa: ASYNC110 -- a file tells no one that it changed
                await trio.sleep(POLL)

    async def wait_settled(self) -> None:
        """Returns when everything that was written is in the ledger and nothing there is open."""
        await self.wait(self.telegram, lambda: not (self.telegram.unconfirmed and self.bot.alive))
        await self.wait_rows(lambda ledger: not (ledger.open_work() and self.bot.alive))
        assert self.bot.alive, f"the program ended with {self.bot.process.returncode}"

    async def wait_quiet(self) -> None:
        """Nothing may happen for a while: no new request that changes a screen, none to the model."""
        before = self.trace()
        await trio.sleep(QUIET)
        assert self.trace() == before, "something happened where nothing should"

    def trace(self) -> tuple[int, int, int]:
        """Grows with whatever the program does to a screen or asks of the model."""
        changing = ("sendMessage", "editMessageText", "deleteMessage")
        made = sum(map(self.count, changing))
        on_screens = sum(entry.message_id is not None for entry in self.telegram.history)
        return made, on_screens, len(self.model.requests)

    # --- the verdict ----------------------------------------------------------------------------------------------

    def complaints(
        self, *, strays: int = 0, notices: Iterable[str] = (), deleted: Iterable[str] = (), marked: int = 0
    ) -> list[str]:
        """Every promise that is broken, in words; see `verdict`."""
        found = judge(
            self.telegram, self.model, self.ledger, self.crashed,
            strays=strays + self.in_flight, notices=tuple(notices), deleted=frozenset(deleted), marked=marked,
        )  # fmt: skip
        found += [f"a kill point was never reached: {point}" for point in self.kill_points if not _struck(point)]
        return found + [f"in the log of life {number + 1}: {line}" for number, line in self._crashes()]

    def verdict(
        self, *, strays: int = 0, notices: Iterable[str] = (), deleted: Iterable[str] = (), marked: int = 0
    ) -> None:
        """Fails with every promise that is broken.

        strays: empty placeholders that may be left at most, besides those of crashes. notices: texts of which one may
        stand for an answer. deleted: labels of answers that a user took away. marked: how many copies in a chat may
        carry the marker; none where replies are reserved.
        """
        complaints = self.complaints(strays=strays, notices=notices, deleted=deleted, marked=marked)
        assert not complaints, "\n" + "\n".join(complaints)

    def _crashes(self) -> Iterable[tuple[int, str]]:
        """Tracebacks, and secrets, in what the program wrote."""
        for number, bot in enumerate(self.lives):
            for line in bot.output.splitlines():
                if "Traceback" in line or self.telegram.token in line or "sk-secret" in line:
                    yield number, line[:2000]


def _struck(point: KillPoint) -> bool:
    return point.struck.is_set()


def _toml(settings: Mapping[str, Mapping[str, Any]], data_dir: Path) -> str:
    lines = [f'data_dir = "{data_dir}"']
    for table, values in settings.items():
        lines.append(f"[{table}]")
        lines += [f"{name} = {_value(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def settings_for(telegram_port: int, model_port: int, token: str, **changes: Mapping[str, Any]) -> str:
    """The configuration file; `changes` are per table, `telegram` for the account's."""
    merged = {table: dict(values) for table, values in SETTINGS.items()}
    merged["platforms.telegram"] |= {"base_url": f"http://127.0.0.1:{telegram_port}", "token": token}
    merged["model"] |= {"base_url": f"http://127.0.0.1:{model_port}/v1"}
    for table, values in changes.items():
        merged["platforms.telegram" if table == "telegram" else table] |= values
    return _toml(merged, Path("data"))


@asynccontextmanager
async def open_bot_world(*, limits: Any = None, **changes: Mapping[str, Any]) -> AsyncIterator[BotWorld]:
    """Both fakes on free ports and a directory with a configuration; no program runs yet.

    Every process is killed at the end; when the test fails, what the processes wrote is printed. `changes` of the
    settings by table.
    """
    with tempfile.TemporaryDirectory(prefix="hermes-") as name, trio.fail_after(WORLD):
        directory = Path(name)
        async with open_telegram_fake(limits=limits) as telegram, open_model_fake(api_key="sk-secret") as model:
            async with trio.open_nursery() as nursery:
                ports = await listen(telegram, nursery), await listen(model, nursery)
                config = directory / "hermes.toml"
                config.write_text(settings_for(*ports, telegram.token, **changes))
                world = BotWorld(telegram, model, directory, config)
                telegram.watch = model.watch = world.watch
                try:
                    yield world
                except BaseException:
                    _print_logs(world)
                    raise
                finally:
                    for bot in world.lives:
                        await bot.kill()
                nursery.cancel_scope.cancel()


def _print_logs(world: BotWorld) -> None:
    for number, bot in enumerate(world.lives, 1):
        sys.stderr.write(f"--- life {number}, exit code {bot.process.returncode}\n{bot.output}")
    for call in world.telegram.requests:
        if call.method != "getUpdates":
            fault = "" if call.fault is None else f" {call.fault.effect}"
            sys.stderr.write(f"{call.time:.2f} {call.method} {call.text[:60]!r} {call.outcome}{fault}\n")
