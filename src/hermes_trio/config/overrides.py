"""Environment variables that take the place of keys: `HERMES_TRIO__MODEL__NAME` is `model.name`.

Upper and lower case are the same. A key of plain text takes the variable as it is; every other value is read as TOML.
The one rule: nothing in here mutates the mapping that it was given.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from hermes_trio.config.errors import Problem
from hermes_trio.config.settings import (
    Description,
    Named,
    Table,
    Value,
    base_key,
    describe,
    is_secret,
    written_keys,
)

PREFIX = "HERMES_TRIO__"


@frozen
class Overridden:
    """A mapping with the environment's values in it."""

    mapping: Mapping[str, Any]
    origins: Mapping[str, str]
    """For each path that the environment gave: the name of its variable."""
    problems: tuple[Problem, ...] = ()


def variable(path: str) -> str:
    """The name of the variable that overrides the key `path`."""
    return PREFIX + path.upper().replace(".", "__")


def overridden(cls: type, mapping: Mapping[str, Any], environ: Mapping[str, str]) -> Overridden:
    """`mapping`, with every `HERMES_TRIO__` variable of `environ` in its place."""
    result: dict[str, Any] = dict(mapping)
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    for name in sorted(name for name in environ if name.upper().startswith(PREFIX)):
        segments = name[len(PREFIX) :].split("__")
        if not all(segments):
            problems.append(Problem("", f"the environment variable {name} names no key"))
            continue
        path = _path(cls, result, segments)
        if (first := origins.get(".".join(path))) is not None:
            problems.append(Problem(".".join(path), f"the environment gives it twice: {first} and {name}"))
            continue
        holder = _placed(result, path, _value(cls, path, environ[name]), _replaced(cls, path))
        if holder is None:
            problems.append(Problem(".".join(path), "lies below a key that is no table", origin=f"environment {name}"))
            continue
        result = holder
        origins[".".join(path)] = name
    return Overridden(result, origins, tuple(problems))


def _path(cls: type, mapping: Mapping[str, Any], segments: list[str]) -> list[str]:
    """The segments in the spelling of the mapping, or else in lower case: names of accounts keep their case."""
    path: list[str] = []
    here: Any = mapping
    for segment in segments:
        known = list(here) if isinstance(here, Mapping) else []
        spelling = next((key for key in known if key.lower() == segment.lower()), segment.lower())
        path.append(spelling)
        here = here.get(spelling) if isinstance(here, Mapping) else None
    return path


def _placed(
    mapping: Mapping[str, Any], path: list[str], value: Any, replaced: tuple[str, ...]
) -> dict[str, Any] | None:
    """A copy of `mapping` with `value` at `path` in the place of the keys `replaced`; None when there is no table."""
    head, *rest = path
    if rest:
        below = mapping.get(head, {})
        placed = _placed(below, rest, value, replaced) if isinstance(below, Mapping) else None
        return None if placed is None else {**mapping, head: placed}
    return {key: each for key, each in mapping.items() if key not in replaced} | {head: value}


def _replaced(cls: type, path: list[str]) -> tuple[str, ...]:
    """The keys that the key at `path` takes the place of: a secret has three, of which one is written."""
    found = _find(cls, path)
    return written_keys(found[0]) if found and is_secret(found[1]) else ()


def _value(cls: type, path: list[str], text: str) -> Any:
    """The value in the variable's text: of a key of text the text itself, otherwise what TOML makes of it."""
    try:
        document = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    if list(document) != ["value"]:
        return text  # more than one line, which is no value
    parsed = document["value"]
    return text if _is_text(cls, path) and not isinstance(parsed, str) else parsed


def _is_text(cls: type, path: list[str]) -> bool:
    found = _find(cls, path)
    return found is not None and isinstance(found[1], Value) and found[1].kind.literal


def _find(cls: type, path: list[str]) -> tuple[str, Description] | None:
    """The key at `path` (`token` also for `token_env`) with its description; None when there is none.

    Below a table under a name of the operator's choice every class is asked.
    """
    head, *rest = path
    key = base_key(cls, head)
    description = describe(cls).get(key)
    match description:
        case None:
            return None
        case Table(below) if rest:
            return _find(below, rest)
        case Named(classes) if len(rest) > 1:
            found = (_find(below, rest[1:]) for below in classes.values())
            return next((each for each in found if each is not None), None)
        case _:
            return None if rest else (key, description)
