"""The demo model: what a person who tries it sees."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.model.base import Completion, Event, Image, Message, TextDelta, ToolSpec
from hermes_trio.model.demo import HELP, SLOW_WORD_DELAY, WHO, DemoModel, demo_answer, demo_delay

CLOCK = (ToolSpec("clock", "the time", {"type": "object"}),)


async def ask(*messages: Message | str, tools: tuple[ToolSpec, ...] = ()) -> tuple[Completion, list[Event]]:
    asked = tuple(Message("user", said) if isinstance(said, str) else said for said in messages)
    events: list[Event] = []
    async with DemoModel().stream(asked, tools) as stream:
        async for event in stream:
            events.append(event)
    last = events[-1]
    assert isinstance(last, Completion)
    assert last.text == "".join(event.text for event in events if isinstance(event, TextDelta))
    return last, events


async def test_it_says_what_it_is(autojump_clock: trio.testing.MockClock) -> None:
    """Any message is answered, with what it is, what to do next and what to try."""
    done, _ = await ask("how are you today?")
    assert "how are you today?" in done.text
    assert WHO in done.text
    assert "OPENAI_API_KEY" in done.text
    assert "hermes-trio init" in done.text
    assert "`help`" in done.text
    assert done.finish == "stop"
    assert done.usage is not None and done.usage.completion > 10


async def test_it_streams_word_by_word(autojump_clock: trio.testing.MockClock) -> None:
    """Each word is a delta, one delay after the other; `slow` is slow enough to be interrupted."""
    began = trio.current_time()
    _, events = await ask("echo one two three")
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one ", "two ", "three"]
    assert 0 < trio.current_time() - began < 1
    began = trio.current_time()
    await ask("please be slow")
    assert trio.current_time() - began > 10


async def test_the_time_by_the_clock_tool(autojump_clock: trio.testing.MockClock) -> None:
    """Asked for the time it calls the clock, and then tells the clock's answer."""
    question = Message("user", "What time is it?")
    done, _ = await ask(question, tools=CLOCK)
    [call] = done.tool_calls
    assert (call.name, call.arguments, done.finish) == ("clock", "{}", "tool_calls")
    said = Message("assistant", done.text, tool_calls=(call,))
    answer, _ = await ask(question, said, Message("tool", "12:30", tool_call_id=call.id), tools=CLOCK)
    assert answer.text == "The clock says: 12:30"
    assert answer.tool_calls == ()
    heard = Message("tool", "12:30", tool_call_id=call.id)
    again, _ = await ask(question, said, heard, Message("assistant", answer.text), question, tools=CLOCK)
    assert again.tool_calls[0].id != call.id


async def test_without_the_clock_tool(autojump_clock: trio.testing.MockClock) -> None:
    """A tool that is not offered is not called."""
    done, _ = await ask("time", tools=(ToolSpec("other", "", {}),))
    assert done.tool_calls == ()
    assert "no clock" in done.text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("help", HELP),
        ("HELP!", HELP),
        ("echo  two  spaces\nand *lines* ", "two  spaces\nand *lines*"),
        ("echo time", "time"),
    ],
)
async def test_wishes(autojump_clock: trio.testing.MockClock, said: str, shown: str) -> None:
    """Wishes are understood in any case; an echo is exact."""
    assert (await ask(said, tools=CLOCK))[0].text == shown


async def test_long_and_markdown(autojump_clock: trio.testing.MockClock) -> None:
    """`long` is longer than any platform's message and numbered; `markdown` shows all kinds of markup."""
    began = trio.current_time()
    done, _ = await ask("something long please")
    assert trio.current_time() - began < 10
    assert len(done.text) > 2 * 4096
    assert all(f"Paragraph {n} of 50." in done.text for n in range(1, 51))
    shown = (await ask("markdown"))[0].text
    assert all(mark in shown for mark in ("# ", "**", "```python", "> ", "1. ", "](https://", "vector<int>"))


async def test_words_in_a_long_message_are_no_wishes(autojump_clock: trio.testing.MockClock) -> None:
    """A real question that holds one of the words is answered as a question."""
    done, _ = await ask("I have been waiting for a long time and would like to know why", tools=CLOCK)
    assert done.tool_calls == ()
    assert WHO in done.text


async def test_images_and_silence(autojump_clock: trio.testing.MockClock) -> None:
    """An image is mentioned, an empty message answered."""
    done, _ = await ask(Message("user", "look", images=(Image("image/png", b""),)))
    assert "1 image," in done.text
    assert "You said nothing." in (await ask(""))[0].text
    assert "You said nothing." in (await ask())[0].text


ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
WORDS = st.text(st.characters() | st.sampled_from("\ud800\udc00\r\n\u2028"), max_size=20)


@given(st.lists(st.builds(Message, ROLES, WORDS), max_size=4))
def test_any_conversation_has_one_answer(messages: list[Message]) -> None:
    """Whatever is said, the answer is the same each time, not empty, and ends with a finish and usage."""
    asked = tuple(messages)
    chunks = demo_answer(asked, CLOCK)
    assert chunks == demo_answer(asked, CLOCK)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]][-1] in ("stop", "tool_calls")
    assert chunks[-1]["choices"] == []
    assert any(chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1])
    assert 0 < demo_delay(asked, CLOCK) <= SLOW_WORD_DELAY


def test_the_call_has_the_form_of_the_wire() -> None:
    """The chunks of a call are those of an OpenAI-compatible server."""
    chunks = demo_answer((Message("user", "clock"),), CLOCK)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    [[call]] = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert (call["index"], call["type"], call["function"]) == (0, "function", {"name": "clock", "arguments": "{}"})
