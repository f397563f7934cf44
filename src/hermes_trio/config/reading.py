"""From a mapping to the classes: every mistake is collected, none stops the reading.

The walk follows the descriptions of the classes (`settings`). What could be read is constructed even beside mistakes,
so that contradictions between good keys are found in the same run. The one rule: a mistake in a secret says which key
it is and what is wrong, and never what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
from attrs import define, field, frozen

from hermes_trio.config.errors import ConfigError, Problem, did_you_mean, join, listing
from hermes_trio.config.kinds import described
from hermes_trio.config.overrides import overridden
from hermes_trio.config.settings import Description, Named, Rows, Table, Value, describe, keys_of
from hermes_trio.config.sources import Sources, secret

T = TypeVar("T")


@frozen
class Read(Generic[T]):
    """What was read."""

    value: T
    warnings: tuple[Problem, ...]
    origins: Mapping[str, str]
    """For each path that the environment gave: the name of its variable."""


def read(cls: type[T], mapping: Mapping[str, Any], base_dir: Path, environ: Mapping[str, str]) -> Read[T]:
    """The configuration in `mapping`, with the overrides of `environ`. Raises ConfigError with every mistake.

    Reads the files that the mapping names for its secrets.
    """
    source = overridden(cls, mapping, environ)
    reading = _Reading(base_dir, environ, source.origins, problems=list(source.problems))
    result = reading.table(cls, source.mapping, "")
    if reading.problems or result is None:
        raise ConfigError(reading.problems)
    return Read(result, tuple(reading.warnings), source.origins)


@define
class _Reading:
    base_dir: Path
    environ: Mapping[str, str]
    origins: Mapping[str, str]
    problems: list[Problem] = field(factory=list)
    wrong: set[str] = field(factory=set)
    """The keys that are wrong by themselves; of a secret the key without `_env` or `_file`."""
    warnings: list[Problem] = field(factory=list)

    def table(self, cls: type[T], raw: object, path: str) -> T | None:
        """The table at `path`; None when it could not be constructed, which is then among the problems."""
        if not isinstance(raw, Mapping):
            self._wrong(path, f"must be a table ([{path}]), not {described(raw)}")
            return None
        self._unknown(raw, keys_of(cls), path, cls)
        values = {}
        for key, description in describe(cls).items():
            found = self._key(key, description, raw, path)
            if found is not attrs.NOTHING:
                values[key] = found
        return self._constructed(cls, values, path)

    def _key(self, key: str, description: Description, raw: Mapping[str, Any], path: str) -> Any:
        """The value of one key; attrs.NOTHING where its default serves."""
        here = join(path, key)
        match description:
            case Value() if description.secret:
                return self._secret(key, description, raw, path)
            case _ if key not in raw:
                return attrs.NOTHING
            case Value():
                return self._value(description, raw[key], here)
            case Table(cls):
                found = self.table(cls, raw[key], here)
                return attrs.NOTHING if found is None else found
            case Rows(late):
                return self._rows(late(), raw[key], here)
            case Named(classes):
                return self._named(classes, raw[key], here)

    def _value(self, description: Value, raw: object, path: str) -> Any:
        try:
            found = description.kind.parse(raw)
        except ConfigError as error:
            for problem in error.problems:
                self._wrong(join(path, problem.path), problem.reason)
        except ValueError as error:
            self._wrong(path, str(error))
        else:
            # A relative directory starts where the file lies, not where the program was started.
            return self.base_dir / found if isinstance(found, Path) else found
        return attrs.NOTHING if description.stand_in is None else description.stand_in

    def _secret(self, key: str, description: Value, raw: Mapping[str, Any], path: str) -> Any:
        sources = Sources(self.base_dir, self.environ, literal_is_fine=join(path, key) in self.origins)
        found = secret(key, description.kind, raw, sources)
        for problem in found.problems:
            self._wrong(join(path, problem.path), problem.reason)
            self.wrong.add(join(path, key))
        self.warnings.extend(problem.below(path) for problem in found.warnings)
        if found.value is not None:
            return found.value
        return attrs.NOTHING if description.stand_in is None else description.stand_in

    def _rows(self, cls: type, raw: object, path: str) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            self._wrong(path, f"must be an array of tables ([[{path}]]), not {described(raw)}")
            return ()
        found = (self.table(cls, row, f"{path}[{index}]") for index, row in enumerate(raw))
        return tuple(each for each in found if each is not None)

    def _named(self, classes: Mapping[str, type], raw: object, path: str) -> dict[str, Any]:
        if not isinstance(raw, Mapping):
            self._wrong(path, f"must hold tables ([{path}.NAME]), not {described(raw)}")
            return {}
        found = {name: self._of_kind(classes, name, row, join(path, name)) for name, row in raw.items()}
        return {name: each for name, each in found.items() if each is not None}

    def _of_kind(self, classes: Mapping[str, type], name: str, raw: object, path: str) -> Any:
        if not isinstance(raw, Mapping):
            self._wrong(path, f"must be a table ([{path}]), not {described(raw)}")
            return None
        kind = raw.get("kind", name)
        if not isinstance(kind, str):
            self._wrong(join(path, "kind"), f"must be {listing(classes)}, not {described(kind)}")
        elif kind in classes:
            return self.table(classes[kind], {key: raw[key] for key in raw if key != "kind"}, path)
        elif "kind" in raw:
            near = did_you_mean(kind, classes)
            self._wrong(join(path, "kind"), f'there is no kind "{kind:.40}"; it must be {listing(classes)}{near}')
        else:
            near = did_you_mean(name, classes)
            self._wrong(
                join(path, "kind"), f'missing, and "{name:.40}" is no kind; it must be {listing(classes)}{near}'
            )
        return None

    def _constructed(self, cls: type[T], values: Mapping[str, Any], path: str) -> T | None:
        try:
            return cls(**values)
        except ConfigError as error:
            for problem in (each.below(path) for each in error.problems):
                if self.wrong.isdisjoint(problem.concerns):
                    self._wrong(problem.path, problem.reason)
        return None

    def _unknown(self, raw: Mapping[str, Any], known: Iterable[str], path: str, cls: type) -> None:
        known = tuple(known)
        for key in raw:
            if key not in known:
                self._wrong(join(path, key), f"unknown key{did_you_mean(key, known) or _elsewhere(cls, key)}")

    def _wrong(self, path: str, reason: str) -> None:
        variable = self._variable(path)
        self.wrong.add(path)
        self.problems.append(Problem(path, reason, origin=f"environment {variable}" if variable else ""))

    def _variable(self, path: str) -> str | None:
        """The environment variable that gave the value at `path`, or the table around it."""
        while path and path not in self.origins:
            path = path.rpartition(".")[0]
        return self.origins.get(path)


def _elsewhere(cls: type, key: str) -> str:
    """`; it belongs to [model]` when another table below `cls` has that key."""
    for name, description in describe(cls).items():
        if isinstance(description, Table) and key in tuple(keys_of(description.cls)):
            return f"; it belongs to [{name}]"
        if isinstance(description, Named) and any(key in tuple(keys_of(each)) for each in description.classes.values()):
            return f"; it belongs to [{name}.NAME]"
    return ""
