"""`@tool`: what the model is told of a function, what the function is given, and what the model reads."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
import trio

from hermes_trio.tools.base import Tool, ToolContext, ToolError
from hermes_trio.tools.decorator import FunctionTool, tool
from hermes_trio.values import Address

CONTEXT = ToolContext(Address("telegram", "1"), "alice", 1000.0, lambda text: None)


class Unit(enum.Enum):
    """Degrees."""

    CELSIUS = "C"
    FAHRENHEIT = "F"


@tool
async def weather(
    city: str,
    days: int = 1,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["short", "long"] = "short",
    hours: list[int] | None = None,
    *,
    context: ToolContext,
    factor: float = 1.5,
    labels: dict[str, bool] | None = None,
) -> str:
    """Tells the weather
    of a city.

    It is not always right.

    Args:
        city: Its name,
            in English: as people say it.
        days (int): How many days.
        context: Who asks.

    Returns:
        what: a text
    """
    return f"{context.sender}: {city} {days} {unit.name} {detail} {hours} {factor} {labels}"


async def run(tool: Tool, **arguments: Any) -> str:
    """What the model reads of a call."""
    return await tool.run(arguments, CONTEXT)


async def refusal(tool: Tool, **arguments: Any) -> str:
    """What the model reads of a call that is refused."""
    with pytest.raises(ToolError) as caught:
        await tool.run(arguments, CONTEXT)
    return str(caught.value)


def test_the_model_is_told_what_the_function_says() -> None:
    """Name, first paragraph, types, defaults, required arguments and their words come from the function alone."""
    spec = weather.spec
    assert (spec.name, spec.description) == ("weather", "Tells the weather of a city.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name, in English: as people say it."},
            "days": {"type": "integer", "description": "How many days.", "default": 1},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "detail": {"type": "string", "enum": ["short", "long"], "default": "short"},
            "hours": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "factor": {"type": "number", "default": 1.5},
            "labels": {"anyOf": [{"type": "object", "additionalProperties": {"type": "boolean"}}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    json.dumps(spec.parameters)


async def test_the_function_is_given_what_its_types_say() -> None:
    """Enums come as members, whole floats as int, left-out arguments as defaults, and the context is put in."""
    assert await run(weather, city="Rome") == "alice: Rome 1 CELSIUS short None 1.5 None"
    said = await run(weather, city="Rome", days=3.0, unit="F", hours=[1, 2], factor=2, labels={"a": True})
    assert said == "alice: Rome 3 FAHRENHEIT short [1, 2] 2.0 {'a': True}"


async def test_all_mistakes_are_told_at_once() -> None:
    """The model reads every wrong argument, with what it should be, and the function is not called."""
    assert await refusal(weather, citty="Rome", days="3", hours=[1, "x"], labels={"a": 1}, unit="K") == (
        "nothing was done, because the arguments are wrong: city is missing. days must be a whole number, not "
        '"3". unit must be one of "C", "F", not "K". hours[1] must be a whole number, not "x". labels.a must be true '
        "or false, not 1. there is no argument citty; did you mean city?"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"city": 1}, "city must be a text, not 1"),
        ({"city": None}, "city must be a text, not null"),
        ({"city": "R", "days": True}, "days must be a whole number, not true"),
        ({"city": "R", "days": 1.5}, "days must be a whole number, not 1.5"),
        ({"city": "R", "factor": False}, "factor must be a number, not false"),
        ({"city": "R", "hours": "1"}, 'hours must be a list or null, not "1"'),
        ({"city": "R", "context": "me"}, "there is no argument context; there are: city, days, unit"),
    ],
)
async def test_a_value_of_another_type_is_refused(arguments: Mapping[str, Any], words: str) -> None:
    """Nothing is guessed: a boolean is no number, a text is no list, and the context cannot be given."""
    assert words in await refusal(weather, **arguments)


async def test_a_long_wrong_value_is_cut() -> None:
    """A mistake does not repeat a whole document to the model."""
    assert len(await refusal(weather, city=["x" * 10_000])) < 200


async def test_a_plain_function_is_a_tool() -> None:
    """A function that does not wait works too, and stays callable as what it was."""

    @tool
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert add(1) == 3
    assert await run(add, a=1, b=1) == "2"
    with trio.CancelScope() as scope:
        scope.cancel()
        await run(add, a=1)
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is", "as it is"), (None, "done"), ({"a": [1, "é"]}, '{"a": [1, "é"]}'), (0, "0"), (False, "false")],
)
async def test_what_the_model_reads(value: Any, text: str) -> None:
    """A text as it is, nothing as "done", anything else as JSON."""

    @tool
    async def give() -> Any:
        """Gives."""
        return value

    assert await run(give) == text


async def test_a_local_type_is_found() -> None:
    """A tool that is made inside a function may use types of that function."""

    class Colour(enum.Enum):
        RED = "red"

    @tool
    async def paint(colour: Colour, shades: list[Colour]) -> str:
        """Paints."""
        return f"{colour.name} {len(shades)}"

    assert await run(paint, colour="red", shades=["red", "red"]) == "RED 2"


def test_name_and_description_may_be_given() -> None:
    """What the decorator is told stands above what the function says."""

    @tool(name="sum-up", description="Sums up.")
    def _add(a: int) -> int:
        return a

    assert (_add.spec.name, _add.spec.description) == ("sum-up", "Sums up.")


async def test_errors_of_the_function_come_through() -> None:
    """What the function raises is raised: a ToolError is for the model, anything else a fault."""

    @tool
    async def fail(how: Literal["told", "broken"]) -> str:
        """Fails."""
        if how == "told":
            raise ToolError("no such file")
        raise KeyError(how)

    assert await refusal(fail, how="told") == "no such file"
    with pytest.raises(KeyError):
        await run(fail, how="broken")


def undocumented(a: int) -> int:
    return a


def untyped(a) -> None:  # type: ignore[no-untyped-def]  # that is what is refused
    """Does."""


def variadic(*a: int) -> None:
    """Does."""


def positional(a: int, /) -> None:
    """Does."""


def foreign(a: Path) -> None:
    """Does."""


def numbered(a: dict[int, str]) -> None:
    """Does."""


def misspelt(city: str) -> None:
    """Does.

    Args:
        citty: Its name.
    """


def unresolved(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821 -- that is what is refused
    """Does."""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (undocumented, "needs a docstring"),
        (untyped, "the parameter a needs a type"),
        (variadic, "gives arguments by name"),
        (positional, "gives arguments by name"),
        (foreign, "the type of a: .* has no form in JSON"),
        (numbered, "the keys of a JSON object are texts"),
        (misspelt, "speaks of citty"),
        (unresolved, "name 'Nowhere' is not defined"),
        (lambda: None, "needs a docstring"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(function: Callable[..., Any], words: str) -> None:
    """A function that the model could not be told of fails when its module is imported, and says why."""
    with pytest.raises(TypeError, match=words):
        tool(function)


def test_a_tool_is_a_tool() -> None:
    """What the decorator makes is what the runtime takes."""
    made: Tool = weather
    assert isinstance(weather, FunctionTool)
    assert made.spec.name == "weather"
