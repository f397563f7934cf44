"""What is put behind a text that broke off stands outside of its code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.text.fences import close_fence
from hermes_trio.text.markdown import render

NOTICE = "⏹ *stopped*"


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("plain", "plain"),
        ("```py\nx = 1", "```py\nx = 1\n```"),
        ("```py\nx = 1\n```", "```py\nx = 1\n```"),
        ("~~~~\na\n~~~", "~~~~\na\n~~~\n~~~~"),
        ("```\na\n~~~", "```\na\n~~~\n```"),
        ("```\na\n```\n\n````\nb", "```\na\n```\n\n````\nb\n````"),
        ("``` not `a` fence", "``` not `a` fence"),
        ("```\na\n``` b", "```\na\n``` b\n```"),
    ],
)
def test_an_open_fence_is_closed_by_its_own_kind(text: str, closed: str) -> None:
    """CommonMark: the same character, at least as long, with nothing behind it."""
    assert close_fence(text) == closed


@given(st.lists(st.sampled_from(["```", "```py", "~~~", "````", "x = 1", "", "``` b"]), max_size=8).map("\n".join))
def test_a_notice_behind_any_partial_is_no_code(partial: str) -> None:
    """Whatever the model was writing when it was cut off, the notice is read as a notice."""
    body = render(f"{close_fence(partial)}\n\n{NOTICE}")
    assert body.text.endswith("⏹ stopped")
    assert any(span.kind == "italic" and span.start + span.length == len(body.text) for span in body.spans)
