"""From chunks to an answer: what is shown, what proves that it is complete, and the ways of different servers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.model.assembly import MAX_TOOL_CALLS, AnswerReader, FinishRule
from hermes_trio.model.base import (
    Completion,
    ContextOverflow,
    Event,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Truncated,
    Usage,
)

DONE = b"data: [DONE]\n\n"


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def text(*pieces: str) -> bytes:
    return sse(delta(role="assistant", content=""), *(delta(content=piece) for piece in pieces))


def call(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    fragment: dict[str, Any] = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    if index is None:
        del fragment["index"]
    return fragment


def read(*reads: bytes, finish: FinishRule = "required") -> list[Event]:
    """All events of a body that arrived in these reads."""
    reader = AnswerReader(finish)
    events: list[Event] = []
    for piece in reads:
        events += reader.feed(piece)
        if reader.done:
            break
    return [*events, *reader.end()]


def complete(*reads: bytes, finish: FinishRule = "required") -> Completion:
    """The completion, checked against the deltas before it."""
    *deltas, last = read(*reads, finish=finish)
    assert isinstance(last, Completion)
    assert all(isinstance(event, TextDelta | ReasoningDelta) and event.text for event in deltas)
    assert last.text == "".join(event.text for event in deltas if isinstance(event, TextDelta))
    assert last.reasoning == "".join(event.text for event in deltas if isinstance(event, ReasoningDelta))
    return last


def calls_of(*fragments: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    return complete(sse(*(delta(tool_calls=part) for part in fragments), delta("tool_calls")) + DONE).tool_calls


# What proves completeness


@pytest.mark.parametrize(
    "wire",
    [
        text("a", "b", "c", "d", "e"),
        text("abcde") + DONE,
        text("abcde") + sse(delta(), delta()) + DONE,
        b"",
        b": ping\n\n",
        text("abcde") + b'data: {"choices":[{"delta":{"con',
        text("abcde") + sse(delta("mystery")) + DONE,
    ],
)
def test_no_proof_no_completion(wire: bytes) -> None:
    """P-01: the end of the connection, and [DONE] without a finish reason, leave the answer truncated."""
    with pytest.raises(Truncated) as caught:
        read(wire)
    assert caught.value.retryable


def test_length_is_truncated() -> None:
    """P-01: the length limit ends no answer, and asking again the same way would not help."""
    with pytest.raises(Truncated, match="length") as caught:
        read(text("abc") + sse(delta("length")) + DONE)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "wire",
    [
        text("abc") + sse(delta("stop")),
        text("abc") + sse(delta("stop")) + DONE,
        text("ab") + sse(delta("stop", content="c")) + DONE,
        text("abc") + sse(delta("stop"), {"choices": [], "usage": {"prompt_tokens": 1}}) + DONE,
        text("abc") + sse(delta("stop"), delta(None, content="")),
        text("abc") + sse(delta("stop")) + b"data: {cut",
        text("abc") + sse(delta("stop")) + b"data: {cut\n\n" + DONE,
        text("abc") + sse(delta("stop"), {"error": {"message": "late"}}),
    ],
)
def test_a_finish_is_proof(wire: bytes) -> None:
    """P-01: with a finish reason the answer stands, whatever comes behind it or fails to come."""
    assert complete(wire).text == "abc"
    assert complete(wire).finish == "stop"


def test_a_provider_may_be_trusted_without_finish() -> None:
    """P-01: [DONE] alone completes only where the configuration says so; the end of the connection never does."""
    assert complete(text("abc") + DONE, finish="optional").text == "abc"
    with pytest.raises(Truncated):
        read(text("abc"), finish="optional")
    with pytest.raises(Truncated, match="length"):
        read(text("abc") + sse(delta("length")) + DONE, finish="optional")


def test_content_filter_and_error_finishes() -> None:
    """A filtered answer is an error that repeats itself, a finish called error is one that may not."""
    with pytest.raises(ModelError, match="filter") as filtered:
        read(text("abc") + sse(delta("content_filter")) + DONE)
    with pytest.raises(ModelError) as broken:
        read(text("abc") + sse(delta("error")))
    assert (filtered.value.retryable, broken.value.retryable) == (False, True)


def test_what_finished_and_begun_say() -> None:
    """The reader knows at each moment whether an answer has begun and whether it is proven."""
    reader = AnswerReader()
    reader.feed(b": ping\n\n" + sse(delta(role="assistant", content="")))
    assert (reader.begun, reader.finished, reader.done) == (False, False, False)
    reader.feed(sse(delta(content="a")))
    assert (reader.begun, reader.finished, reader.done) == (True, False, False)
    reader.feed(sse(delta("stop")))
    assert (reader.begun, reader.finished, reader.done) == (True, True, False)
    reader.feed(DONE)
    assert (reader.begun, reader.finished, reader.done) == (True, True, True)


# Cuts


FULL = (
    b": OPENROUTER PROCESSING\r\n\r\n"
    + sse(delta(role="assistant", content=None), delta(reasoning="höm"), delta(content="a é 漢"))
    + 'data: {"choices":[{"delta":{"content":"😀 raw"}}]}\n\n'.encode()
    + b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00!"}}]}\r\r'
    + sse(delta(tool_calls=[call(0, "c1", "f", '{"a')]), delta(tool_calls=[call(0, None, None, '":1}')]))
    + sse(delta("tool_calls"), {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    + b"data: [DONE]"
)


@given(st.lists(st.integers(0, len(FULL)), max_size=20))
def test_every_cut_gives_the_same_answer(cuts: list[int]) -> None:
    """P-03: cut anywhere, also within characters, `data:` and CRLF, the answer is the same."""
    edges = [0, *sorted(cuts), len(FULL)]
    answer = complete(*(FULL[start:end] for start, end in pairwise(edges)))
    assert answer.text == "a é 漢😀 raw😀!"
    assert answer == complete(FULL)


def test_one_byte_at_a_time() -> None:
    """P-03: single bytes give what one read gives."""
    assert complete(*(FULL[i : i + 1] for i in range(len(FULL)))) == complete(FULL)


def test_surrogates() -> None:
    """P-03: a pair that is cut between two chunks is one character; a lone one is replaced; NUL is left out."""
    assert complete(text("a\ud83d", "\ude00b", "\ud83d", "c\udc00", "d\0e", "\ud83d") + sse(delta("stop"))).text == (
        "a😀b\ufffdc\ufffdde\ufffd"
    )


# Odd chunks


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": []},
        {"id": "x"},
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": None}}]},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 1, "delta": {"content": "another"}, "finish_reason": "length"}]},
        {"choices": [{"delta": {"tool_calls": []}}], "error": None},
        {"choices": [7, None]},
        {"choices": [], "prompt_filter_results": [{}]},
        None,
    ],
)
def test_chunks_without_text(odd: Any) -> None:
    """P-05: empty, missing or null choices and contents give no text, no failure and no end."""
    assert complete(sse(odd) + text("a") + sse(odd) + text("b") + sse(delta("stop"), odd) + DONE).text == "ab"
    with pytest.raises(Truncated):
        read(text("a") + sse(odd) + DONE)


def test_usage() -> None:
    """P-05: usage is taken from wherever it stands; the last one counts; odd numbers are none."""
    details = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    first = delta(content="a") | {"usage": {"prompt_tokens": 1}}
    assert complete(sse(first, delta("stop"), {"choices": [], "usage": details}) + DONE).usage == Usage(10, 5, 4, 2)
    assert complete(sse(first, delta("stop") | {"usage": None})).usage == Usage(1)
    assert complete(sse(delta("stop") | {"usage": {"prompt_tokens": "many"}})).usage == Usage()
    assert complete(sse(delta("stop", content="a"))).usage is None


def test_reasoning_under_both_names() -> None:
    """Reasoning is kept apart from the text under either name, and not doubled by servers that send both."""
    wire = sse(delta(reasoning="a"), delta(reasoning_content="b"), delta(reasoning="c", reasoning_content="c"))
    answer = complete(wire + sse(delta("stop", content="x")))
    assert (answer.reasoning, answer.text) == ("abc", "x")


def test_refusals_and_content_parts_are_text() -> None:
    """A refusal is shown like text, and so are the text parts of a list."""
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "text": "no"}, {"text": "b"}]
    assert complete(sse(delta(refusal="I "), delta(refusal="won't"), delta("stop"))).text == "I won't"
    assert complete(sse(delta("stop", content=parts))).text == "ab"


# Failures inside a 200


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"error": {"message": "boom", "type": "server_error"}}, True),
        ({"error": {"message": "boom", "code": 502}}, True),
        ({"error": {"message": "boom", "code": "429"}}, True),
        ({"error": {"message": "boom", "code": 402}}, False),
        ({"error": {"message": "boom", "code": 500, "type": "insufficient_quota"}}, False),
        ({"error": {"message": "boom", "type": "invalid_request_error"}}, False),
        ({"error": "boom"}, True),
        ({"object": "error", "message": "boom", "code": 400}, False),
        (delta("error", content="") | {"error": {"message": "boom", "code": 502}}, True),
    ],
)
@pytest.mark.parametrize("tail", [b"", DONE])
def test_an_error_inside_a_stream(error: Any, retryable: bool, tail: bytes) -> None:
    """P-06: an error object fails the attempt, also behind text and before [DONE]; its code says whether to retry."""
    with pytest.raises(ModelError, match="boom") as caught:
        read(text("a", "b", "c") + sse(error) + tail)
    assert caught.value.retryable is retryable


def test_an_error_line_of_older_servers() -> None:
    """P-06: a field named error, and an event of that name, are failures."""
    body = b'{"code": 500, "message": "boom", "type": "server_error"}\n\n'
    for head in (b"error: ", b"event: error\ndata: "):
        with pytest.raises(ModelError, match="boom"):
            read(text("a") + head + body)


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        (b'{"error": {"message": "overloaded", "code": 503}}', ModelError, True),
        (b' \n{"error": {"message": "no", "type": "invalid_request_error"}}', ModelError, False),
        (b'{"error": {"message": "This model\'s maximum context length is 10 tokens"}}', ContextOverflow, False),
        (b"<!DOCTYPE html><html><body>Welcome</body></html>", ModelError, False),
        (b"\n\n  <html>data: {}\n\n</html>", ModelError, False),
        (b'{"choices": [{"mess', ModelError, True),
        (b'{"detail": "?"}', Truncated, True),
    ],
)
def test_a_body_that_is_no_stream(body: bytes, kind: type[ModelError], retryable: bool) -> None:
    """P-06: a JSON error or a page with status 200 fails the attempt, however it is cut."""
    for reads in ([body], [body[i : i + 1] for i in range(len(body))]):
        with pytest.raises(kind) as caught:
            read(*reads)
        assert caught.value.retryable is retryable


def test_a_server_that_does_not_stream() -> None:
    """A whole answer in one JSON object is an answer."""
    message = {"role": "assistant", "content": "hi", "tool_calls": [call(None, "c1", "f", "{}")]}
    body = {
        "id": "x",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3},
    }
    answer = complete(json.dumps(body).encode())
    assert (answer.text, answer.tool_calls, answer.usage) == ("hi", (ToolCall("c1", "f", "{}"),), Usage(3))


@pytest.mark.parametrize("garbage", [b"data: {oops\n\n", b"data: 7\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_garbage_in_a_stream(garbage: bytes) -> None:
    """A chunk that is not understood may have held text, so the attempt fails."""
    with pytest.raises(ModelError) as caught:
        read(text("a") + garbage + sse(delta("stop")) + DONE)
    assert caught.value.retryable


def test_bodies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless answer is an error, keep-alive comments included."""
    monkeypatch.setattr("hermes_trio.model.assembly.MAX_ANSWER_BYTES", 1000)
    reader = AnswerReader()
    with pytest.raises(ModelError, match="longer"):
        for _ in range(1000):
            reader.feed(b": ping\n")


# Empty answers


@pytest.mark.parametrize(
    ("wire", "shown", "thought"),
    [
        (sse(delta(content=None, reasoning="hm"), delta("stop")), "", "hm"),
        (sse(delta("stop", content="")), "", ""),
        (sse(delta("stop", content=" \n")), " \n", ""),
    ],
)
def test_empty_answers_are_complete(wire: bytes, shown: str, thought: str) -> None:
    """P-09: an empty or reasoning-only answer is passed on as it is; reasoning is never taken for text."""
    answer = complete(wire + DONE)
    assert (answer.text, answer.reasoning, answer.tool_calls) == (shown, thought, ())


def test_reasoning_up_to_the_limit_is_truncated() -> None:
    """P-09: reasoning only, then the length limit, is no answer."""
    with pytest.raises(Truncated):
        read(sse(delta(reasoning="hm"), delta("length")) + DONE)


# Tool calls


def test_fragments_by_index() -> None:
    """Parallel calls are gathered by index, also several in one chunk and interleaved; text may stand beside them."""
    wire = sse(
        delta(content="Looking."),
        delta(tool_calls=[call(0, "a", "f", ""), call(1, "b", "g", '{"x"')]),
        delta(tool_calls=[call(1, None, None, ":2}"), call(0, None, None, '{"y":')]),
        delta(tool_calls=[call(0, None, None, "1}")]),
        delta("tool_calls"),
    )
    answer = complete(wire + DONE)
    assert answer.tool_calls == (ToolCall("a", "f", '{"y":1}'), ToolCall("b", "g", '{"x":2}'))
    assert (answer.text, answer.finish) == ("Looking.", "tool_calls")


def test_presence_decides() -> None:
    """Calls that come with the finish `stop` are calls all the same."""
    assert complete(sse(delta(tool_calls=[call(0, "a", "f", "{}")]), delta("stop"))).finish == "tool_calls"


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        ([[call(0, "a", "f", "{}"), call(1, "b", "f", "{}")]], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([[call(None, "a", "f", "{}"), call(None, "b", "g", "[]")]], [("a", "f", "{}"), ("b", "g", "[]")]),
        ([[call(None, "a", "f", "{")], [call(None, None, None, "}")]], [("a", "f", "{}")]),
        ([[call(None, "a", "f", "{")], [call(None, "a", "f", "}")]], [("a", "f", "{}")]),
        ([[call(0, "a", "f", "{}")], [call(0, "b", "g", "{}")]], [("a", "f", "{}"), ("b", "g", "{}")]),
        ([[call(0, "a", "f", "{")], [call(0, "a", "f", "}")]], [("a", "f", "{}")]),
        ([[call(0, "a", "get_", "")], [call(0, None, "time", "{}")]], [("a", "get_time", "{}")]),
        ([[call(0, "a", "f", {"x": "é"})]], [("a", "f", '{"x": "é"}')]),
        ([[call(0, "a", "f", None)]], [("a", "f", "")]),
        ([[call(0, "a", "f", "\ud83d")], [call(0, None, None, "\ude00\udc00")]], [("a", "f", "😀\ufffd")]),
    ],
    ids=[
        "same name twice",
        "whole calls without index",
        "fragment without index and id",
        "fragments by id",
        "all with index 0",
        "name said again",
        "name in pieces",
        "arguments as an object",
        "no arguments",
        "cut surrogates",
    ],
)
def test_ways_of_servers(fragments: list[list[dict[str, Any]]], expected: list[tuple[str, str, str]]) -> None:
    """However a server numbers, names and cuts its calls, they come out whole, in order and once."""
    assert [(made.id, made.name, made.arguments) for made in calls_of(*fragments)] == expected


def test_made_up_ids() -> None:
    """A call without an id, or with one that is taken, gets one: stable for the answer, distinct within it."""
    same = [call(0, None, "f", "{}"), call(1, None, "f", "{}"), call(2, "x", "f", "{}"), call(3, "x", "f", "{}")]
    first, again = calls_of(same), calls_of(same)
    assert first == again
    assert len({made.id for made in first}) == 4
    assert first[2].id == "x"
    assert all(made.id.startswith("call_") for made in (first[0], first[1], first[3]))


def test_legacy_function_call() -> None:
    """The old single call is a tool call."""
    wire = sse(
        delta(function_call={"name": "f", "arguments": '{"a'}),
        delta(function_call={"arguments": '":1}'}),
        delta("function_call"),
    )
    [made] = complete(wire).tool_calls
    assert (made.name, made.arguments) == ("f", '{"a":1}')


def test_calls_that_cannot_be_run() -> None:
    """A call without a name, and more calls than anyone needs, fail the attempt."""
    with pytest.raises(ModelError, match="name"):
        calls_of([call(0, "a", None, "{}")])
    with pytest.raises(ModelError, match="tool calls"):
        calls_of([call(index, f"c{index}", "f", "{}") for index in range(MAX_TOOL_CALLS + 1)])
