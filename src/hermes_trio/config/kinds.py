"""The kinds of values that a key may have: how one is read, what its limits are, how it is described.

A kind knows nothing of files, paths or the environment. The one rule: `parse` accepts its own result unchanged, so
the same check serves a file, the environment and a class that a program constructs; its refusal is a ValueError whose
text finishes "this key ..." and never quotes what may be secret (a list refuses its items by a ConfigError).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from attrs import frozen

from hermes_trio.access import malformed
from hermes_trio.config.errors import ConfigError, Problem, did_you_mean, listing
from hermes_trio.config.secret import Secret

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""The units of a duration, in seconds."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|d)")


class Kind(Protocol):
    """What a value may be."""

    @property
    def name(self) -> str:
        """What the operator writes, in a few words."""

    @property
    def limits(self) -> str:
        """The range with its reason, or nothing."""

    @property
    def literal(self) -> bool:
        """Whether the environment gives the value as plain text, without TOML's quotes."""

    def parse(self, raw: object) -> Any:
        """The value. Raises ValueError with the reason."""

    def show(self, value: Any) -> str:
        """A value of this kind, for people."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""


def described(raw: object) -> str:
    """What kind of TOML value `raw` is, with its article; never the value itself."""
    match raw:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case dict():
            return "a table"
        case list() | tuple():
            return "an array"
        case _:
            return "a date or time"


@frozen
class Text:
    """Any text, at most `longest` characters; `blank` allows one without visible characters."""

    longest: int = 100_000
    blank: bool = True
    name: str = "text"
    limits: str = ""
    literal: bool = True

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise ValueError(f"must be text in quotes, not {described(raw)}")
        if not self.blank and not raw.strip():
            raise ValueError("must not be empty")
        if len(raw) > self.longest:
            raise ValueError(f"must be at most {self.longest} characters, not {len(raw)}")
        return raw

    def show(self, value: str) -> str:
        return f'"{value}"' if len(value) <= 80 else f'"{value[:79]}…"'

    def schema(self) -> dict[str, Any]:
        shortest = {} if self.blank else {"minLength": 1}
        return {"type": "string", "maxLength": self.longest} | shortest


@frozen
class Choice:
    """One of a few words, in any case."""

    options: tuple[str, ...]
    limits: str = ""
    literal: bool = True

    @property
    def name(self) -> str:
        return listing(self.options)

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise ValueError(f"must be {self.name}, not {described(raw)}")
        word = raw.strip().lower()
        if word not in self.options:
            raise ValueError(f"must be {self.name}, not {raw!r:.40}{did_you_mean(word, self.options)}")
        return word

    def show(self, value: str) -> str:
        return f'"{value}"'

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)}


@frozen
class Flag:
    """true or false."""

    name: str = "true or false"
    limits: str = ""
    literal: bool = False

    def parse(self, raw: object) -> bool:
        if not isinstance(raw, bool):
            raise ValueError(f"must be true or false without quotes, not {described(raw)}")
        return raw

    def show(self, value: bool) -> str:
        return "true" if value else "false"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@frozen
class Whole:
    """A whole number from `low` to `high`; `why` names the reason of the limit."""

    low: int
    high: int
    why: str
    name: str = "whole number"
    literal: bool = False

    @property
    def limits(self) -> str:
        return f"{self.low} to {self.high} ({self.why})"

    def parse(self, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ValueError(f"must be a whole number, not {described(raw)}")
        if not self.low <= raw <= self.high:
            raise ValueError(f"must be {self.low} to {self.high}, not {raw}: {self.why}")
        return raw

    def show(self, value: int) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@frozen
class Duration:
    """A time in seconds from `low` to `high`; `why` names the reason of the limit."""

    low: float
    high: float
    why: str
    name: str = 'duration (seconds, or "500ms", "90s", "5m", "24h")'
    literal: bool = False

    @property
    def limits(self) -> str:
        return f"{seconds(self.low)} to {seconds(self.high)} ({self.why})"

    def parse(self, raw: object) -> float:
        value = self._seconds(raw)
        if not self.low <= value <= self.high:
            between = f"{seconds(self.low)} to {seconds(self.high)}"
            raise ValueError(f"must be {between}, not {seconds(value)}: {self.why}")
        return value

    def _seconds(self, raw: object) -> float:
        if isinstance(raw, str):
            found = _DURATION.fullmatch(raw.strip().lower())
            if found is None:
                raise ValueError('must be a number of seconds, or text such as "500ms", "90s", "5m", "24h" or "7d"')
            return float(found[1]) * UNITS[found[2]]
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise ValueError(f'must be a number of seconds or text such as "90s", not {described(raw)}')
        if not -1e12 < raw < 1e12:  # also refuses nan, and integers that no float can hold
            raise ValueError("must be a sensible number of seconds")
        return float(raw)

    def show(self, value: float) -> str:
        return seconds(value)

    def schema(self) -> dict[str, Any]:
        written = {"type": "string", "pattern": r"^\s*\d+(\.\d+)? ?(ms|s|m|h|d)\s*$"}
        return {"anyOf": [{"type": "number", "minimum": self.low, "maximum": self.high}, written]}


def seconds(value: float) -> str:
    """A duration for people: `35 s`, `0.5 s`, `86400 s (24 h)`."""
    plain = f"{value:.15g} s"
    if value >= 3600 and value % 3600 == 0:
        return f"{plain} ({value / 3600:.0f} h)"
    return plain


@frozen
class Url:
    """The root of a server; paths are appended to it."""

    name: str = "URL (http or https)"
    limits: str = ""
    literal: bool = True

    def parse(self, raw: object) -> str:
        """The URL without slashes at its end. A refusal does not quote it: people paste tokens into URLs."""
        if not isinstance(raw, str):
            raise ValueError(f"must be a URL in quotes, not {described(raw)}")
        try:
            parts = urlsplit(raw)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError("is not a well-formed URL") from error
        if parts.scheme not in ("http", "https") or not host or port == 0:
            raise ValueError("must be a URL that begins with http:// or https:// and names a host")
        if not raw.isascii() or not raw.isprintable() or " " in raw:
            raise ValueError("must be a URL of printable ASCII characters without spaces")
        if "@" in parts.netloc or "?" in raw or "#" in raw:
            raise ValueError("must be a URL without user name, password, ? or #")
        return raw.rstrip("/")

    def show(self, value: str) -> str:
        return f'"{value}"'

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^https?://[^\s@?#]+$"}


@frozen
class Directory:
    """A directory; `~` is the home directory."""

    name: str = "directory"
    limits: str = ""
    literal: bool = True

    def parse(self, raw: object) -> Path:
        if not isinstance(raw, str | Path):
            raise ValueError(f"must be a directory in quotes, not {described(raw)}")
        if not str(raw).strip() or "\0" in str(raw):
            raise ValueError("must name a directory")
        try:
            return Path(raw).expanduser()
        except RuntimeError as error:
            raise ValueError("names the home directory of a user who has none") from error

    def show(self, value: Path) -> str:
        return f'"{value}"'

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@frozen
class Patterns:
    """A list of access patterns."""

    name: str = 'array of "account:sender", "account:*" or "*"'
    limits: str = ""
    literal: bool = False

    def parse(self, raw: object) -> tuple[str, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError(f'must be an array such as ["telegram:12345"], not {described(raw)}')
        problems = [Problem(f"[{i}]", reason) for i, pattern in enumerate(raw) if (reason := self._refusal(pattern))]
        if problems:
            raise ConfigError(problems)
        return tuple(raw)

    def _refusal(self, pattern: object) -> str | None:
        if not isinstance(pattern, str):
            return f'must be text such as "telegram:12345", not {described(pattern)}'
        reason = malformed(pattern)
        return f'"{pattern:.60}" {reason}' if reason else None

    def show(self, value: tuple[str, ...]) -> str:
        quoted = ", ".join(f'"{pattern}"' for pattern in value)
        return f"[{quoted}]"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": r"^(\*|[^\s:*]+:(\*|[^\s*]+))$"}}


@frozen
class Hidden:
    """A secret; `shape`, where given, is a pattern that it must match, and `shape_in_words` says so to people."""

    required: bool = False
    shape: str = ""
    shape_in_words: str = ""
    name: str = "secret"
    literal: bool = True

    @property
    def limits(self) -> str:
        return self.shape_in_words

    def parse(self, raw: object) -> Secret | None:
        if raw is None and not self.required:
            return None
        text = raw.reveal() if isinstance(raw, Secret) else raw
        if not isinstance(text, str):
            raise ValueError(f"must be text in quotes, not {described(text)}")
        if not text:
            raise ValueError("is empty")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("holds a space, a line break or a character that no key has")
        if self.shape and not re.fullmatch(self.shape, text):
            raise ValueError(f"does not look right: {self.shape_in_words}")
        return Secret(text)

    def show(self, value: object) -> str:
        return "not set" if value is None else "set (hidden)"

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}
