"""The configuration in words: the reference page and the JSON Schema, both from the descriptions of the fields.

The one rule: no meaning, range or default is written here; what a reader learns is what the reader of files checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from hermes_trio.config.kinds import Choice
from hermes_trio.config.overrides import variable
from hermes_trio.config.schema import KINDS, Config
from hermes_trio.config.settings import (
    Description,
    Named,
    Rows,
    Table,
    Value,
    default_of,
    describe,
    is_secret,
    written_keys,
)

_HEAD = f"""\
# Configuration

One TOML file, by default `config.toml` in your configuration directory (`hermes-trio config path` names it). It is
strict: an unknown key, a wrong type or a value out of its range is refused, and all mistakes are reported at once.
`hermes-trio config check FILE` does only that, and `hermes-trio config explain KEY` tells about one key.

```toml
data_dir = "data"

[model]
base_url = "http://127.0.0.1:11434/v1"
name = "qwen3"

[access]
allow = ["telegram:12345"]

[platforms.telegram]
token_env = "TELEGRAM_TOKEN"
```

- **Durations** are numbers of seconds, or text with a unit: `"500ms"`, `"90s"`, `"5m"`, `"24h"`, `"7d"`.
- **Secrets** have three keys, of which exactly one is written: `KEY_env` names an environment variable, `KEY_file` a
  file (a relative path starts at the directory of this file, a line end at its end is left out), and `KEY` holds the
  secret itself, which is warned about.
- **The environment** may override every key: `{variable("model.name")}` is `model.name`, in upper or lower case. A
  key of plain text takes the variable as it is, every other value is TOML:
  `{variable("access.allow")}='["telegram:1"]'`.

This page is written by `hermes-trio config schema --markdown`.
"""


def markdown_reference() -> str:
    """The text of `docs/configuration.md`."""
    top = {key: each for key, each in describe(Config).items() if isinstance(each, Value)}
    blocks = [_HEAD, "## At the top\n", _rows(Config, top)]
    for key, description in describe(Config).items():
        match description:
            case Table(cls, meaning):
                blocks += [f"## [{key}]\n", f"{meaning}\n", _rows(cls, describe(cls))]
            case Named(classes, meaning):
                blocks += [f"## [{key}.NAME]\n", f"{meaning}\n", _kind_row(classes)]
                for kind, cls in classes.items():
                    blocks += [f'### kind = "{kind}"\n', f"{cls.__doc__}\n", _rows(cls, describe(cls))]
    return "\n".join(blocks)


def default_in_words(cls: type, key: str, description: Description) -> str:
    """The default of a key, for people."""
    if not isinstance(description, Value):
        return "empty"
    if description.default_in_words:
        return description.default_in_words
    default = default_of(cls, key)
    return "none, it must be given" if default is attrs.NOTHING else str(description.kind.show(default))


def _kind_row(classes: Mapping[str, type]) -> str:
    kind = Choice(tuple(classes))
    meaning = "What the account is. By default the table's own name, when that is a kind."
    return _lines([("kind", kind.name, "the table's name", "", meaning)])


def _rows(cls: type, keys: Mapping[str, Description]) -> str:
    return _lines(_cells(cls, key, description) for key, description in keys.items())


def _cells(cls: type, key: str, description: Description) -> tuple[str, ...]:
    default = default_in_words(cls, key, description)
    match description:
        case Value(kind):
            keys = "`, `".join(written_keys(key)) if description.secret else key
            return (keys, kind.name, default, kind.limits, description.meaning)
        case _:
            return (key, "array of tables", default, "", description.meaning)


def _lines(rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| key | type | default | range | meaning |", "|---|---|---|---|---|"]
    lines += [f"| `{key}` | {' | '.join(rest)} |" for key, *rest in rows]
    return "\n".join(lines) + "\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the file, for editors. It is a little laxer than the program, never stricter."""
    definitions = {f"platform-{kind}": _object(cls) for kind, cls in KINDS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hermes-trio configuration",
        **_object(Config),
        "$defs": definitions,
    }


def _object(cls: type, without: str = "") -> dict[str, Any]:
    properties: dict[str, Any] = {}
    choices = []
    for key, description in describe(cls).items():
        if key == without:
            continue
        if is_secret(description):
            names = written_keys(key)
            properties |= {name: {"type": "string", "minLength": 1} for name in names}
            properties[key]["description"] = description.meaning
            if default_of(cls, key) is attrs.NOTHING:
                choices = [{"required": [name]} for name in names]
        else:
            properties[key] = _schema(cls, key, description) | {"description": description.meaning}
    if isinstance(fixed := getattr(cls, "kind", None), str):
        properties = {"kind": {"const": fixed}} | properties
    result = {"type": "object", "additionalProperties": False, "properties": properties}
    return result | ({"oneOf": choices} if choices else {})


def _schema(cls: type, key: str, description: Description) -> dict[str, Any]:
    match description:
        case Value(kind):
            default = default_of(cls, key)
            plain = isinstance(default, str | int | float) and not description.default_in_words
            return kind.schema() | ({"default": default} if plain else {})
        case Table(below):
            return _object(below)
        case Rows(late):
            return {"type": "array", "items": _object(late(), without=key)}
        case Named(classes):
            known = {kind: {"$ref": f"#/$defs/platform-{kind}"} for kind in classes}
            other = [{"allOf": [each, {"required": ["kind"]}]} for each in known.values()]
            # A known name may still be given another kind.
            own = {kind: {"anyOf": [each, *other]} for kind, each in known.items()}
            return {"type": "object", "properties": own, "additionalProperties": {"anyOf": other}}
