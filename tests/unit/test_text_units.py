"""Lengths and offsets as the wires count them, and the repair of what came from outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.text.repair import repair
from hermes_trio.text.units import Unit, fit, from_utf16, measure, to_utf16, utf16_table

UNITS: tuple[Unit, ...] = ("utf16", "codepoints", "bytes")
anything = st.text(st.characters(categories=None), max_size=60)
wide = st.text(st.sampled_from("aé€😀\ufe0f\n"), max_size=60)


@pytest.mark.parametrize(
    ("text", "utf16", "codepoints", "octets"),
    [("", 0, 0, 0), ("abc", 3, 3, 3), ("é", 1, 1, 2), ("€", 1, 1, 3), ("😀", 2, 1, 4), ("a😀b", 4, 3, 6)],
)
def test_measure(text: str, utf16: int, codepoints: int, octets: int) -> None:
    """Each unit counts what its wire counts."""
    assert [measure(text, unit) for unit in UNITS] == [utf16, codepoints, octets]


def test_measure_takes_a_lone_surrogate() -> None:
    """Measuring never raises, also not on text that nobody repaired yet."""
    assert [measure("\ud83d", unit) for unit in UNITS] == [1, 1, 3]


@given(wide, st.integers(0, 60), st.integers(0, 40), st.sampled_from(UNITS))
def test_fit_takes_as_much_as_the_budget_allows(text: str, start: int, budget: int, unit: Unit) -> None:
    """What fits is within the budget, and one code point more would not be."""
    start = min(start, len(text))
    end = fit(text, start, budget, unit)
    assert measure(text[start:end], unit) <= budget
    assert end == len(text) or measure(text[start : end + 1], unit) > budget


@given(wide)
def test_offsets_convert_both_ways(text: str) -> None:
    """The table, the two conversions and the encoder agree at every offset."""
    table = utf16_table(text)
    for offset in range(len(text) + 1):
        assert table[offset] == to_utf16(text, offset) == measure(text[:offset], "utf16")
        assert from_utf16(text, table[offset]) == offset


def test_an_offset_inside_a_pair_means_its_start() -> None:
    """Nobody can point between the halves of a pair, and beyond the end is the end."""
    assert [from_utf16("a😀b", offset) for offset in range(6)] == [0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("broken", "sound"),
    [
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("a\x00b", "ab"),
        ("\ud83d\x00\ude00", "😀"),
        ("left alone", "left alone"),
    ],
)
def test_repair(broken: str, sound: str) -> None:
    """Pairs are joined, lone surrogates replaced, NUL is gone (case F-04)."""
    assert repair(broken) == sound


@given(anything)
def test_repaired_text_can_be_sent(text: str) -> None:
    """Repaired text can be encoded, holds no NUL, and does not change when it is repaired again."""
    sound = repair(text)
    sound.encode()
    assert "\x00" not in sound
    assert repair(sound) == sound
