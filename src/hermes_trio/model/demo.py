"""The built-in demo model: no language model at all, but it streams, calls a tool and answers like one.

Theory of operation. `demo_answer` is a pure function from a conversation to the chunks that an OpenAI-compatible
server would send for it. `DemoModel` plays them, word by word, into the same AnswerReader that reads real servers, so
whoever tries the bot without a key sees the very paths that a key would use.

The rule that must not be broken: the same conversation gives the same chunks, and no answer pretends to be more.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from attrs import evolve, frozen

from hermes_trio.model.assembly import AnswerReader
from hermes_trio.model.base import Event, Message, ToolSpec

CLOCK: Final = "clock"
"""The name of the tool that the demo model calls when it is asked for the time."""
WORD_DELAY: Final = 0.02
"""Seconds between two words, at most."""
MAX_DURATION: Final = 6.0
"""Seconds that an answer takes, however long; a slow one takes its time."""
SLOW_WORD_DELAY: Final = 0.5
"""Seconds between two words when one asks for `slow`."""
MAX_COMMAND_WORDS: Final = 8
"""In a longer message no word is taken for a wish."""

WHO: Final = (
    "I am the built-in demo model of hermes_trio, there is no language model behind me. "
    "To talk to a real one, set OPENAI_API_KEY, or write a configuration with `hermes-trio init`, and start again."
)
HELP: Final = f"""{WHO}

You can try:

- `help`: this text
- `time`: I call the clock tool and tell you its answer
- `echo TEXT`: I say TEXT
- `long`: a text that is too long for one message
- `markdown`: every kind of markup
- `slow`: a slow answer, to interrupt it or to stop it"""
MARKDOWN: Final = """# A heading

**Bold**, *italic*, ~~struck out~~, `code`, and [a link](https://example.org/).

> A quotation,
> of two lines.

1. one
2. two
   - two and a half

```python
def answer() -> vector<int>:
    return 42  # * not bold *
```

Characters that markup must not eat: 5 < 6 & 7 > 2, snake_case_name, 2*3*4, [brackets], \\_."""
SLOW: Final = " ".join(
    ["This answer is slow on purpose, so that there is time to interrupt it.", *(f"Word {n}." for n in range(1, 31))]
)
LONG_PARAGRAPHS: Final = 50

_NOTE: Final = re.compile(r"\s*\[note from the runtime: [^\]]*\]\s*\Z")
"""What the runtime adds behind the user's words, for a model that can make something of it."""


@frozen
class _Answer:
    """What the demo model wants to say."""

    text: str
    call_clock: bool = False
    slow: bool = False


def demo_answer(messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """The chunks of the answer to this conversation, as an OpenAI-compatible server would stream them. Pure."""
    answer = _answer(messages, tools)
    answer_id = "demo-" + _digest(messages)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    words = re.findall(r"\S+\s*|\s+", answer.text)
    deltas += [{"content": word} for word in words]
    if answer.call_clock:
        function = {"name": CLOCK, "arguments": "{}"}
        call = {"index": 0, "id": "call_" + _digest(messages), "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    finish = "tool_calls" if answer.call_clock else "stop"
    prompt = sum(len(message.content.split()) for message in messages)
    usage = {"prompt_tokens": prompt, "completion_tokens": len(words), "total_tokens": prompt + len(words)}
    return [
        *(_chunk(answer_id, [{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas),
        _chunk(answer_id, [{"index": 0, "delta": {}, "finish_reason": finish}]),
        _chunk(answer_id, []) | {"usage": usage},
    ]


def demo_delay(messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> float:
    """Seconds between two chunks of the answer to this conversation. Pure."""
    answer = _answer(messages, tools)
    return SLOW_WORD_DELAY if answer.slow else min(WORD_DELAY, MAX_DURATION / (1 + len(answer.text.split())))


class DemoModel:
    """A Model that needs no network and no key."""

    @property
    def name(self) -> str:
        return "demo"

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        """Streams `demo_answer`; see `model.base.Model`. It never fails."""
        wire = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in demo_answer(messages, tools)]
        yield _Playback(deque([*wire, b"data: [DONE]\n\n"]), demo_delay(messages, tools))


class _Playback:
    """The events of one answer, at the pace of its delay (a class: it needs no closing)."""

    def __init__(self, wire: deque[bytes], delay: float) -> None:
        self._wire = wire
        self._delay = delay
        self._reader = AnswerReader()
        self._ready: deque[Event] = deque()
        self._over = False

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            if self._wire:
                await trio.sleep(self._delay)
                self._ready.extend(self._reader.feed(self._wire.popleft()))
            else:
                self._over = True
                self._ready.extend(self._reader.end())
        return self._ready.popleft()


def _answer(messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> _Answer:
    last = messages[-1] if messages else Message("user", "")
    if last.role == "tool":
        return _Answer(f"The clock says: {last.content.strip() or 'nothing'}")
    said = next((message for message in reversed(messages) if message.role == "user"), Message("user", ""))
    said = evolve(said, content=_NOTE.sub("", said.content))
    text = said.content.strip()
    if text[:5].lower() in ("echo ", "echo\n") and text[5:].strip():
        return _Answer(text[5:].strip())
    words = re.findall(r"\w+", text.lower())
    wish = next((word for word in words if word in _WISHES), "") if len(words) <= MAX_COMMAND_WORDS else ""
    match _WISHES.get(wish):
        case "help":
            return _Answer(HELP)
        case "time":
            if any(tool.name == CLOCK for tool in tools):
                return _Answer("Let me look at the clock.", call_clock=True)
            return _Answer("I have no clock: no tool of that name was given to me.")
        case "long":
            return _Answer(_long_text())
        case "markdown":
            return _Answer(MARKDOWN)
        case "slow":
            return _Answer(SLOW, slow=True)
        case _:
            return _Answer(_small_talk(said))


_WISHES: Final = {
    "help": "help",
    "start": "help",
    "time": "time",
    "clock": "time",
    "long": "long",
    "markdown": "markdown",
    "slow": "slow",
}
"""Words that a message may hold, and the wish that each stands for; the first in the message counts."""


def _small_talk(said: Message) -> str:
    heard = f"You said: {' '.join(said.content.split())[:200]}" if said.content.strip() else "You said nothing."
    if said.images:
        heard += f" You sent {len(said.images)} image{'s' if len(said.images) > 1 else ''}, which I cannot see."
    return f"{heard}\n\n{WHO}\n\nSay `help` to see what you can try."


def _long_text() -> str:
    return "\n\n".join(
        f"Paragraph {n} of {LONG_PARAGRAPHS}. This text is longer than one message may be, so it arrives in several; "
        "read the numbers to see that none is missing, that none comes twice, and that they are in order."
        for n in range(1, LONG_PARAGRAPHS + 1)
    )


def _chunk(answer_id: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": answer_id, "object": "chat.completion.chunk", "model": "demo", "choices": choices}


def _digest(messages: tuple[Message, ...]) -> str:
    """Hexadecimal digits that tell conversations apart, so that each call of a conversation has its own id."""
    told = "\x1e".join(f"{message.role}\x1f{message.content}" for message in messages)
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
