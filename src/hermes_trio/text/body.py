"""A body: what one message on screen says, as text and spans. Pure values.

Markdown is parsed once, into a body; adapters render the spans in their own way. Offsets count Unicode code points,
so that slicing a Python string and slicing a body agree; an adapter whose wire counts otherwise converts at its
border.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen


@frozen
class Span:
    """A stretch of text that is shown in its own way.

    start, length: code points, within the text. kind: bold, italic, underline, strike, spoiler, code, pre, link,
    quote. argument: the address of a link, the language of a pre, else empty.
    """

    start: int
    length: int
    kind: str
    argument: str = ""


@frozen
class Body:
    """The text of one message and how it is marked up. Two equal bodies look alike on every platform."""

    text: str
    spans: tuple[Span, ...] = ()

    def plain(self) -> Body:
        """The same text without its spans."""
        return Body(self.text)

    def prefixed(self, prefix: str) -> Body:
        """The same body behind a prefix without markup."""
        moved = tuple(evolve(span, start=span.start + len(prefix)) for span in self.spans)
        return Body(prefix + self.text, moved)

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that tell bodies apart; rows hold it instead of what a post shows."""
        spans = "\x1f".join(f"{s.start},{s.length},{s.kind},{s.argument}" for s in self.spans)
        return hashlib.blake2b(f"{self.text}\x1e{spans}".encode(), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` makes an equal body."""
        if not self.spans:
            return {"text": self.text}
        return {"text": self.text, "spans": [[s.start, s.length, s.kind, s.argument] for s in self.spans]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Body:
        """The body that `to_json` made this object of."""
        return cls(data["text"], tuple(Span(*span) for span in data.get("spans", ())))
