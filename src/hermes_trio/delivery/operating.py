"""What operators and scripts do to deliveries: send, list, resend, drop. Functions of the connection.

A send has an id made of its address and its key, so it is stored once however often it is asked for. A held delivery
is released or dropped; an abandoned one is never re-opened: its stored content becomes a new control message whose id
says which one it repeats. The rule that must not be broken: a repetition of something that may be on screen is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from attrs import evolve, frozen

from hermes_trio.delivery.account import Account
from hermes_trio.delivery.folding import drop as dropped
from hermes_trio.delivery.folding import release
from hermes_trio.delivery.planning import add_control
from hermes_trio.delivery.store import load, save
from hermes_trio.delivery.view import DROPPED, NOTICE_EXPIRED, NOTICE_WITHDRAWN, View, Wire
from hermes_trio.ledger import Connection, accounts, obligations, operating
from hermes_trio.ledger.rows import ObligationRow
from hermes_trio.text.body import Body
from hermes_trio.values import Address

ENDED = ("delivered", "abandoned", "withdrawn", "held")
"""States that nothing but the operator changes any more."""
RESENT = "resent as "
"""Begins the reason of an abandoned delivery that the operator has sent again."""


class RequestRefused(ValueError):
    """What was asked of the runtime cannot be done as it was asked; the text says why. Nothing was changed."""


@frozen
class Delivery:
    """A message that was owed, or still is, as an operator sees it."""

    id: str
    kind: str
    """reply, of a turn; control: the runtime's own words, and what was sent by a program."""
    address: str
    state: str
    """streaming, pending, attempting, withdrawing; delivered, withdrawn, abandoned, held."""
    attempts: int
    """Failed in a row."""
    reason: str
    """Why it was abandoned or held, else what its last attempt met; empty when there is nothing to say."""
    text: str
    """What it says, as Markdown."""
    created_at: float
    """Wall-clock seconds."""

    @property
    def ended(self) -> bool:
        """Nothing happens to it any more, unless the operator acts on it."""
        return self.state in ENDED


def send(con: Connection, address: Address, account: Account, text: str, key: str, reserve: bool, now: float) -> str:
    """Owes this text to the address, once for this key; returns the id. Raises RequestRefused for a blank text."""
    plan = account.plan(text)
    if not plan.parts:
        raise RequestRefused("the text is blank: there is nothing to send")
    control = f"send.{_dotless(str(address))}.{key}"
    add_control(con, control, address, plan, now, reserve=reserve)
    return control


def _dotless(text: str) -> str:
    """The text with its dots written otherwise, so that what stands behind the next dot is the key and nothing else."""
    return text.replace("%", "%25").replace(".", "%2E")


def look(con: Connection, delivery_id: str) -> Delivery:
    """The delivery of this id. Raises RequestRefused."""
    return _delivery(_find(con, delivery_id))


def listed(con: Connection, everything: bool, limit: int) -> tuple[Delivery, ...]:
    """What waits for the operator, newest first; or everything that is open, held or abandoned."""
    states = (*obligations.OPEN, "held", "abandoned") if everything else ("held", "abandoned")
    rows = operating.in_states(con, states)
    wanted = (row for row in rows if everything or not _settled(row))
    return tuple(_delivery(row) for row in islice(wanted, limit))


def resend(
    con: Connection, delivery_id: str, known: Mapping[str, Account], reserve: bool, now: float
) -> tuple[str, Address]:
    """A held delivery goes on with one more marked copy, an abandoned one is owed anew; the id to look at then.

    Raises RequestRefused for one that is delivered or on its way, and for an account that is not configured.
    """
    row = _find(con, delivery_id)
    account = known.get(row.address.account)
    if account is None:
        raise RequestRefused(f"there is no account {row.address.account!r} now, so {delivery_id} cannot be sent")
    if row.state == "held":
        save(con, row, release(load(con, row), now), now)
        obligations.set_due(con, (row.id,), 0.0)
        return row.id, row.address
    if row.state != "abandoned":
        raise RequestRefused(f"{delivery_id} is {row.state}; only what is held or abandoned can be resent")
    return _again(con, row, account, reserve, now), row.address


def drop(con: Connection, delivery_id: str, now: float) -> Address:
    """Gives a held delivery up, and takes an abandoned one off the list. Raises RequestRefused for any other."""
    row = _find(con, delivery_id)
    view = load(con, row)
    if row.state == "held":
        save(con, row, dropped(view), now)
    elif row.state == "abandoned":
        save(con, row, evolve(view, failure=DROPPED), now)
    else:
        raise RequestRefused(f"{delivery_id} is {row.state}; only what is held or abandoned can be dropped")
    return row.address


def _again(con: Connection, row: ObligationRow, account: Account, reserve: bool, now: float) -> str:
    """A new control message with the content of an abandoned one."""
    earlier = operating.derived(con, f"resend.{row.id}.")
    waiting = [other.id for other in earlier if other.state not in ENDED]
    if waiting:
        raise RequestRefused(f"{row.id} is being resent already, as {waiting[0]}")
    plan = account.plan(row.content)
    if not plan.parts:
        raise RequestRefused(f"{row.id} has no text that could be resent")
    view = load(con, row)
    if may_be_visible(view, account.wire):
        plan = evolve(plan, parts=tuple(part.prefixed(account.wire.marker) for part in plan.parts))
    accounts.mark_living(con, row.address)  # the operator knows better: its chat may take messages again
    control = f"resend.{row.id}.{len(earlier) + 1}"
    add_control(con, control, row.address, plan, now, reserve=reserve)
    save(con, row, evolve(view, failure=f"{RESENT}{control}"), now)
    return control


def may_be_visible(view: View, wire: Wire) -> bool:
    """Whether anything of an ended obligation's content is on screen, or may be."""
    empty = {Body(text).fingerprint for text in (wire.placeholder, NOTICE_EXPIRED, NOTICE_WITHDRAWN)}
    return any(
        not post.reserved or post.loose or post.editing or (post.shown is not None and post.shown not in empty)
        for post in view.posts
    )


def _find(con: Connection, delivery_id: str) -> ObligationRow:
    try:
        return obligations.get(con, delivery_id)
    except KeyError:
        raise RequestRefused(f"there is no delivery {delivery_id!r}") from None


def _settled(row: ObligationRow) -> bool:
    """Abandoned, and the operator has seen to it."""
    failure = str(row.progress.get("failure", ""))
    return row.state == "abandoned" and (failure == DROPPED or failure.startswith(RESENT))


def _delivery(row: ObligationRow) -> Delivery:
    reason = str(row.progress.get("failure") or row.last_error or "")
    return Delivery(row.id, row.kind, str(row.address), row.state, row.attempts, reason, row.content, row.created_at)
