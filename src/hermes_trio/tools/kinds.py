"""What a parameter of a tool may be: from a Python type to JSON Schema, and from the model's JSON to a value.

A kind knows both, so that what the model is told and what is accepted cannot differ. The rule that must not be
broken: a value that is not what its type says is a Mistake in words that the model can act on, never a guess.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from attrs import frozen

LONGEST_QUOTE = 60
"""Characters of a wrong value that are repeated to the model."""


class Mistake(Exception):
    """A value is not what it should be; the text begins with where it stands."""


@frozen
class Kind:
    """A type as the model sees it."""

    schema: Mapping[str, Any]
    """JSON Schema."""
    words: str
    """What it is, to finish "it must be ..."."""
    convert: Callable[[Any, str], Any]
    """From a decoded JSON value and its place to what the function takes. Raises Mistake."""

    def default(self, value: object) -> Any:
        """A default as JSON; None where it has none."""
        plain = value.value if isinstance(value, Enum) else value
        try:
            json.dumps(plain, allow_nan=False)
        except (TypeError, ValueError):
            return None
        return plain


def kind_of(hint: Any) -> Kind:
    """The kind of an annotation. Raises TypeError for a type that has none."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice({member.value: member for member in hint})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choice({value: value for value in arguments})
    if origin is list or hint is list:
        return _list(kind_of(arguments[0] if arguments else Any))
    if origin is dict or hint is dict:
        if arguments and arguments[0] is not str:
            raise TypeError("the keys of a JSON object are texts: write dict[str, ...]")
        return _object(kind_of(arguments[1] if arguments else Any))
    if origin is Union or isinstance(hint, types.UnionType):
        return _union([kind_of(argument) for argument in arguments])
    raise TypeError(
        f"{hint!r} has no form in JSON; use str, int, float, bool, Literal, an Enum, list[...], dict[str, ...], "
        "one of these or None, or Any"
    )


def _fail(place: str, words: str, value: object) -> Mistake:
    said = json.dumps(value, ensure_ascii=False, default=repr)
    said = said if len(said) <= LONGEST_QUOTE else f"{said[:LONGEST_QUOTE]}…"
    return Mistake(f"{place} must be {words}, not {said}")


def _exactly(kind: type, name: str, words: str) -> Kind:
    def convert(value: Any, place: str) -> Any:
        if type(value) is not kind:
            raise _fail(place, words, value)
        return value

    return Kind({"type": name}, words, convert)


def _whole(value: Any, place: str) -> int:
    # JSON has one kind of number, and for JSON Schema 3.0 is an integer.
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise _fail(place, "a whole number", value)
    return value


def _number(value: Any, place: str) -> float:
    if type(value) not in (int, float):
        raise _fail(place, "a number", value)
    return float(value)


_PLAIN: Mapping[Any, Kind] = {
    str: _exactly(str, "string", "a text"),
    bool: _exactly(bool, "boolean", "true or false"),
    int: Kind({"type": "integer"}, "a whole number", _whole),
    float: Kind({"type": "number"}, "a number", _number),
    type(None): _exactly(type(None), "null", "null"),
    Any: Kind({}, "anything", lambda value, place: value),
}


def _choice(choices: Mapping[Any, Any]) -> Kind:
    if not choices or not all(type(value) in (str, int, bool) for value in choices):
        raise TypeError("the values of a choice are texts, whole numbers or booleans")
    names = {str: "string", int: "integer", bool: "boolean"}
    schema: dict[str, Any] = {"enum": list(choices)}
    if len(found := {type(value) for value in choices}) == 1:
        schema = {"type": names[found.pop()], **schema}
    words = "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in choices)

    def convert(value: Any, place: str) -> Any:
        for known, meant in choices.items():
            if type(value) is type(known) and value == known:
                return meant
        raise _fail(place, words, value)

    return Kind(schema, words, convert)


def _list(item: Kind) -> Kind:
    def convert(value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise _fail(place, "a list", value)
        return [item.convert(each, f"{place}[{index}]") for index, each in enumerate(value)]

    return Kind({"type": "array", "items": item.schema}, "a list", convert)


def _object(item: Kind) -> Kind:
    def convert(value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _fail(place, "an object", value)
        return {key: item.convert(each, f"{place}.{key}") for key, each in value.items()}

    return Kind({"type": "object", "additionalProperties": item.schema}, "an object", convert)


def _union(kinds: list[Kind]) -> Kind:
    words = " or ".join(kind.words for kind in kinds)
    simple = all(set(kind.schema) == {"type"} for kind in kinds)
    schema = {"type": [kind.schema["type"] for kind in kinds]} if simple else {"anyOf": [k.schema for k in kinds]}

    def convert(value: Any, place: str) -> Any:
        nearest: Mistake | None = None
        for kind in kinds:
            try:
                return kind.convert(value, place)
            except Mistake as mistake:
                if not str(mistake).startswith(f"{place} "):
                    nearest = mistake  # it is of the right shape and wrong inside: that says more
        raise nearest or _fail(place, words, value)

    return Kind(schema, words, convert)
