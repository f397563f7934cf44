"""The fake model streams as the real API does, says what it was told, and refuses what the real one refuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define

from hermes_fakes.client import Client, Lost, Response, connect_memory
from hermes_fakes.faults import AckLost, CutStream, ErrorBefore, NeverSeen, RateLimited
from hermes_fakes.model import ModelFake, Script, open_model_fake

PATH = "/v1/chat/completions"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(number: str, name: str = "f") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": "{}"}}


def result(number: str, content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": number, "content": content}


def events(body: bytes) -> list[Any]:
    """The decoded data of each event; "[DONE]" as it is."""
    lines = [part.removeprefix("data: ") for part in body.decode().split("\n\n") if part]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def text_of(body: bytes) -> str:
    return "".join(
        choice["delta"].get("content") or "" for e in events(body) if e != "[DONE]" for choice in e["choices"]
    )


@define
class Scene:
    model: ModelFake
    client: Client
    nursery: trio.Nursery

    async def ask(self, *messages: Any, **more: Any) -> Response:
        body = {"model": "fake-model", "messages": list(messages), **more}
        return await self.client.request("POST", PATH, json=body)

    async def stream(self, *messages: Any, **more: Any) -> bytes:
        return (await self.ask(*messages, stream=True, **more)).body

    async def start(self, text: str) -> None:
        body = {"model": "fake-model", "messages": [user(text)], "stream": True}
        await self.client.start("POST", PATH, json=body)

    async def rest(self) -> tuple[bytes, bool]:
        """What still comes, and whether the answer was complete."""
        received = bytearray()
        try:
            while (piece := await self.client.piece()) is not None:
                received += piece
        except Lost:
            return bytes(received), False
        return bytes(received), True


@asynccontextmanager
async def open_scene(**options: Any) -> AsyncIterator[Scene]:
    async with open_model_fake(**options) as model, trio.open_nursery() as nursery:
        yield Scene(model, connect_memory(nursery, model.serve), nursery)
        nursery.cancel_scope.cancel()


# --- the wire ---------------------------------------------------------------------------------------------------------


async def test_the_order_of_a_stream(autojump_clock: trio.testing.MockClock) -> None:
    """Role, deltas, finish, usage with no choices, [DONE]; one id; usage null before."""
    async with open_scene() as scene:
        scene.model.says("Hello", chunks=2)
        response = await scene.ask(user("x"), stream=True, stream_options={"include_usage": True})
        assert response.headers["content-type"].startswith("text/event-stream")
        *chunks, usage, done = events(response.body)
        assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
            {"role": "assistant", "content": "", "refusal": None},
            {"content": "He"},
            {"content": "ll"},
            {"content": "o"},
            {},
        ]
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 4 + ["stop"]
        assert all(chunk["usage"] is None for chunk in chunks)
        assert (usage["choices"], usage["usage"]["total_tokens"] > 0, done) == ([], True, "[DONE]")
        assert {chunk["id"] for chunk in [*chunks, usage]} == {"chatcmpl-1"}
        assert {chunk["object"] for chunk in [*chunks, usage]} == {"chat.completion.chunk"}


async def test_no_usage_unless_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """Without include_usage no chunk has a usage."""
    async with open_scene() as scene:
        chunks = events(await scene.stream(user("x")))
        assert all("usage" not in chunk for chunk in chunks[:-1])


async def test_an_answer_in_one_piece(autojump_clock: trio.testing.MockClock) -> None:
    """Without `stream` the answer is one object, with text and calls joined."""
    async with open_scene() as scene:
        scene.model.calls("f", {"a": "long enough to be cut"}, text="Let me see.").calls("g", "not json", "call_9")
        body = (await scene.ask(user("x"))).json()
        choice = body["choices"][0]
        assert (body["object"], choice["finish_reason"]) == ("chat.completion", "tool_calls")
        assert choice["message"]["content"] == "Let me see."
        first, second = choice["message"]["tool_calls"]
        assert json.loads(first["function"]["arguments"]) == {"a": "long enough to be cut"}
        assert (second["id"], second["function"]) == ("call_9", {"name": "g", "arguments": "not json"})


async def test_tool_calls_come_in_fragments(autojump_clock: trio.testing.MockClock) -> None:
    """The first fragment has id and name, the next ones pieces of the arguments; parallel calls have their index."""
    async with open_scene() as scene:
        scene.model.calls("f", '{"a": 1}', chunks=4).calls("g", "", "call_b")
        chunks = events(await scene.stream(user("x")))[:-1]
        fragments = [f for chunk in chunks for f in chunk["choices"][0]["delta"].get("tool_calls", ())]
        assert fragments == [
            {"index": 0, "id": "call_1_0", "type": "function", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "function": {"arguments": '{"a"'}},
            {"index": 0, "function": {"arguments": ": 1}"}},
            {"index": 1, "id": "call_b", "type": "function", "function": {"name": "g", "arguments": ""}},
        ]
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_models_and_wrong_addresses(autojump_clock: trio.testing.MockClock) -> None:
    """The list of models, any prefix of the path, a 404 and a 405 as the API words them."""
    async with open_scene() as scene:
        models = (await scene.client.request("GET", "/v1/models")).json()
        assert [entry["id"] for entry in models["data"]] == ["fake-model"]
        body = {"model": "m", "messages": [user("x")]}
        assert (await scene.client.request("POST", "/api/v9/chat/completions", json=body)).status == 200
        assert (await scene.client.request("POST", "/v1/nothing", json=body)).status == 404
        assert (await scene.client.request("GET", PATH)).status == 405


async def test_the_key(autojump_clock: trio.testing.MockClock) -> None:
    """A wrong key is a 401; the right one is not kept."""
    async with open_scene(api_key="sk-1") as scene:
        refused = await scene.ask(user("x"))
        assert (refused.status, refused.json()["error"]["code"]) == (401, "invalid_api_key")
        body = {"model": "m", "messages": [user("x")]}
        right = {"authorization": "Bearer sk-1"}
        assert (await scene.client.request("POST", PATH, json=body, headers=right)).status == 200
        assert "sk-1" not in str(scene.model.requests[0].headers)


# --- validation -------------------------------------------------------------------------------------------------------

ASKS = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}


@pytest.mark.parametrize(
    "messages",
    [
        [user("x")],
        [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "x"}]}],
        [user("x"), ASKS, result("b"), result("a")],
        [user("x"), ASKS, result("a"), result("b"), {"role": "assistant", "content": "y"}, user("z")],
    ],
)
async def test_good_messages(messages: list[Any], autojump_clock: trio.testing.MockClock) -> None:
    """What the API takes."""
    async with open_scene() as scene:
        assert (await scene.ask(*messages)).status == 200


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "empty array"),
        (["x"], "expected an object"),
        ([{"role": "wizard", "content": "x"}], "Invalid value: 'wizard'"),
        ([{"role": "user", "content": None}], "got null"),
        ([{"role": "assistant", "content": None}], "got null"),
        ([{"role": "assistant", "content": None, "tool_calls": []}], "empty array"),
        ([user("x"), {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}], "are required"),
        ([user("x"), ASKS, result("a")], "did not have response messages: b"),
        ([user("x"), ASKS, result("a"), user("y"), result("b")], "did not have response messages: b"),
        ([user("x"), ASKS], "did not have response messages: a, b"),
        ([user("x"), ASKS, result("a"), result("b"), result("b")], "not found in 'tool_calls'"),
        ([user("x"), result("a")], "must be a response to a preceeding message"),
        ([user("x"), {"role": "tool", "content": "x"}], "tool_call_id"),
    ],
)
async def test_refused_messages(messages: list[Any], words: str, autojump_clock: trio.testing.MockClock) -> None:
    """What the API refuses is a 400 in its error body, and takes no script."""
    async with open_scene() as scene:
        scene.model.says("kept")
        response = await scene.ask(*messages)
        error = response.json()["error"]
        assert (response.status, error["type"]) == (400, "invalid_request_error")
        assert words in error["message"]
        assert scene.model.requests == []
        assert [status for status, _ in scene.model.rejected] == [400]
        assert (await scene.ask(user("x"))).json()["choices"][0]["message"]["content"] == "kept"


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"tools": [{"type": "function"}]},
        {"tools": [{"type": "function", "function": {"name": "bad name"}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}] * 2},
        {"tool_choice": "auto"},
        {"stream_options": {"include_usage": True}},
        {"model": ""},
    ],
    ids=str,
)
async def test_refused_options(more: dict[str, Any], autojump_clock: trio.testing.MockClock) -> None:
    """The shape of tools, and options that need others."""
    async with open_scene() as scene:
        assert (await scene.ask(user("x"), **more)).status == 400


async def test_a_body_that_is_no_json(autojump_clock: trio.testing.MockClock) -> None:
    """It is refused, and the connection goes on."""
    async with open_scene() as scene:
        assert (await scene.client.request("POST", PATH, body=b"{")).status == 400
        assert (await scene.ask(user("x"))).status == 200


# --- what it says -----------------------------------------------------------------------------------------------------


async def test_queue_then_rule_then_default(autojump_clock: trio.testing.MockClock) -> None:
    """A queued script answers the next request, else the newest rule that matches, else the echo."""
    async with open_scene() as scene:
        scene.model.when("hello").says("old")
        scene.model.when("hello").says("new")
        scene.model.when("bye", once=True).says("farewell")
        scene.model.says("first").then().says("second")
        said = [text_of(await scene.stream(user(text))) for text in ("hello", "x", "hello there", "bye", "bye")]
        assert said == ["first", "second", "new", "farewell", "You said: bye"]


async def test_a_rule_follows_the_rounds_of_a_turn(autojump_clock: trio.testing.MockClock) -> None:
    """The second answer of a rule is for the request that carries the tools' results, also when it is asked again."""
    async with open_scene() as scene:
        scene.model.when("weather").calls("look", {"city": "Rome"}).then().says("sunny")
        first = (await scene.ask(user("weather?"))).json()["choices"][0]["message"]
        history = [user("weather?"), first, result(first["tool_calls"][0]["id"], "24 degrees")]
        for _ in range(2):
            assert (await scene.ask(*history)).json()["choices"][0]["message"]["content"] == "sunny"
        assert scene.model.requests[-1].tool_results == {"call_1_0": "24 degrees"}
        again = [*history, {"role": "assistant", "content": "sunny"}, user("weather now?")]
        assert (await scene.ask(*again)).json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_predicates_and_another_default(autojump_clock: trio.testing.MockClock) -> None:
    """A rule may look at the whole request, and the default is a function of it."""
    async with open_scene(default=lambda request: Script().says(f"{len(request.messages)}")) as scene:
        scene.model.when(lambda request: "f" in request.tool_names).says("has f")
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        assert text_of(await scene.stream(user("x"))) == "1"
        assert text_of(await scene.stream(user("x"), tools=tools)) == "has f"


async def test_pace(autojump_clock: trio.testing.MockClock) -> None:
    """`first_delay` before the first delta, `interval` between two."""
    async with open_scene() as scene:
        scene.model.says("", chunks=["a", "b", "c"], first_delay=2, interval=0.5)
        await scene.start("x")
        times = []
        while (piece := await scene.client.piece()) is not None:
            times += [round(trio.current_time(), 3)] * (b'"content": "' in piece and b'"content": ""' not in piece)
        assert times == [2, 2.5, 3]


async def test_a_hold_keeps_the_stream_open(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing comes until the event is set; `does` runs in between."""
    async with open_scene() as scene:
        go_on, reached = trio.Event(), trio.Event()
        scene.model.says("before").does(reached.set).holds(go_on).says(" after")
        await scene.start("x")
        await reached.wait()
        with trio.move_on_after(1000) as waited:
            while b"after" not in (await scene.client.piece() or b"after"):
                pass
        assert waited.cancelled_caught
        assert scene.model.open_streams == [scene.model.requests[0]]
        go_on.set()
        rest, whole = await scene.rest()
        assert (text_of(rest), whole) == (" after", True)
        assert scene.model.open_streams == []


async def test_failures(autojump_clock: trio.testing.MockClock) -> None:
    """A status with an OpenAI body, with an own body, with headers."""
    async with open_scene() as scene:
        scene.model.fails(429, headers={"retry-after": "7"})
        scene.model.fails(400, code="context_length_exceeded", message="too long")
        scene.model.waits(3).fails(503, b"<html>")
        limited = await scene.ask(user("x"), stream=True)
        assert (limited.status, limited.headers["retry-after"]) == (429, "7")
        assert limited.json()["error"]["code"] == "rate_limit_exceeded"
        assert (await scene.ask(user("x"))).json()["error"]["code"] == "context_length_exceeded"
        page = await scene.ask(user("x"))
        assert (page.status, page.body, trio.current_time()) == (503, b"<html>", 3)


async def test_an_error_in_mid_stream(autojump_clock: trio.testing.MockClock) -> None:
    """Under HTTP 200 an error object ends the stream."""
    async with open_scene() as scene:
        scene.model.says("Hel").errors("overloaded")
        *_, last = events(await scene.stream(user("x")))
        assert last["error"]["message"] == "overloaded"


@pytest.mark.parametrize(
    ("after", "finish", "text", "reasons"),
    [(2, None, "abcd", []), (None, None, "abcdef", []), (2, "stop", "abcd", ["stop"])],
)
async def test_a_cut_stream(
    after: int | None,
    finish: str | None,
    text: str,
    reasons: list[str],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The connection ends after n deltas, without [DONE], with a finish only on demand."""
    async with open_scene() as scene:
        scene.model.says("abcdef", chunks=2).cuts(after, finish)
        await scene.start("x")
        rest, whole = await scene.rest()
        found = [e["choices"][0]["finish_reason"] for e in events(rest)]
        assert (whole, text_of(rest), [reason for reason in found if reason]) == (False, text, reasons)


async def test_a_stalled_stream(autojump_clock: trio.testing.MockClock) -> None:
    """After n deltas it is silent but open; when the client goes the fake notes it."""
    async with open_scene() as scene:
        scene.model.says("abcdef", chunks=2).stalls(after=1)
        await scene.start("x")
        with trio.move_on_after(100) as waited:
            await scene.rest()
        assert waited.cancelled_caught
        (request,) = scene.model.requests
        assert (request.deltas, request.aborted) == (1, False)
        await scene.client.aclose()
        await scene.model.wait_for(lambda: request.aborted)
        assert not request.finished


async def test_a_whole_answer_that_nobody_waits_for(autojump_clock: trio.testing.MockClock) -> None:
    """Also without `stream` the fake notes a client that left."""
    async with open_scene() as scene:
        scene.model.holds(trio.Event()).says("x")
        body = {"model": "m", "messages": [user("x")]}
        await scene.client.send("POST", PATH, json=body)
        (request,) = await scene.model.wait_for(lambda: scene.model.requests)
        await scene.client.aclose()
        await scene.model.wait_for(lambda: request.aborted)


async def test_length_and_reasoning(autojump_clock: trio.testing.MockClock) -> None:
    """finish_reason "length", and deltas of reasoning beside the content."""
    async with open_scene() as scene:
        scene.model.thinks("hm").says("a").finish_length()
        chunks = events(await scene.stream(user("x")))[:-1]
        assert chunks[1]["choices"][0]["delta"] == {"reasoning": "hm"}
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "length"]


async def test_raw_pieces(autojump_clock: trio.testing.MockClock) -> None:
    """Bytes come as they are, with nothing added."""
    async with open_scene() as scene:
        pieces = [b": ping\n\n", b"data: \xc3", b"\xa4\n\n"]
        scene.model.raw(pieces, interval=1)
        assert await scene.stream(user("x")) == b"".join(pieces)
        assert trio.current_time() == pytest.approx(2)


# --- faults and control -----------------------------------------------------------------------------------------------


async def test_faults_of_the_wire(autojump_clock: trio.testing.MockClock) -> None:
    """A fault before acceptance takes no script; one after it does."""
    async with open_scene() as scene:
        for text in ("one", "two", "three"):
            scene.model.says(text)
        scene.model.faults.add(ErrorBefore(503), "chat.completions")
        scene.model.faults.add(RateLimited(2), "chat.completions")
        scene.model.faults.add(CutStream(2), contains="cut me")
        assert (await scene.ask(user("x"))).json()["error"]["type"] == "server_error"
        limited = await scene.ask(user("x"))
        assert (limited.status, limited.headers["retry-after"]) == (429, "2")
        assert text_of(await scene.stream(user("x"))) == "one"
        await scene.start("cut me")
        rest, whole = await scene.rest()
        assert (text_of(rest), whole) == ("two", False)
        assert scene.model.faults.unhit() == []


@pytest.mark.parametrize(("effect", "left"), [(NeverSeen(), 1), (AckLost(silent=True), 0)], ids=repr)
async def test_silence(effect: Any, left: int, autojump_clock: trio.testing.MockClock) -> None:
    """A request that is never answered has, or has not, taken its script."""
    async with open_scene() as scene:
        scene.model.says("x")
        scene.model.faults.add(effect)
        with trio.move_on_after(60) as waited:
            await scene.ask(user("x"), stream=True)
        assert waited.cancelled_caught
        assert len(scene.model.queue) == left


async def test_the_control_interface(autojump_clock: trio.testing.MockClock) -> None:
    """A script by HTTP, also one that holds until it is released."""
    async with open_scene() as scene:
        curl = connect_memory(scene.nursery, scene.model.serve)
        script = [{"says": {"text": "abc", "chunks": 1}}, {"hold": None}, {"says": "def"}]
        assert (await curl.request("POST", "/control/script", json={"when": "hi", "script": script})).status == 200
        await curl.request("POST", "/control/script", json={"says": "once"})
        assert text_of(await scene.stream(user("hi"))) == "once"
        await scene.start("hi")
        await scene.model.wait_for(lambda: scene.model.requests[-1].deltas == 3)
        await curl.request("POST", "/control/release")
        rest, whole = await scene.rest()
        assert (text_of(rest), whole) == ("abcdef", True)
        entries = (await curl.request("GET", "/control/requests")).json()
        assert [(entry["finished"], entry["aborted"]) for entry in entries] == [(True, False)] * 2
        wrong = await curl.request("POST", "/control/script", json={"script": [{"sings": "la"}]})
        assert (wrong.status, "no verb sings" in wrong.json()["error"]) == (400, True)
