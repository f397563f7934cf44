"""Short ways to write views and posts in the named tests. The time is 1000 unless a test says otherwise."""

from __future__ import annotations

from typing import Any

from hermes_trio.delivery.folding import apply, intend
from hermes_trio.delivery.reconcile import next_step
from hermes_trio.delivery.steps import Request, Step
from hermes_trio.delivery.view import Form, Post, PostState, View, Wire
from hermes_trio.platforms.outcomes import Outcome
from hermes_trio.text.body import Body, Span

NOW = 1000.0
EDITABLE = Wire(edits=True)
KEYED = Wire(edits=True, key_window=120.0)
LOOKUP = Wire(edits=True, lookup=True)
PLAIN = Wire(edits=False, deletes=False)
PLAIN_KEYED = Wire(edits=False, deletes=False, key_window=120.0)
PLACEHOLDER = Body("…")
MARKER = "[may be a duplicate] "
A = Body("Alpha", (Span(0, 5, "bold"),))
B = Body("Beta", (Span(0, 4, "italic"),))
C = Body("Gamma")
NOTE_1 = Body("[part 1 could not be shown]")
NOTE_2 = Body("[part 2 could not be shown]")
WITHDRAWN = Body("[withdrawn]")
NOTICE = Body("[this answer could not be delivered in time]")


def view(*parts: Body, posts: tuple[Post, ...] = (), final: bool = True, **more: Any) -> View:
    """A final reply, unless said otherwise."""
    forms = more.pop("forms", (Form.RICH,) * len(parts))
    more = {"serial": len(posts)} | more
    return View("r", parts=parts, forms=forms, posts=posts, final=final, **more)


def live(number: int, shown: Body | None = None, **more: Any) -> Post:
    """A post with the key kN and the message id mN, created for part N."""
    fingerprint = None if shown is None else shown.fingerprint
    more = {"created": 0.0, "ended": 0.0, "reserved": True, "body": None, "state": PostState.LIVE} | more
    return Post(
        ordinal=more.pop("ordinal", number), key=f"k{number}", message_id=f"m{number}", shown=fingerprint, **more
    )


def shows(number: int, shown: Body, **more: Any) -> Post:
    """A live post whose part is confirmed."""
    return live(number, shown, confirmed=number, **more)


def unknown(number: int, body: Body = PLACEHOLDER, **more: Any) -> Post:
    """A post whose create has no known outcome; its attempt ended just now."""
    more = {"ordinal": number, "created": NOW - 10, "ended": NOW, "state": PostState.UNKNOWN} | more
    return Post(key=f"k{number}", body=body, reserved=body == PLACEHOLDER, **more)


def doubtful(number: int, ordinal: int = 0) -> Post:
    """A copy that may exist."""
    return Post(
        ordinal=ordinal, key=f"d{number}", body=None, reserved=False, created=0.0, ended=0.0, state=PostState.DOUBTFUL
    )


def ask(before: View, wire: Wire, outcome: Outcome, now: float = NOW) -> tuple[Step | None, View]:
    """The next step, which is a request, and the view after its outcome."""
    step = next_step(before, wire, now)
    assert isinstance(step, Request), step
    return step, apply(intend(before, step), step, outcome, wire, now)


def run(before: View, wire: Wire, *outcomes: Outcome, now: float = NOW) -> View:
    """The view after these outcomes, one request after the other; rows are changed in between."""
    for outcome in outcomes:
        before = rows(before, wire, now)
        before = ask(before, wire, outcome, now)[1]
    return rows(before, wire, now)


def rows(before: View, wire: Wire, now: float = NOW) -> View:
    """The view after all steps that change rows only."""
    for _ in range(20):
        step = next_step(before, wire, now)
        if step is None or isinstance(step, Request) or type(step).__name__ in ("Wait", "Resplit"):
            return before
        before = apply(before, step, None, wire, now)
    raise AssertionError(f"the rows change for ever: {step}")
