"""Secrets: three places to keep one, and none that shows it."""

import copy
import json
import pickle
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.config import ConfigError, ModelConfig, Secret, TelegramConfig, parse_config

HIDDEN = "s3cr3t-never-to-be-seen"


def telegram(text: str, base_dir: Path, **environ: str) -> TelegramConfig:
    loaded = parse_config(f"[platforms.telegram]\n{text}\n", base_dir, environ)
    account = loaded.config.platforms["telegram"]
    assert isinstance(account, TelegramConfig)
    return account


def test_a_secret_shows_itself_only_when_asked() -> None:
    """No way of printing a value that holds a secret prints the secret."""
    secret = Secret(HIDDEN)
    model = ModelConfig(name="m", api_key=secret)
    for text in (repr(secret), str(secret), f"{secret}", f"{secret!r:>30}", repr(model), str(attrs.asdict(model))):
        assert HIDDEN not in text
    for dump in (json.dumps, pickle.dumps):
        with pytest.raises(TypeError):
            dump(secret)
    assert secret.reveal() == HIDDEN


def test_secrets_compare_by_their_text() -> None:
    """Two configurations with the same token are equal; a secret equals no text."""
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a") != "a"


def test_a_secret_comes_from_the_key_the_environment_or_a_file(tmp_path: Path) -> None:
    """All three ways give the same; a line end at the end of the file is not part of the secret."""
    (tmp_path / "token").write_bytes(b"1:abc\r\n")
    (tmp_path / "token").chmod(0o600)
    expected = TelegramConfig(token=Secret("1:abc"))
    assert telegram("token = '1:abc'", tmp_path) == expected
    assert telegram("token_env = 'T'", tmp_path, T="1:abc") == expected
    assert telegram("token_file = 'token'", tmp_path) == expected


def test_a_secret_file_that_everyone_may_read_is_warned_about(tmp_path: Path) -> None:
    """Mode 0644 is a warning, mode 0640 is none."""
    path = tmp_path / "token"
    path.write_text("1:abc\n")
    warnings = []
    for mode in (0o644, 0o640):
        path.chmod(mode)
        loaded = parse_config("[platforms.telegram]\ntoken_file = 'token'\n", tmp_path, {})
        warnings.append([each.reason for each in loaded.warnings if each.path == "platforms.telegram.token_file"])
    assert warnings == [["every user of this machine may read the file; chmod 600 it"], []]


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("", "token", "missing: write token_env, token_file or token"),
        ("token = '1:a'\ntoken_env = 'T'", "token", "token and token_env are both given; keep one"),
        ("token_env = 'NOT_SET'", "token_env", "the environment variable NOT_SET is not set"),
        ("token_env = 'EMPTY'", "token_env", "the environment variable EMPTY is empty"),
        ("token_env = 'SPACED'", "token_env", "holds a space"),
        ("token_env = 'no_capitals'", "token_env", "the environment variable is not set"),
        ("token_env = '1:abc'", "token_env", "must be the name of an environment variable, not the secret itself"),
        ("token_env = 7", "token_env", "must be the name of an environment variable, not a number"),
        ("token_file = 'none'", "token_file", "cannot be read: No such file or directory"),
        ("token_file = 'empty'", "token_file", "is empty"),
        ("token_file = 'big'", "token_file", "larger than 65536 bytes"),
        ("token_file = 'two'", "token_file", "holds a space, a line break"),
        ("token_file = '.'", "token_file", "cannot be read: Is a directory"),
        ("token_file = '~nobody-of-this-name/t'", "token_file", "must be the name of a file"),
        ("token_file = 7", "token_file", "must be the name of a file, not a number"),
        ("token = 7", "token", "must be text in quotes, not a number"),
        ("token = ''", "token", "is empty"),
    ],
)
def test_a_secret_that_cannot_be_had_is_a_mistake(tmp_path: Path, text: str, path: str, reason: str) -> None:
    """The mistake is reported when the file is read, not when the platform refuses."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "big").write_text("x" * 65537)
    (tmp_path / "two").write_text("1:a\n2:b\n")
    with pytest.raises(ConfigError) as caught:
        telegram(text, tmp_path, EMPTY="", SPACED="1: a")
    assert [problem.path for problem in caught.value.problems] == [f"platforms.telegram.{path}"]
    assert reason in caught.value.problems[0].reason


@given(
    key=st.sampled_from(["token", "token_env", "token_file", "base_url"]),
    hidden=st.sampled_from([HIDDEN, HIDDEN.replace("-", "_"), HIDDEN.replace("-", "")]),
    around=st.sampled_from(["{}", " {}", "{}\n", "x:{}", "1:{}/x", "{}é", "http://{}@h", "http://h/?{}", "~{}/x"]),
)
def test_a_misplaced_secret_is_never_quoted(key: str, hidden: str, around: str) -> None:
    """Whatever is wrong with it, and into whichever key it was pasted: no message shows a secret."""
    mapping = {"platforms": {"telegram": {key: around.format(hidden)}}}
    with pytest.raises(ConfigError) as caught:
        parse_config(mapping, ".", {})
    assert hidden not in str(caught.value)
    assert hidden not in repr(caught.value)


@pytest.mark.parametrize("value", ["7:good", f"bad {HIDDEN}", f"{HIDDEN}\n"])
def test_a_secret_in_the_environment_is_never_quoted(value: str) -> None:
    """Neither as an override nor through `token_env`, accepted or refused."""
    for text, name in (("token_env = 'T'", "T"), ("", "HERMES_TRIO__PLATFORMS__TELEGRAM__TOKEN")):
        try:
            shown = repr(telegram(text, Path("."), **{name: value}))
        except ConfigError as error:
            shown = str(error) + repr(error)
        assert value.strip() not in shown


def test_an_optional_key_may_be_left_out() -> None:
    """A model server on one's own machine needs no key."""
    assert parse_config("[model]\nname = 'm'", ".", {}).config.model.api_key is None


def test_a_secret_may_be_copied_within_the_program() -> None:
    """Copying a configuration keeps its secrets usable."""
    model = ModelConfig(name="m", api_key=Secret(HIDDEN))
    assert attrs.evolve(model, name="n").api_key == copy.copy(model).api_key == Secret(HIDDEN)
