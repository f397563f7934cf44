"""Splitting: every limit is kept, nothing is torn, nothing is lost, and what is full stays as it is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_trio.text.body import Body, Span
from hermes_trio.text.graphemes import is_boundary
from hermes_trio.text.markdown import render
from hermes_trio.text.split import clip, gaps, join, split, tidy_spans
from hermes_trio.text.units import WIDEST, Unit, measure
from hermes_trio.text.visible import has_visible

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.md"))
UNITS: tuple[Unit, ...] = ("utf16", "codepoints", "bytes")
WIRES: tuple[tuple[int, Unit], ...] = ((4096, "utf16"), (2000, "codepoints"), (512, "bytes"))
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
texts = st.lists(
    st.sampled_from(
        [
            *"abc .\n\t",
            "\n\n",
            "\r\n",
            "word ",
            "é",
            "e\u0301",
            "😀",
            FAMILY,
            "🇩🇪",
            "👍🏽",
            "\u200b",
            "\u3000",
            "，\u0301",
            "漢字。",
            " \u0308",
            "end. ",
        ]
    ),
    max_size=60,
).map("".join)
kinds = st.sampled_from(["bold", "code", "pre", "quote", "link"])


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """A text with spans that are sound: nested or apart, tidy."""
    text = draw(texts)
    offsets = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    spans = [(start, end, draw(kinds), "x") for start, end in pairwise(offsets) if start < end]
    if offsets and draw(st.booleans()):
        spans.append((offsets[0], offsets[-1], "quote", ""))
    return Body(text, tidy_spans(text, spans))


def check(body: Body, parts: tuple[Body, ...], budget: int, unit: Unit) -> None:
    """The promises about the parts of any body."""
    assert all(measure(part.text, unit) <= budget for part in parts)
    assert all(has_visible(part.text) for part in parts)
    between = gaps(body.text, parts)
    assert join(parts, between) == body.text
    assert not any(map(has_visible, between))
    position = 0
    for part, gap in zip(parts, between, strict=False):
        position += len(gap)
        assert part.text == part.text.rstrip()
        for span in part.spans:
            covered = part.text[span.start : span.start + span.length]
            assert covered
            assert covered == covered.rstrip()
            whole = body.text[position + span.start : position + span.start + span.length]
            assert whole == covered
        position += len(part.text)


def marked(body: Body, offset: int) -> set[tuple[str, str]]:
    """What a character is marked as."""
    return {(span.kind, span.argument) for span in body.spans if span.start <= offset < span.start + span.length}


@given(bodies(), st.integers(4, 40), st.sampled_from(UNITS), st.none() | st.integers(1, 4))
def test_any_body(body: Body, limit: int, unit: Unit, max_spans: int | None) -> None:
    """Within the limits, nothing visible lost, no part blank, exactly joined (case F-02)."""
    parts = split(body, limit, unit, max_spans=max_spans)
    check(body, parts, limit, unit)
    assert max_spans is None or all(len(part.spans) <= max_spans for part in parts)


@given(st.text(st.characters(categories=None), max_size=200), st.integers(4, 30), st.sampled_from(UNITS))
def test_any_text(text: str, limit: int, unit: Unit) -> None:
    """Whatever the characters are, splitting ends and keeps its promises, also on text that nobody repaired."""
    check(Body(text), split(Body(text), limit, unit), limit, unit)


@given(bodies(), st.integers(8, 40))
def test_marks_go_on_behind_a_border(body: Body, limit: int) -> None:
    """Every character that shows is marked in its part as it was in the body (case F-01)."""
    parts = split(body, limit, "utf16", max_spans=None)
    position = 0
    for part, gap in zip(parts, gaps(body.text, parts), strict=False):
        position += len(gap)
        for offset, char in enumerate(part.text):
            if not char.isspace():
                assert marked(part, offset) == marked(body, position + offset)
        position += len(part.text)


@given(texts, st.integers(24, 60), st.sampled_from(UNITS))
def test_no_character_is_torn(text: str, limit: int, unit: Unit) -> None:
    """A border never falls into a grapheme that is shorter than a part (case F-04)."""
    limit = max(limit, measure(FAMILY, unit))
    body = Body(text)
    parts = split(body, limit, unit)
    position = 0
    for part, gap in zip(parts, gaps(body.text, parts), strict=False):
        position += len(gap)
        assert is_boundary(body.text, position)
        position += len(part.text)
        assert is_boundary(body.text, position)


@given(texts, texts, st.integers(4, 40), st.sampled_from(UNITS))
@example("aaaa", "\u0301", 4, "codepoints")
def test_growth_leaves_full_parts_alone(text: str, more: str, limit: int, unit: Unit) -> None:
    """When text is appended all parts but the last two stay as they were."""
    before = split(Body(text), limit, unit)
    after = split(Body(text + more), limit, unit)
    assert after[: max(len(before) - 2, 0)] == before[: max(len(before) - 2, 0)]


@pytest.mark.parametrize(("limit", "unit"), WIRES)
def test_a_streamed_answer_moves_no_full_part(limit: int, unit: Unit) -> None:
    """While an answer streams, each part is sealed once it is full: at most the last two of a preview ever change."""
    source = (Path(__file__).parent / "corpus" / "long_answer_32k.md").read_text()[:9000]
    before: tuple[Body, ...] = ()
    for end in range(500, 9000, 487):
        after = split(render(source[:end]), limit, unit)
        assert after[: max(len(before) - 2, 0)] == before[: max(len(before) - 2, 0)]
        before = after


@pytest.mark.parametrize(("limit", "unit"), WIRES)
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path: Path, limit: int, unit: Unit) -> None:
    """Awkward documents fit each wire without loss, with room kept, at most a hundred spans a part."""
    body = render(path.read_bytes().decode())
    parts = split(body, limit, unit, reserve=40)
    check(body, parts, limit - 40, unit)
    assert all(len(part.spans) <= 100 for part in parts)
    assert parts


def test_prefers_paragraphs_then_lines_then_sentences_then_words() -> None:
    """The best border in the second half of the room is taken."""
    for text, first in (
        ("one two. three\n\nfour\nfive six. seven", "one two. three"),
        ("one two. three\nfour five six. seven", "one two. three"),
        ("one two three. four five six seven", "one two three."),
        ("one two three four five six seven", "one two three four five"),
        ("onetwothreefourfivesixseven", "onetwothreefourfivesixse"),
        ("一二三四五六七八九。十一二三四五六七八九十一二三四五", "一二三四五六七八九。十一二三四五六七八九十一二三"),
        ("一二三四五六七八九十一二三四。五六七八九十一二三四五", "一二三四五六七八九十一二三四。"),
    ):
        assert split(Body(text), 24, "codepoints")[0].text == first


def test_a_word_that_just_fits_is_whole() -> None:
    """White space right behind the room is no reason to cut earlier, and none begins the next part."""
    assert [part.text for part in split(Body("aaaa bbbb  cc"), 9, "codepoints")] == ["aaaa bbbb", "cc"]


def test_white_space_at_the_end_makes_no_part_shorter() -> None:
    """A text that fits without the white space at its end is one part."""
    assert split(Body("aaaaaa\n\nbb \n\n"), 10, "codepoints") == (Body("aaaaaa\n\nbb"),)


def test_a_space_with_a_mark_is_kept() -> None:
    """A space that carries a mark is a character like others, and no white space at a border."""
    assert [part.text for part in split(Body("aaaa \u0308bb"), 4, "codepoints")] == ["aaaa", " \u0308bb"]


def test_punctuation_behind_the_room_is_not_taken() -> None:
    """A border behind a comma or a full stop is one only when that still fits, with the mark that it may carry."""
    for text, parts in (
        ("一二三。四五", ["一二三", "。四五"]),
        ("一二三，四五", ["一二三", "，四五"]),
        ("aaa，\u0301bb", ["aaa", "，\u0301bb"]),
    ):
        limit = 4 if "a" in text else 3
        assert [part.text for part in split(Body(text), limit, "codepoints")] == parts


def test_long_code_block() -> None:
    """Each part of a long code block is a code block of its language, cut between lines, indentation kept (F-01)."""
    body = render("```python\n" + "\n".join(f"    line_{n} = {n}" for n in range(700)) + "\n```")
    for limit in (2000, 4096):
        parts = split(body, limit, "utf16")
        assert "\n".join(part.text for part in parts) == body.text
        for part in parts:
            assert part.text.startswith("    line_")
            assert part.spans == (Span(0, len(part.text), "pre", "python"),)


def test_code_that_begins_just_before_the_limit() -> None:
    """A code block that would begin in the last lines of a part begins the next one (F-01)."""
    body = render("x" * 80 + "\n\n```sh\nfirst\nsecond\nthird\nfourth\n```\n\nend")
    parts = split(body, 90, "utf16")
    assert [part.text for part in parts] == ["x" * 80, "first\nsecond\nthird\nfourth\n\nend"]
    assert parts[1].spans == (Span(0, 25, "pre", "sh"),)


def test_cut_exactly_at_the_end_of_code() -> None:
    """Code that ends exactly at the limit ends its part, and what follows is no code (F-01)."""
    body = render("```sh\n" + "y" * 20 + "\n```\nafter")
    assert split(body, 20, "utf16") == (Body("y" * 20, (Span(0, 20, "pre", "sh"),)), Body("after"))


@pytest.mark.parametrize(
    ("text", "limit"),
    [("```\n" + "z" * 12000 + "\n```", 4096), (" " + "a" * 9000, 4096), ("b" * 12000, 1), ("c " * 3000, 2)],
)
def test_endless_words(text: str, limit: int) -> None:
    """A word without end is cut hard; as few parts as can be (F-02)."""
    body = render(text)
    parts = split(body, limit, "codepoints")
    check(body, parts, limit, "codepoints")
    assert len(parts) == -(-len(body.text.replace(" ", "")) // limit) or limit == 2


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("limit", [-5, 0])
def test_impossible_limits(limit: int, unit: Unit) -> None:
    """A limit that leaves no room for a character raises at once, also for an empty body (F-02)."""
    for reserve in (0, WIDEST[unit] + 1 - limit):
        with pytest.raises(ValueError, match="no room"):
            split(Body(""), limit + reserve, unit, reserve=reserve)
    with pytest.raises(ValueError, match="no room"):
        split(Body("a"), 20, unit, reserve=21 - WIDEST[unit])
    with pytest.raises(ValueError, match="one span"):
        split(Body("a"), 20, unit, max_spans=0)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("😀" * 2049, [4096, 2]),
        ("😀" * 4500, [4096, 4096, 808]),
        ("a" + "😀" * 3000, [4095, 1906]),
        (FAMILY * 400, [11 * 372, 11 * 28]),
        ("🇩🇪" * 1500, [4096, 1904]),
    ],
)
def test_astral_characters(text: str, sizes: list[int]) -> None:
    """UTF-16 units are counted, and no pair and no emoji is torn (F-04)."""
    assert [measure(part.text, "utf16") for part in split(Body(text), 4096, "utf16")] == sizes


def test_a_character_longer_than_a_part() -> None:
    """A heap of marks that no part can hold is cut where it must be, and nothing visible is lost."""
    text = "e" + "\u0301" * 50
    parts = split(Body(text), 10, "codepoints")
    assert join(parts, gaps(text, parts)) == text
    assert [len(part.text) for part in parts] == [10, 10, 10, 10, 10, 1]


def test_blank_bodies_have_no_parts() -> None:
    """Nothing blank is ever sent, and a blank tail is no part (D-09)."""
    assert split(Body(" \n\t\u200b"), 10, "utf16") == ()
    assert [part.text for part in split(Body("a" * 10 + "\n" * 30 + "b" + " " * 30), 10, "utf16")] == ["a" * 10, "b"]
    assert [part.text for part in split(Body("a" + "\u200b" * 30 + "b"), 10, "utf16")] == [
        "a" + "\u200b" * 9,
        "\u200bb",
    ]


def test_indentation_in_code() -> None:
    """In code the first line of a part keeps its indentation, unless that alone is longer than a part."""
    body = render("```\naaaa bbbb\n    cccc\n```")
    assert [part.text for part in split(body, 10, "utf16")] == ["aaaa bbbb", "    cccc"]
    body = render("```\naaaa\n" + " " * 50 + "b\n```")
    assert [part.text for part in split(body, 10, "utf16")] == ["aaaa", "b"]


def test_too_many_spans() -> None:
    """More than a hundred spans force an earlier cut; no span is lost (Telegram honours a hundred)."""
    body = render(" ".join(f"**b{n}**" for n in range(250)))
    parts = split(body, 4096, "utf16")
    assert [len(part.spans) for part in parts] == [100, 100, 50]
    assert len(split(body, 4096, "utf16", max_spans=None)) == 1


def test_spans_that_no_part_can_hold() -> None:
    """When one place alone carries too many spans the outer ones are kept, and the text in any case."""
    body = Body("abc", tuple(Span(0, 3, kind) for kind in ("bold", "italic", "strike")))
    assert split(body, 9, "utf16", max_spans=2) == (Body("abc", (Span(0, 3, "bold"), Span(0, 3, "italic"))),)


def test_weight_of_markup() -> None:
    """A wire that writes spans as markup gets parts that are within the limit as it writes them."""

    def weigh(part: Body) -> int:
        return len(part.text) + sum(4 if span.kind == "bold" else 7 for span in part.spans)

    body = render("**bold** words and " * 20 + "\n```py\n" + "code line\n" * 30 + "```")
    parts = split(body, 60, "codepoints", weigh=weigh)
    assert all(weigh(part) <= 60 for part in parts)
    assert max(map(weigh, parts)) > 45
    assert join(parts, gaps(body.text, parts)) == body.text


def test_reserve_is_left_free() -> None:
    """The recovery marker fits before every part."""
    marker = "[may be a duplicate] "
    for part in split(Body("word " * 3000), 4096, "utf16", reserve=len(marker)):
        assert measure(part.prefixed(marker).text, "utf16") <= 4096


def test_gaps_find_what_is_missing() -> None:
    """Parts that are incomplete, out of order or foreign are told apart from a splitting."""
    parts = split(Body("one two three"), 5, "utf16")
    for wrong in (parts[:-1], parts[1:], parts[::-1], (*parts, Body("four")), (parts[0], parts[2])):
        with pytest.raises(ValueError, match=r"not in the original|leave out"):
            gaps("one two three", wrong)
    assert join(parts) == "one\ntwo\nthree"


@given(bodies(), st.integers(7, 40), st.sampled_from(UNITS))
def test_clip(body: Body, limit: int, unit: Unit) -> None:
    """One message within the limit: all of it, or its beginning with an ellipsis."""
    clipped = clip(body, limit, unit)
    parts = split(body, limit, unit)
    assert measure(clipped.text, unit) <= limit
    if len(parts) > 1:
        assert clipped.text.endswith("…")
        assert clipped.text[:-1] in body.text
        assert not has_visible(body.text[: body.text.index(clipped.text[:-1])])
    else:
        assert clipped == (parts[0] if parts else Body(""))
