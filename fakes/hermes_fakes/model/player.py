"""Plays a Script as an answer of the API: a stream of events, or one JSON object.

Source: OpenAI API reference, "The chat completion chunk object". The role comes with the first delta, so a script
that waits first sends nothing at all until then, except the head of the HTTP answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field

from hermes_fakes.http import Answer, CutOff, Hangup, Reply, Send, Silence, json_reply
from hermes_fakes.model.requests import ModelRequest
from hermes_fakes.model.script import (
    Cut,
    Do,
    Fail,
    Finish,
    Hold,
    Raw,
    Script,
    Stall,
    Step,
    StreamError,
    Text,
    ToolCall,
    Wait,
)

JSON = dict[str, Any]


@define(eq=False)
class Player:
    """One performance of one script."""

    script: Script
    request: ModelRequest
    number: int
    """Of the completion; it makes the ids."""
    created: int
    changed: Callable[[], None]
    """Called after each delta."""
    spoken: int = 0
    """Characters so far; they stand for tokens in the usage."""
    tool_calls: int = 0
    _role_sent: bool = False
    _parts: list[JSON] = field(factory=list)
    """The deltas of an answer that is not streamed."""

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.number}"

    # --- streaming ------------------------------------------------------------------------------------------------

    async def stream(self, send: Send) -> None:
        """Sends the events; raises CutOff where the script ends the connection."""
        try:
            if await self._stream(send):
                self.request.finished = True
        finally:
            self.request.aborted = self.request.gone.is_set() and not self.request.finished

    async def _stream(self, send: Send) -> bool:
        finish = None
        await self._check_limit(send)
        for step in self.script.steps:
            match step:
                case Text() | ToolCall():
                    for delta in self._deltas(step):
                        await self._send_chunk(send, delta)
                        self.request.deltas += 1
                        self.changed()
                        await self._check_limit(send)
                case Raw():
                    await send(step.data)
                case Finish():
                    finish = step.reason
                    await self._send_chunk(send, {}, finish)
                case StreamError():
                    await send(_event({"error": step.error}))
                    return True
                case Stall() | Cut():
                    await self._end(step)
                case _:
                    await self.pause(step)
        if not any(isinstance(step, Raw) for step in self.script.steps):
            await self._close(send, finish)
        return True

    async def _close(self, send: Send, finish: str | None) -> None:
        if finish is None:
            await self._send_chunk(send, {}, self._usual_finish())
        if (self.request.body.get("stream_options") or {}).get("include_usage"):
            await send(_event({**self._frame("chat.completion.chunk"), "choices": [], "usage": self._usage()}))
        await send(b"data: [DONE]\n\n")

    async def _check_limit(self, send: Send) -> None:
        if self.script.limit is None or self.request.deltas < self.script.limit[0]:
            return
        _, step, finish = self.script.limit
        if finish is not None:
            await self._send_chunk(send, {}, finish)
        await self._end(step)

    async def _end(self, step: Stall | Cut) -> None:
        if isinstance(step, Cut):
            raise CutOff
        await trio.sleep_forever()

    async def _send_chunk(self, send: Send, delta: JSON, finish: str | None = None) -> None:
        if not self._role_sent:
            self._role_sent = True
            await self._send_chunk(send, {"role": "assistant", "content": "", "refusal": None})
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**self._frame("chat.completion.chunk"), "choices": [choice]}
        if (self.request.body.get("stream_options") or {}).get("include_usage"):
            chunk["usage"] = None
        await send(_event(chunk))

    # --- whole ----------------------------------------------------------------------------------------------------

    async def whole(self) -> Answer:
        """The answer to a request without `stream`; a script of a failed stream fails as far as that is possible."""
        finish = None
        for step in self.script.steps:
            match step:
                case Text() | ToolCall():
                    self._parts += self._deltas(step)
                case Finish():
                    finish = step.reason
                case StreamError():
                    return json_reply({"error": step.error}, 500)
                case Stall():
                    return Silence()
                case Cut():
                    return Hangup()
                case Raw():
                    return Reply(200, _joined_raw(self.script), (("content-type", "application/json"),))
                case _:
                    await self.pause(step)
        if self.script.limit is not None:
            return Hangup() if isinstance(self.script.limit[1], Cut) else Silence()
        self.request.finished = True
        return json_reply(self._completion(finish or self._usual_finish()))

    def _completion(self, finish: str) -> JSON:
        calls: dict[int, JSON] = {}
        for part in (call for delta in self._parts for call in delta.get("tool_calls", ())):
            if part["index"] not in calls:
                calls[part["index"]] = {key: part[key] for key in ("id", "type")} | {"function": part["function"]}
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        content = "".join(delta.get("content") or "" for delta in self._parts)
        message: JSON = {"role": "assistant", "content": content or (None if calls else ""), "refusal": None}
        if calls:
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    # --- both -----------------------------------------------------------------------------------------------------

    async def before_failure(self) -> None:
        """Waits as the script says before it fails."""
        for step in self.script.steps:
            if isinstance(step, Fail):
                return
            await self.pause(step)

    async def pause(self, step: Step) -> None:
        """Performs a step that sends nothing."""
        match step:
            case Wait():
                await trio.sleep(step.seconds)
            case Hold():
                await step.event.wait()
            case Do():
                step.action()
            case _:
                pass

    def _deltas(self, step: Text | ToolCall) -> list[JSON]:
        if isinstance(step, Text):
            self.spoken += len(step.text)
            return [{step.channel: step.text}]
        index = self.tool_calls
        self.tool_calls += 1
        call_id = step.id or f"call_{self.number}_{index}"
        function = {"name": step.name, "arguments": ""}
        head = {"index": index, "id": call_id, "type": "function", "function": function}
        more = [{"index": index, "function": {"arguments": piece}} for piece in step.pieces]
        self.spoken += sum(len(piece) for piece in step.pieces)
        return [{"tool_calls": [part]} for part in (head, *more)]

    def _usual_finish(self) -> str:
        return "tool_calls" if self.tool_calls else "stop"

    def _usage(self) -> JSON:
        prompt = max(len(json.dumps(self.request.messages)) // 4, 1)
        completion = max(self.spoken // 4, 1)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def _frame(self, kind: str) -> JSON:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.request.body["model"],
            "service_tier": "default",
            "system_fingerprint": "fp_fake",
        }


def _event(value: JSON) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"


def _joined_raw(script: Script) -> bytes:
    return b"".join(step.data for step in script.steps if isinstance(step, Raw))
