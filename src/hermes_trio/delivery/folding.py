"""How a view changes: by an intention, an outcome, a new text, a restart, a step of the clock, or the operator.

Each function takes a view and returns the next; the caller makes it durable. The view may have been revised while a
request was under way, so an outcome is judged by what its step carries. The rule that must not be broken: a post is
taken for gone, or for never made, only where the platform said so.
"""

from __future__ import annotations

from math import inf

from attrs import evolve

from hermes_trio.delivery.steps import (
    Abandon,
    Create,
    Delete,
    Doubt,
    Edit,
    Expire,
    Forget,
    Hold,
    Lookup,
    Request,
    RowStep,
    Settle,
)
from hermes_trio.delivery.view import (
    CANNOT_WITHDRAW,
    DROPPED,
    EXPIRED,
    MIN_BACKOFF,
    NOTICE_EXPIRED,
    REFUSED_CONTENT,
    Ending,
    Form,
    Post,
    PostState,
    View,
    Wire,
    body_of,
    confirmed_places,
    key_closes,
    places,
    showable,
    targets,
)
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.text.body import Body

NEVER_TAKEN = frozenset({Reason.CONTENT, Reason.FORMATTING, Reason.TOO_LONG, Reason.FORBIDDEN})
"""Refusals of a body: whoever repeats it is refused again, and so was every attempt before."""
MOVES_AT_ONCE = 5
"""Failures in a row up to which a chat that moved is asked again without a pause."""


def revise(view: View, parts: tuple[Body, ...], final: bool, wire: Wire) -> View:
    """The turn wants something else to be visible. A final text is never revised; no parts and final: withdraw.

    A part that stays as it was keeps its form. A preview that is the final text counts as confirmed when no uncertain
    edit may still land on it.
    """
    assert not view.final, f"{view.id}: a final text is never revised"
    known = dict(zip(enumerate(view.parts), view.forms, strict=True))
    forms = tuple(known.get(part, Form.RICH) for part in enumerate(parts))
    view = evolve(view, parts=parts, final=final, forms=forms, oversized=None)
    if not final:
        return view
    for target in targets(view, wire):
        post = target.post
        if post.shown == target.body.fingerprint and not post.loose:
            view = _put(view, evolve(post, confirmed=target.ordinal))
    return view


def resplit(view: View, ordinal: int, pieces: tuple[Body, ...]) -> View:
    """Replaces a part that is too long by its pieces; later parts, and what is known of them, move up.

    Without effect when the view was revised since. A part that cannot be made shorter counts as refused for its
    content: as plain text, then by a note.
    """
    if view.oversized != ordinal:
        return view
    view = evolve(view, oversized=None)
    if pieces in ((), view.parts[ordinal : ordinal + 1]):
        return _reform(view, ordinal, Form(view.forms[ordinal] + 1))
    more = len(pieces) - 1

    def moved(index: int) -> int:
        return index + more if index > ordinal else index

    posts = tuple(
        evolve(
            post,
            ordinal=moved(post.ordinal),
            confirmed=None if post.confirmed is None else moved(post.confirmed),
        )
        for post in view.posts
    )
    parts = view.parts[:ordinal] + pieces + view.parts[ordinal + 1 :]
    forms = view.forms[:ordinal] + (view.forms[ordinal],) * len(pieces) + view.forms[ordinal + 1 :]
    return evolve(view, parts=parts, forms=forms, posts=posts)


def intend(view: View, step: Request) -> View:
    """The durable intention of a request; after a crash it is all that is known of it."""
    if isinstance(step, Create) and not step.again:
        return evolve(view, posts=(*view.posts, step.post), serial=view.serial + 1)
    if isinstance(step, Edit):
        post = _find(view, step.post)
        loose = frozenset[str]() if step.settled else post.loose
        return _put(view, evolve(post, editing=step.body.fingerprint, shown=None, loose=loose))
    return view


def apply(view: View, step: Request | RowStep, outcome: Outcome | None, wire: Wire, now: float) -> View:
    """Folds in the outcome of a request, or a step that changes rows only (its outcome is None)."""
    if not isinstance(step, Request):
        return _apply_rows(view, step)
    post = _find(view, step.post)
    if isinstance(step, Edit):
        post = evolve(post, editing=None)
        view = _put(view, post)
    if isinstance(outcome, Accepted):
        return _accepted(evolve(view, attempts=0, last_error=""), post, step, outcome, wire)
    if isinstance(outcome, Refused):
        error = f"{outcome.reason}: {outcome.detail}" if outcome.detail else str(outcome.reason)
        return _refused(evolve(view, last_error=error), post, step, outcome, wire, now)
    assert isinstance(outcome, Unknown), f"a request ends with an outcome, not with {outcome!r}"
    view = evolve(view, last_error=f"unknown: {outcome.cause}" if outcome.cause else "unknown")
    if isinstance(step, Create):
        view = _put(view, evolve(post, state=PostState.UNKNOWN, ended=now))
    elif isinstance(step, Edit):
        view = _put(view, _loosen(view, post, step.body.fingerprint, wire, now))
    return _delay(view, wire.max_backoff, wire, now)


def recover(view: View, wire: Wire, now: float, stepped: bool = False) -> View:
    """All that a restart does: what was only intended is now unknown, and everything unknown settles anew.

    A part that is too long is found out again, and a pause because nothing left is over: no row holds either.
    stepped: the clock shows less than the time of the last commit.
    """
    if stepped:
        view = clock_stepped(view, wire, now)
    posts = tuple(_recover_post(view, post, wire, now) for post in view.posts)
    return evolve(view, posts=posts, oversized=None, down_until=-inf, failed_at=-inf)


def clock_stepped(view: View, wire: Wire, now: float) -> View:
    """The clock jumped: key windows are closed for good, settle times begin anew, waits are cut short."""
    posts = tuple(
        evolve(post, created=-inf, ended=now, loose_at=now if post.loose else post.loose_at) for post in view.posts
    )
    not_before = min(view.not_before, now + wire.max_backoff)
    return evolve(view, posts=posts, not_before=not_before, alive_at=-inf, down_until=-inf, failed_at=-inf)


def moved(view: View) -> View:
    """The chat has another id now: ids of messages in the old one mean nothing there, or another message.

    What was confirmed on the old screen is not posted again; whatever else was made there is left to itself.
    """
    posts: list[Post] = []
    for post in view.posts:
        if post.state is PostState.DOUBTFUL:
            posts.append(post)
        elif post.state in (PostState.INTENDED, PostState.UNKNOWN) and not post.reserved:
            posts.append(evolve(post, state=PostState.DOUBTFUL, body=None))
        elif post.confirmed is not None:
            view = _reform(view, post.confirmed, Form.SEEN)
    return evolve(view, posts=tuple(posts), anchor=None)


def release(view: View, now: float) -> View:
    """The operator lets a held obligation go on: one more marked copy may be made, whatever time has passed."""
    assert view.ended is Ending.HELD, f"{view.id} is not held"
    expires = inf if now >= view.expires else view.expires
    return evolve(view, ended=None, failure=None, allowance=view.allowance + 1, expires=expires)


def drop(view: View) -> View:
    """The operator gives a held obligation up."""
    assert view.ended is Ending.HELD, f"{view.id} is not held"
    return evolve(view, ended=Ending.ABANDONED, failure=DROPPED)


def _apply_rows(view: View, step: RowStep) -> View:
    match step:
        case Forget(post):
            return _remove(view, post)
        case Doubt(post):
            return _put(view, evolve(_find(view, post), state=PostState.DOUBTFUL, body=None))
        case Expire():
            return _expire(view)
        case Hold(reason):
            return evolve(view, ended=Ending.HELD, failure=reason)
        case Abandon(reason):
            return evolve(view, ended=Ending.ABANDONED, failure=reason)
        case Settle():
            return evolve(view, ended=Ending.DELIVERED if view.parts else Ending.WITHDRAWN)


def _expire(view: View) -> View:
    """Keeps the parts that are on screen. A post after them takes the notice; without one it ends here.

    What is on its way or should be gone is still cleared away before it ends.
    """
    kept = confirmed_places(view)
    cut = showable(view)[kept]
    notice = (Body(NOTICE_EXPIRED),) if len(places(view)) > kept else ()
    posts = tuple(
        evolve(post, confirmed=None) if post.confirmed is not None and post.confirmed >= cut else post
        for post in view.posts
        if post.state is not PostState.DOUBTFUL or post.ordinal < cut
    )
    forms = view.forms[:cut] + (Form.RICH,) * len(notice)
    view = evolve(view, parts=view.parts[:cut] + notice, forms=forms, posts=posts, oversized=None, failure=EXPIRED)
    restless = notice or any(post.state in (PostState.UNKNOWN, PostState.SURPLUS) or post.loose for post in posts)
    return view if restless else evolve(view, ended=Ending.ABANDONED)


def _accepted(view: View, post: Post, step: Request, outcome: Accepted, wire: Wire) -> View:
    if isinstance(step, Delete):
        return _remove(view, post)
    body, ordinal = _said(step)
    said_final = view.final and _is_current(view, body, ordinal, wire)
    confirmed = ordinal if said_final else None
    if outcome.gone:
        return _vanish(view, evolve(post, confirmed=confirmed))
    state = post.state if isinstance(step, Edit) else PostState.LIVE
    message_id = outcome.message_id or post.message_id
    shown = body.fingerprint
    return _put(view, evolve(post, state=state, message_id=message_id, body=None, shown=shown, confirmed=confirmed))


def _refused(view: View, post: Post, step: Request, outcome: Refused, wire: Wire, now: float) -> View:
    reason = outcome.reason
    if isinstance(step, Create) and (not step.again or reason in NEVER_TAKEN):
        view = _remove(view, post)
    match reason, step:
        case Reason.DEAD_ADDRESS, _:
            return evolve(view, dead=True)
        case Reason.ABSENT, Lookup():
            return _remove(view, post)
        case Reason.NOT_FOUND, Delete() | Edit(ordinal=None):
            return _remove(view, post)
        case Reason.NOT_FOUND, Edit():
            return _vanish(view, post)
        case Reason.FORBIDDEN, Delete():
            return _put(view, evolve(post, undeletable=True))
        case Reason.FORBIDDEN, Edit(ordinal=int()):
            return _fix(view, post, step)
        case ((Reason.CONTENT | Reason.FORMATTING | Reason.TOO_LONG | Reason.FORBIDDEN), (Create() | Edit())):
            return _give_way(view, post, step, reason, wire)
        case Reason.ANCHOR_GONE, Create(reply_to=str()):
            return evolve(view, anchor=None)
        case Reason.TOPIC_GONE, _ if view.threaded:
            return evolve(view, threaded=False)
        case Reason.MOVED, _ if view.attempts < MOVES_AT_ONCE:
            return evolve(view, attempts=view.attempts + 1)
    return _postpone(view, outcome, wire, now)


def _postpone(view: View, outcome: Refused, wire: Wire, now: float) -> View:
    """The same again, later."""
    if outcome.retry_after is not None:
        return evolve(view, not_before=max(view.not_before, now + max(outcome.retry_after, MIN_BACKOFF)))
    if outcome.reason in (Reason.NOTHING_LEFT, Reason.ACCOUNT_FATAL):
        fatal = outcome.reason is Reason.ACCOUNT_FATAL
        pause = _backoff(view, wire.max_backoff_fatal if fatal else wire.max_backoff_down, wire, now)
        return evolve(view, attempts=view.attempts + 1, down_until=now + pause, failed_at=now)
    return _delay(view, wire.max_backoff, wire, now)


def _vanish(view: View, post: Post) -> View:
    """The message is gone. Once its part was confirmed its user has seen and deleted it: not posted again."""
    view = _remove(view, post)
    return view if post.confirmed is None else _reform(view, post.confirmed, Form.SEEN)


def _fix(view: View, post: Post, step: Edit) -> View:
    """The post can never be edited again: it stays if it shows its part, else a new one takes its place."""
    if post.confirmed == step.ordinal:
        return _put(view, evolve(post, uneditable=True, loose=frozenset()))
    return evolve(_put(view, evolve(post, state=PostState.SURPLUS)), outright=True)


def _give_way(view: View, post: Post, step: Create | Edit, reason: Reason, wire: Wire) -> View:
    """The platform does not take this text: as plain text, as a note, then not at all."""
    if isinstance(step, Create) and step.post.reserved:
        return evolve(view, outright=True)
    body, ordinal = _said(step)
    if ordinal is None:
        return evolve(_remove(view, post), failure=view.failure or CANNOT_WITHDRAW)
    if not _is_current(view, body, ordinal, wire):
        return view
    form = view.forms[ordinal]
    if reason is Reason.TOO_LONG and form < Form.NOTED and post.confirmed != ordinal:
        return evolve(view, oversized=ordinal)
    view = _reform(view, ordinal, Form(form + 1))
    if form < Form.NOTED:
        return view
    if isinstance(step, Edit) and post.confirmed is None:
        view = _put(view, evolve(post, state=PostState.SURPLUS))
    return evolve(view, failure=view.failure or REFUSED_CONTENT)


def _said(step: Create | Edit | Lookup) -> tuple[Body, int | None]:
    """What the message says after this step, and for which part."""
    if isinstance(step, Edit):
        return step.body, step.ordinal
    assert step.post.body is not None, f"{step.post.key}: its outcome is known"
    return step.post.body, step.post.ordinal


def _is_current(view: View, body: Body, ordinal: int | None, wire: Wire) -> bool:
    """This is what the part has to show now; the view may have been revised since."""
    return ordinal is not None and ordinal < len(view.parts) and body == body_of(view, ordinal, wire)


def _recover_post(view: View, post: Post, wire: Wire, now: float) -> Post:
    if post.state in (PostState.INTENDED, PostState.UNKNOWN):
        return evolve(post, state=PostState.UNKNOWN, ended=now)
    if post.editing is not None:
        return _loosen(view, post, post.editing, wire, now)
    return evolve(post, loose_at=now) if post.loose else post


def _loosen(view: View, post: Post, said: str, wire: Wire, now: float) -> Post:
    """An edit without an outcome: it may have landed, it may land later, over what was confirmed too."""
    confirmed = post.confirmed
    if confirmed is not None and body_of(view, confirmed, wire).fingerprint != said:
        confirmed = None
    return evolve(post, editing=None, loose=post.loose | {said}, loose_at=now, confirmed=confirmed)


def _delay(view: View, longest: float, wire: Wire, now: float) -> View:
    pause = _backoff(view, longest, wire, now)
    return evolve(view, attempts=view.attempts + 1, not_before=max(view.not_before, now + pause))


def _backoff(view: View, longest: float, wire: Wire, now: float) -> float:
    """Seconds until the next attempt: doubled each time, and ending inside a key window that is still open."""
    pause = min(2.0 ** min(view.attempts, 9), longest)
    for post in view.posts:
        left = key_closes(post, wire) - now
        if post.state is PostState.UNKNOWN and left > 0:
            pause = min(pause, max(left / 2, MIN_BACKOFF))
    return pause


def _reform(view: View, ordinal: int, form: Form) -> View:
    return evolve(view, forms=(*view.forms[:ordinal], form, *view.forms[ordinal + 1 :]))


def _find(view: View, post: Post) -> Post:
    return next(known for known in view.posts if known.key == post.key)


def _put(view: View, post: Post) -> View:
    return evolve(view, posts=tuple(post if known.key == post.key else known for known in view.posts))


def _remove(view: View, post: Post) -> View:
    return evolve(view, posts=tuple(known for known in view.posts if known.key != post.key))
