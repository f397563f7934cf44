"""How a wire operation ends: accepted, refused or unknown. Pure values.

The rule that must not be broken: only what provably never left, or was provably declined, is `Refused`. Whatever may
have happened, or may still happen, is `Unknown`.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Reason(StrEnum):
    """Why an operation was refused."""

    NOTHING_LEFT = "nothing left"
    """No byte reached the platform: no such host, refused, TLS failure, connect or pool timeout."""
    RATE_LIMITED = "rate limited"
    """Declined by a rate limit; `retry_after` says for how long."""
    NOT_FOUND = "not found"
    """The message to edit or delete is not there."""
    FORMATTING = "formatting"
    """The markup was not understood; the same text may pass without it."""
    TOO_LONG = "too long"
    """Over a limit of the wire that the splitter did not foresee."""
    CONTENT = "content"
    """This text is never taken."""
    FORBIDDEN = "forbidden"
    """An edit or a delete of this message is refused for good."""
    ANCHOR_GONE = "anchor gone"
    """The message that it should answer is gone."""
    TOPIC_GONE = "topic gone"
    """The thread is gone; its chat is not."""
    MOVED = "moved"
    """The chat has another id now: `moved_to`."""
    DEAD_ADDRESS = "dead address"
    """Nothing can be sent there: blocked, kicked, deleted."""
    ACCOUNT_FATAL = "account fatal"
    """The account itself is refused: a wrong or revoked token."""
    ABSENT = "absent"
    """A look-up says with certainty that the message was never made."""


@frozen
class Accepted:
    """The platform did it. `message_id` is the receipt of a create or a look-up."""

    message_id: str | None = None
    gone: bool = False
    """A keyed create was accepted earlier and the message was deleted since."""


@frozen
class Refused:
    """It provably did not happen, and will not."""

    reason: Reason
    retry_after: float | None = None
    """Seconds from now, at least 0, of a rate limit."""
    scope: str = "post"
    """How far the refusal reaches: post, address, bucket (a chat with all its threads), account."""
    moved_to: str | None = None
    """The chat's new id."""
    detail: str = ""
    """The platform's own words, without secrets, for the operator."""


@frozen
class Unknown:
    """It may have happened, and may still happen until the settle time is over."""

    cause: str = ""


Outcome = Accepted | Refused | Unknown
