"""The pure delivery core: the one next step between what is visible and what should be.

An obligation is a `View`. The lane of its address turns a loop:

    view, step = pick(views, wire, now)                # next_step(view, wire, now) for one obligation
    view = intend(view, step)                          # durable before the request is written
    outcome = await request(step)                      # Accepted, Refused or Unknown
    view = apply(view, step, outcome, wire, now)       # durable before the next step

`intend`, `apply` and the other changes of a view are in `folding`. A restart only calls `recover`. The rule that must
not be broken: **what is not provably refused may have happened, and may still happen until the settle time is over.**
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

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
    Resplit,
    Settle,
    Step,
    Wait,
)
from hermes_trio.delivery.view import (
    DEAD_ADDRESS,
    MIN_BACKOFF,
    NOTICE_WITHDRAWN,
    Form,
    Post,
    PostState,
    Target,
    View,
    Wire,
    body_of,
    doubts,
    key_closes,
    may_expire,
    placed,
    places,
    showable,
    targets,
    unwanted,
)
from hermes_trio.text.body import Body


def next_step(view: View, wire: Wire, now: float) -> Step | None:
    """The next step of one obligation; None: nothing to do until it is revised, or it has ended."""
    if view.ended is not None:
        return None
    if view.dead:
        return Abandon(DEAD_ADDRESS)
    if may_expire(view) and now >= view.expires:
        return Expire()
    if view.oversized is not None:
        return Resplit(view.oversized)
    step = _pause(view, now) or _resolve(view, wire, now) or _show(view, wire, now)
    if step is None and view.final:
        step = _clear(view, wire, now) or _say_again(view, wire, now) or _end(view)
    if isinstance(step, Wait) and may_expire(view):
        return Wait(min(step.until, view.expires))
    return step


def pick(views: Iterable[View], wire: Wire, now: float) -> tuple[View | None, Step | None]:
    """The obligation of one address that goes on, and its step; views come in order of arrival.

    (None, Wait) when all that may go on waits, (None, None) when none has work. A final obligation holds up all later
    ones until it is placed; a streaming one holds up replies only. A control message that passed one is completed
    before the reply goes on. Finals and control go before placeholders and previews.
    """
    ready: list[tuple[View, Step]] = []
    wait: Wait | None = None
    streaming = False
    for view in sorted(views, key=lambda view: not _begun_control(view)):
        if view.ended is not None or (streaming and view.reply):
            continue
        step = next_step(view, wire, now)
        if isinstance(step, Wait):
            wait = step if wait is None or step.until < wait.until else wait
        elif step is not None:
            ready.append((view, step))
        if not placed(view):
            if view.final:
                break
            streaming = True
    if not ready:
        return None, wait
    return min(ready, key=lambda pair: not pair[0].final)


def _begun_control(view: View) -> bool:
    """A control message that has a post and is not complete."""
    return not view.reply and bool(view.posts) and not placed(view)


def _pause(view: View, now: float) -> Wait | None:
    """Backoff, rate limits, and the pause after nothing left, which a sign of life ends."""
    down = view.down_until
    if view.alive_at > view.failed_at:
        down = min(down, view.failed_at + MIN_BACKOFF)
    until = max(view.not_before, down)
    return Wait(until) if now < until else None


def _resolve(view: View, wire: Wire, now: float) -> Step | None:
    """A create of unknown outcome comes first: ask again where asking is free, else pay the smallest price."""
    for post in view.posts:
        if post.state is PostState.UNKNOWN:
            return _resolve_post(view, post, wire, now)
    return None


def _resolve_post(view: View, post: Post, wire: Wire, now: float) -> Step:
    if now < key_closes(post, wire) and not view.expired:
        return _create(view, post, again=True)
    if wire.lookup:
        settled = post.ended + wire.settle
        return Wait(settled) if now < settled else Lookup(post)
    if post.reserved or post.ordinal >= len(view.parts) or view.expired:
        return Forget(post)
    if doubts(view, post.ordinal) >= wire.marked_copies + view.allowance:
        return _clear(view, wire, now) or Hold(f"part {post.ordinal + 1} is uncertain")
    return Doubt(post) if view.alive_at > post.ended else Wait(inf)


def _show(view: View, wire: Wire, now: float) -> Step | None:
    """Every place shows its part, and every part has a place, in order."""
    if not view.final and not wire.edits:
        return None
    for target in targets(view, wire):
        if _differs(view, target):
            return _edit(target, wire, now)
    ordinals = showable(view)
    taken = len(places(view))
    if taken >= len(ordinals) or view.expired:
        return None
    return _new_post(view, ordinals[taken], wire, now)


def _differs(view: View, target: Target) -> bool:
    """The post does not certainly show what it has to. A preview that was refused is left out."""
    post = target.post
    ordinal = target.ordinal
    if ordinal is None or (post.uneditable and post.confirmed == ordinal):
        return False
    if not view.final:
        return post.shown != target.body.fingerprint and view.forms[ordinal] is not Form.NOTED
    return post.shown != target.body.fingerprint or post.confirmed != ordinal


def _new_post(view: View, ordinal: int, wire: Wire, now: float) -> Create | None:
    """A post for a part that has none: the placeholder where reserving applies, else the part itself."""
    if view.outright and not view.final:
        return None
    editable = wire.edits and not view.outright
    reserved = editable and (view.reserve or not view.final or doubts(view, ordinal) > 0)
    body = Body(wire.placeholder) if reserved else body_of(view, ordinal, wire)
    key = f"{view.id}.{ordinal}.{view.serial}"
    return _create(view, Post(ordinal, key, body, reserved, created=now, ended=now))


def _create(view: View, post: Post, again: bool = False) -> Create:
    """The create of this post; the first part of an obligation answers its anchor."""
    anchor = view.anchor if post.ordinal == 0 else None
    return Create(post, again, anchor, view.threaded)


def _clear(view: View, wire: Wire, now: float) -> Step | None:
    """What should be gone is deleted, or says that it is withdrawn."""
    for post in unwanted(view):
        if wire.deletes and not post.undeletable:
            return Delete(post)
        target = _withdrawal(post)
        if wire.edits and post.shown != target.body.fingerprint:
            return _edit(target, wire, now)
    return None


def _say_again(view: View, wire: Wire, now: float) -> Step | None:
    """An edit of unknown outcome may land on top of the text: once nothing can land any more, say it again."""
    for target in [*targets(view, wire), *map(_withdrawal, unwanted(view))]:
        post = target.post
        if post.loose - {target.body.fingerprint}:
            settled = post.loose_at + wire.settle
            return Wait(settled) if now < settled else _edit(target, wire, now)
    return None


def _end(view: View) -> Step:
    """Nothing is left."""
    return Settle() if view.failure is None else Abandon(view.failure)


def _edit(target: Target, wire: Wire, now: float) -> Edit:
    settled = now >= target.post.loose_at + wire.settle
    return Edit(target.post, target.body, target.ordinal, settled)


def _withdrawal(post: Post) -> Target:
    return Target(post, Body(NOTICE_WITHDRAWN), None)
