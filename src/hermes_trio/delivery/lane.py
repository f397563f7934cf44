"""A lane: the task that performs the wire operations of one address, one at a time.

Decide, record, act, record. The decision is made inside the ledger's transaction, on rows, so that it is never older
than what it decides on; the request follows only when its intention is durable, and its outcome is durable before the
next decision. The rule that must not be broken: a lane that was not cancelled together with the whole process always
records the outcome of a request that it made.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import structlog
import trio
from attrs import evolve, frozen

from hermes_trio.delivery.account import Account
from hermes_trio.delivery.folding import apply, intend, moved, resplit
from hermes_trio.delivery.planning import Plan, add_control
from hermes_trio.delivery.reconcile import pick
from hermes_trio.delivery.steps import Create, Delete, Edit, Lookup, Request, Resplit, Wait
from hermes_trio.delivery.store import load, save, with_preview
from hermes_trio.delivery.view import EXPIRED, Ending, Form, View, owes_notice, placed
from hermes_trio.ledger import Connection, accounts, obligations
from hermes_trio.ledger.rows import ObligationRow
from hermes_trio.platforms.outcomes import Outcome, Reason, Refused, Unknown
from hermes_trio.text.body import Body
from hermes_trio.text.split import split
from hermes_trio.values import Address

PAGE = 50
"""Open obligations of one address that a decision looks at first. Finals hold up what is behind them, so the first few
mostly decide; a chat with thousands must not cost the ledger a second for each step."""
MAX_ROW_STEPS = 1000
"""Changes of rows in one decision; more would mean that the core goes round in circles."""
GRACE = 20.0
"""Seconds beyond the request timeout after which a request is given up from outside: an adapter's own deadlines, for
connecting too, do not work."""
EXPIRED_NOTICE, REFUSED_NOTICE = "notice.expired.", "notice.refused."
"""Begins the id of the notice that an obligation leaves behind, before the obligation's own: identity comes from the
cause."""

log = structlog.get_logger(__name__)


@frozen
class Shown:
    """The preview of a streaming reply as the lane decides on it; no row holds it."""

    parts: tuple[Body, ...] = ()
    forms: tuple[Form, ...] = ()
    not_before: float = -inf
    """Wall-clock seconds: previews of one chat keep a distance."""

    def revised(self, parts: tuple[Body, ...]) -> Shown:
        """The next preview; a part that stays as it was keeps its form."""
        known = dict(zip(enumerate(self.parts), self.forms, strict=True))
        return evolve(self, parts=parts, forms=tuple(known.get(part, Form.RICH) for part in enumerate(parts)))


@frozen
class Moment:
    """What a decision knows besides rows."""

    now: float
    alive_at: float
    """Wall-clock seconds of the account's last sign of life."""
    previews: Mapping[str, Shown]
    """By obligation."""


@frozen
class Notices:
    """The words for a chat whose obligation was abandoned."""

    expired: Plan
    refused: Plan
    reserve: bool


@frozen
class Decision:
    """What a lane does next."""

    view: View | None = None
    step: Request | None = None
    until: float = inf
    """Without a step: when there may be one; inf: when something happens."""


def decide(con: Connection, address: Address, account: Account, notices: Notices, moment: Moment) -> Decision:
    """The next request of an address, intended; on the way all changes of rows that are due."""
    opens = accounts.bucket_opens(con, address)
    dead = accounts.is_dead(con, address)
    limit = PAGE
    for _ in range(MAX_ROW_STEPS):
        rows = {row.id: row for row in obligations.open_at(con, address, limit)}
        raw = {row.id: _load(con, row, account, moment) for row in rows.values()}
        joined = [_joined(view, moment, opens, dead) for view in raw.values()]
        view, step = pick(joined, account.wire, moment.now)
        if view is None or step is None or isinstance(step, Wait):
            if len(rows) == limit and all(placed(view) for view in joined):
                limit *= 4  # nothing here holds up what stands behind it
                continue
            until = step.until if isinstance(step, Wait) else inf
            obligations.set_due(con, tuple(rows), until)
            return Decision(until=until)
        row, own = rows[view.id], raw[view.id]
        if isinstance(step, Request):
            own = intend(own, step)
            save(con, row, own, moment.now, attempted=True)
            return Decision(own, step)
        if isinstance(step, Resplit):
            own = resplit(own, step.ordinal, pieces_of(own, step.ordinal, account))
        else:
            own = apply(evolve(own, dead=dead), step, None, account.wire, moment.now)
            _leave_word(con, address, notices, own, moment)
        save(con, row, own, moment.now)
    raise AssertionError(f"the delivery core went round in circles at {address}")


def record(
    con: Connection, address: Address, account: Account, step: Request, view: View, outcome: Outcome, moment: Moment
) -> View:
    """Folds the outcome of a request into the rows as they are now; returns the view as it was folded."""
    row = obligations.get(con, view.id)
    current = with_preview(load(con, row), view.parts, view.forms)
    if current.ended is not None or all(post.key != step.post.key for post in current.posts):
        return current  # the operator dropped it meanwhile, or its chat has moved
    current = apply(current, step, outcome, account.wire, moment.now)
    save(con, row, current, moment.now)
    if isinstance(outcome, Refused):
        _remember(con, address, outcome, moment.now)
    return current


def _remember(con: Connection, address: Address, outcome: Refused, now: float) -> None:
    """What a refusal says of more than its own post."""
    if outcome.reason is Reason.RATE_LIMITED and outcome.retry_after is not None:
        chat = "" if outcome.scope == "account" else address.chat
        accounts.close_bucket(con, address.account, chat, now + outcome.retry_after)
    elif outcome.reason is Reason.DEAD_ADDRESS:
        accounts.mark_dead(con, address, outcome.detail or str(outcome.reason), now)
    elif outcome.reason is Reason.MOVED and outcome.moved_to is not None:
        for row in obligations.all_open_in(con, address):
            save(con, row, moved(load(con, row)), now)
        accounts.rename_chat(con, address, outcome.moved_to)


def _load(con: Connection, row: ObligationRow, account: Account, moment: Moment) -> View:
    view = load(con, row)
    if view.final:
        return view
    shown = moment.previews.get(view.id)
    if shown is None:
        reserving = view.reserve and not view.posts
        shown = Shown().revised((Body(account.wire.placeholder),) if reserving else ())
    return with_preview(view, shown.parts, shown.forms)


def _joined(view: View, moment: Moment, opens: float, dead: bool) -> View:
    """The view with what the rows of its account and the lane's memory add for this decision only."""
    not_before = max(view.not_before, opens)
    if not view.final and view.id in moment.previews and view.posts:
        not_before = max(not_before, moment.previews[view.id].not_before)
    return evolve(view, alive_at=moment.alive_at, dead=dead, not_before=not_before)


def pieces_of(view: View, ordinal: int, account: Account) -> tuple[Body, ...]:
    """A part that the wire found too long, in halves."""
    part = view.parts[ordinal]
    size = account.measure(part.text)
    return split(part, max(size // 2 + account.room, account.room + 8), account.capabilities.unit, reserve=account.room)


def _leave_word(con: Connection, address: Address, notices: Notices, view: View, moment: Moment) -> None:
    """The notice that an abandoned obligation owes its chat, in the same transaction."""
    if view.ended is Ending.HELD:
        log.error("a delivery is held for the operator", obligation=view.id, reason=view.failure)
    if view.ended is Ending.ABANDONED:
        log.warning("a delivery is abandoned", obligation=view.id, reason=view.failure)
        if owes_notice(view) and not view.id.startswith((EXPIRED_NOTICE, REFUSED_NOTICE)):
            expired = view.failure == EXPIRED
            prefix, plan = (EXPIRED_NOTICE, notices.expired) if expired else (REFUSED_NOTICE, notices.refused)
            waiting = obligations.any_open_named(con, address, prefix)
            if not (expired and waiting):
                add_control(con, prefix + view.id, address, plan, moment.now, reserve=notices.reserve)


async def perform(account: Account, address: Address, step: Request) -> Outcome:
    """Makes one request. Never raises for what the wire, or the adapter's own code, may do."""
    limit = account.wire.request_timeout + GRACE
    try:
        with trio.move_on_after(limit):
            return await _request(account, address, step)
    except Exception:  # a supervision border: whatever went wrong in an adapter, the request may have been made
        log.exception("an adapter failed", account=account.name, step=type(step).__name__)
        return Unknown("the adapter failed")
    return Unknown(f"no outcome within {limit:g} s")


async def _request(account: Account, address: Address, step: Request) -> Outcome:
    platform, post = account.platform, step.post
    match step:
        case Create():
            assert post.body is not None, f"{post.key} has no body to create"
            place = address if step.threaded else evolve(address, thread="")
            return await platform.create(place, post.body, key=post.key, reply_to=step.reply_to)
        case Lookup():
            return await platform.lookup(address, post.key, post.body)
        case Edit():
            assert post.message_id is not None, f"{post.key} has no id"
            return await platform.edit(address, post.message_id, step.body)
        case Delete():
            assert post.message_id is not None, f"{post.key} has no id"
            return await platform.delete(address, post.message_id)
