"""The configuration in words: explain, the schema, the reference page, and the commands that print them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hermes_trio.commands.config import config
from hermes_trio.config import EX_CONFIG, parse_config
from hermes_trio.config.explaining import UnknownKey, all_keys, explain, written
from hermes_trio.config.reference import json_schema, markdown_reference

REFERENCE = Path(__file__).parents[2] / "docs" / "configuration.md"

FILE = """\
data_dir = "data"
[model]
name = "of the file"
api_key_env = "KEY"
[delivery]
settle = 50
backoff = 60
[platforms.work]
kind = "telegram"
token = "1:hidden-part"
"""


def facts(text: str) -> dict[str, str]:
    """The named lines of an explanation."""
    lines = text.split("\n\n")[1].splitlines()
    return {name: rest.strip() for name, _, rest in (line.strip().partition("  ") for line in lines)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bot.toml"
    path.write_text(FILE)
    return path


def test_explain_tells_everything_about_a_key(file: Path) -> None:
    """Meaning, type, range with its reason, default, value, its line, and the variable that would override it."""
    text = explain("delivery.settle", written(file, {}))
    assert text.startswith("delivery.settle\n  How long after the start of an attempt of unknown outcome")
    assert facts(text) == {
        "type": 'duration (seconds, or "500ms", "90s", "5m", "24h")',
        "range": "0 s to 3600 s (1 h) (the chat waits this long after every uncertain message)",
        "default": "request_timeout plus lateness of each platform",
        "value": "50 s",
        "from": f"{file}, line 6",
        "environment": "HERMES_TRIO__DELIVERY__SETTLE",
    }


@pytest.mark.parametrize(
    ("key", "value", "origin"),
    [
        ("log.level", '"info"', "the default"),
        ("model.kind", '"openai"', "the default"),
        ("model.name", '"of the environment"', "the environment variable HERMES_TRIO__MODEL__NAME"),
        ("model.api_key", "given (hidden)", "FILE, line 4, key api_key_env"),
        ("model.api_key_env", "given (hidden)", "FILE, line 4, key api_key_env"),
        ("platforms.work.token", "given (hidden)", "FILE, line 10, key token"),
        ("platforms.work.kind", '"telegram"', "FILE, line 9"),
        ("platforms.work.poll_timeout", "30 s", "the default"),
        ("platforms.console.edit_interval", "0.05 s", "the default"),
        ("platforms.telegram.token", "missing", None),
        ("delivery.backoff", "refused: must be 0.001 s to 15 s, not 60 s", "FILE, line 7"),
        ("data_dir", '"DIR/data"', "FILE, line 1"),
    ],
)
def test_explain_says_what_is_in_force_and_who_said_so(file: Path, key: str, value: str, origin: str | None) -> None:
    """Also in a configuration that is refused; a secret is never shown."""
    text = explain(key, written(file, {"HERMES_TRIO__MODEL__NAME": "of the environment", "KEY": "hidden-part"}))
    found = facts(text)
    assert found["value"].startswith(value.replace("DIR", str(file.parent)))
    assert found.get("from") == (origin.replace("FILE", str(file)) if origin else None)
    assert "hidden-part" not in text


def test_without_a_file_the_defaults_are_explained(tmp_path: Path) -> None:
    """A newcomer may ask before there is a file; without [model] the demonstration is what answers."""
    nothing = written(tmp_path / "none.toml", {})
    assert not nothing.exists
    assert facts(explain("model.kind", nothing))["value"] == '"demo"'


@pytest.mark.parametrize("key", [*all_keys(), "model", "platforms", "platforms.work", "model.fallback[0].name"])
def test_every_key_can_be_explained(file: Path, key: str) -> None:
    """No key lacks a meaning."""
    lines = explain(key, written(file, {})).splitlines()
    assert lines[1].strip()
    assert len(lines) > 3


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("delivery.setle", 'there is no key delivery.setle; did you mean "settle"?'),
        ("settle", "there is no key settle; there is delivery.settle"),
        ("platforms.work.poltimeout", 'there is no key platforms.work.poltimeout; did you mean "poll_timeout"?'),
        ("log.level.x", "there is no key log.level.x: log.level is no table"),
        ("", "there is no key without a name"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(file: Path, key: str, reason: str) -> None:
    """`config explain` helps with a slip as the file's check does."""
    with pytest.raises(UnknownKey) as caught:
        explain(key, written(file, {}))
    assert str(caught.value) == reason


def test_the_reference_page_is_the_one_of_the_program() -> None:
    """docs/configuration.md says what the program checks."""
    assert REFERENCE.read_text("utf-8") == markdown_reference()


def test_the_reference_page_names_every_key() -> None:
    """Each key has its row, and the page's example is a configuration without a warning."""
    page = markdown_reference()
    for path in all_keys():
        assert f"| `{path.rpartition('.')[2]}`" in page
    example = page.split("```toml\n")[1].split("```")[0]
    assert parse_config(example, ".", {"TELEGRAM_TOKEN": "1:a"}).warnings == ()


def test_the_module_prints_the_page() -> None:
    """`python -m hermes_trio.config` is how the page is written."""
    done = subprocess.run([sys.executable, "-m", "hermes_trio.config"], capture_output=True, check=True)
    assert done.stdout.decode() == markdown_reference()


def accepted(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Whether the shape of `value` (its keys) is allowed; the few words of JSON Schema that ours consists of."""
    if "$ref" in schema:
        return accepted(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    for word, wanted in (("allOf", all), ("anyOf", any)):
        if word in schema and not wanted(accepted(each, value, root) for each in schema[word]):
            return False
    if "oneOf" in schema and sum(accepted(each, value, root) for each in schema["oneOf"]) != 1:
        return False
    if not set(schema.get("required", ())) <= (set(value) if isinstance(value, dict) else set()):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, list) and "items" in schema:
        return all(accepted(schema["items"], each, root) for each in value)
    if isinstance(value, dict) and "properties" in schema:
        extra = schema.get("additionalProperties", {})
        return all(
            (below := schema["properties"].get(key, extra)) is not False and accepted(below, each, root)
            for key, each in value.items()
        )
    return True


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (FILE, True),
        ("[model]\nfallback = [{ name = 'x' }]", True),
        ("[model]\nfallback = [{ fallback = [] }]", False),
        ("[platforms.telegram]\ntoken_file = 'x'", True),
        ("[platforms.telegram]\nkind = 'console'", True),
        ("[platforms.telegram]\npoll_timeout = 3", False),
        ("[platforms.telegram]\ntoken = '1:a'\ntoken_env = 'T'", False),
        ("[platforms.work]\ntoken = '1:a'", False),
        ("[platforms.console]\npoll_timeout = 3", False),
        ("unknown = 1", False),
    ],
)
def test_the_schema_accepts_the_shapes_that_the_program_accepts(text: str, fits: bool) -> None:
    """An editor that knows the schema marks an unknown or a missing key as the program would."""
    schema = json_schema()
    assert accepted(schema, tomllib.loads(text), schema) == fits


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(config, list(arguments), env=environ)


def test_check_accepts_with_warnings(tmp_path: Path) -> None:
    """Exit 0, one line for each warning, and the file's name."""
    path = tmp_path / "bot.toml"
    path.write_text("[platforms.telegram]\ntoken = '1:hidden-part'\n[access]\nallow = ['*']\n")
    for arguments in (["check", str(path)], ["check", "--config", str(path)]):
        result = run(*arguments)
        assert result.exit_code == 0
        *warnings, last = result.stdout.splitlines()
        assert last == f"ok: {path}"
        assert [line.split(":")[1].strip() for line in warnings] == ["platforms.telegram.token", "model"]
        assert "hidden-part" not in result.output


def test_check_refuses_with_every_mistake(file: Path) -> None:
    """Exit 78 and all mistakes on standard error; so for a file that is not there."""
    result = run("check", str(file))
    assert result.exit_code == EX_CONFIG == 78
    assert result.stdout == ""
    assert f"the configuration {file} has 2 mistakes:" in result.stderr
    assert "model.api_key_env: the environment variable KEY is not set (line 4)" in result.stderr
    missing = run("check", str(file.with_name("none.toml")))
    assert (missing.exit_code, "there is no such file" in missing.stderr) == (EX_CONFIG, True)


def test_the_other_commands(file: Path, tmp_path: Path) -> None:
    """explain, schema and path print what the functions give; a slip in a key is a usage error."""
    assert run("explain", "log.level", "--config", str(file)).stdout == explain("log.level", written(file)) + "\n"
    slip = run("explain", "log.levle", "--config", str(file))
    assert (slip.exit_code, 'did you mean "level"?' in slip.stderr) == (2, True)
    file.write_text("[broken")
    assert run("explain", "log.level", "--config", str(file)).exit_code == EX_CONFIG
    assert json.loads(run("schema").stdout) == json_schema()
    assert run("schema", "--markdown").stdout == markdown_reference()
    path = run("path", XDG_CONFIG_HOME=str(tmp_path)).stdout
    assert path == f"{tmp_path / 'hermes-trio' / 'config.toml'}\n"
