"""The OpenAI-compatible model over memory streams: what it asks, what it makes of answers, and how it counts time."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from memory_net import MemoryNet

from hermes_fakes.http import (
    Answer,
    CutOff,
    Hangup,
    Reply,
    Request,
    Send,
    Silence,
    StreamReply,
    json_reply,
    serve_http,
)
from hermes_trio.http import open_http_client
from hermes_trio.model.base import (
    Completion,
    ContextOverflow,
    Event,
    Image,
    Message,
    ModelError,
    TextDelta,
    ToolCall,
    ToolSpec,
    Truncated,
    Usage,
)
from hermes_trio.model.openai import LINGER, OpenAIModel, request_body

KEY = "sk-SECRET"
HELLO = (Message("user", "hello"),)
DONE = b"data: [DONE]\n\n"
USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
Part = bytes | float
"""Bytes of a streamed answer, or seconds of silence."""


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def streaming(*parts: Part, cut: bool = False) -> StreamReply:
    """A stream of these parts; `cut`: the connection breaks behind them."""

    async def feed(send: Send) -> None:
        for part in parts:
            if isinstance(part, bytes):
                await send(part)
            else:
                await trio.sleep(part)
        if cut:
            raise CutOff

    return StreamReply(feed, headers=(("content-type", "text/event-stream"),))


class Server:
    """Answers in turn, the last answer for ever; keeps the requests."""

    def __init__(self, *answers: Answer | Callable[[Request], Awaitable[Answer]]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def serve(self, stream: trio.abc.Stream) -> None:
        await serve_http(self.handle, stream)

    async def handle(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request) if callable(answer) else answer


@asynccontextmanager
async def model_of(*answers: Any, **settings: Any) -> AsyncGenerator[tuple[OpenAIModel, Server, MemoryNet]]:
    """A model whose server gives these answers."""
    server = Server(*answers)
    async with trio.open_nursery() as nursery:
        net = MemoryNet(nursery, {"llm.example": server.serve} if answers else {})
        async with open_http_client(net) as client:
            yield OpenAIModel(client, "http://llm.example/v1/", "m-1", KEY, **settings), server, net
        nursery.cancel_scope.cancel()


async def ask(model: OpenAIModel, into: list[Event] | None = None, *messages: Message) -> list[Event]:
    """All events of one attempt; those before a failure are in `into`."""
    events: list[Event] = [] if into is None else into
    async with model.stream(messages or HELLO, ()) as stream:
        async for event in stream:
            events.append(event)
    return events


# The request


async def test_the_request() -> None:
    """Address, key, model, messages and usage are sent as the API wants them; no limit on the answer is."""
    async with model_of(streaming(sse(delta("stop", content="hi"), USAGE) + DONE)) as (model, server, _):
        await ask(model)
    [request] = server.requests
    assert (request.method, request.target) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json() == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_without_a_key() -> None:
    """A local server gets no authorization at all."""
    server = Server(streaming(sse(delta("stop", content="hi"))))
    async with trio.open_nursery() as nursery:
        async with open_http_client(MemoryNet(nursery, {"llm.example": server.serve})) as client:
            await ask(OpenAIModel(client, "http://llm.example/v1", "m", None))
        nursery.cancel_scope.cancel()
    assert "authorization" not in server.requests[0].headers


def test_messages_tools_and_images() -> None:
    """Every kind of message, tools and images take the form of the API; malformed arguments are not sent back."""
    messages = (
        Message("system", "be kind"),
        Message("user", "look", name="ann", images=(Image("image/png", b"\x00\x01"),)),
        Message("user", "", name="Änn B", images=(Image("image/png", b"\x02"),)),
        Message("assistant", "", tool_calls=(ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "g", '{"a'))),
        Message("tool", "one", tool_call_id="c1", name="f"),
        Message("tool", "two", tool_call_id="c2"),
    )
    body = request_body("m", messages, (ToolSpec("f", "does f", {"type": "object"}),), ask_usage=False)
    assert "stream_options" not in body
    assert body["tools"] == [
        {"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}}
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}
    assert body["messages"] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image], "name": "ann"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,Ag=="}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "one", "tool_call_id": "c1"},
        {"role": "tool", "content": "two", "tool_call_id": "c2"},
    ]


@pytest.mark.parametrize(
    ("url", "key"), [("llm.example", None), ("http://x", "sk\n"), ("http://x", "s k"), ("http://x", "ß")]
)
async def test_settings_that_no_request_could_carry(url: str, key: str | None) -> None:
    """They are refused when the model is made, without quoting the key."""
    async with open_http_client() as client:
        with pytest.raises(ValueError, match=r"base URL|API key") as caught:
            OpenAIModel(client, url, "m", key)
    assert key is None or key not in str(caught.value)


# Answers


async def test_an_answer_streams() -> None:
    """Text comes as it arrives, and the completion comes last, with usage; the connection is used again."""
    wire = [sse(delta(role="assistant", content="")), sse(delta(content="Hel")), sse(delta(content="lo"))]
    async with model_of(streaming(*wire, sse(delta("stop"), USAGE), DONE)) as (model, _, net):
        events = await ask(model)
        assert await ask(model) == events
    assert events == [
        TextDelta("Hel"),
        TextDelta("lo"),
        Completion("Hello", (), "", "stop", Usage(prompt=3, completion=2)),
    ]
    assert net.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        streaming(sse(delta(content="a"), delta(content="b"))),
        streaming(sse(delta(content="a"), delta(content="b")), cut=True),
        streaming(sse(delta(content="a"), delta(content="b")), DONE),
        streaming(sse(delta(content="a"), delta(content="b"), delta("length")), DONE),
    ],
    ids=["end", "cut", "done only", "length"],
)
async def test_truncated_answers(answer: StreamReply) -> None:
    """P-01: what came is shown, then the attempt fails as truncated; there is no completion."""
    async with model_of(answer) as (model, _, _):
        seen: list[Event] = []
        with pytest.raises(Truncated):
            await ask(model, seen)
    assert seen == [TextDelta("a"), TextDelta("b")]


async def test_trusting_a_provider_without_finish() -> None:
    """P-01: [DONE] alone completes where the configuration says so."""
    async with model_of(streaming(sse(delta(content="a")), DONE), finish="optional") as (model, _, _):
        assert (await ask(model))[-1] == Completion("a", (), "", "stop", None)


@pytest.mark.parametrize("cut", [True, False])
async def test_a_proven_finish_survives_the_connection(cut: bool) -> None:
    """P-01: a connection that breaks behind the finish reason costs the usage, not the answer."""
    async with model_of(streaming(sse(delta(content="a"), delta("stop")), cut=cut)) as (model, _, _):
        assert (await ask(model))[-1] == Completion("a", (), "", "stop", None)


async def test_a_finished_answer_waits_for_usage_only_so_long(autojump_clock: trio.testing.MockClock) -> None:
    """Behind the finish, keep-alive comments hold the answer back for LINGER seconds at most."""
    parts: list[Part] = [sse(delta("stop", content="a"))]
    parts += [1.0, b": ping\n\n"] * 1000
    async with model_of(streaming(*parts)) as (model, _, _):
        began = trio.current_time()
        assert (await ask(model))[-1] == Completion("a", (), "", "stop", None)
        assert trio.current_time() - began <= LINGER + 1


async def test_one_byte_at_a_time() -> None:
    """P-03: an answer in single bytes is the same answer."""
    wire = b": ping\r\n\r\n" + 'data: {"choices":[{"delta":{"content":"é漢😀"}}]}\r\n\r\n'.encode()
    wire += sse(delta("stop")) + b"data: [DONE]"
    async with model_of(streaming(*(wire[i : i + 1] for i in range(len(wire))))) as (model, _, _):
        assert (await ask(model))[-1] == Completion("é漢😀", (), "", "stop", None)


# Time


async def test_keep_alive_comments_hold_the_line(autojump_clock: trio.testing.MockClock) -> None:
    """P-02: comments reset the idle timer, so a model may think longer than it."""
    parts: list[Part] = [8.0, b": ping\n\n"] * 10
    parts.append(sse(delta("stop", content="a")))
    async with model_of(streaming(*parts), idle_timeout=10, timeout=100) as (model, _, _):
        assert isinstance((await ask(model))[-1], Completion)


async def test_keep_alive_comments_are_no_progress(autojump_clock: trio.testing.MockClock) -> None:
    """P-02: comments alone do not stretch the attempt beyond its timeout."""
    parts: list[Part] = [8.0, b": ping\n\n"] * 1000
    async with model_of(streaming(*parts), idle_timeout=10, timeout=100) as (model, _, _):
        began = trio.current_time()
        with pytest.raises(ModelError, match="in time") as caught:
            await ask(model)
    assert trio.current_time() - began == pytest.approx(100)
    assert caught.value.retryable
    assert not isinstance(caught.value, Truncated)


async def test_silence_in_mid_stream(autojump_clock: trio.testing.MockClock) -> None:
    """After idle_timeout without a byte the attempt is given up, truncated once something had come."""
    async with model_of(streaming(sse(delta(content="a")), 1000.0), idle_timeout=10) as (model, _, _):
        began = trio.current_time()
        with pytest.raises(Truncated, match="10 s"):
            await ask(model)
    assert trio.current_time() - began == pytest.approx(10)


@pytest.mark.parametrize(("limit", "seconds"), [(600.0, 10), (4.0, 4)])
async def test_silence_before_the_answer(autojump_clock: trio.testing.MockClock, limit: float, seconds: float) -> None:
    """A server that takes the request and says nothing is given up after the shorter of the two limits."""
    async with model_of(Silence(), idle_timeout=10, timeout=limit) as (model, _, _):
        began = trio.current_time()
        with pytest.raises(ModelError, match="in time") as caught:
            await ask(model)
    assert trio.current_time() - began == pytest.approx(seconds)
    assert caught.value.retryable


async def test_cancelling_closes_the_connection() -> None:
    """An answer that nobody wants is cancelled at the server, by closing."""
    gone: list[Request] = []

    async def endless(request: Request) -> Answer:
        gone.append(request)
        return streaming(*[sse(delta(content="x"))] * 100_000)

    async with model_of(endless) as (model, _, _):
        with trio.CancelScope() as scope:
            async with model.stream(HELLO, ()) as events:
                assert await anext(events) == TextDelta("x")
                scope.cancel()
                await trio.lowlevel.checkpoint()
        with trio.fail_after(5):
            await gone[0].gone.wait()
    gc.collect()


async def test_leaving_early_closes_the_connection() -> None:
    """A reader that stops in the middle leaves nothing open and nothing to the garbage collector."""
    gone: list[Request] = []

    async def endless(request: Request) -> Answer:
        gone.append(request)
        return streaming(*[sse(delta(content="x"))] * 100_000)

    async with model_of(endless) as (model, _, _):
        async with model.stream(HELLO, ()) as events:
            await anext(events)
        with trio.fail_after(5):
            await gone[0].gone.wait()
    gc.collect()


# Failures


async def test_unreachable() -> None:
    """A server that cannot be reached may be reached later."""
    async with model_of() as (model, _, _):
        with pytest.raises(ModelError, match="not reached") as caught:
            await ask(model)
    assert caught.value.retryable


async def test_hang_up_before_the_answer() -> None:
    """P-08: a connection that dies before any text fails the attempt, which may be repeated unseen."""
    async with model_of(Hangup()) as (model, _, _):
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert caught.value.retryable
    assert not isinstance(caught.value, Truncated)


@pytest.mark.parametrize("fields", [{"content": " \n"}, {"reasoning": "hm"}])
async def test_dying_after_white_space_or_reasoning(fields: dict[str, str]) -> None:
    """P-08: what came is passed on as it is, so the caller can see that nothing visible was shown; then it fails."""
    async with model_of(streaming(sse(delta(**fields)), cut=True)) as (model, _, _):
        seen: list[Event] = []
        with pytest.raises(ModelError) as caught:
            await ask(model, seen)
    assert caught.value.retryable
    assert not any(isinstance(event, TextDelta) and event.text.strip() for event in seen)


async def test_a_second_attempt_stands_alone() -> None:
    """P-08: an attempt after a broken one holds nothing of it."""
    answers = (streaming(sse(delta(content="first ")), cut=True), streaming(sse(delta("stop", content="second")), DONE))
    async with model_of(*answers) as (model, _, _):
        with pytest.raises(Truncated):
            await ask(model)
        assert await ask(model) == [TextDelta("second"), Completion("second", (), "", "stop", None)]


@pytest.mark.parametrize("tail", [b"", DONE])
async def test_an_error_in_mid_stream(tail: bytes) -> None:
    """P-06: an error object behind text fails the attempt, with the server's words but not the key."""
    error = {"error": {"message": f"overloaded, dear {KEY}", "type": "server_error"}}
    async with model_of(streaming(sse(delta(content="a"), error) + tail)) as (model, _, _):
        with pytest.raises(ModelError, match="overloaded") as caught:
            await ask(model)
    assert caught.value.retryable
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [
        (json_reply({"error": {"message": "later", "code": 503}}), True),
        (Reply(200, b"<html>welcome</html>", (("content-type", "text/html"),)), False),
        (Reply(200, b""), True),
    ],
)
async def test_two_hundred_without_a_stream(reply: Reply, retryable: bool) -> None:
    """P-06: a JSON error, a page or nothing at all with status 200 is a failure, not an answer."""
    async with model_of(reply) as (model, _, _):
        with pytest.raises(ModelError) as caught:
            await ask(model)
    assert caught.value.retryable is retryable


async def test_refusals() -> None:
    """Statuses, codes and headers become the right error; an HTML page or a broken body leaves the status to decide."""
    overflow = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    answers = (
        json_reply({"error": {"message": "slow down"}}, 429, (("retry-after", "3"),)),
        json_reply(overflow, 400),
        Reply(502, b"<html>Bad Gateway</html>"),
        json_reply({"error": {"message": f"wrong key {KEY}"}}, 401),
        json_reply({"detail": f"no such model for {KEY}"}, 404),
        Reply(500, b"x" * 1_000_000),
    )
    errors: list[ModelError] = []
    async with model_of(*answers) as (model, _, _):
        for _ in answers:
            with pytest.raises(ModelError) as caught:
                await ask(model)
            errors.append(caught.value)
    assert [error.retryable for error in errors] == [True, False, True, False, False, True]
    assert errors[0].retry_after == 3.0
    assert [type(error) for error in errors] == [ModelError, ContextOverflow, *[ModelError] * 4]
    assert "no such model for [key]" in str(errors[4])
    assert all(KEY not in str(error) and "llm.example" not in str(error) for error in errors)


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_stream_options(status: int) -> None:
    """A refusal that names the field is answered by asking without it, once and from then on."""
    refusal = json_reply({"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields"}]}, status)
    async with model_of(refusal, streaming(sse(delta("stop", content="a")))) as (model, server, _):
        await ask(model)
        await ask(model)
    assert ["stream_options" in request.json() for request in server.requests] == [True, False, False]


async def test_no_other_refusal_is_repeated() -> None:
    """An attempt is one request; the field is given up once, not for ever anew."""
    async with model_of(json_reply({"error": {"message": "bad"}}, 400)) as (model, server, _):
        with pytest.raises(ModelError):
            await ask(model)
    assert len(server.requests) == 1
    async with model_of(json_reply({"error": {"message": "bad stream_options"}}, 400)) as (model, server, _):
        with pytest.raises(ModelError):
            await ask(model)
    assert len(server.requests) == 2


async def test_an_empty_answer_is_passed_on() -> None:
    """P-09: null content with reasoning, and nothing at all, are completions without text; the caller decides."""
    wire = sse(delta(role="assistant", content=None, reasoning="hm"), delta("stop"))
    async with model_of(streaming(wire, DONE), streaming(sse(delta("stop")), DONE)) as (model, _, _):
        assert (await ask(model))[-1] == Completion("", (), "hm", "stop", None)
        assert await ask(model) == [Completion("", (), "", "stop", None)]
    async with model_of(streaming(sse(delta(reasoning="hm"), delta("length")), DONE)) as (model, _, _):
        with pytest.raises(Truncated):
            await ask(model)


async def test_chunks_without_choices() -> None:
    """P-05: empty choices first and last do not disturb."""
    wire = sse({"choices": [], "prompt_filter_results": []}, delta(content="a"), delta("stop"), USAGE)
    async with model_of(streaming(wire, DONE)) as (model, _, _):
        assert (await ask(model))[-1] == Completion("a", (), "", "stop", Usage(3, 2))
