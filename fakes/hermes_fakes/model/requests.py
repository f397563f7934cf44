"""A request to the model: what it says, and whether the real API would take it.

Source: OpenAI API reference, chat completions; the texts of the refusals are those of the API.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import define, field

from hermes_fakes.faults import Call

JSON = dict[str, Any]
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_NAME = re.compile("[a-zA-Z0-9_-]{1,64}")


class BadRequest(Exception):
    """What the API refuses, with the parameter that is wrong."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


@define(eq=False)
class ModelRequest(Call):
    """One request for a completion. `args` is the body; `text` the last user text."""

    headers: dict[str, str] = field(factory=dict, repr=False)
    """In lower case; the authorization is left out."""
    aborted: bool = False
    """The client left before the answer was complete."""
    finished: bool = False
    """The answer was sent to its end."""
    deltas: int = 0
    """How many deltas of content or tool calls have been sent."""

    @property
    def body(self) -> JSON:
        return self.args

    @property
    def messages(self) -> list[JSON]:
        messages: list[JSON] = self.args.get("messages", [])
        return messages

    @property
    def streams(self) -> bool:
        return bool(self.args.get("stream"))

    @property
    def last_user_text(self) -> str:
        return self.text

    @property
    def answers_so_far(self) -> int:
        """The assistant messages after the last user message: 0 in a fresh turn, 1 after the first round of tools."""
        roles = [message["role"] for message in self.messages]
        last_user = max((index for index, role in enumerate(roles) if role == "user"), default=-1)
        return roles[last_user + 1 :].count("assistant")

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.args.get("tools", [])]

    @property
    def tool_results(self) -> dict[str, str]:
        """The results at the end of the request, by the id of their call."""
        results: dict[str, str] = {}
        for message in reversed(self.messages):
            if message["role"] != "tool":
                break
            results[message["tool_call_id"]] = flat_text(message["content"])
        return results


def flat_text(content: Any) -> str:
    """The text of a message's content, parts joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part.get("text", "") for part in content if isinstance(part, dict))


def last_user_text(body: JSON) -> str:
    """The text of the last message of the user; empty if there is none."""
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            return flat_text(message.get("content"))
    return ""


def validate(body: Any) -> JSON:
    """The body, or BadRequest for what the API would refuse."""
    if not isinstance(body, dict):
        raise BadRequest("We could not parse the JSON body of your request.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise BadRequest("you must provide a model parameter", "model")
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise BadRequest("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
    if not messages:
        raise BadRequest("Invalid 'messages': empty array.", "messages", "empty_array")
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    _check_tool_order(messages)
    _check_tools(body)
    if body.get("stream_options") is not None and not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise BadRequest(text, "stream_options")
    return body


def _check_message(message: Any, where: str) -> None:
    if not isinstance(message, dict):
        raise BadRequest(f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise BadRequest(f"Invalid value: '{role}'.", f"{where}.role", "invalid_value")
    calls = message.get("tool_calls")
    if calls is not None and role == "assistant":
        _check_calls(calls, f"{where}.tool_calls")
    may_be_null = role == "assistant" and bool(calls)
    if not (isinstance(content, str) or (isinstance(content, list) and content) or (content is None and may_be_null)):
        given = "null" if content is None else type(content).__name__
        raise BadRequest(f"Invalid value for 'content': expected a string, got {given}.", f"{where}.content")
    if isinstance(content, list) and not all(isinstance(part, dict) and "type" in part for part in content):
        raise BadRequest(f"Missing required parameter: '{where}.content[0].type'.", f"{where}.content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        name = f"{where}.tool_call_id"
        raise BadRequest(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")


def _check_calls(calls: Any, where: str) -> None:
    if not isinstance(calls, list) or not calls:
        raise BadRequest(f"Invalid '{where}': empty array.", where, "empty_array")
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        whole = (
            isinstance(function, dict)
            and isinstance(call.get("id"), str)
            and call.get("type") == "function"
            and isinstance(function.get("arguments"), str)
            and _NAME.fullmatch(str(function.get("name")))
        )
        if not whole:
            raise BadRequest(f"Invalid '{where}': id, type, function.name and function.arguments are required.", where)


def _check_tool_order(messages: list[JSON]) -> None:
    """Each call is answered once, directly behind its message; no answer stands without its call."""
    open_calls: list[str] = []
    expected = False
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            where = f"messages[{index}].role"
            if not expected:
                text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                raise BadRequest(f"Invalid parameter: {text}", where)
            if message["tool_call_id"] not in open_calls:
                raise BadRequest(f"'tool_call_id' of '{message['tool_call_id']}' not found in 'tool_calls'.", where)
            open_calls.remove(message["tool_call_id"])
            continue
        _refuse_open(open_calls, index)
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        expected = bool(open_calls)
    _refuse_open(open_calls, len(messages))


def _refuse_open(open_calls: list[str], index: int) -> None:
    if open_calls:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )
        raise BadRequest(text, f"messages[{index}].role")


def _check_tools(body: JSON) -> None:
    tools = body.get("tools")
    if tools is None:
        if body.get("tool_choice") is not None:
            raise BadRequest("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
        return
    if not isinstance(tools, list) or not tools:
        raise BadRequest("Invalid 'tools': empty array.", "tools", "empty_array")
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function":
            raise BadRequest(f"Missing required parameter: '{where}.function'.", where)
        if not _NAME.fullmatch(str(function.get("name", ""))):
            text = f"Invalid '{where}.function.name': expected a string that matches '^[a-zA-Z0-9_-]+$'."
            raise BadRequest(text, f"{where}.function.name", "invalid_value")
        parameters = function.get("parameters", {"type": "object"})
        if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
            text = f"Invalid schema for function '{function['name']}': schema must be of 'type: \"object\"'."
            raise BadRequest(text, f"{where}.function.parameters", "invalid_function_parameters")
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise BadRequest("Tool names must be unique.", "tools")
