"""Environment variables in the place of keys."""

from typing import Any

import pytest

from hermes_trio.config import Config, ConfigError, Secret, TelegramConfig, parse_config

FILE = """
[model]
name = "of the file"
[platforms.Work]
kind = "telegram"
token = "1:file"
"""


def read(**environ: str) -> Config:
    return parse_config(FILE, ".", {f"HERMES_TRIO__{name}": value for name, value in environ.items()}).config


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MODEL__NAME", "plain text", "plain text"),
        ("MODEL__NAME", '"quoted"', "quoted"),
        ("MODEL__NAME", "123", "123"),
        ("MODEL__NAME", "true", "true"),
        ("MODEL__NAME", "x\n[log]\nlevel = 1", "x\n[log]\nlevel = 1"),
        ("MODEL__NAME", "1\n[log]\nlevel = 1", "1\n[log]\nlevel = 1"),
        ("Model__Name", "any case", "any case"),
        ("MODEL__RETRIES", "5", 5),
        ("MODEL__TIMEOUT", "7.5", 7.5),
        ("MODEL__TIMEOUT", "5m", 300.0),
        ("CHAT__STREAM", "false", False),
        ("CHAT__BUSY", "queue", "queue"),
        ("ACCESS__ALLOW", '["telegram:1", "*"]', ("telegram:1", "*")),
        ("PLATFORMS__WORK__POLL_TIMEOUT", "1", 1.0),
        ("PLATFORMS__WORK__TOKEN", "2:env", Secret("2:env")),
        ("MODEL", '{ name = "whole table" }', None),
    ],
)
def test_a_variable_takes_the_place_of_its_key(name: str, value: str, expected: Any) -> None:
    """The value is TOML where the key is not text, and the text itself where it is; accounts keep their case."""
    config = read(**{name: value})
    if expected is None:
        assert config.model.name == "whole table"
        return
    found: Any = config
    for part in name.lower().split("__"):
        found = found["Work"] if part == "work" else getattr(found, part)
    assert found == expected


def test_a_variable_may_bring_an_account() -> None:
    """A container needs no file for its token: a new account has its name in lower case."""
    config = parse_config("", ".", {"HERMES_TRIO__PLATFORMS__TELEGRAM__TOKEN": "2:env"}).config
    assert config.platforms == {"telegram": TelegramConfig(token=Secret("2:env"))}


def test_a_secret_of_the_environment_replaces_each_way_of_giving_it() -> None:
    """The file's `token` and the environment's `token_env` are no contradiction, and no literal to warn about."""
    environ = {"HERMES_TRIO__PLATFORMS__WORK__TOKEN_ENV": "T", "T": "3:other"}
    assert parse_config(FILE, ".", environ).config.platforms["Work"] == TelegramConfig(token=Secret("3:other"))
    loaded = parse_config(FILE, ".", {"HERMES_TRIO__PLATFORMS__WORK__TOKEN": "2:env"})
    assert not [each for each in loaded.warnings if "token" in each.path]


@pytest.mark.parametrize(
    ("environ", "path", "reason", "origin"),
    [
        (
            {"MODEL__NMAE": "x"},
            "model.nmae",
            'unknown key; did you mean "name"?',
            "environment HERMES_TRIO__MODEL__NMAE",
        ),
        (
            {"MODEL__RETRIES": "many"},
            "model.retries",
            "must be a whole number",
            "environment HERMES_TRIO__MODEL__RETRIES",
        ),
        ({"MODEL__RETRIES": "1\n[log]\nlevel = 'debug'"}, "model.retries", "must be a whole number, not text", ""),
        ({"MODEL__NAME__X": "1"}, "model.name.x", "lies below a key that is no table", "HERMES_TRIO__MODEL__NAME__X"),
        ({"MODEL__NAME": "1", "model__name": "2"}, "model.name", "the environment gives it twice", ""),
        ({"MODEL__": "1"}, "", "HERMES_TRIO__MODEL__ names no key", ""),
        ({"LOG": "loud"}, "log", "must be a table", "environment HERMES_TRIO__LOG"),
        ({"LOG": '{ level = "loud" }'}, "log.level", "must be", "environment HERMES_TRIO__LOG"),
    ],
)
def test_a_mistake_names_its_variable(environ: dict[str, str], path: str, reason: str, origin: str) -> None:
    """The operator need not search the file for what the environment said."""
    with pytest.raises(ConfigError) as caught:
        read(**environ)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert reason in problem.reason
    assert origin in problem.origin


def test_other_variables_are_left_alone() -> None:
    """One underscore makes no path; neither the mapping nor the environment is changed."""
    mapping: dict[str, Any] = {"model": {"name": "m"}}
    environ = {"HERMES_TRIO_DEBUG": "1", "HERMES": "x", "HERMES_TRIO__MODEL__NAME": "n"}
    assert parse_config(mapping, ".", environ).config.model.name == "n"
    assert mapping == {"model": {"name": "m"}}
    assert len(environ) == 3
