"""How an obligation is born, gets its final text, or is to be withdrawn: functions of the connection.

They are parts of larger transactions: the answer of a turn and the obligation to show it are born together.
"""

from __future__ import annotations

from attrs import evolve, frozen

from hermes_trio.delivery.folding import revise
from hermes_trio.delivery.store import load, progress_of, save
from hermes_trio.delivery.view import View, Wire
from hermes_trio.ledger import Connection, accounts, obligations
from hermes_trio.text.body import Body
from hermes_trio.values import Address


@frozen
class Plan:
    """A text that is to become visible, cut for the wire that it goes to."""

    content: str
    """The Markdown as it was said."""
    parts: tuple[Body, ...]
    wire: Wire
    expire: float
    """Seconds from its commit until it is given up."""


def open_reply(
    con: Connection, reply: str, address: Address, now: float, *, turn: str, anchor: str | None, reserve: bool
) -> None:
    """The obligation of a turn's reply, before there is any text of it."""
    view = View(id=reply, reserve=reserve)
    obligations.insert(con, reply, "reply", address, now, turn=turn, anchor=anchor, progress=progress_of(view))


def commit_reply(con: Connection, reply: str, plan: Plan, now: float) -> None:
    """The final text of a reply.

    One that was given up while it streamed, because its address was dead, keeps its content for the operator; where
    somebody has written from there since, it is owed anew, as a message of its own.
    """
    row = obligations.get(con, reply)
    if row.state != "streaming":
        obligations.keep_content(con, reply, plan.content)
        if not accounts.is_dead(con, row.address):
            reserve = bool(row.progress["reserve"])
            add_control(con, f"{reply}.anew", row.address, plan, now, reserve=reserve, anchor=row.anchor)
        return
    view = revise(load(con, row), plan.parts, True, plan.wire)
    obligations.plan(con, reply, plan.content, plan.parts, now + plan.expire, now)
    save(con, obligations.get(con, reply), evolve(view, expires=now + plan.expire), now)


def withdraw_reply(con: Connection, reply: str, wire: Wire, now: float) -> None:
    """Nothing is to be visible of this reply. Its posts go; until then it is open."""
    row = obligations.get(con, reply)
    if row.state != "streaming":
        return
    view = revise(load(con, row), (), True, wire)
    obligations.plan(con, reply, "", (), None, now)
    save(con, obligations.get(con, reply), view, now)


def may_show_text(con: Connection, reply: str, wire: Wire) -> bool:
    """Whether a post of this streaming reply shows, or may come to show, anything but the placeholder."""
    bare = Body(wire.placeholder).fingerprint
    view = load(con, obligations.get(con, reply))
    return any(
        post.editing is not None or post.loose or (post.shown is not None and post.shown != bare) for post in view.posts
    )


def add_control(
    con: Connection,
    control: str,
    address: Address,
    plan: Plan,
    now: float,
    *,
    reserve: bool,
    anchor: str | None = None,
) -> bool:
    """A message of the runtime itself: the answer of a command, a notice, a send. False when this id is known."""
    view = View(id=control, kind="control", reserve=reserve)
    return obligations.insert(
        con,
        control,
        "control",
        address,
        now,
        anchor=anchor,
        content=plan.content,
        parts=plan.parts,
        progress=progress_of(view),
        expires_at=now + plan.expire,
    )
