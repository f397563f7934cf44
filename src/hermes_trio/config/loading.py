"""From a file to a configuration: the one loader that every command uses.

The one rule: a command that needs a configuration calls `load_config` and nothing else, so that a file is right or
wrong for all of them.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, frozen
from platformdirs import user_config_path

from hermes_trio.config.errors import ConfigError, MissingConfig, Problem, did_you_mean
from hermes_trio.config.lines import lines_of
from hermes_trio.config.overrides import overridden
from hermes_trio.config.reading import read
from hermes_trio.config.schema import APP, OPENAI, Config, ConsoleConfig

FILE_NAME = "config.toml"


@frozen
class LoadedConfig:
    """A configuration that was accepted."""

    config: Config
    warnings: tuple[Problem, ...] = ()
    path: Path | None = None
    """The file; None when it came from a program."""


def default_config_path() -> Path:
    """Where the configuration lies when no command names a file: the user's own configuration directory."""
    return user_config_path(APP, appauthor=False) / FILE_NAME


def load_config(path: Path | str | None = None, environ: Mapping[str, str] | None = None) -> LoadedConfig:
    """Reads the file at `path`, by default `default_config_path()`, with the overrides of `environ`.

    `environ` is by default the process's environment. Raises MissingConfig when there is no such file, and
    ConfigError with every mistake in it.
    """
    path = Path(path) if path is not None else default_config_path()
    text = read_text(path)
    try:
        loaded = parse_config(text, path.parent, environ)
    except ConfigError as error:
        lines = lines_of(text)
        problems = [_with_line(problem, lines) for problem in error.problems]
        raise ConfigError(problems, path) from None
    lines = lines_of(text) if loaded.warnings else {}
    return evolve(loaded, warnings=tuple(_with_line(each, lines) for each in loaded.warnings), path=path)


def parse_config(
    source: str | Mapping[str, Any], base_dir: Path | str = ".", environ: Mapping[str, str] | None = None
) -> LoadedConfig:
    """The configuration in a TOML text, or in a mapping of the same shape; relative paths start at `base_dir`.

    `environ` is by default the process's environment. Raises ConfigError with every mistake.
    """
    environ = os.environ if environ is None else environ
    mapping = parse_toml(source) if isinstance(source, str) else source
    result = read(Config, mapping, Path(base_dir).absolute(), environ)
    given = overridden(Config, mapping, environ).mapping
    return LoadedConfig(result.value, (*result.warnings, *_advice(result.value, given)))


def read_text(path: Path) -> str:
    """The text of a configuration file. Raises MissingConfig and ConfigError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingConfig([Problem("", "there is no such file")], path) from None
    except OSError as error:
        raise ConfigError([Problem("", f"the file cannot be read: {error.strerror}")], path) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", f"the file is not UTF-8 text (byte {error.start})")], path) from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises ConfigError with the first mistake, because the rest cannot be known."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem("", f"this is not TOML: {error}")]) from None


def _with_line(problem: Problem, lines: Mapping[str, int]) -> Problem:
    """The problem with the line of its key, or of the table around it when the key is missing."""
    path = problem.path
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return evolve(problem, origin=f"line {lines[path]}") if path and not problem.origin else problem


def _advice(config: Config, given: Mapping[str, Any]) -> Iterator[Problem]:
    """What is allowed and yet hardly meant."""
    if "model" not in given:
        yield Problem("model", "missing: the built-in demonstration answers")
    elif config.model.kind == "openai" and config.model.base_url == OPENAI and config.model.api_key is None:
        yield Problem("model.api_key", f"missing: {OPENAI} answers nobody without one")
    if not config.platforms:
        yield Problem("platforms", "missing: there is no account to receive messages from")
    yield from _access_advice(config)
    yield from _plain_http(config)


def _access_advice(config: Config) -> Iterator[Problem]:
    patterns = {"allow": config.access.allow, "owners": config.access.owners}
    public = [each for each in config.platforms.values() if not isinstance(each, ConsoleConfig)]
    if public and not any(patterns.values()):
        yield Problem("access.allow", "nobody may speak to the bot; every message is ignored")
    for key, rules in patterns.items():
        for index, rule in enumerate(rules):
            account = rule.partition(":")[0]
            if account != "*" and account not in config.platforms:
                near = did_you_mean(account, config.platforms)
                yield Problem(f"access.{key}[{index}]", f'there is no account "{account:.40}"{near}')
    if any(rule.endswith("*") for rule in config.access.owners):
        yield Problem("access.owners", "everyone on an account may command the bot")


def _plain_http(config: Config) -> Iterator[Problem]:
    urls = {f"platforms.{name}.base_url": getattr(each, "base_url", "") for name, each in config.platforms.items()}
    if config.model.api_key is not None:
        urls["model.base_url"] = config.model.base_url
    for path, url in urls.items():
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            yield Problem(path, "http sends the secret unencrypted over the network")
