"""One random schedule: scripts of turns, users, an operator, a clock, and a process that is killed and restarted.

One address, one to three obligations, one lane. Everything that may go wrong does until the platform is calm; from
then on it answers, and every obligation must end soon. The verdicts are given by `verdicts.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any

from attrs import evolve

from hermes_trio.delivery.steps import Expire, Request, Resplit, Step
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused
from hermes_trio.text.body import Body, Span

from .platform import SERVER_WINDOW, Platform
from .verdicts import Judge, Wrong, describe

PATIENCE = 320.0
"""Seconds from the calm to the end of every obligation."""
WIRES: dict[str, dict[str, Any]] = {
    "editable": {"edits": True},
    "keyed+editable": {"edits": True, "key_window": SERVER_WINDOW},
    "lookup+editable": {"edits": True, "lookup": True},
    "plain": {"edits": False, "deletes": False},
    "plain+key": {"edits": False, "deletes": False, "key_window": SERVER_WINDOW},
    "plain+lookup": {"edits": False, "deletes": False, "lookup": True},
}


class Killed(Exception):
    """SIGKILL, at this point."""


def bold(text: str) -> Body:
    """A text with markup."""
    return Body(text, (Span(0, 2, "bold"),))


def split(body: Body) -> tuple[Body, ...]:
    """The pieces of a text that is too long: an L marks where; what has none cannot be made shorter."""
    head, long, tail = body.text.partition("L")
    if not long:
        return (body,)
    first, second = Body(f"{head}a{tail}", body.spans), Body(f"{head}b", body.spans)
    return (first, second) if "L" in tail else (first, second, Body(f"{head}c", body.spans))


class Run:
    """One schedule."""

    def __init__(self, seed: int, wire: str, core: SimpleNamespace) -> None:
        self.core = core
        self.rng = random.Random(f"{wire}{seed}")
        self.wire = core.Wire(**WIRES[wire])
        self.platform = Platform(self.rng, self.wire.key_window)
        self.judge = Judge(self)
        self.durable: dict[str, Any] = {}
        self.memory: dict[str, Any] = {}
        """Views in order of arrival, as rows and as the lane knows them."""
        self.expected: dict[str, list[Body]] = {}
        """The final parts of each obligation, after what was split again."""
        self.up = True
        self.offset = 10_000.0
        self.stepped = False
        self.last_seen = 0.0
        self.lives = 10
        self.kills = self.rng.choice([0, 0, 0.03, 0.1])
        self.open_scripts = 0
        self.quiet = self.platform.calm
        """When the last thing happened that may need time to be dealt with."""
        self.life = 0.0
        self.dead = False
        self.bucket = -inf
        self.chat = 0
        self.operator = self.rng.choice(["away", "away", "releases", "drops"])
        self.impatient = self.rng.random() < 0.15
        self.script()

    @property
    def now(self) -> float:
        """What the wall clock shows."""
        return self.platform.t + self.offset

    # -- what happens around the process -------------------------------------------------------------------------

    def script(self) -> None:
        """Which turns and messages there are, and what users do."""
        rng = self.rng
        at = self.platform.at
        replies, controls = rng.choice([(1, 0), (1, 0), (1, 1), (2, 0), (2, 1), (0, 1), (0, 2)])
        self.open_scripts = replies + controls
        if replies:
            at(rng.choice([0, 3, 20]), lambda: self.start("r1", replies))
        for number in range(controls):
            at(rng.uniform(0, 60), lambda number=number: self.start(f"c{number}", 0))
        for _ in range(rng.choice([0, 0, 0, 1, 3, 6])):
            at(rng.uniform(0, rng.choice([30, 150])), self.user_deletes)
        for _ in range(rng.choice([0, 0, 0, 0, 0, 0, 1, 3])):
            at(rng.uniform(0, 80), self.message_locks)
        if rng.random() < 0.15:
            at(rng.uniform(1, 100), self.step_clock)
        if rng.random() < 0.15:
            at(rng.uniform(1, 60), self.chat_moves)

    def living(self, event: Callable[[], object]) -> None:
        """An event of the process itself waits for the next life."""
        if self.up:
            event()
        else:
            self.platform.at(self.platform.t + 0.5, lambda: self.living(event))

    def start(self, name: str, more: int) -> None:
        """An obligation begins; `more` replies follow it, this one included."""
        if not self.up:
            self.living(lambda: self.start(name, more))
            return
        if name in self.memory:
            return
        rng = self.rng
        reply = name.startswith("r")
        expires = self.now + rng.uniform(5, 120) if self.impatient else inf
        self.commit(
            self.core.View(
                name,
                kind="reply" if reply else "control",
                reserve=reply,
                anchor=f"anchor of {name}" if reply else None,
                dead=self.dead,
                not_before=self.bucket,
                expires=expires,
            )
        )
        if not reply:
            self.finish(name, 0)
            return
        if more > 1 and rng.random() < 0.2:
            self.follow(rng.choice([1, 5]), more - 1)
        t = self.platform.t
        for version in range(rng.choice([0, 1, 3, 6])):
            t += rng.choice([0.5, 2, 9])
            self.platform.at(t, lambda version=version: self.living(lambda: self.preview(name, version)))
        self.platform.at(t + rng.choice([0, 1, 20]), lambda: self.living(lambda: self.finish(name, more - 1)))

    def preview(self, name: str, version: int) -> None:
        """The turn has a new preview; some of its parts are already as they stay."""
        if self.memory[name].final:
            return
        rng = self.rng
        parts = tuple(
            bold(f"{name}.{number}") if rng.random() < 0.2 else bold(f"{name}.{number} v{version}" + self.flag(0.05))
            for number in range(rng.choice([1, 1, 2, 3, 4]))
        )
        self.memory[name] = self.core.revise(self.memory[name], parts, False, self.wire)
        self.platform.note("  turn:", name, [part.text for part in parts])

    def flag(self, probability: float) -> str:
        """Sometimes something is wrong with a text."""
        return self.rng.choice(["F", "?", "!", "L", "X"]) if self.rng.random() < probability else ""

    def finish(self, name: str, more: int) -> None:
        """The final text is committed, or the reply is withdrawn."""
        rng = self.rng
        withdrawn = name.startswith("r") and rng.random() < 0.15
        count = 0 if withdrawn else rng.choice([1, 1, 2, 3])
        parts = tuple(bold(f"{name}.{number}" + self.flag(0.1) + self.flag(0.02)) for number in range(count))
        self.platform.note("  final:", name, [part.text for part in parts])
        self.expected[name] = list(parts)
        self.commit(self.core.revise(self.memory[name], parts, True, self.wire))
        self.judge.final_at[name] = self.platform.t
        self.open_scripts -= 1
        self.disturbed()
        if more > 0:
            self.follow(rng.choice([0, 1, 10]), more)

    def follow(self, delay: float, more: int) -> None:
        """The next reply begins."""
        self.platform.at(self.platform.t + delay, lambda: "r2" in self.memory or self.start("r2", more))

    def disturbed(self) -> None:
        """From here on the process needs its time again."""
        self.quiet = max(self.quiet, self.platform.t)

    def some_message(self) -> str | None:
        """One that stands on the screen, more often the last."""
        messages = list(self.platform.messages)
        return self.rng.choice([messages[-1], self.rng.choice(messages)]) if messages else None

    def user_deletes(self) -> None:
        """A user deletes one of our messages."""
        if message := self.some_message():
            self.judge.deleted_by_user(message)
            del self.platform.messages[message]
            self.disturbed()

    def message_locks(self) -> None:
        """A message cannot be edited any more."""
        if message := self.some_message():
            self.platform.locked.add(message)
            self.platform.note("  locked", message)
            self.disturbed()

    def chat_moves(self) -> None:
        """The chat has another id from now on."""
        self.platform.chat += 1
        self.platform.note("  the chat moved")
        self.disturbed()

    def step_clock(self) -> None:
        """The wall clock jumps. Two jumps that nobody saw might add up to one that nobody can see."""
        if self.stepped:
            return
        self.offset += self.rng.choice([-1, 1]) * self.rng.uniform(200, 1000)
        self.stepped = True
        self.judge.clock_steps += 1
        self.disturbed()
        self.platform.note("  the clock shows", self.now)

    def operate(self) -> None:
        """The operator decides about what is held, now and then."""
        for view in tuple(self.memory.values()):
            if view.ended != "held" or self.operator == "away" or view.allowance > 1 or self.rng.random() < 0.9:
                continue
            self.platform.note("  operator", self.operator, view.id)
            released = self.operator == "releases"
            self.commit(self.core.release(view, self.now) if released else self.core.drop(view))
            self.judge.operated.setdefault(view.id, 0)
            self.judge.operated[view.id] += released
            self.disturbed()

    # -- the process ---------------------------------------------------------------------------------------------

    def commit(self, view: Any) -> None:
        """A preview's text is not durable: a restart knows the posts, and the resumed turn says new parts."""
        self.memory[view.id] = view
        bare = evolve(view, down_until=-inf, failed_at=-inf, oversized=None)
        self.durable[view.id] = bare if view.final else evolve(bare, parts=(), forms=())
        if not self.stepped:
            self.last_seen = self.now

    def killed(self, where: str) -> None:
        """Perhaps the process ends here."""
        if self.platform.t < self.platform.calm and self.lives and self.rng.random() < self.kills:
            self.platform.note("KILLED", where)
            raise Killed

    def restart(self) -> None:
        """Some time later, the next life."""
        self.up = False
        self.lives -= 1
        self.platform.advance(self.platform.t + self.rng.choice([0.1, 0.1, 1, 5, 30, 150]))
        if self.rng.random() < 0.3 and not self.stepped:
            self.step_clock()
        back = self.now < self.last_seen
        self.up = True
        self.stepped = False
        if back:
            self.bucket = min(self.bucket, self.now + self.wire.max_backoff)
        for view in self.durable.values():
            self.commit(self.core.recover(view, self.wire, self.now, back))
        self.disturbed()
        self.platform.note("restart")

    def beat(self) -> None:
        """Between two actions: the ledger's heartbeat, the clock's watch, the receiving side's sign of life."""
        self.watch_clock()
        self.last_seen = self.now
        if not self.platform.within(self.platform.outage):
            self.life = self.platform.t
            for view in self.memory.values():
                if view.ended is None:
                    self.memory[view.id] = evolve(view, alive_at=self.now)

    def watch_clock(self) -> None:
        """A step is noticed before anything that was learned after it is recorded."""
        if not self.stepped:
            return
        self.stepped = False
        self.bucket = min(self.bucket, self.now + self.wire.max_backoff)
        for view in tuple(self.memory.values()):
            self.commit(self.core.clock_stepped(view, self.wire, self.now))

    def live(self) -> None:
        """Until everything has ended."""
        for _ in range(4000):
            try:
                self.killed("between two actions")
                if self.turn():
                    return
            except Killed:
                self.restart()
        raise Wrong("no end after 4000 rounds")

    def turn(self) -> bool:
        """One turn of the lane's loop. True: everything has ended."""
        platform = self.platform
        self.beat()
        self.operate()
        view, step = self.core.pick(tuple(self.memory.values()), self.wire, self.now)
        self.judge.choice(view)
        if view is not None:
            self.perform(view, step)
            return False
        ended = not self.open_scripts and all(view.ended for view in self.memory.values())
        if ended and (self.operator == "away" or not any(view.ended == "held" for view in self.memory.values())):
            return True
        if ended and platform.t > self.quiet + PATIENCE / 2:
            return True
        if platform.t > self.quiet + PATIENCE and not self.open_scripts:
            raise Wrong("no end: " + str([view for view in self.memory.values() if not view.ended]))
        until = min(step.until - self.offset if step else inf, platform.t + 2)
        platform.advance(max(until, platform.t) + 0.001)
        return False

    def perform(self, view: Any, step: Step) -> None:
        """Decide, record, act, record."""
        platform = self.platform
        platform.note(view.id, describe(step))
        if not isinstance(step, Request):
            self.judge.rows(view, step)
            self.killed("before a change of rows")
            self.change_rows(view, step)
            return
        self.judge.request(view, step)
        self.commit(self.core.intend(view, step))
        self.killed("between intention and request")
        answer, until = platform.request(step, self.chat)
        if self.rng.random() < 0.5:
            platform.advance(self.rng.uniform(platform.t, until))
        self.killed("with a request in flight")
        platform.advance(until)
        self.killed("between answer and record")
        outcome = answer[0]
        platform.note("    ", outcome)
        self.watch_clock()
        self.judge.outcome(view.id, step, outcome)
        self.record(view.id, outcome)
        self.commit(self.core.apply(self.memory[view.id], step, outcome, self.wire, self.now))
        if isinstance(outcome, Accepted):
            self.life = platform.t
            self.memory[view.id] = evolve(self.memory[view.id], alive_at=self.now)

    def change_rows(self, view: Any, step: Step) -> None:
        """A step without a request."""
        if isinstance(step, Resplit):
            self.resplit(view, step.ordinal)
            return
        after = self.core.apply(view, step, None, self.wire, self.now)
        if isinstance(step, Expire):
            self.judge.expired(view, after)
            self.disturbed()
        self.commit(after)

    def resplit(self, view: Any, ordinal: int) -> None:
        """The lane splits a part; meanwhile the turn may have said something else."""
        pieces = split(view.parts[ordinal])
        if view.final and len(pieces) > 1:
            self.expected[view.id][ordinal : ordinal + 1] = pieces
            self.judge.split(view.id, ordinal, len(pieces) - 1)
        if not view.final and self.rng.random() < 0.5:
            self.platform.advance(self.platform.t + self.rng.choice([0.1, 3, 30]))
        self.commit(self.core.resplit(self.memory[view.id], ordinal, pieces))

    def record(self, name: str, outcome: Outcome) -> None:
        """What one obligation learned and all of the address, or of the chat, have to know."""
        if not isinstance(outcome, Refused):
            return
        others = [view for view in self.memory.values() if view.id != name and view.ended is None]
        if outcome.reason is Reason.RATE_LIMITED:
            self.bucket = self.now + outcome.retry_after
            for view in others:
                self.commit(evolve(view, not_before=max(view.not_before, self.bucket)))
        if outcome.reason is Reason.DEAD_ADDRESS:
            self.dead = True
            for view in others:
                self.commit(evolve(view, dead=True))
        if outcome.reason is Reason.MOVED:
            self.chat = self.platform.chat


def judge(seed: int, wire: str, core: SimpleNamespace) -> tuple[str, list[str]] | None:
    """Runs one schedule: None, or what is wrong and the timeline."""
    run = Run(seed, wire, core)
    try:
        run.live()
        run.judge.end()
    except Wrong as wrong:
        return str(wrong), run.platform.log
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        return f"{type(error).__name__}: {error}", run.platform.log
    return None
