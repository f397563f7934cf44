"""Previews: what turns want to show of replies that stream, and how often they may.

No row holds a preview; after a crash the resumed turn says new ones. The rule that must not be broken: a preview is
never worth a message, so each keeps its distance, and all together keep to a share of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

import trio
from attrs import evolve

from hermes_trio.delivery.account import Account
from hermes_trio.delivery.folding import resplit
from hermes_trio.delivery.lane import Shown, pieces_of
from hermes_trio.delivery.view import View
from hermes_trio.platforms.outcomes import Outcome, Reason, Refused
from hermes_trio.text.repair import repair
from hermes_trio.values import Address

PREVIEW_COST = 1.5e-6
"""Seconds of processor time that a preview costs for each character, as measured (12 ms for 8,000)."""
PREVIEW_SHARE = 0.3
"""The share of one core that all previews together may take; beyond that each comes less often."""
MAX_EDIT_INTERVAL = 30.0
"""Seconds; where the doubling of the distance between previews after each rate limit stops."""


class _Preview:
    """One reply that streams."""

    def __init__(self, text: Callable[[], str], interval: float) -> None:
        self.text = text
        self.fresh = True
        """The turn has said something since the latest preview was made."""
        self.shown = Shown()
        self.said = ""
        """What `shown` was made of."""
        self.due = -inf
        """trio's time from which on the next preview may be made."""
        self.interval = interval


class Previews:
    """The previews of all replies that stream now, by address and reply."""

    def __init__(self) -> None:
        self._at: dict[Address, dict[str, _Preview]] = {}

    def __contains__(self, address: Address) -> bool:
        return address in self._at

    def show(self, address: Address, reply: str, text: Callable[[], str], interval: float) -> bool:
        """The reply should show this; False when a decision on it is to come anyway.

        interval: seconds between two previews of its account, at first.
        """
        previews = self._at.setdefault(address, {})
        preview = previews.get(reply)
        if preview is None:
            previews[reply] = _Preview(text, interval)
            return True
        preview.text = text
        waits, preview.fresh = preview.fresh, True
        return not waits

    def forget(self, address: Address, reply: str) -> None:
        """The reply streams no more."""
        previews = self._at.get(address, {})
        previews.pop(reply, None)
        if not previews:
            self._at.pop(address, None)

    def move(self, address: Address, chat: str) -> None:
        """A chat, with all its threads, has another id now."""
        for old in [old for old in self._at if (old.account, old.chat) == (address.account, address.chat)]:
            self._at.setdefault(evolve(old, chat=chat), {}).update(self._at.pop(old))

    def said(self, addresses: Iterable[Address]) -> Mapping[str, str]:
        """By reply at these addresses: the Markdown that its latest preview was made of."""
        return {
            reply: preview.said
            for address in addresses
            for reply, preview in self._at.get(address, {}).items()
            if preview.said
        }

    def shown(self, address: Address) -> Mapping[str, Shown]:
        """By reply: what a decision at this address is to show."""
        return {reply: preview.shown for reply, preview in self._at.get(address, {}).items()}

    def refresh(self, address: Address, account: Account) -> float:
        """Makes the previews that are due; returns the seconds until the next one that is wanted, or inf."""
        wait = inf
        for preview in self._at.get(address, {}).values():
            if not preview.fresh:
                continue
            left = preview.due - trio.current_time()
            if left > 0:
                wait = min(wait, left)
                continue
            preview.fresh = False
            preview.said = repair(preview.text())
            preview.shown = preview.shown.revised(account.split(preview.said))
            preview.due = trio.current_time() + self._budget(preview)
        return wait

    def learn(
        self, address: Address, account: Account, view: View, outcome: Outcome, *, edited: bool, now: float
    ) -> None:
        """What a request for a streaming reply taught: no row holds it. now: wall-clock seconds."""
        preview = self._at.get(address, {}).get(view.id)
        if preview is None or view.final:
            return
        if view.oversized is not None:
            view = resplit(view, view.oversized, pieces_of(view, view.oversized, account))
        if isinstance(outcome, Refused) and outcome.reason is Reason.RATE_LIMITED:
            preview.interval = min(2 * preview.interval, MAX_EDIT_INTERVAL)
        shown = evolve(preview.shown, parts=view.parts, forms=view.forms)
        if edited:
            interval = max(preview.interval, self._budget(preview))
            preview.due = trio.current_time() + interval
            shown = evolve(shown, not_before=now + interval)
        preview.shown = shown

    def _budget(self, preview: _Preview) -> float:
        """Seconds until the next preview of this reply may be made, so that all of them keep to their share."""
        streams = sum(map(len, self._at.values()))
        return PREVIEW_COST * len(preview.said) * streams / PREVIEW_SHARE
