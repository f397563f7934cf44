"""A model of a platform: messages in screen order, known keys, and everything that may go wrong until it is calm.

Its event queue is also the time of the schedule. It decides what a request does when it arrives, and what its client
sees of that, independently of the core.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from math import inf

from hermes_trio.delivery.steps import Create, Delete, Edit, Lookup, Request
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.text.body import Body

SERVER_WINDOW = 120.0
"""Seconds in which the model's server knows a key."""
LATENESS = 25.0
FAULTS = ("nothing left", "rate limited", "lost", "no answer", "no answer", "late", "late", "late")


def look(body: Body) -> str:
    """What a user sees of a body: its text, with a star when there is markup."""
    return body.text + "*" * bool(body.spans)


class Message:
    """What stands on the screen."""

    def __init__(self, key: str, body: Body) -> None:
        self.key = key
        self.body = body


class Platform:
    """One chat of a platform and the road to it."""

    def __init__(self, rng: random.Random, key_window: float | None) -> None:
        self.rng = rng
        self.key_window = key_window
        self.t = 0.0
        self.log: list[str] = []
        self.count = 0
        self.queue: list[tuple[float, int, Callable[[], object]]] = []
        self.messages: dict[str, Message] = {}
        self.keys: dict[str, tuple[str, float]] = {}
        self.pending: list[tuple[float, type, str, Body | None]] = []
        """When, what, which key, which text: requests that may still arrive."""
        self.chat = 0
        self.locked: set[str] = set()
        self.choose_faults()

    def choose_faults(self) -> None:
        """What goes wrong in this schedule, and until when."""
        rng = self.rng
        self.faulty = rng.choice([0.0, 0.1, 0.3, 0.6])
        self.calm = rng.uniform(5, 120) if self.faulty else 0.0
        self.outage = self.interval(0.25)
        self.refused_at_once = self.chance(0.3)
        self.black_hole = self.interval(0.25)
        self.fatal = self.interval(0.05)
        self.undeletable = self.chance(0.2)
        self.no_notes = self.chance(0.3)
        self.no_placeholders = self.chance(0.04)
        self.tells_gone = self.chance(0.5)
        self.dead_from = rng.uniform(0, 60) if self.chance(0.06) else inf
        self.locked_from = rng.uniform(0, 60) if self.chance(0.08) else inf
        self.anchor_gone_from = rng.uniform(-20, 60) if self.chance(0.2) else inf
        self.topic_gone_from = rng.uniform(-20, 60) if self.chance(0.2) else inf
        self.calm = max(self.calm, self.outage[1], self.black_hole[1], self.fatal[1])

    def chance(self, probability: float) -> bool:
        """A throw of the dice."""
        return self.rng.random() < probability

    def interval(self, probability: float) -> tuple[float, float]:
        """A stretch of time, often none."""
        start = self.rng.uniform(0, 40)
        length = self.rng.choice([15, 60, 60, 150])
        return (start, start + length) if self.chance(probability) else (0.0, 0.0)

    def within(self, interval: tuple[float, float]) -> bool:
        """Whether it is that time now."""
        return interval[0] <= self.t < interval[1]

    def at(self, time: float, event: Callable[[], object]) -> None:
        """Lets something happen later."""
        self.count += 1
        heapq.heappush(self.queue, (max(time, self.t), self.count, event))

    def advance(self, to: float) -> None:
        """Lets time pass, and what happens in it happen."""
        while self.queue and self.queue[0][0] <= to:
            self.t, _, event = heapq.heappop(self.queue)
            event()
        self.t = max(self.t, to)

    def note(self, *words: object) -> None:
        """A line of the timeline."""
        self.log.append(f"{self.t:8.2f}  " + " ".join(map(str, words)))

    # -- what a request does when it arrives ---------------------------------------------------------------------

    def takes(self, body: Body) -> Refused | None:
        """The refusal of a text; None: it is taken. Flags in the text say what is wrong with it."""
        text = body.text
        if "L" in text or "X" in text:
            return Refused(Reason.TOO_LONG)
        if "F" in text and body.spans:
            return Refused(Reason.FORMATTING)
        if "!" in text or ("?" in text and body.spans):
            return Refused(Reason.CONTENT)
        if "could not be shown" in text and self.no_notes:
            return Refused(Reason.CONTENT)
        if text == "[withdrawn]" and self.no_notes:
            return Refused(Reason.FORBIDDEN)
        if text == "…" and self.no_placeholders:
            return Refused(Reason.CONTENT)
        return None

    def act(self, step: Request, chat: int) -> Outcome:
        """What happens, and the answer."""
        if self.t >= self.dead_from:
            return Refused(Reason.DEAD_ADDRESS)
        if chat != self.chat:
            return Refused(Reason.MOVED, moved_to=str(self.chat))
        if isinstance(step, Create):
            return self.create(step)
        if isinstance(step, Lookup):
            message, _ = self.keys.get(step.post.key, ("", 0.0))
            return Accepted(message) if message in self.messages else Refused(Reason.ABSENT)
        if step.post.message_id not in self.messages:
            return Refused(Reason.NOT_FOUND)
        return self.edit(step) if isinstance(step, Edit) else self.delete(step)

    def create(self, step: Create) -> Outcome:
        """A known key is answered with its first message, whatever became of that."""
        post = step.post
        assert post.body is not None
        message, created = self.keys.get(post.key, ("", -inf))
        if message and self.key_window is not None and self.t - created < SERVER_WINDOW:
            return Accepted(message, gone=self.tells_gone and message not in self.messages)
        if step.reply_to is not None and self.t >= self.anchor_gone_from:
            return Refused(Reason.ANCHOR_GONE)
        if step.threaded and self.t >= self.topic_gone_from:
            return Refused(Reason.TOPIC_GONE)
        if refusal := self.takes(post.body):
            return refusal
        self.count += 1
        message = f"m{self.count:06}"
        self.messages[message] = Message(post.key, post.body)
        self.keys[post.key] = (message, self.t)
        self.note("    screen: +", message, look(post.body))
        return Accepted(message)

    def edit(self, step: Edit) -> Outcome:
        """Edits of a locked message are refused for good."""
        message = step.post.message_id
        assert message is not None
        if message in self.locked or self.t >= self.locked_from:
            self.locked.add(message)
            return Refused(Reason.FORBIDDEN)
        if refusal := self.takes(step.body):
            return refusal
        self.messages[message].body = step.body
        self.note("    screen: =", message, look(step.body))
        return Accepted(message)

    def delete(self, step: Delete) -> Outcome:
        """Deletes are refused for good on a platform that is so made."""
        message = step.post.message_id
        assert message is not None
        if self.undeletable:
            return Refused(Reason.FORBIDDEN)
        del self.messages[message]
        self.note("    screen: -", message)
        return Accepted(message)

    # -- what its client sees of it ------------------------------------------------------------------------------

    def request(self, step: Request, chat: int) -> tuple[list[Outcome], float]:
        """Starts a request; returns its answer, as a list that is filled in time, and when the client has it."""
        rng = self.rng
        fate = self.fate()
        answer: list[Outcome] = []

        def arrives(time: float) -> None:
            said = step.body if isinstance(step, Edit) else None
            self.pending = [late for late in self.pending if late[0] > self.t]
            self.pending.append((time, type(step), step.post.key, said))
            self.at(time, lambda: answer.append(self.act(step, chat)))

        seen = self.t + rng.choice([0.05, 0.05, 0.3, 2, 9])
        gave_up = self.t + rng.choice([0.1, 10, 10])
        if fate == "ok":
            arrives(seen)
            return answer, seen
        if fate == "fatal":
            return [Refused(Reason.ACCOUNT_FATAL, scope="account")], self.t + 0.1
        if fate == "nothing left":
            pause = 0.01 if self.refused_at_once else rng.choice([0.01, 5])
            return [Refused(Reason.NOTHING_LEFT)], self.t + pause
        if fate == "rate limited":
            return [Refused(Reason.RATE_LIMITED, rng.choice([0.3, 5.0, 30.0]))], self.t + 0.1
        if fate == "no answer":
            arrives(min(seen, gave_up))
        if fate == "late":
            arrives(gave_up + rng.uniform(0, LATENESS))
        return [Unknown(fate)], gave_up

    def fate(self) -> str:
        """What becomes of the next request."""
        if self.within(self.outage):
            if self.refused_at_once:
                return "nothing left"
            return self.rng.choice(["nothing left", "nothing left", "lost"])
        if self.within(self.black_hole):
            return "no answer"
        if self.within(self.fatal):
            return "fatal"
        if self.t < self.calm and self.chance(self.faulty):
            return self.rng.choice(FAULTS)
        return "ok"
