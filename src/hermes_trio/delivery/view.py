"""The values of the delivery core: an obligation as a `View`, its posts, and what the core knows of the wire.

A view holds what should be visible (its parts) and what we made (its posts). Posts stand in the order of their
creation, which is their order on screen; a *live* post holds a place, and the n-th place shows the n-th part that can
be shown. Rows hold these values and nothing else does. The rule that must not be broken: everything here is a value
or a question about one; nothing changes, nothing is decided.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from math import inf
from typing import Literal

from attrs import frozen

from hermes_trio.text.body import Body

NOTE = "[part {} could not be shown]"
"""Stands in the place of a part that the platform does not take; counted from 1."""
NOTICE_WITHDRAWN = "[withdrawn]"
"""What a message that cannot be deleted says when it should be gone."""
NOTICE_EXPIRED = "[this answer could not be delivered in time]"
"""What the reserved post of an expired obligation says."""

MIN_BACKOFF = 0.25
"""Seconds; no failure is followed by another attempt sooner, whatever life the account shows."""

EXPIRED = "expired"
"""The failure of an obligation that was not shown in time."""
REFUSED_CONTENT = "content"
"""The failure of an obligation with a part that could not even be replaced by a note."""
CANNOT_WITHDRAW = "cannot be withdrawn"
"""The failure of an obligation that leaves something on screen which should be gone."""
DEAD_ADDRESS = "dead address"
"""The failure of an obligation whose address is permanently refused."""
DROPPED = "dropped by the operator"
"""The failure of a held obligation that the operator gave up."""


class Form(IntEnum):
    """How much of a part the platform takes. From `RICH` to `REFUSED` each is tried after the one before it."""

    RICH = 0
    """With its markup."""
    PLAIN = 1
    """The same text without markup."""
    NOTED = 2
    """A short note in its place."""
    REFUSED = 3
    """Not shown at all."""
    SEEN = 4
    """Shown, and deleted by a user since: never posted again."""


class PostState(StrEnum):
    """What we know of a message that we tried to create."""

    INTENDED = "intended"
    """Durable before its request; after a crash it is all that is known."""
    UNKNOWN = "unknown"
    """The create may have happened, and may still happen."""
    LIVE = "live"
    """It exists under a known id and holds a place."""
    DOUBTFUL = "doubtful"
    """It may exist for ever without an id: further copies of its part are marked."""
    SURPLUS = "surplus"
    """It exists under a known id and holds no place: to be deleted."""


class Ending(StrEnum):
    """How an obligation ended."""

    DELIVERED = "delivered"
    WITHDRAWN = "withdrawn"
    ABANDONED = "abandoned"
    HELD = "held"
    """Until the operator releases or drops it."""


@frozen
class Wire:
    """What the core needs to know of an account and its configuration. Times are seconds."""

    edits: bool
    deletes: bool = True
    key_window: float | None = None
    """How long the server answers a repeated key with the first message; None: it knows no keys."""
    lookup: bool = False
    """Our own message can be found again, with certainty once the settle time is over."""
    request_timeout: float = 10.0
    """After this long a request of ours is given up."""
    lateness: float = 25.0
    """After that, how long the platform may still accept it."""
    settle_time: float | None = None
    """A longer settle time, from the configuration; one below the least has no effect."""
    marked_copies: int = 2
    """Marked copies of unknown outcome before an obligation is held; 0: none is made (`on_uncertain = "hold"`)."""
    max_backoff: float = 15.0
    """The longest pause between two attempts."""
    max_backoff_down: float = 5.0
    """The same while nothing leaves."""
    max_backoff_fatal: float = 60.0
    """The same while the account itself is refused."""
    placeholder: str = "…"
    """The text of a reserved post."""
    marker: str = "[may be a duplicate] "
    """The visible prefix of a copy that may be a duplicate."""

    @property
    def landing(self) -> float:
        """Seconds after the start of a request when it has landed or never will."""
        return self.request_timeout + self.lateness

    @property
    def settle(self) -> float:
        """Seconds that must pass after the end of an attempt before we rely on its having landed or not."""
        return max(self.landing, self.settle_time or 0.0)


@frozen
class Post:
    """A message that we made, or may have made."""

    ordinal: int
    """The part that it was created for."""
    key: str
    """The identity of the create: the obligation, the ordinal and a serial number; never the text."""
    body: Body | None
    """What the create carries; a repeated key repeats it. None once the outcome is known."""
    reserved: bool
    """The create carries the placeholder, no content."""
    created: float
    """When it was first intended; -inf: its key window is closed for good."""
    ended: float
    """When its last attempt ended, or the restart after it."""
    state: PostState = PostState.INTENDED
    message_id: str | None = None
    shown: str | None = None
    """The fingerprint of what it shows; None: not known."""
    editing: str | None = None
    """The fingerprint of an edit that was intended and has no outcome yet."""
    loose: frozenset[str] = frozenset()
    """Fingerprints of the edits of unknown outcome: one of them may still land."""
    loose_at: float = -inf
    """When the last of them ended, or the restart after it."""
    confirmed: int | None = None
    """The part whose final text it was last known to show."""
    undeletable: bool = False
    """A delete was refused for good."""
    uneditable: bool = False
    """An edit was refused for good while it showed its part."""


@frozen
class View:
    """One obligation: what should be visible, and what we know of the messages that we made for it."""

    id: str
    """Derived from the cause (the turn and its kind), never from the text."""
    kind: Literal["reply", "control"] = "reply"
    reserve: bool = True
    """Creates carry the placeholder where the wire can edit."""
    anchor: str | None = None
    """The message id that the first part visibly answers."""
    threaded: bool = True
    """False: its thread is gone, new posts go to the main thread of the chat."""
    expires: float = inf
    """When an answer that is not on screen is given up."""
    allowance: int = 0
    """Further marked copies that the operator granted."""
    parts: tuple[Body, ...] = ()
    final: bool = False
    """The text is committed; without parts: to be withdrawn."""
    forms: tuple[Form, ...] = ()
    """The form of each part."""
    posts: tuple[Post, ...] = ()
    """In the order of their creation, which is their order on screen."""
    serial: int = 0
    """Creates so far."""
    outright: bool = False
    """The placeholder, or an edit, was refused for good: new posts carry their text at once, when it is final."""
    oversized: int | None = None
    """The part that is too long for the wire and must be split again. No row needs to hold it."""
    attempts: int = 0
    """Failed in a row; for backoff and display only."""
    not_before: float = -inf
    """No request earlier: backoff, a rate limit, or a bucket that the lane joined in."""
    down_until: float = -inf
    """No request earlier because nothing left, unless the account shows life. No row needs to hold it."""
    failed_at: float = -inf
    """When nothing left the last time. No row needs to hold it."""
    alive_at: float = -inf
    """When the account last showed life; the lane joins it in, no row holds it."""
    dead: bool = False
    """The address is permanently refused; the lane joins it in."""
    failure: str | None = None
    """Why it cannot end as delivered."""
    last_error: str = ""
    """What the last attempt met, for the operator; empty after a success."""
    ended: Ending | None = None

    @property
    def reply(self) -> bool:
        """It is the reply of a turn; else control."""
        return self.kind == "reply"

    @property
    def expired(self) -> bool:
        """It was given up because its time was over; nothing is created for it any more."""
        return self.failure == EXPIRED


@frozen
class Target:
    """A post and what it has to show."""

    post: Post
    body: Body
    ordinal: int | None
    """The part; None: the post is to be withdrawn."""


def body_of(view: View, ordinal: int, wire: Wire) -> Body:
    """What the place of this part shows: as far as the platform takes it, marked if a copy may already be there."""
    part = view.parts[ordinal]
    form = view.forms[ordinal]
    if form is Form.PLAIN:
        part = part.plain()
    elif form is not Form.RICH:
        part = Body(NOTE.format(ordinal + 1))
    return part.prefixed(wire.marker) if doubts(view, ordinal) else part


def doubts(view: View, ordinal: int) -> int:
    """How many copies of this part may exist without our knowing them."""
    return sum(post.state is PostState.DOUBTFUL and post.ordinal == ordinal for post in view.posts)


def places(view: View) -> list[Post]:
    """The posts that hold a place, in screen order; the n-th shows the n-th of `showable`."""
    return [post for post in view.posts if post.state is PostState.LIVE]


def showable(view: View) -> list[int]:
    """The ordinals of the parts that should have a place, in order."""
    return [ordinal for ordinal, form in enumerate(view.forms) if form < Form.REFUSED]


def targets(view: View, wire: Wire) -> list[Target]:
    """Each post that holds the place of a part, with what it has to show."""
    pairs = zip(places(view), showable(view), strict=False)
    return [Target(post, body_of(view, ordinal, wire), ordinal) for post, ordinal in pairs]


def unwanted(view: View) -> list[Post]:
    """The posts that should be gone: places beyond the last part, and posts that lost their place."""
    beyond = places(view)[len(showable(view)) :]
    return beyond + [post for post in view.posts if post.state is PostState.SURPLUS]


def confirmed_places(view: View) -> int:
    """How many places from the first on were confirmed to show their part."""
    count = 0
    for post, ordinal in zip(places(view), showable(view), strict=False):
        if post.confirmed != ordinal:
            break
        count += 1
    return count


def placed(view: View) -> bool:
    """Every part was shown and confirmed: nothing of it can take a later place on screen any more."""
    return view.final and confirmed_places(view) == len(showable(view))


def may_expire(view: View) -> bool:
    """It is given up when its time is over: final, not all of it on screen, not given up yet."""
    return view.final and not view.expired and not placed(view)


def key_closes(post: Post, wire: Wire) -> float:
    """Until when its key may be repeated: a request that starts earlier lands inside the server's window."""
    return -inf if wire.key_window is None else post.created + wire.key_window - wire.landing


def owes_notice(view: View) -> bool:
    """It was abandoned and nothing on screen says so: the chat is owed a notice. A dead address gets none."""
    if view.ended is not Ending.ABANDONED or view.dead:
        return False
    if view.expired:
        return view.parts[-1:] != (Body(NOTICE_EXPIRED),) or not placed(view)
    return view.failure == REFUSED_CONTENT
