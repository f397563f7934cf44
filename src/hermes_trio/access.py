"""Who may speak: the rules of `[access]`, decided without I/O.

A rule is `account:sender`, `account:*` (everyone on that account) or `*` (everyone). What no rule names is denied; an
owner is always allowed. The one rule that must not be broken: a sender that the platform did not name is nobody, and
nobody is never allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen


def malformed(pattern: str) -> str | None:
    """Why `pattern` is no rule, in words that finish "this pattern ..."; None when it is one.

    The first colon ends the account, because account names hold none; a sender may hold more (`@user:server`).
    """
    account, colon, sender = pattern.partition(":")
    if pattern == "*":
        return None
    if any(letter.isspace() or not letter.isprintable() for letter in pattern):
        return "holds white space or a control character"
    if not (account and colon and sender):
        return 'names no account and sender; write "account:sender", "account:*" or "*"'
    if "*" in account:
        return 'has a star in its account; write "account:*" or "*"'
    if "*" in sender and sender != "*":
        return "has a star within its sender; the star stands alone, for everyone on that account"
    return None


def _rules(patterns: Iterable[str]) -> frozenset[str]:
    for pattern in (rules := frozenset(patterns)):
        if reason := malformed(pattern):
            raise ValueError(f"the pattern {pattern!r} {reason}")
    return rules


@frozen
class Access:
    """The rules of one configuration. Raises ValueError for a malformed pattern."""

    allow: frozenset[str] = field(default=(), converter=_rules)
    """Who may speak to the bot."""
    owners: frozenset[str] = field(default=(), converter=_rules)
    """Who may also command it; owners are allowed without being named in `allow`."""

    def allows(self, account: str, sender: str) -> bool:
        """Whether `sender`, the user's id on the platform, may speak on `account`."""
        return _named(self.allow, account, sender) or self.owns(account, sender)

    def owns(self, account: str, sender: str) -> bool:
        """Whether `sender` is an owner on `account`."""
        return _named(self.owners, account, sender)


def _named(rules: frozenset[str], account: str, sender: str) -> bool:
    if not account or not sender or ":" in account:
        return False
    return not rules.isdisjoint((f"{account}:{sender}", f"{account}:*", "*"))
