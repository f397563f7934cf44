"""The fake model under the official client of the API that it imitates."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import openai
import pytest
import trio
from attrs import frozen
from foreign_loop import run_in_asyncio
from openai import AsyncOpenAI

from hermes_fakes.faults import CutStream, RateLimited, ResetBefore
from hermes_fakes.loopback import listen
from hermes_fakes.model import ModelFake, open_model_fake

HI: list[Any] = [{"role": "user", "content": "hi"}]
WEATHER: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@frozen
class Place:
    """A fake on loopback."""

    fake: ModelFake
    base: str

    async def use(self, program: Callable[[AsyncOpenAI], Awaitable[None]], key: str = "right") -> None:
        """Runs the program with a client that retries nothing by itself."""

        async def main() -> None:
            async with AsyncOpenAI(base_url=self.base, api_key=key, max_retries=0, timeout=20) as client:
                await program(client)

        await run_in_asyncio(main())


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_model_fake(api_key="right") as fake:
        async with trio.open_nursery() as nursery:
            port = await listen(fake, nursery)
            yield Place(fake, f"http://127.0.0.1:{port}/v1")
            nursery.cancel_scope.cancel()


async def test_a_whole_answer(place: Place) -> None:
    """Without streaming: text, finish reason, usage, and the list of models."""
    place.fake.says("Hello.")

    async def program(client: AsyncOpenAI) -> None:
        answer = await client.chat.completions.create(model="fake-model", messages=HI)
        assert answer.choices[0].message.content == "Hello."
        assert answer.choices[0].message.role == "assistant"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert [model.id async for model in client.models.list()] == ["fake-model"]

    await place.use(program)


async def test_a_streamed_answer(place: Place) -> None:
    """Deltas, then the finish, then the usage where it was asked for."""
    place.fake.says("Hello, \N{PARTY POPPER} world.", chunks=3)

    async def program(client: AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(
            model="fake-model", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == "Hello, \N{PARTY POPPER} world."
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].choices == []
        assert chunks[-1].usage is not None
        assert len({chunk.id for chunk in chunks}) == 1

    await place.use(program)


async def test_the_librarys_own_accumulator_agrees(place: Place) -> None:
    """The client's helper puts text and parallel calls together from the deltas, and checks their order."""
    place.fake.says("One moment. ", chunks=4).calls("get_weather", {"city": "Rome"}).calls(
        "get_weather", {"city": "Oslo"}
    )

    async def program(client: AsyncOpenAI) -> None:
        async with client.chat.completions.stream(model="fake-model", messages=HI, tools=WEATHER) as stream:
            kinds = {event.type async for event in stream}
            final = await stream.get_final_completion()
        assert {"content.delta", "content.done", "tool_calls.function.arguments.done"} <= kinds
        message = final.choices[0].message
        assert message.content == "One moment. "
        assert message.tool_calls is not None
        assert [json.loads(call.function.arguments)["city"] for call in message.tool_calls] == ["Rome", "Oslo"]
        assert len({call.id for call in message.tool_calls}) == 2
        assert final.choices[0].finish_reason == "tool_calls"

    await place.use(program)


async def test_a_tool_turn(place: Place) -> None:
    """A call, its result sent back in the client's own shapes, and the answer that follows."""
    place.fake.when("weather").calls("get_weather", {"city": "Rome"}).then().says("It is sunny.")

    async def program(client: AsyncOpenAI) -> None:
        messages: list[Any] = [{"role": "user", "content": "weather?"}]
        first = await client.chat.completions.create(model="fake-model", messages=messages, tools=WEATHER)
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.tool_calls is not None
        messages.append(message)
        with pytest.raises(openai.BadRequestError, match="must be followed by tool messages"):
            await client.chat.completions.create(model="fake-model", messages=messages, tools=WEATHER)
        messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21 degrees"})
        second = await client.chat.completions.create(model="fake-model", messages=messages, tools=WEATHER)
        assert second.choices[0].message.content == "It is sunny."

    await place.use(program)
    assert list(place.fake.requests[-1].tool_results.values()) == ["21 degrees"]


async def test_an_image_is_taken(place: Place) -> None:
    """Content in parts, one of them an image as a data URL, is read for its text and kept whole."""
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]

    async def program(client: AsyncOpenAI) -> None:
        messages: list[Any] = [{"role": "user", "content": parts}]
        answer = await client.chat.completions.create(model="fake-model", messages=messages)
        assert answer.choices[0].message.content == "You said: what is this?"

    await place.use(program)
    assert place.fake.requests[0].messages[0]["content"] == parts


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, openai.BadRequestError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
async def test_failures_map_to_the_clients_exceptions(
    place: Place, status: int, expected: type[openai.APIStatusError]
) -> None:
    """Status, code and message arrive where the client looks for them."""
    place.fake.fails(status, code="some_code", message="Some words.")

    async def program(client: AsyncOpenAI) -> None:
        with pytest.raises(expected, match=r"Some words\.") as caught:
            await client.chat.completions.create(model="fake-model", messages=HI, stream=True)
        assert (caught.value.status_code, caught.value.code) == (status, "some_code")

    await place.use(program)


async def test_refusals_of_the_fake_itself(place: Place) -> None:
    """A wrong key and a wrong request are refused as the API does, before any script is used."""
    place.fake.says("Still here.")

    async def stranger(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.AuthenticationError, match="Incorrect API key") as caught:
            await client.chat.completions.create(model="fake-model", messages=HI)
        assert caught.value.code == "invalid_api_key"

    async def program(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match="empty array") as caught:
            await client.chat.completions.create(model="fake-model", messages=[])
        assert caught.value.param == "messages"
        answer = await client.chat.completions.create(model="fake-model", messages=HI)
        assert answer.choices[0].message.content == "Still here."

    await place.use(stranger, key="wrong")
    await place.use(program)


async def test_an_error_within_a_stream(place: Place) -> None:
    """An error object under HTTP 200 raises in the middle of the stream."""
    place.fake.says("Half an ans").errors("The server had an error")

    async def program(client: AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(model="fake-model", messages=HI, stream=True)
        seen = ""
        with pytest.raises(openai.APIError, match="The server had an error"):
            async for chunk in stream:
                seen += chunk.choices[0].delta.content or ""
        assert seen == "Half an ans"

    await place.use(program)


async def test_trouble_of_the_wire(place: Place) -> None:
    """A flood error tells its seconds; a reset and a cut stream are errors of the connection."""
    fake = place.fake
    fake.faults.add(RateLimited(7))
    fake.faults.add(ResetBefore())
    fake.faults.add(CutStream(2))

    async def program(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.RateLimitError) as flood:
            await client.chat.completions.create(model="fake-model", messages=HI)
        assert flood.value.response.headers["retry-after"] == "7"
        with pytest.raises(openai.APIConnectionError):
            await client.chat.completions.create(model="fake-model", messages=HI)
        stream = await client.chat.completions.create(model="fake-model", messages=HI, stream=True)
        with pytest.raises(openai.APIConnectionError):
            async for _ in stream:
                pass

    await place.use(program)
    assert fake.faults.unhit() == []


async def test_a_client_that_leaves_is_noticed(place: Place) -> None:
    """Closing a stream in the middle aborts it on the server's side."""
    place.fake.says("a", chunks=1).stalls()

    async def program(client: AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(model="fake-model", messages=HI, stream=True)
        async for _ in stream:
            break
        await stream.close()

    await place.use(program)
    with trio.fail_after(5):
        await place.fake.wait_for(lambda: place.fake.requests[0].aborted)
