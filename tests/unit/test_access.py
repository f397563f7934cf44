"""Who may speak: nobody whom no rule names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.access import Access, malformed

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)
senders = st.text(st.sampled_from("ab1@:._-"), min_size=1, max_size=6)


@given(account=names, sender=senders)
def test_without_rules_nobody_is_allowed(account: str, sender: str) -> None:
    """The default is to deny."""
    assert not Access().allows(account, sender)
    assert not Access().owns(account, sender)


@given(account=names, sender=senders, other_account=names, other_sender=senders)
def test_a_rule_allows_exactly_whom_it_names(account: str, sender: str, other_account: str, other_sender: str) -> None:
    """`account:sender` allows that sender on that account, and nobody else; also a sender with colons."""
    access = Access(allow=[f"{account}:{sender}"])
    assert access.allows(account, sender)
    assert access.allows(other_account, other_sender) == ((other_account, other_sender) == (account, sender))


@given(account=names, sender=senders, other=names)
def test_a_star_allows_everyone_on_its_account(account: str, sender: str, other: str) -> None:
    """`account:*` ends at the border of the account, and `*` does not."""
    assert Access(allow=[f"{account}:*"]).allows(account, sender)
    assert Access(allow=[f"{account}:*"]).allows(other, sender) == (other == account)
    assert Access(allow=["*"]).allows(other, sender)


@given(account=names, sender=senders)
def test_an_owner_is_allowed_and_who_is_allowed_is_no_owner(account: str, sender: str) -> None:
    """Owners need no second rule; being allowed gives no command over the bot."""
    rule = f"{account}:{sender}"
    assert Access(owners=[rule]).allows(account, sender)
    assert Access(owners=[rule]).owns(account, sender)
    assert not Access(allow=[rule]).owns(account, sender)


@pytest.mark.parametrize(("account", "sender"), [("telegram", ""), ("", "12345"), ("", ""), ("telegram:1", "2")])
def test_nobody_is_never_allowed(account: str, sender: str) -> None:
    """A message without a sender, or from no account, is denied even where everyone is allowed."""
    assert not Access(allow=["*", "telegram:*", "telegram:1:2"], owners=["*"]).allows(account, sender)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "no account and sender"),
        ("12345", "no account and sender"),
        ("telegram:", "no account and sender"),
        (":12345", "no account and sender"),
        ("*:12345", "star in its account"),
        ("tele*:12345", "star in its account"),
        ("telegram:12*", "star within its sender"),
        ("telegram:**", "star within its sender"),
        ("telegram: 12345", "white space"),
        ("telegram:12345\n", "white space"),
        ("tele\u200bgram:1", "white space or a control"),
    ],
)
def test_a_malformed_pattern_is_refused_with_its_reason(pattern: str, reason: str) -> None:
    """A pattern that would silently allow nobody, or more than was meant, is no pattern."""
    assert reason in (malformed(pattern) or "")
    with pytest.raises(ValueError, match=reason):
        Access(allow=[pattern])
