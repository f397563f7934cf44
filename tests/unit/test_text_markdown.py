"""Markdown to text and spans: what is shown, and that no word is lost whatever was written."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_trio.text.body import Body
from hermes_trio.text.markdown import RULE, is_blank, render

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.md"))
SNIPPETS = [
    *[
        "**",
        "*",
        "_",
        "~~",
        "`",
        "``",
        "```",
        "~~~",
        "# ",
        "> ",
        "- ",
        "1. ",
        "10) ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        " ",
    ],
    *[
        "[a](b)",
        "[",
        "](",
        ")",
        "![",
        "<b>",
        "<http://x.y>",
        "http://x/a_b_",
        "---",
        "===",
        "-",
        "|",
        "|-|-|\n",
        "|a|b|\n",
    ],
    *["\\", "word", "x1", "  \n", "<!--", "[^1]: note", "[r]: http://z", "\u00a0", "\r\n", "é", "😀", "```py t\n"],
]
markup = st.lists(st.sampled_from(SNIPPETS), max_size=25).map("".join)
anything = st.text(st.characters(categories=None), max_size=80)


def shown(markdown: str) -> list[tuple[str, str]]:
    """The spans of a rendered text as (kind, what they cover)."""
    body = render(markdown)
    return [(span.kind, body.text[span.start : span.start + span.length]) for span in body.spans]


def words(text: str) -> Counter[str]:
    """Every letter and digit of a text with its count."""
    return Counter(re.findall(r"[^\W_]", text))


def check_spans(body: Body) -> None:
    """The promises about spans: in the text, sorted, not empty, no white space at the ends, never crossing."""
    assert list(body.spans) == sorted(body.spans, key=lambda span: (span.start, -span.length))
    for span in body.spans:
        covered = body.text[span.start : span.start + span.length]
        assert 0 <= span.start < span.start + span.length <= len(body.text)
        assert covered == covered.rstrip()
        if covered != covered.lstrip():  # the indentation of code, and a quote around it
            assert span.start in {pre.start for pre in body.spans if pre.kind == "pre"}
            assert covered.split("\n")[0].strip()
    for outer, inner in combinations(body.spans, 2):
        apart = inner.start >= outer.start + outer.length
        assert apart or inner.start + inner.length <= outer.start + outer.length


@pytest.mark.parametrize(
    ("markdown", "text", "spans"),
    [
        ("**b** _i_ ~~s~~ `c`", "b i s c", [("bold", "b"), ("italic", "i"), ("strike", "s"), ("code", "c")]),
        ("***x***", "x", [("italic", "x"), ("bold", "x")]),
        ("**a _b_ c**", "a b c", [("bold", "a b c"), ("italic", "b")]),
        ("# A **b**", "A b", [("bold", "A b")]),
        (
            "**bold** (*^_^*) ╰(*°▽°*)╯ *!* **!**",
            "bold (*^_^*) ╰(°▽°)╯ *!* !",
            [("bold", "bold"), ("italic", "°▽°"), ("bold", "!")],
        ),
        ("# Head\ntext", "Head\ntext", [("bold", "Head")]),
        ("Head\n====\n\ntext", "Head\n\ntext", [("bold", "Head")]),
        ("[t](http://x)", "t", [("link", "t")]),
        ("[w](https://e.org/F_(b)_(c))", "w", [("link", "w")]),
        ("<http://x.y>", "http://x.y", [("link", "http://x.y")]),
        ("[r](./a.py)", "r (./a.py)", []),
        ('[t](http://x "title")', "t (title)", [("link", "t")]),
        ("[](http://x)", "http://x", [("link", "http://x")]),
        ("![cat](http://x)", "cat", [("link", "cat")]),
        ("[![ci](http://b)](http://x)", "ci (http://b)", [("link", "ci (http://b)")]),
        ("- a\n- b\n  - c\n    more", "• a\n• b\n  • c\n    more", []),
        ("3. a\n4. b\n\n   c", "3. a\n4. b\n\n   c", []),
        ("- [ ] open\n- [x] done", "• [ ] open\n• [x] done", []),
        ("- **b**", "• b", [("bold", "b")]),
        ("> q\n> r\n\nt", "q\nr\n\nt", [("quote", "q\nr")]),
        ("> q\n> > r", "q\n> r", [("quote", "q\n> r")]),
        ("a\n\n***\n\nb", f"a\n\n{RULE}\n\nb", []),
        ("a\n---\nb", f"a\n{RULE}\nb", []),
        ("a  \nb\\\nc\nd", "a\nb\nc\nd", []),
        ("```py\nx = 1\n  y\n```", "x = 1\n  y", [("pre", "x = 1\n  y")]),
        ("    x\n      y", "x\n  y", [("pre", "x\n  y")]),
        ("```\n    x\n```", "    x", [("pre", "    x")]),
        ("1. a\n   ```\n   b\n   ```\n2. c", "1. a\nb\n2. c", [("pre", "b")]),
        ("- ```\n  b\n  ```", "•\nb", [("pre", "b")]),
        ("```py a.py\nb\n```", "a.py\nb", [("pre", "b")]),
        ("&lt;b&gt; &amp;", "<b> &", []),
        ("&nbsp;**x**&nbsp;", "x", [("bold", "x")]),
        ("&nbsp;\n\n```\n  x\n```", "  x", [("pre", "  x")]),
    ],
)
def test_rendering(markdown: str, text: str, spans: list[tuple[str, str]]) -> None:
    """Each construct looks as the module says."""
    assert render(markdown).text == text
    assert shown(markdown) == spans


def test_arguments() -> None:
    """A link knows its address and a code block its language."""
    body = render("[a](http://x/(y)) ![b](<http://grün.de/a ß>)\n```c++ main.cpp\nint x;\n```\n```\nplain\n```")
    assert [(span.kind, span.argument) for span in body.spans] == [
        ("link", "http://x/(y)"),
        ("link", "http://grün.de/a%20ß"),
        ("pre", "c++"),
        ("pre", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name",
        "one _underscore",
        "vector<int> and <?php",
        "<!DOCTYPE html>",
        "<details>\nx\n</details>",
        "<<A-1>> body <</A-1>>",
        "bare ( ) { } . ! - outside",
        "[x])",
        "a < b && c > d",
        "**open bold",
        "~~open strike",
        "`open code",
        "[open](http://x",
        "footnote[^1]\n\n[^1]: its note",
        "[text][1]\n\n[1]: http://x",
        "(*^_^*)",
        "2 * 3 * 4",
        "http://x.y/_a_b_/__c__?d=_e_f",
        "[a](javascript:x)",
        "a | b",
        "a\n-",
        "a\n=",
        "*",
        "-",
        "1.",
        "**",
        "```py",
        "~~~ said behind a fence",
    ],
)
def test_literal(text: str) -> None:
    """What is no markup, or is not closed, stays as it was written, without spans (case F-05)."""
    assert render(text) == Body(text)


def test_crossing_marks() -> None:
    """Marks that cross are not both marks; nothing is lost and no spans cross (case F-05)."""
    body = render("*a _b* c_")
    assert body.text == "a _b c_"
    assert shown("*a _b* c_") == [("italic", "a _b")]


def test_table() -> None:
    """A table is aligned text in a monospaced block; wide characters take two columns."""
    body = render("| Name | n |\n|:-----|--:|\n| **ab** | 1 |\n| 名前 | 22 |\n| c |")
    assert body.text == "Name |  n\n-----|---\nab   |  1\n名前 | 22\nc    |"
    assert [(span.kind, span.length) for span in body.spans] == [("pre", len(body.text))]


def test_table_with_more_cells_than_its_head() -> None:
    """Cells that the parser would drop make the table stay as it was written."""
    source = "| a |\n|---|\n| b | kept |"
    assert render(source).text == source


@pytest.mark.parametrize("deep", ["> " * 100 + "word", "- " * 100 + "word", "[" * 200 + "word", "*a _" * 100 + "word"])
def test_deep_nesting_loses_nothing(deep: str) -> None:
    """What is nested deeper than the parser goes is shown as it was written."""
    assert "word" in render(deep).text


@pytest.mark.parametrize("step", [1, 7])
def test_every_prefix_renders(step: int) -> None:
    """A preview in mid-stream renders at every point, and an open fence is a code block already."""
    document = "Intro **bold** and:\n\n- one\n- two `c`\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    for end in range(0, len(document), step):
        check_spans(render(document[:end]))
    assert shown("text\n```py\nx = 1\n  y")[-1] == ("pre", "x = 1\n  y")
    assert shown("text\n```py\nx = 1\n``")[-1] == ("pre", "x = 1\n``")


def test_a_growing_list_does_not_move_its_beginning() -> None:
    """An item behind a blank line changes nothing in the items before it."""
    before = render("- a\n- b\n- c").text
    assert render("- a\n- b\n- c\n\n- d").text.startswith(before)


@pytest.mark.parametrize(
    "blank",
    [
        "",
        " \n\t",
        "\u200b\n\u2060",
        "&nbsp;",
        "#",
        "> ",
        "***",
        "---",
        "```\n```",
        "```\n \n```",
        "[]()",
        "> ***",
        "\ufe0f",
        "\x00",
    ],
)
def test_blank(blank: str) -> None:
    """White space, invisible characters, bare markup and rules alone are no answer (case D-09)."""
    assert is_blank(blank)
    assert is_blank(render(blank))


@pytest.mark.parametrize("text", ["a", "*", "-", "`x`", "# x", "```\nx", "😀", "[](http://x)", "—", "0"])
def test_not_blank(text: str) -> None:
    """Whatever shows something is an answer."""
    assert not is_blank(text)
    assert not is_blank(render(text))


def test_equal_previews() -> None:
    """White space at the end changes nothing that is shown (case S-05)."""
    assert render("Hello") == render("Hello \n") == render("\nHello")


@given(anything)
@example("\ud83d\ude00\ud83d")
@example("\u00a0\u00a0x")
@example("\x85\u2028a")
@example(">\x850")
@example("> ```\n>   x")
def test_any_text_renders(text: str) -> None:
    """Nothing raises, the promises about spans hold, and the text is empty only when there is nothing to see."""
    body = render(text)
    check_spans(body)
    assert body.text or is_blank(text)
    assert is_blank(body) == is_blank(text)
    body.text.encode()


@given(markup)
def test_no_letter_is_lost(text: str) -> None:
    """Every letter of the source is in the text or in the argument of a span, in any tangle of markup."""
    body = render(text)
    check_spans(body)
    assert not words(text) - words(body.text + "".join(span.argument for span in body.spans))


@given(
    st.lists(st.from_regex(r"[a-zé漢😀]{1,8}([ ,.!?]{1,2}[a-z0-9]{1,8}){0,6}", fullmatch=True), min_size=1, max_size=5)
)
def test_plain_text_stays(paragraphs: list[str]) -> None:
    """Text without markup is shown as it is, and rendering what was rendered changes nothing."""
    plain = "\n\n".join(paragraph.replace("  ", " ") for paragraph in paragraphs)
    body = render(plain)
    assert body == Body(plain)
    assert render(body.text) == body


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus_loses_no_word(path: Path) -> None:
    """Awkward documents keep every letter, entity names aside, and their spans are sound."""
    source = path.read_bytes().decode()
    body = render(source)
    check_spans(body)
    kept = words(body.text + "".join(span.argument for span in body.spans))
    assert not words(source.replace("&nbsp;", " ").replace("&lt", "<")) - kept
