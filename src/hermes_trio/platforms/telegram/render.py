"""A body to the text and entities of sendMessage and editMessageText. Pure.

Explicit entities are sent and never a parse mode: no escaping can fail, and what the user sees is the text to the
letter. Our spans count code points, Telegram's entities count UTF-16 units; this is the border where it changes.

The rule that must not be broken: the text goes out as it is in the body, except for what no message can hold (lone
surrogates and NUL, each replaced by one U+FFFD, and a text without anything visible, replaced by an ellipsis).

Sources: Telegram Bot API, "MessageEntity", "sendMessage", "LinkPreviewOptions".
"""

from __future__ import annotations

import re
from itertools import accumulate

from hermes_trio.platforms.base import JSON
from hermes_trio.text.body import Body, Span
from hermes_trio.text.visible import has_visible

ENTITY_LIMIT = 100
"""Entities that Telegram honours in one message; it ignores the others, so the first ones are sent."""

BLANK = "…"
"""Stands for a text without any visible character, which Telegram refuses."""

LANGUAGE_LIMIT = 64
"""Characters of a code block's language that are passed on; no language's name is longer."""

_TYPES = {
    "bold": "bold",
    "italic": "italic",
    "underline": "underline",
    "strike": "strikethrough",
    "spoiler": "spoiler",
    "code": "code",
    "pre": "pre",
    "link": "text_link",
    "quote": "blockquote",
}
"""Our kinds of spans in Telegram's words; a kind that is not here is shown as plain text."""

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_LINKABLE = re.compile(r"(?:https?://[^\s/]|ftp://[^\s/]|tg:|ton:|mailto:|tel:)\S*", re.IGNORECASE)
"""Addresses that Telegram opens. It would take a relative one such as README.md for the name of a host."""


def render(body: Body) -> JSON:
    """The parameters `text`, `entities` (if any) and `link_preview_options` that show this body."""
    text = _UNSENDABLE.sub("\ufffd", body.text)
    if not has_visible(text):
        return {"text": BLANK, "link_preview_options": {"is_disabled": True}}
    made = entities(text, body.spans)
    shown: JSON = {"text": text, "link_preview_options": {"is_disabled": True}}
    return {**shown, "entities": made} if made else shown


def entities(text: str, spans: tuple[Span, ...]) -> list[JSON]:
    """At most ENTITY_LIMIT entities, by place, outer ones first; a span is clipped to the text and may fall away."""
    units = [0, *accumulate(2 if ord(character) > 0xFFFF else 1 for character in text)] if spans else [0]
    made: list[JSON] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.length)):
        start, end = max(0, span.start), min(len(text), span.start + span.length)
        kind = _TYPES.get(span.kind)
        if kind is None or start >= end or (kind == "text_link" and not _LINKABLE.fullmatch(span.argument)):
            continue
        entity: JSON = {"type": kind, "offset": units[start], "length": units[end] - units[start]}
        if kind == "text_link":
            entity["url"] = span.argument
        elif kind == "pre" and span.argument:
            entity["language"] = span.argument[:LANGUAGE_LIMIT]
        made.append(entity)
    return made[:ENTITY_LIMIT]
