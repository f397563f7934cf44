"""How a configuration class is written: every field carries its kind and its meaning.

The metadata of the fields is the only description of the configuration. Reading, checking, `config explain`, the JSON
Schema and the reference page all come from it, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

import attrs
from attrs import frozen

from hermes_trio.config.errors import ConfigError, Problem
from hermes_trio.config.kinds import Hidden, Kind

_DESCRIPTION = "hermes_trio.config"


@frozen
class Value:
    """A key with one value."""

    kind: Kind
    meaning: str
    default_in_words: str = ""
    """The default, where it is not the same everywhere."""
    stand_in: Any = None
    """For a key without default: what takes its place while the other keys are checked against each other."""

    @property
    def secret(self) -> bool:
        """Whether the value may also come from the environment or a file, by `KEY_env` and `KEY_file`."""
        return isinstance(self.kind, Hidden)


@frozen
class Table:
    """A table of keys."""

    cls: type
    meaning: str


@frozen
class Rows:
    """An array of tables. The class is asked for late, because it may be the one that holds the field."""

    cls: Callable[[], type]
    meaning: str


@frozen
class Named:
    """A table of tables under names of the operator's choice; the `kind` of each names its class."""

    classes: Mapping[str, type]
    meaning: str


Description = Value | Table | Rows | Named


def value(kind: Kind, meaning: str, *, default: Any = attrs.NOTHING, **more: Any) -> Any:
    """A field with one value, converted and checked by its kind also when a program constructs the class."""
    converter: Any = attrs.Converter(_checked, takes_field=True)
    description = Value(kind, meaning, **more)
    return attrs.field(default=default, converter=converter, metadata={_DESCRIPTION: description})


def table(cls: type, meaning: str, *, factory: Callable[[], Any] | None = None) -> Any:
    """A field with a table; without it the file means the table's defaults."""
    return attrs.field(factory=factory or cls, metadata={_DESCRIPTION: Table(cls, meaning)})


def rows(cls: Callable[[], type], meaning: str) -> Any:
    """A field with an array of tables; empty by default."""
    return attrs.field(default=(), converter=tuple, metadata={_DESCRIPTION: Rows(cls, meaning)})


def named(classes: Mapping[str, type], meaning: str, *, converter: Callable[[Any], Any]) -> Any:
    """A field with a table of tables; empty by default."""
    return attrs.field(factory=dict, converter=converter, metadata={_DESCRIPTION: Named(classes, meaning)})


def describe(cls: type) -> dict[str, Description]:
    """The keys of a configuration class in their order."""
    return {field.name: field.metadata[_DESCRIPTION] for field in attrs.fields(cls)}


def default_of(cls: type, key: str) -> Any:
    """The default of a key; attrs.NOTHING when it must be given."""
    default = getattr(attrs.fields(cls), key).default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type] # a class


def keys_of(cls: type) -> Iterator[str]:
    """Every key that may be written in the table, the other sources of a secret and a fixed `kind` included."""
    if isinstance(getattr(cls, "kind", None), str):
        yield "kind"
    for key, description in describe(cls).items():
        yield from written_keys(key) if is_secret(description) else [key]


def is_secret(description: Description | None) -> TypeGuard[Value]:
    """Whether the value may also come from the environment or a file."""
    return isinstance(description, Value) and description.secret


def written_keys(key: str) -> tuple[str, str, str]:
    """The three keys that a secret may be written under."""
    return (key, f"{key}_env", f"{key}_file")


def base_key(cls: type, key: str) -> str:
    """The key whose value `key` gives: `token` for `token_env` and `token_file`, and every other key itself."""
    known = describe(cls)
    bases = (key.removesuffix("_env"), key.removesuffix("_file"))
    return next((base for base in bases if is_secret(known.get(base))), key)


def _checked(raw: object, field: attrs.Attribute[Any]) -> Any:
    if raw is None and field.default is None:
        return None
    try:
        return field.metadata[_DESCRIPTION].kind.parse(raw)
    except ConfigError as error:
        raise ConfigError(problem.below(field.name) for problem in error.problems) from None
    except ValueError as error:
        raise ConfigError([Problem(field.name, str(error))]) from error
