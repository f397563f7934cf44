"""`@tool`: a function of yours becomes a Tool that the model may call.

    @tool
    async def weather(city: str, days: int = 1) -> str:
        '''Tells the weather of a city.

        Args:
            city: Its name, in English.
            days: How many days from today on.
        '''

Everything that the model is told comes from the function: its name, the first paragraph of its docstring, its typed
parameters and what "Args:" says of them. The rule that must not be broken: the function is never called with
arguments that its own annotations would refuse; the model is told what is wrong with them instead.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Generic, ParamSpec, TypeVar, overload

import trio
from attrs import frozen

from hermes_trio.model.base import ToolSpec
from hermes_trio.tools.base import ToolContext, ToolError
from hermes_trio.tools.kinds import Kind, Mistake, kind_of

P = ParamSpec("P")
R = TypeVar("R")

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What servers with OpenAI's API take as the name of a function."""
NOTHING_TO_SAY = "done"
"""What the model reads when a tool returns None."""

_HEADING = re.compile(r"(Args|Arguments|Parameters):")
_ENTRY = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


@frozen
class Parameter:
    """One argument that the model gives."""

    name: str
    kind: Kind
    required: bool
    schema: Mapping[str, Any]


class FunctionTool(Generic[P, R]):
    """A Tool made of a function; it can still be called as that function. Made by `tool`."""

    def __init__(self, function: Callable[P, R], name: str | None = None, description: str | None = None) -> None:
        self._function = function
        self._label = getattr(function, "__qualname__", repr(function))
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        summary, said = _words(function)
        self._parameters, self._context_name = self._read_signature(said)
        description = summary if description is None else description
        if not description:
            raise TypeError(f"{self._label}: a tool needs a docstring, because the model reads what it is for")
        name = getattr(function, "__name__", "") if name is None else name
        if not NAME.fullmatch(name):
            raise TypeError(f"{self._label}: {name!r} cannot be the name of a tool; use 1 to 64 of a-z, A-Z, 0-9, _, -")
        self._spec = ToolSpec(name, description, _schema(self._parameters))

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        return self._spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, unchanged."""
        return self._function(*args, **kwargs)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Calls the function with the model's arguments and returns what the model reads.

        A text is returned as it is, None as "done", anything else as JSON. Cancelled: the function is. Raises
        ToolError, naming everything that is wrong with the arguments, and what the function raises.
        """
        values: dict[str, Any] = self._convert(arguments)
        if self._context_name is not None:
            values[self._context_name] = context
        call: Callable[..., object] = self._function
        result = call(**values)
        if inspect.isawaitable(result):
            result = await result
        else:
            await trio.lowlevel.checkpoint()
        return _as_text(result)

    def _convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        values, mistakes = {}, []
        for parameter in self._parameters:
            if parameter.name not in arguments:
                if parameter.required:
                    mistakes.append(f"{parameter.name} is missing")
                continue
            try:
                values[parameter.name] = parameter.kind.convert(arguments[parameter.name], parameter.name)
            except Mistake as mistake:
                mistakes.append(str(mistake))
        names = [parameter.name for parameter in self._parameters]
        for name in arguments:
            if name not in names:
                near = get_close_matches(name, names, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(names) or 'none'}"
                mistakes.append(f"there is no argument {name:.60}{hint}")
        if mistakes:
            raise ToolError(f"nothing was done, because the arguments are wrong: {'. '.join(mistakes)}")
        return values

    def _read_signature(self, said: Mapping[str, str]) -> tuple[tuple[Parameter, ...], str | None]:
        hints = _hints(self._function, self._label)
        parameters: list[Parameter] = []
        context: str | None = None
        signature = inspect.signature(self._function).parameters
        for name, parameter in signature.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"{self._label}: the model gives arguments by name, so {parameter} cannot be one")
            if name not in hints:
                raise TypeError(f"{self._label}: the parameter {name} needs a type, because the model is told it")
            if hints[name] is ToolContext:
                context = name
                continue
            parameters.append(self._read_parameter(parameter, hints[name], said.get(name, "")))
        if unknown := sorted(set(said) - set(signature)):
            raise TypeError(f"{self._label}: its docstring speaks of {unknown[0]}, which is no parameter")
        return tuple(parameters), context

    def _read_parameter(self, parameter: inspect.Parameter, hint: object, words: str) -> Parameter:
        try:
            kind = kind_of(hint)
        except TypeError as error:
            raise TypeError(f"{self._label}: the type of {parameter.name}: {error}") from None
        schema = dict(kind.schema)
        if words:
            schema["description"] = words
        required = parameter.default is parameter.empty
        if not required and (default := kind.default(parameter.default)) is not None:
            schema["default"] = default
        return Parameter(parameter.name, kind, required, schema)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None, /, *, name: str | None = None, description: str | None = None
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Makes a Tool of an `async def`, or of a plain function that never blocks.

    Every parameter has a type: str, int, float, bool, Literal, an Enum, list[...], dict[str, ...], one of these or
    None, or Any. A parameter of the type ToolContext is given the context and is not shown to the model. Parameters
    with a default may be left out. name, description: instead of the function's own name and the first paragraph of
    its docstring. Raises TypeError, when the module is imported, for a function that cannot be a tool.
    """
    if function is None:
        return lambda decorated: FunctionTool(decorated, name, description)
    return FunctionTool(function, name, description)


def _hints(function: Callable[..., object], label: str) -> Mapping[str, object]:
    """The annotations as types, also of a function that stands inside another one."""
    try:
        return typing.get_type_hints(function)
    except NameError:
        local = _surroundings(function)
    try:
        return typing.get_type_hints(function, localns=local)
    except NameError as error:
        raise TypeError(f"{label}: {error}; the types of a tool's parameters must be known where it is made") from None


def _surroundings(function: Callable[..., object]) -> dict[str, Any]:
    """The local names of the function in which this one is being defined."""
    frame: types.FrameType | None = sys._getframe()
    home = getattr(function, "__module__", None)
    while frame is not None and frame.f_globals.get("__name__") != home:
        frame = frame.f_back
    return dict(frame.f_locals) if frame is not None else {}


def _words(function: Callable[..., object]) -> tuple[str, Mapping[str, str]]:
    """The first paragraph of a docstring on one line, and what its "Args:" says of each parameter."""
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _HEADING.fullmatch(line)), len(lines))
    summary = "\n".join(lines[:start]).strip().split("\n\n")[0]
    return " ".join(summary.split()), _entries(lines[start + 1 :])


def _entries(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    depth: int | None = None
    name = ""
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            break  # the next section
        depth = indent if depth is None else depth
        entry = _ENTRY.fullmatch(line.strip())
        if indent <= depth and entry is not None:
            name = entry[1]
            found[name] = entry[2].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _schema(parameters: tuple[Parameter, ...]) -> Mapping[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in parameters},
        "additionalProperties": False,
    }
    if required := [parameter.name for parameter in parameters if parameter.required]:
        schema["required"] = required
    return schema


def _as_text(result: object) -> str:
    if isinstance(result, str):
        return result
    return NOTHING_TO_SAY if result is None else json.dumps(result, ensure_ascii=False)
