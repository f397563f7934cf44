"""The steps between what is visible and what should be. Pure values.

Requests go to the platform: each is intended, made, and folded in with its outcome. The others change rows only, or
wait. The rule that must not be broken: a step carries all that its request needs, because the view may be revised
while the request is under way.
"""

from __future__ import annotations

from attrs import frozen

from hermes_trio.delivery.view import Post
from hermes_trio.text.body import Body


@frozen
class Create:
    """Make a message out of `post.body` under `post.key`."""

    post: Post
    again: bool = False
    """The same key and body as before: the first attempt has no known outcome."""
    reply_to: str | None = None
    """The message that it visibly answers."""
    threaded: bool = True
    """False: in the main thread of its chat."""


@frozen
class Edit:
    """Let the post show `body`."""

    post: Post
    body: Body
    ordinal: int | None
    """The part that it shows; None: the post is withdrawn."""
    settled: bool
    """No earlier edit of it can still land."""


@frozen
class Delete:
    """Remove the post."""

    post: Post


@frozen
class Lookup:
    """Ask whether the post exists."""

    post: Post


@frozen
class Forget:
    """Rows only: an uncertain post is left to itself; at most a stray placeholder."""

    post: Post


@frozen
class Doubt:
    """Rows only: uncertain content stays uncertain; later copies of its part are marked."""

    post: Post


@frozen
class Resplit:
    """Rows only: the part is too long for the wire; the lane splits it and calls `resplit`."""

    ordinal: int


@frozen
class Expire:
    """Rows only: its time is over; only a notice may still be shown."""


@frozen
class Wait:
    """Nothing to do before `until`; inf: until something happens."""

    until: float


@frozen
class Settle:
    """Rows only: nothing is left to do."""


@frozen
class Hold:
    """Rows only: only the operator can decide."""

    reason: str


@frozen
class Abandon:
    """Rows only: it can never be delivered as it should be."""

    reason: str


Request = Create | Edit | Delete | Lookup
RowStep = Forget | Doubt | Expire | Settle | Hold | Abandon
Step = Request | RowStep | Resplit | Wait
