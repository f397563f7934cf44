"""What is wrong with a configuration, in words for the operator.

A mistake is a value, so that all of them are collected and shown at once. The one rule: no text in here ever quotes
a secret, nor any value that may hold one.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from attrs import evolve, frozen

EX_CONFIG = 78
"""The exit status of a program that refuses its configuration (BSD sysexits.h)."""


@frozen
class Problem:
    """One mistake, or one warning."""

    path: str
    """The key, such as `platforms.telegram.poll_timeout`; empty when it is about the file as a whole."""
    reason: str
    origin: str = ""
    """Where the value came from, where it helps: `line 12`, `environment HERMES_TRIO__MODEL__NAME`."""
    concerns: tuple[str, ...] = ()
    """The keys that contradict each other; when one of them is wrong by itself, the contradiction is not reported."""

    def below(self, prefix: str) -> Problem:
        """The same problem, seen from the table that holds the table `prefix`."""
        concerns = tuple(join(prefix, path) for path in self.concerns)
        return evolve(self, path=join(prefix, self.path), concerns=concerns)

    def __str__(self) -> str:
        text = f"{self.path}: {self.reason}" if self.path else self.reason
        return f"{text} ({self.origin})" if self.origin else text


class ConfigError(Exception):
    """The configuration is refused; `problems` holds every mistake that was found, in the order of the keys."""

    def __init__(self, problems: Iterable[Problem], path: Path | None = None) -> None:
        self.problems = tuple(problems)
        self.path = path
        """The file that was read; None when the configuration came from a program."""
        super().__init__(self.problems, path)

    def __str__(self) -> str:
        return report(self)


class MissingConfig(ConfigError):
    """There is no configuration file; `path` is where it was looked for."""


def report(error: ConfigError) -> str:
    """The text that every command prints for a refused configuration: one headline, one line for each mistake."""
    count = len(error.problems)
    name = f"the configuration {error.path}" if error.path else "the configuration"
    headline = f"{name} has {count} mistake{'' if count == 1 else 's'}:"
    return "\n".join([headline, *(f"  {problem}" for problem in error.problems)])


def join(prefix: str, key: str) -> str:
    """The path of `key` in the table `prefix`; an index such as `[0]` takes no dot."""
    return f"{prefix}{'.' if prefix and key and not key.startswith('[') else ''}{key}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean "timeout"?` for the known word that is nearest to `word`, or nothing when none is near."""
    options = {option.lower(): option for option in known}
    near = get_close_matches(word.lower(), options, n=1)
    return f'; did you mean "{options[near[0]]}"?' if near else ""


def listing(words: Iterable[str]) -> str:
    """The words as an operator would write them: `"a", "b" or "c"`."""
    quoted = [f'"{word}"' for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
