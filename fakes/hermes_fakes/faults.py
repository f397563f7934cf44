"""Faults of the wire that every fake can inject.

A Fault says which requests it hits (method, a predicate on the decoded request, from the n-th match on, how often,
until when) and what happens to them (its Effect). Faults are looked at in the order in which they were added; the
first that wants a request gets it, and an earlier one keeps count only of what it saw itself.

    fault = fake.faults.add(AckLost(), "editMessageText", contains="<</A-1>>")
    ...
    assert fault.hits == 1

The rule: an effect performs the call at most once, and each says in its first line whether the call takes effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio
from attrs import define, field, frozen

from hermes_fakes.http import Answer, CutOff, Hangup, Reply, Send, Silence, StreamReply, encode_reply


@define(eq=False)
class Call:
    """One decoded request and what became of it."""

    method: str
    """The service's own name of what was asked for, e.g. "sendMessage" or "chat.completions"."""
    args: dict[str, Any]
    time: float
    """When it was read, on trio's clock."""
    text: str = ""
    """What a person would read in it; `contains=` looks here."""
    gone: trio.Event = field(factory=trio.Event, repr=False)
    """The client has left."""
    outcome: str = "open"
    """"accepted", "refused: ..." with the service's words, or "open" while nothing has been done."""
    fault: Fault | None = None
    """The fault that it ran into."""


class Host(Protocol):
    """What an effect needs of a fake."""

    async def perform(self, call: Any, /) -> Answer: ...

    def decline(self, status: int, text: str = "", *, retry_after: float | None = None, **parameters: Any) -> Reply: ...

    def later(self, seconds: float, action: Callable[[], Awaitable[Any]]) -> None: ...

    def refuse(self, seconds: float = ...) -> None: ...

    def outage(self, seconds: float = ...) -> None: ...


class Effect(Protocol):
    """What a fault does to a request. A test may bring its own."""

    async def play(self, call: Call, host: Host) -> Answer: ...


@frozen
class Refuse:
    """The call takes effect and is answered; then kept connections end and new ones are refused for `seconds`.

    So the *next* request meets a closed door: nothing of it can have left. The answer says that its connection is not
    kept, lest the next request race against the close. With `everything` connections in the middle of an answer end as
    well, this one included.
    """

    seconds: float
    everything: bool = False

    async def play(self, call: Call, host: Host) -> Answer:
        answer = await host.perform(call)
        if self.everything:
            host.outage(self.seconds)
        else:
            host.refuse(self.seconds)
        if isinstance(answer, Reply):
            return Reply(answer.status, answer.body, (*answer.headers, ("connection", "close")))
        return answer


@frozen
class ResetBefore:
    """No effect: the request is read, then the connection is closed without an answer."""

    async def play(self, call: Call, host: Host) -> Answer:
        return Hangup()


@frozen
class NeverSeen:
    """No effect: the request is read and never answered; the connection stays open until the client goes."""

    async def play(self, call: Call, host: Host) -> Answer:
        return Silence()


@frozen
class AckLost:
    """The call takes effect; the connection is closed without an answer, or with `silent` stays open without one."""

    silent: bool = False

    async def play(self, call: Call, host: Host) -> Answer:
        await host.perform(call)
        return Silence() if self.silent else Hangup()


@frozen
class LateAccept:
    """The call takes effect `after` seconds later, whether the client is still there or not; it is never answered."""

    after: float

    async def play(self, call: Call, host: Host) -> Answer:
        async def accept() -> None:
            await host.perform(call)

        host.later(self.after, accept)
        return Silence()


@frozen
class RateLimited:
    """No effect: 429 with `retry_after` seconds in the service's words."""

    retry_after: float = 1

    async def play(self, call: Call, host: Host) -> Answer:
        call.outcome = "refused: 429"
        return host.decline(429, retry_after=self.retry_after)


@frozen
class ErrorBefore:
    """No effect: a 5xx (or any other status, with the service's or your own words) instead of it."""

    status: int = 502
    text: str = ""

    async def play(self, call: Call, host: Host) -> Answer:
        call.outcome = f"refused: {self.status}"
        return host.decline(self.status, self.text)


@frozen
class ErrorAfter:
    """The call takes effect; the answer is a 5xx all the same."""

    status: int = 500
    text: str = ""

    async def play(self, call: Call, host: Host) -> Answer:
        await host.perform(call)
        return host.decline(self.status, self.text)


@frozen
class Delay:
    """The call takes effect `seconds` after it was read, and is answered `answer` seconds after that.

    A client that leaves in the meantime changes nothing.
    """

    seconds: float = 0
    answer: float = 0

    async def play(self, call: Call, host: Host) -> Answer:
        await trio.sleep(self.seconds)
        answer = await host.perform(call)
        await trio.sleep(self.answer)
        return answer


@frozen
class Garbage:
    """The call takes effect; the answer is not HTTP, or with `http` a 200 whose body is not JSON."""

    http: bool = False

    async def play(self, call: Call, host: Host) -> Answer:
        await host.perform(call)
        return Reply(200, b"\xff\xfe{not json") if self.http else Hangup(b"\x00\x01 what is this\r\n\r\n")


@frozen
class HtmlError:
    """No effect: a proxy's HTML page with that status."""

    status: int = 502

    async def play(self, call: Call, host: Host) -> Answer:
        call.outcome = f"refused: {self.status}"
        page = f"<html><head><title>{self.status} Bad Gateway</title></head><body>nginx</body></html>"
        return Reply(self.status, page.encode(), (("content-type", "text/html"),))


@frozen
class CutStream:
    """The call takes effect; the connection ends after `after` pieces of a stream, or half of a whole answer."""

    after: int = 1

    async def play(self, call: Call, host: Host) -> Answer:
        answer = await host.perform(call)
        if isinstance(answer, Reply):
            whole = encode_reply(answer)
            return Hangup(whole[: len(whole) - (len(answer.body) + 1) // 2])
        if not isinstance(answer, StreamReply):
            return answer
        original = answer.feed

        async def feed(send: Send) -> None:
            left = self.after

            async def counted(piece: bytes) -> None:
                nonlocal left
                if left <= 0:
                    raise CutOff
                left -= 1
                await send(piece)
                if left == 0:
                    raise CutOff

            if left <= 0:
                raise CutOff
            await original(counted)

        return StreamReply(feed, answer.status, answer.headers)


@frozen
class AnswerWith:
    """No effect: this answer and nothing else."""

    answer: Answer

    async def play(self, call: Call, host: Host) -> Answer:
        return self.answer


EFFECTS: dict[str, Callable[..., Effect]] = {
    "refuse": Refuse,
    "reset_before": ResetBefore,
    "never_seen": NeverSeen,
    "ack_lost": AckLost,
    "late_accept": LateAccept,
    "rate_limited": RateLimited,
    "error_before": ErrorBefore,
    "error_after": ErrorAfter,
    "delay": Delay,
    "garbage": Garbage,
    "html_error": HtmlError,
    "cut_stream": CutStream,
}
"""The effects by the names of the control interface."""


@define(eq=False)
class Fault:
    """One injected fault, and how often it struck."""

    effect: Effect
    methods: frozenset[str] = frozenset()
    """In lower case; empty: every method."""
    when: Callable[[Any], bool] | None = None
    """A predicate on the Call."""
    contains: str = ""
    """Must stand in the call's text."""
    nth: int = 1
    """The first match that is hit, counted from 1."""
    count: int | None = 1
    """How many matches are hit; None: all."""
    until: float = float("inf")
    """On trio's clock; from then on it is over."""
    seen: int = 0
    hits: int = 0
    struck: trio.Event = field(factory=trio.Event, repr=False)
    """Set at the first hit."""

    def wants(self, call: Call) -> bool:
        """Whether this request is hit; counts it."""
        if trio.current_time() >= self.until or (self.count is not None and self.hits >= self.count):
            return False
        if self.methods and call.method.lower() not in self.methods:
            return False
        if self.contains not in call.text or (self.when is not None and not self.when(call)):
            return False
        self.seen += 1
        if self.seen < self.nth:
            return False
        self.hits += 1
        self.struck.set()
        return True


class Faults:
    """The faults of one fake."""

    def __init__(self) -> None:
        self.all: list[Fault] = []

    def add(
        self,
        effect: Effect,
        *methods: str,
        contains: str = "",
        when: Callable[[Any], bool] | None = None,
        nth: int = 1,
        count: int | None = 1,
        seconds: float = float("inf"),
    ) -> Fault:
        """Injects a fault, without `methods` into any request. It ends after `count` hits or `seconds` from now."""
        until = trio.current_time() + seconds if seconds != float("inf") else seconds
        names = frozenset(method.lower() for method in methods)
        fault = Fault(effect, names, when, contains, nth, count, until)
        self.all.append(fault)
        return fault

    def black_hole(self, seconds: float, *methods: str) -> Fault:
        """For that long, every request (of these methods) takes effect and none is answered."""
        return self.add(AckLost(silent=True), *methods, count=None, seconds=seconds)

    def choose(self, call: Call) -> Fault | None:
        """The fault that this request runs into, counted as a hit."""
        return next((fault for fault in self.all if fault.wants(call)), None)

    def unhit(self) -> list[Fault]:
        """The faults that never struck: a test that injected one and missed has shown nothing."""
        return [fault for fault in self.all if not fault.hits]

    def clear(self) -> None:
        self.all.clear()
