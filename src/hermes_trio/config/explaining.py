"""One key in words: what it means, what it may be, what it is now and who said so.

It works on what was written, not on what was accepted, so it also helps with a configuration that is refused. The one
rule: of a secret it tells where it comes from and never what it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import evolve, frozen

from hermes_trio.config.errors import ConfigError, MissingConfig, did_you_mean, join
from hermes_trio.config.kinds import Choice
from hermes_trio.config.lines import lines_of
from hermes_trio.config.loading import default_config_path, parse_toml, read_text
from hermes_trio.config.overrides import overridden, variable
from hermes_trio.config.reference import default_in_words
from hermes_trio.config.schema import Config
from hermes_trio.config.settings import (
    Description,
    Named,
    Rows,
    Table,
    Value,
    base_key,
    default_of,
    describe,
    written_keys,
)


class UnknownKey(Exception):
    """There is no such key; the text says so, with the nearest one."""


@frozen
class Written:
    """What a file and the environment say, before anything is checked."""

    path: Path
    exists: bool
    mapping: Mapping[str, Any]
    origins: Mapping[str, str]
    """The environment variable for each path that one gave."""
    lines: Mapping[str, int]


def written(path: Path | None, environ: Mapping[str, str] | None = None) -> Written:
    """Reads the file, by default `default_config_path()`; one that is not there counts as empty.

    Raises ConfigError when it cannot be read or is not TOML.
    """
    path = path or default_config_path()
    try:
        text, exists = read_text(path), True
    except MissingConfig:
        text, exists = "", False
    try:
        mapping = parse_toml(text)
    except ConfigError as error:
        raise ConfigError(error.problems, path) from None
    source = overridden(Config, mapping, os.environ if environ is None else environ)
    return Written(path, exists, source.mapping, source.origins, lines_of(text))


@frozen
class _Place:
    """Where in the tree a key was found."""

    cls: type
    key: str
    path: str
    description: Description
    given: Mapping[str, Any]
    """What is written in the table that holds the key."""
    default: Any = None
    """The value when nothing is written, where that is not the default of the class."""


def explain(key: str, source: Written) -> str:
    """What `config explain KEY` prints. Raises UnknownKey."""
    place = _find(Config, [each for each in re.split(r"[.\[\]]+", key) if each], source.mapping, "")
    lines = [place.path, f"  {place.description.meaning}", ""]
    if isinstance(place.description, Value):
        facts = _facts(place, place.description, source)
    else:
        facts = _contents(place.description)
    width = max((len(name) for name, _ in facts), default=0)
    return "\n".join([*lines, *(f"  {name:<{width}}  {text}" for name, text in facts)])


def _facts(place: _Place, description: Value, source: Written) -> list[tuple[str, str]]:
    kind = description.kind
    # Of the rows of an array only the meaning can be told: each has its own value.
    value, origin = ("", "") if "[]" in place.path else _current(place, description, source)
    facts = [
        ("type", kind.name),
        ("range", kind.limits),
        ("default", default_in_words(place.cls, place.key, description)),
        ("value", value),
        ("from", origin),
        ("environment", "" if "[]" in place.path else variable(place.path)),
    ]
    return [(name, text) for name, text in facts if text]


def _contents(description: Description) -> list[tuple[str, str]]:
    """The keys of a table with their meanings."""
    match description:
        case Table(cls):
            return [(key, each.meaning) for key, each in describe(cls).items()]
        case Rows(late):
            return [(key, each.meaning) for key, each in describe(late()).items() if not isinstance(each, Rows)]
        case Named(classes):
            return [
                (f'{key} (kind "{kind}")', each.meaning)
                for kind, cls in classes.items()
                for key, each in describe(cls).items()
            ]
        case Value():
            return []


def _current(place: _Place, description: Value, source: Written) -> tuple[str, str]:
    """The value that is in force, and where it comes from."""
    table = place.path.rpartition(".")[0]
    names = written_keys(place.key) if description.secret else (place.key,)
    found = [name for name in names if name in place.given]
    if not found:
        default = place.default if place.default is not None else default_of(place.cls, place.key)
        if default is None and description.default_in_words:
            return description.default_in_words, "the default"
        return ("missing", "") if default is attrs.NOTHING else (description.kind.show(default), "the default")
    path = join(table, found[0])
    origin = _origin(path, source)
    if description.secret:
        return ("given (hidden)" if len(found) == 1 else "given more than once", f"{origin}, key {found[0]}")
    try:
        value = description.kind.parse(place.given[found[0]])
        value = source.path.parent.absolute() / value if isinstance(value, Path) else value
        return (description.kind.show(value), origin)
    except ConfigError as error:
        return (f"refused: {'; '.join(str(problem) for problem in error.problems)}", origin)
    except ValueError as error:
        return (f"refused: {error}", origin)


def _origin(path: str, source: Written) -> str:
    above = path
    while above:
        if name := source.origins.get(above):
            return f"the environment variable {name}"
        above = above.rpartition(".")[0]
    line = source.lines.get(path)
    return f"{source.path}, line {line}" if line else str(source.path)


def _find(cls: type, segments: list[str], given: Any, path: str) -> _Place:
    """The place of a key. Indexes of arrays are left out: all rows of an array have the same keys."""
    head, *rest = segments or [""]
    given = given if isinstance(given, Mapping) else {}
    key, description = _described(cls, head, path)
    here = join(path, key)
    match description:
        case Table(below) if rest:
            place = _find(below, rest, given.get(key, {}), here)
            # Without the table its own default is in force, which need not be made of the defaults of its class.
            return place if key in given else evolve(place, default=getattr(default_of(cls, key), place.key, None))
        case Rows(late) if rest := [each for each in rest if not each.isdigit()]:
            return _find(late(), rest, {}, f"{here}[]")
        case Named(classes) if rest:
            return _named(classes, rest, given.get(key, {}), here)
        case Value() if rest:
            raise UnknownKey(f"there is no key {join(here, '.'.join(rest))}: {here} is no table")
        case _:
            return _Place(cls, key, here, description, given)


def _described(cls: type, key: str, path: str) -> tuple[str, Description]:
    known = describe(cls)
    if (base := base_key(cls, key)) in known:
        return base, known[base]
    near = did_you_mean(key, known) or _same_name_elsewhere(key)
    raise UnknownKey(f"there is no key {join(path, key) or 'without a name'}{near}")


def _same_name_elsewhere(key: str) -> str:
    found = [path for path in all_keys() if path.rpartition(".")[2] == key]
    return f"; there is {' and '.join(found)}" if key and found else ""


def all_keys() -> Iterator[str]:
    """Every key that has a value, accounts as `platforms.NAME`."""
    for key, description in describe(Config).items():
        match description:
            case Value():
                yield key
            case Table(cls):
                yield from (f"{key}.{below}" for below in describe(cls))
            case Named(classes):
                yield f"{key}.NAME.kind"
                yield from dict.fromkeys(f"{key}.NAME.{below}" for cls in classes.values() for below in describe(cls))


def _named(classes: Mapping[str, type], segments: list[str], given: Any, path: str) -> _Place:
    """A key of an account, whose class is told by what is written, or else is the first that has such a key."""
    name, *rest = segments
    table = given.get(name, {}) if isinstance(given, Mapping) else {}
    table = table if isinstance(table, Mapping) else {}
    kind = table.get("kind", name)
    here = join(path, name)
    candidates = [classes[kind]] if isinstance(kind, str) and kind in classes else list(classes.values())
    if not rest:
        return _Place(candidates[0], name, here, _account(classes, candidates), table)
    if rest == ["kind"]:
        meaning = "What the account is. By default the table's own name, when that is a kind."
        choice = Value(Choice(tuple(classes)), meaning, default_in_words="the table's name")
        return _Place(candidates[0], "kind", join(here, "kind"), choice, table, default=name)
    having = [cls for cls in candidates if base_key(cls, rest[0]) in describe(cls)]
    if having:
        return _find(having[0], rest, table, here)
    known = [key for cls in candidates for key in describe(cls)]
    near = did_you_mean(rest[0], known) or _same_name_elsewhere(rest[0])
    raise UnknownKey(f"there is no key {join(here, rest[0])}{near}")


def _account(classes: Mapping[str, type], candidates: list[type]) -> Description:
    if len(candidates) == 1:
        return Table(candidates[0], candidates[0].__doc__ or "")
    return Named(classes, "An account of the bot.")
