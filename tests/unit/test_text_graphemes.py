"""What a reader sees as one character is never torn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.text.graphemes import is_boundary, last_boundary
from hermes_trio.text.visible import has_visible

WHOLE = {
    "combining mark": "e\u0301",
    "two marks": "a\u0308\u0323",
    "family": "👨\u200d👩\u200d👧\u200d👦",
    "skin tone": "👍🏽",
    "flag": "🇩🇪",
    "regional flag": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "keycap": "1\ufe0f\u20e3",
    "heart on fire": "❤\ufe0f\u200d🔥",
    "line break": "\r\n",
    "hangul parts": "\u1112\u1161\u11ab",
    "hangul syllable and part": "\ud558\u11ab",
    "devanagari conjunct": "\u0915\u094d\u0937\u093f",
    "thai vowel": "\u0e01\u0e33",
    "halfwidth voiced mark": "ｶﾞ",
    "space with a mark": " \u0308",
}


@pytest.mark.parametrize("cluster", WHOLE.values(), ids=list(WHOLE))
def test_whole_characters(cluster: str) -> None:
    """There is a boundary around each of these, and none within."""
    text = f"x{cluster}x"
    assert [index for index in range(1, len(text)) if is_boundary(text, index)] == [1, len(text) - 1]


@pytest.mark.parametrize(
    "text", ["ab", "a b", "漢字", "😀😀", "a\n", "\n\u0308", "한글", "\u200d\n", "1🇩", "\u0915\u0937"]
)
def test_neighbours(text: str) -> None:
    """Between two whole characters there is a boundary."""
    assert is_boundary(text, 1)


def test_flags_are_pairs() -> None:
    """A row of flags may be cut between flags only."""
    text = "🇩🇪🇫🇷🇬🇧"
    assert [index for index in range(7) if is_boundary(text, index)] == [0, 2, 4, 6]
    assert last_boundary(text, 0, 5) == 4
    assert last_boundary(text, 0, 1) == 1  # shorter than one flag


@given(st.text(st.sampled_from("aé\u0301\u200d👍🏽🇩🇪\r\n \u0915\u094d"), min_size=1, max_size=20), st.data())
def test_last_boundary_makes_progress(text: str, data: st.DataObject) -> None:
    """The last boundary is behind the start and not behind the end."""
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = last_boundary(text, start, end)
    assert start < found <= end
    assert found == end or is_boundary(text, found, start)


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b\u200d\ufeff", "\u00a0\u3000", "\u2800", "\u3164", "\ufe0f", "\x00\x07"]
)
def test_invisible(text: str) -> None:
    """White space, zero-width characters, fillers and controls show nothing."""
    assert not has_visible(text)


@pytest.mark.parametrize("text", ["a", "\u200b.", "\u0301", "😀", "\ufffd", "漢", "\ue000"])
def test_visible(text: str) -> None:
    """Letters, marks, symbols, replacement and private characters show something."""
    assert has_visible(text)
