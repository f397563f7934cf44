"""What tests of the embedded runtime share: a model that says what it is told, and a chat service in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from hermes_trio import (
    Accepted,
    Address,
    Body,
    Capabilities,
    Completion,
    Config,
    Inbound,
    Message,
    Outcome,
    Receiver,
    TextDelta,
    ToolCall,
    ToolSpec,
    Unknown,
)

Say = Callable[[tuple[Message, ...]], Completion]


def said(text: str) -> Completion:
    """An answer."""
    return Completion(text, (), "", "stop")


def calls(name: str, arguments: str = "{}") -> Completion:
    """A request to use a tool."""
    return Completion("", (ToolCall("call-1", name, arguments),), "", "tool_calls")


class ScriptedModel:
    """A model that answers by a function of the request, and counts. It waits while `gate` is closed."""

    name = "scripted"

    def __init__(self, say: Say | None = None) -> None:
        self.say: Say = say or (lambda messages: said(f"answer to {messages[-1].content}"))
        self.requests: list[tuple[Message, ...]] = []
        self.tools: tuple[ToolSpec, ...] = ()
        self.asked = trio.Event()
        self.gate = trio.Event()
        self.gate.set()

    @asynccontextmanager
    async def stream(
        self, messages: tuple[Message, ...], tools: tuple[ToolSpec, ...]
    ) -> AsyncIterator[AsyncIterator[TextDelta | Completion]]:
        self.requests.append(messages)
        self.tools = tools
        self.asked.set()
        await self.gate.wait()
        answer = self.say(messages)

        async def events() -> AsyncIterator[TextDelta | Completion]:
            if answer.text:
                yield TextDelta(answer.text)
            yield answer

        iterator = events()
        try:
            yield iterator
        finally:
            await iterator.aclose()  # type: ignore[attr-defined]  # it is a generator


class MemoryChat:
    """A chat service without edits; what it shows is `shown`. `outcome` decides on each create."""

    def __init__(self) -> None:
        self.capabilities = Capabilities(
            limit=1000, unit="codepoints", edits=False, deletes=False, request_timeout=1.0, lateness=0.0
        )
        self.shown: list[tuple[str, str]] = []
        self.outcome: Callable[[str], Outcome] = lambda text: Accepted(str(len(self.shown)))
        self.receiver: Receiver | None = None
        self.connected = trio.Event()

    async def run(self, receiver: Receiver) -> None:
        self.receiver = receiver
        receiver.alive()
        self.connected.set()
        await trio.sleep_forever()

    async def hears(self, text: str, number: int, chat: str = "room", sender: str = "ann") -> None:
        """A person writes."""
        await self.connected.wait()
        assert self.receiver is not None
        await self.receiver.receive((Inbound(Address("memory", chat), str(number), sender, sender, text),), None)

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        await trio.lowlevel.checkpoint()
        outcome = self.outcome(body.text)
        if not isinstance(outcome, Accepted):
            return outcome
        self.shown.append((address.chat, body.text))
        return outcome

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        return Unknown("no edits")

    async def delete(self, address: Address, message_id: str) -> Outcome:
        return Unknown("no deletes")

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome:
        return Unknown("no look-ups")

    async def typing(self, address: Address) -> None:
        return None


def config_in(data_dir: Path, **tables: Mapping[str, Any]) -> Config:
    """A configuration with its database in this directory."""
    return Config.from_mapping({"data_dir": str(data_dir), "access": {"allow": ["*"]}, **tables}, data_dir, {})
