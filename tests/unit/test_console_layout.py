"""Bodies as lines of a terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.platforms.console.layout import cells, lines_of, plain_text
from hermes_trio.text.body import Body, Span
from hermes_trio.text.markdown import render

SGR = re.compile(r"\x1b\[[0-9;]*m")


def bare(lines: list[str]) -> list[str]:
    return [SGR.sub("", line) for line in lines]


def test_words_are_wrapped_at_spaces() -> None:
    """A line ends before the word that does not fit, and the space between is not shown."""
    assert lines_of(Body("one two three four"), 9, style=False) == ["one two", "three", "four"]


def test_an_endless_word_is_cut() -> None:
    """What has no space is cut at the width."""
    assert lines_of(Body("abcdefgh"), 3, style=False) == ["abc", "def", "gh"]


def test_indentation_is_kept() -> None:
    """Spaces at the beginning of a line of the text are part of it."""
    assert lines_of(Body("a:\n    b\n\nc"), 20, style=False) == ["a:", "    b", "", "c"]


def test_wide_characters_take_two_cells() -> None:
    """Ideographs and emoji are counted as the terminal shows them; a mark takes none."""
    assert lines_of(Body("你好世界"), 5, style=False) == ["你好", "世界"]
    assert cells("👍🏽") == 2
    assert cells("e\u0301") == 1


def test_marks_are_shown_and_end_with_their_line() -> None:
    """Each line carries its own marks, so that it can be redrawn alone."""
    body = Body("a bold text", (Span(2, 9, "bold"),))
    assert lines_of(body, 7, style=True) == ["a \x1b[0;1mbold\x1b[0m", "\x1b[0;1mtext\x1b[0m"]
    assert lines_of(body, 7, style=False) == ["a bold", "text"]


def test_a_link_says_where_it_leads() -> None:
    """The address stands behind the text, unless that says it already."""
    assert plain_text(render("[the site](https://example.org/)")) == "the site (https://example.org/)"
    assert plain_text(render("<https://example.org/>")) == "https://example.org/"


def test_a_text_cannot_steer_the_terminal() -> None:
    """Escape sequences, carriage returns and turned directions in a text are shown, not obeyed."""
    hostile = Body("a\x1b[2Jb\rc\x07d\x9b1me\u202ef\x00")
    for line in [*lines_of(hostile, 40, style=True), plain_text(hostile)]:
        assert line == "a␛[2Jb␍c␇d\ufffd1me\ufffdf␀"


@given(st.text(max_size=200), st.integers(2, 40))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    """Every line fits, and all that is visible of the text is there in its order."""
    lines = lines_of(Body(text), width, style=False)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(plain_text(Body(text)).split())


@given(st.text("ab *_`~[]()<>#\n", max_size=60), st.integers(2, 12))
def test_marks_change_no_text(markdown: str, width: int) -> None:
    """With and without marks the same text stands on the same lines."""
    body = render(markdown)
    assert bare(lines_of(body, width, style=True)) == lines_of(body, width, style=False)
