"""A body as text and entities."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.platforms.telegram.render import BLANK, ENTITY_LIMIT, render
from hermes_trio.text.body import Body, Span


def shown(text: str, *spans: Span) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = render(Body(text, spans)).get("entities", [])
    return made


@pytest.mark.parametrize(
    ("span", "entity"),
    [
        (Span(0, 2, "bold"), {"type": "bold"}),
        (Span(0, 2, "italic"), {"type": "italic"}),
        (Span(0, 2, "underline"), {"type": "underline"}),
        (Span(0, 2, "strike"), {"type": "strikethrough"}),
        (Span(0, 2, "spoiler"), {"type": "spoiler"}),
        (Span(0, 2, "code"), {"type": "code"}),
        (Span(0, 2, "pre"), {"type": "pre"}),
        (Span(0, 2, "pre", "python"), {"type": "pre", "language": "python"}),
        (Span(0, 2, "link", "https://example.org/a(b)"), {"type": "text_link", "url": "https://example.org/a(b)"}),
        (Span(0, 2, "link", "tg://user?id=1"), {"type": "text_link", "url": "tg://user?id=1"}),
        (Span(0, 2, "quote"), {"type": "blockquote"}),
    ],
)
def test_each_kind_of_span_is_an_entity(span: Span, entity: dict[str, Any]) -> None:
    """Every kind that a body knows has its entity."""
    assert shown("abc", span) == [{**entity, "offset": 0, "length": 2}]


def test_offsets_count_utf16_units() -> None:
    """Behind an astral character an entity begins two units later, and one inside counts as two."""
    assert shown("😀a😀b", Span(1, 2, "bold")) == [{"type": "bold", "offset": 2, "length": 3}]


@pytest.mark.parametrize(
    "span",
    [
        Span(3, 2, "bold"),
        Span(1, 0, "bold"),
        Span(0, 2, "sparkle"),
        Span(0, 2, "link", "README.md"),
        Span(0, 2, "link", "#anchor"),
        Span(0, 2, "link", ""),
        Span(0, 2, "link", "javascript:alert(1)"),
        Span(0, 2, "link", "https://"),
    ],
)
def test_what_telegram_cannot_show_is_plain_text(span: Span) -> None:
    """A span outside the text, an unknown kind and a link that opens nothing leave the text as it is."""
    assert render(Body("abc", (span,))) == {"text": "abc", "link_preview_options": {"is_disabled": True}}


def test_a_span_beyond_the_end_is_clipped() -> None:
    """No entity reaches out of the text."""
    assert shown("abc", Span(1, 99, "bold")) == [{"type": "bold", "offset": 1, "length": 2}]


def test_only_as_many_entities_as_telegram_honours() -> None:
    """Of more than the limit the first by place are sent."""
    made = shown("x" * 200, *(Span(at, 1, "bold") for at in reversed(range(150))))
    assert [entity["offset"] for entity in made] == list(range(ENTITY_LIMIT))


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u200d", "\u2060", "\u3164"])
def test_a_text_without_anything_visible_is_an_ellipsis(text: str) -> None:
    """Telegram refuses an empty message; none is ever sent."""
    assert render(Body(text, (Span(0, 1, "bold"),)))["text"] == BLANK
    assert "entities" not in render(Body(text, (Span(0, 1, "bold"),)))


@given(
    text=st.text(st.characters() | st.sampled_from("😀\ud800\x00e\u0301"), max_size=30),
    spans=st.lists(
        st.builds(Span, st.integers(-2, 32), st.integers(-2, 32), st.sampled_from(["bold", "pre", "quote", "?"])),
        max_size=5,
    ),
)
def test_an_entity_covers_the_same_characters_as_its_span(text: str, spans: list[Span]) -> None:
    """Cut out of the UTF-16 text, an entity holds exactly the characters that its span holds in code points."""
    sent = render(Body(text, tuple(spans)))
    sent["text"].encode()
    if sent["text"] == BLANK:
        return
    assert len(sent["text"]) == len(text)
    units = sent["text"].encode("utf-16-le")
    covered = sorted(
        (made["type"], units[2 * made["offset"] : 2 * (made["offset"] + made["length"])].decode("utf-16-le"))
        for made in sent.get("entities", [])
    )
    names = {"bold": "bold", "pre": "pre", "quote": "blockquote"}
    expected = sorted(
        (names[span.kind], piece)
        for span in spans
        if span.kind in names and (piece := sent["text"][max(0, span.start) : max(0, span.start + span.length)])
    )
    assert covered == expected
