"""What Telegram does to the text of a message: limits, trimming, the checks of its entities. Pure.

Lengths are code points, offsets of entities UTF-16 code units. Source: Telegram Bot API, sendMessage and
MessageEntity; TDLib's MessageEntity.cpp for the order of the checks.
"""

from __future__ import annotations

from typing import Any

from hermes_fakes.telegram.values import JSON, ApiError

MAX_CODE_POINTS = 4096
"""Of a text after trimming."""
MAX_RAW_BYTES = 32768
"""Of the text as it stands in the request, UTF-8."""
MAX_ENTITIES = 100
"""Further ones are ignored."""

_BLANK = " \t\r\n\x00\x0b\x0c\u00a0\u2028\u2029"
_AUTOMATIC = frozenset({"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"})
_KINDS = _AUTOMATIC | {
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "date_time",
}


def units(text: str) -> int:
    """The length in UTF-16 code units."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def read_text(args: JSON) -> tuple[str, tuple[JSON, ...]]:
    """The text and entities that Telegram would store; ApiError 400 with its words for what it refuses."""
    raw = args.get("text")
    if raw is None or raw == "":
        raise ApiError(400, "Bad Request: message text is empty")
    if not isinstance(raw, str):
        raise ApiError(400, 'Bad Request: field "text" must be of type String')
    if any(0xD800 <= ord(character) <= 0xDFFF for character in raw):
        raise ApiError(400, "Bad Request: text must be encoded in UTF-8")
    if len(raw.encode()) > MAX_RAW_BYTES:
        raise ApiError(400, "Bad Request: text is too long")
    if args.get("parse_mode") and not args.get("entities"):
        raise ApiError(400, "Bad Request: can't parse entities: this fake reads explicit entities, no parse_mode")
    entities = _read_entities(raw, args.get("entities"))
    text = raw.strip(_BLANK)
    if not text:
        raise ApiError(400, "Bad Request: text must be non-empty")
    if len(text) > MAX_CODE_POINTS:
        raise ApiError(400, "Bad Request: message is too long")
    lead = units(raw[: len(raw) - len(raw.lstrip(_BLANK))])
    return text, _shift(entities, lead, units(text))


def _read_entities(text: str, given: Any) -> list[JSON]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise ApiError(400, "Bad Request: can't parse entities: expected an Array of MessageEntity")
    borders = _borders(text)
    return [_read_entity(entity, borders) for entity in given][:MAX_ENTITIES]


def _borders(text: str) -> list[bool]:
    """For each UTF-16 offset, the end included, whether a character begins there."""
    borders: list[bool] = []
    for character in text:
        borders.append(True)
        if ord(character) > 0xFFFF:
            borders.append(False)
    return [*borders, True]


def _read_entity(entity: Any, borders: list[bool]) -> JSON:
    if not isinstance(entity, dict):
        raise ApiError(400, "Bad Request: can't parse entities: expected an Object")
    kind, offset, length = entity.get("type"), entity.get("offset"), entity.get("length")
    end = len(borders) - 1
    if kind not in _KINDS:
        raise ApiError(400, f"Bad Request: can't parse entities: unsupported entity type {kind!r}")
    if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset <= 1_000_000:
        raise ApiError(400, f"Bad Request: receive an entity with incorrect offset {offset}")
    if not isinstance(length, int) or isinstance(length, bool) or not 0 <= length <= 1_000_000:
        raise ApiError(400, f"Bad Request: receive an entity with incorrect length {length}")
    if offset + length > end:
        where = f"entity beginning at UTF-16 offset {offset} ends after the end of the text at UTF-16 offset {end}"
        raise ApiError(400, f"Bad Request: {where}")
    if not borders[offset]:
        raise ApiError(400, f"Bad Request: entity begins in a middle of a UTF-16 symbol at UTF-16 offset {offset}")
    if not borders[offset + length]:
        where = f"entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol"
        raise ApiError(400, f"Bad Request: {where} at UTF-16 offset {offset + length}")
    if kind == "text_link" and not isinstance(entity.get("url"), str):
        raise ApiError(400, 'Bad Request: can\'t parse entities: field "url" of a text_link is missing')
    return dict(entity)


def _shift(entities: list[JSON], lead: int, length: int) -> tuple[JSON, ...]:
    """The entities over the trimmed text; those that cover nothing any more, and automatic kinds, are gone."""
    kept = []
    for entity in entities:
        start = max(entity["offset"] - lead, 0)
        end = min(entity["offset"] + entity["length"] - lead, length)
        if start < end and entity["type"] not in _AUTOMATIC:
            kept.append({**entity, "offset": start, "length": end - start})
    return tuple(kept)
