"""Between rows and views: what the delivery core decides on is loaded from the ledger and saved to it.

Functions of the connection, to be handed to the ledger. The rule that must not be broken: a view is loaded, changed
and saved within one transaction, so that nobody decides on what is no longer true.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from attrs import evolve

from hermes_trio.delivery.view import Ending, Form, Post, PostState, View, doubts
from hermes_trio.ledger import Connection, obligations
from hermes_trio.ledger.rows import ObligationRow, PostRow

_ENDED = {
    "delivered": Ending.DELIVERED,
    "withdrawn": Ending.WITHDRAWN,
    "abandoned": Ending.ABANDONED,
    "held": Ending.HELD,
}
_EVENTS = {
    Ending.DELIVERED: "settle",
    Ending.WITHDRAWN: "settle",
    Ending.ABANDONED: "abandon",
    Ending.HELD: "hold",
}


def load(con: Connection, row: ObligationRow) -> View:
    """The view of an obligation: its row and its posts. Without the preview of one that streams: no row holds that."""
    progress = row.progress
    return View(
        id=row.id,
        kind="reply" if row.kind == "reply" else "control",
        reserve=progress["reserve"],
        anchor=row.anchor,
        threaded=progress.get("threaded", True),
        expires=inf if row.expires_at is None else row.expires_at,
        allowance=progress.get("allowance", 0),
        parts=row.parts,
        final=row.state != "streaming",
        forms=tuple(Form(form) for form in progress.get("forms", [])) or (Form.RICH,) * len(row.parts),
        posts=tuple(_post(post) for post in obligations.posts_of(con, row.id)),
        serial=progress.get("serial", 0),
        outright=progress.get("outright", False),
        oversized=progress.get("oversized"),
        attempts=row.attempts,
        not_before=-inf if row.not_before is None else row.not_before,
        down_until=progress.get("down_until", -inf),
        failed_at=progress.get("failed_at", -inf),
        failure=progress.get("failure"),
        last_error=row.last_error or "",
        ended=_ENDED.get(row.state),
    )


def save(con: Connection, row: ObligationRow, view: View, now: float, *, attempted: bool = False) -> None:
    """Stores a changed view over the row that it was loaded from.

    attempted: a request for its final text is intended.
    """
    if view.ended is not _ENDED.get(row.state):
        obligations.move(con, row.id, "release" if view.ended is None else _EVENTS[view.ended], now)
    elif attempted and view.final:
        obligations.move(con, row.id, "attempt", now)
    obligations.save_progress(
        con,
        row.id,
        parts=view.parts if view.final else None,
        progress=progress_of(view),
        attempts=view.attempts,
        not_before=_finite(view.not_before),
        expires_at=_finite(view.expires),
        anchor=view.anchor,
        last_error=view.last_error or None,
        now=now,
    )
    _save_posts(con, view)


def progress_of(view: View) -> Mapping[str, Any]:
    """What the core keeps of the whole and no column holds; a value that is as it was born is left out."""
    progress: dict[str, Any] = {"reserve": view.reserve, "serial": view.serial}
    if view.final and any(form is not Form.RICH for form in view.forms):
        progress["forms"] = [int(form) for form in view.forms]
    if not view.threaded:
        progress["threaded"] = False
    for name in ("allowance", "outright", "failure"):
        if value := getattr(view, name):
            progress[name] = value
    if view.final and view.oversized is not None:
        progress["oversized"] = view.oversized
    for name in ("down_until", "failed_at"):
        if (value := getattr(view, name)) > -inf:
            progress[name] = value
    return progress


def _save_posts(con: Connection, view: View) -> None:
    known = {post.key: post for post in obligations.posts_of(con, view.id)}
    for serial, post in enumerate(view.posts):
        previous = known.pop(post.key, None)
        row = _row(view, post, serial if previous is None else previous.serial)
        if row != previous:
            obligations.save_post(con, view.id, row)
    for key in known:
        obligations.remove_post(con, key)


def _post(row: PostRow) -> Post:
    progress = row.progress
    return Post(
        ordinal=row.ordinal,
        key=row.key,
        body=row.body,
        reserved=progress.get("reserved", False),
        created=row.created_at,
        ended=row.ended_at,
        state=PostState(row.state),
        message_id=row.message_id,
        shown=row.shown,
        editing=progress.get("editing"),
        loose=frozenset(progress.get("loose", ())),
        loose_at=progress.get("loose_at", -inf),
        confirmed=progress.get("confirmed"),
        undeletable=progress.get("undeletable", False),
        uneditable=progress.get("uneditable", False),
    )


def _row(view: View, post: Post, serial: int) -> PostRow:
    progress: dict[str, Any] = {}
    for name in ("reserved", "undeletable", "uneditable"):
        if getattr(post, name):
            progress[name] = True
    for name in ("editing", "confirmed"):
        if (value := getattr(post, name)) is not None:
            progress[name] = value
    if post.loose:
        progress["loose"] = sorted(post.loose)
    if post.loose_at > -inf:
        progress["loose_at"] = post.loose_at
    marked = post.state is not PostState.DOUBTFUL and doubts(view, post.ordinal) > 0
    return PostRow(
        key=post.key,
        serial=serial,
        ordinal=post.ordinal,
        state=str(post.state),
        message_id=post.message_id,
        body=post.body,
        shown=post.shown,
        marked=marked,
        progress=progress,
        created_at=post.created,
        ended_at=post.ended,
    )


def _finite(moment: float) -> float | None:
    return moment if -inf < moment < inf else None


def with_preview(view: View, parts: tuple[Any, ...], forms: tuple[Form, ...]) -> View:
    """A streaming view with the preview that the lane last gave it, which no row holds."""
    return view if view.final else evolve(view, parts=parts, forms=forms)
