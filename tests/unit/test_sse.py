"""Server-sent events from bytes: the standard's examples, the cases of real servers, and every cut of the bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.model.sse import ServerEvent, SseParser


def parse(*reads: bytes) -> list[ServerEvent]:
    """All events of these reads."""
    parser = SseParser()
    return [event for read in reads for event in parser.feed(read)] + parser.end()


def data(*reads: bytes) -> list[str]:
    return [event.data for event in parse(*reads)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end: bytes) -> None:
    """LF, CR and CRLF end lines alike; several data lines are one event."""
    assert data(end.join([b"data: a", b"data:b", b"", b"data:  c", b"", b""])) == ["a\nb", " c"]


def test_a_cut_line_end_is_one() -> None:
    """P-03: a CRLF that is cut in two ends one line, not two; a CR and an LF that belong to two lines end two."""
    assert data(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == ["a\nb"]
    assert data(b"data: a\r", b"", b"\ndata: b") == ["a\nb"]
    assert data(b"data: a\r\r", b"\ndata: b") == ["a", "b"]


def test_other_separators_are_text() -> None:
    """U+2028, U+0085, vertical tab and form feed do not end a line."""
    text = "a\u2028b\u0085c\x0bd\x0ce\x1cf"
    assert data(f"data: {text}\n\n".encode()) == [text]


@pytest.mark.parametrize(
    "noise",
    [
        b": PROCESSING\n\n",
        b":\n",
        b":\n\n",
        b"id: 7\n: ping\n\n",
        b"retry: 3000\n\n",
        b"event: ping\ndata:\n\n",
        b"event: ping\ndata\n\n",
        b"unknown: field\n\n",
        b"\n\n\n",
    ],
)
def test_noise_is_no_event(noise: bytes) -> None:
    """P-02: comments, retry, ids and events without data give nothing and break nothing."""
    assert data(b"data: a\n\n", noise, b"data: b\n\n") == ["a", "b"]
    assert data(noise, b"data: a\n\n") == ["a"]


def test_a_comment_between_two_lines_of_an_event() -> None:
    """P-02: a comment inside an event belongs to none."""
    assert data(b"data: a\n: ping\ndata: b\n\n") == ["a\nb"]


def test_the_last_event_needs_no_blank_line() -> None:
    """P-03: what stands before the end of the connection is an event, also without any line end."""
    assert data(b"data: a\n\ndata: b") == ["a", "b"]
    assert data(b"data: a\n\ndata: b\r") == ["a", "b"]


def test_names_of_events() -> None:
    """The kind is the event field, for that event only; an `error` field makes an error."""
    events = parse(b"event: x\ndata: 1\n\ndata: 2\n\nevent: y\n\ndata: 3\n\nerror: {}\n\n")
    assert [(event.kind, event.data) for event in events] == [
        ("x", "1"),
        ("message", "2"),
        ("message", "3"),
        ("error", "{}"),
    ]


def test_byte_order_mark() -> None:
    """One at the very start is no text; a later one is."""
    assert data("\ufeffdata: \ufeffa\n\n".encode()) == ["\ufeffa"]


def test_broken_utf8_is_replaced() -> None:
    """Bytes that are no UTF-8 cost one character, not the stream."""
    assert data(b"data: a\xffb\n\n") == ["a\ufffdb"]


PIECES = st.sampled_from(
    [
        "data: ",
        "data: x",
        "\r\ndata: y",
        "data:",
        "event: x",
        "id: 1",
        ":",
        ": ping",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "é",
        "漢",
        "😀",
        "\u2028",
        "x",
        " ",
    ]
)


@given(st.lists(PIECES, max_size=30), st.lists(st.integers(0, 120), max_size=12))
def test_every_cut_gives_the_same_events(pieces: list[str], cuts: list[int]) -> None:
    """P-03: the events do not depend on how the bytes are cut, down to single bytes."""
    wire = "".join(pieces).encode()
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    whole = parse(wire)
    assert parse(*(wire[start:end] for start, end in pairwise(edges))) == whole
    assert parse(*(wire[i : i + 1] for i in range(len(wire)))) == whole
