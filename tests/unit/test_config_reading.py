"""The configuration file: what is accepted, what is refused, and in which words."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs.exceptions import FrozenInstanceError
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.config import (
    Config,
    ConfigError,
    ConsoleConfig,
    DeliveryConfig,
    LoadedConfig,
    MissingConfig,
    ModelConfig,
    Secret,
    TelegramConfig,
    default_config_path,
    load_config,
    parse_config,
    report,
)

TOKEN = "12345:AA-secret_part"

WHOLE = f"""
data_dir = "data"

[model]
kind = "openai"
base_url = "http://127.0.0.1:8080/v1/"
name = "small"
api_key = "key-one"
timeout = "5m"
idle_timeout = 20
retries = 1
finish = "optional"
fallback = [{{ base_url = "https://other.example/v1", name = "big", api_key_env = "OTHER_KEY" }}]

[chat]
system = "Be brief."
busy = "queue"
stream = false
placeholder = "..."

[delivery]
reserve = "all"
on_uncertain = "hold"
settle = "2s"
backoff = "500ms"
expire = "24h"

[access]
allow = ["telegram:12345", "work:*"]
owners = ["telegram:1"]

[platforms.telegram]
token = "{TOKEN}"
base_url = "http://127.0.0.1:8081"
poll_timeout = 1
edit_interval = 0
request_timeout = 1
connect_timeout = 0.5
lateness = "1s"

[platforms.work]
kind = "telegram"
token_env = "WORK_TOKEN"
request_timeout = "0.5s"
lateness = 0

[shutdown]
drain = 3

[log]
level = "debug"
format = "json"
"""
ENVIRON = {"OTHER_KEY": "key-two", "WORK_TOKEN": "777:work"}


def parsed(text: str, **environ: str) -> Config:
    return parse_config(text, "/etc/bot", environ).config


def refusals(source: str | Mapping[str, object], **environ: str) -> dict[str, str]:
    """The reason for each path that is refused."""
    with pytest.raises(ConfigError) as caught:
        parse_config(source, "/etc/bot", environ)
    return {problem.path: problem.reason for problem in caught.value.problems}


def test_every_key_is_read() -> None:
    """A file with every key gives exactly what stands in it, durations in seconds."""
    config = parsed(WHOLE, **ENVIRON)
    assert config.data_dir == Path("/etc/bot/data")
    fallback = ModelConfig(base_url="https://other.example/v1", name="big", api_key=Secret("key-two"))
    assert config.model == ModelConfig(
        base_url="http://127.0.0.1:8080/v1",
        name="small",
        api_key=Secret("key-one"),
        timeout=300.0,
        idle_timeout=20.0,
        retries=1,
        finish="optional",
        fallback=(fallback,),
    )
    assert (config.chat.system, config.chat.busy, config.chat.stream) == ("Be brief.", "queue", False)
    assert config.chat.placeholder == "..."
    assert config.delivery == DeliveryConfig(
        reserve="all", on_uncertain="hold", settle=2.0, backoff=0.5, expire=86400.0
    )
    assert config.access.rules.allows("work", "anyone")
    assert config.access.rules.owns("telegram", "1")
    assert config.platforms == {
        "telegram": TelegramConfig(
            token=Secret(TOKEN),
            base_url="http://127.0.0.1:8081",
            poll_timeout=1.0,
            edit_interval=0.0,
            request_timeout=1.0,
            connect_timeout=0.5,
            lateness=1.0,
        ),
        "work": TelegramConfig(token=Secret("777:work"), request_timeout=0.5, lateness=0.0),
    }
    assert (config.shutdown.drain, config.log.level, config.log.format) == (3.0, "debug", "json")


def test_an_empty_file_and_no_arguments_mean_the_same() -> None:
    """The defaults of the file are the defaults of the classes: a demonstration, no account, nobody allowed."""
    assert parsed("") == Config()
    assert Config().model.kind == "demo"
    assert not Config().access.rules.allows("telegram", "1")


def test_the_defaults_fit_together() -> None:
    """A Telegram account with nothing but its token is accepted, and gives Telegram the time that it may need."""
    config = parsed(f'[platforms.telegram]\ntoken = "{TOKEN}"')
    telegram = config.platforms["telegram"]
    assert isinstance(telegram, TelegramConfig)
    assert (telegram.request_timeout, config.delivery.settle) == (10.0, None)
    assert telegram.lateness_within(config.delivery.settle) == 25.0


@pytest.mark.parametrize(
    ("written", "settle", "lateness"),
    [(None, None, 25.0), (None, 60.0, 25.0), (None, 12.0, 2.0), (None, 10.0, 0.0), (3.0, None, 3.0), (3.0, 60.0, 3.0)],
)
def test_a_shorter_settle_time_says_how_late_the_platform_may_be(
    written: float | None, settle: float | None, lateness: float
) -> None:
    """An operator who sets the settle time alone has said how long after a request it may still be carried out."""
    assert TelegramConfig(token=Secret(TOKEN), lateness=written).lateness_within(settle) == lateness


def test_all_mistakes_are_reported_at_once_with_path_reason_and_nearest_word() -> None:
    """An operator with many mistakes learns all of them from one run, contradictions between good keys included."""
    text = """
timeout = 4
[model]
nmae = "x"
kind = "opnai"
[chta]
[delivery]
settle = "2s"
backoff = 60
expire = "tomorrow"
[access]
allow = ["telegram:1", 12345, "tele*:1"]
[platforms.telegram]
token = "1234567"
poll_timeout = 90
request_timeout = "20s"
[platforms.telegrm]
[log]
level = true
"""
    assert refusals(text) == {
        "timeout": "unknown key; it belongs to [model]",
        "chta": 'unknown key; did you mean "chat"?',
        "model.nmae": 'unknown key; did you mean "name"?',
        "model.kind": """must be "openai" or "demo", not 'opnai'; did you mean "openai"?""",
        "delivery.settle": "2 s is too short: write at least 20 s, because platforms.telegram may carry out a "
        "request so long after its start (request_timeout + lateness)",
        "delivery.backoff": "must be 0.001 s to 15 s, not 60 s: a longer pause could outlast the time in which a "
        "platform recognises a repetition",
        "delivery.expire": 'must be a number of seconds, or text such as "500ms", "90s", "5m", "24h" or "7d"',
        "access.allow[1]": 'must be text such as "telegram:12345", not a number',
        "access.allow[2]": '"tele*:1" has a star in its account; write "account:*" or "*"',
        "platforms.telegram.token": "does not look right: a bot's token is digits, a colon and letters, as "
        "@BotFather gives it",
        "platforms.telegram.poll_timeout": "must be 0 s to 50 s, not 90 s: Telegram ends a long poll after 50 seconds",
        "platforms.telegrm.kind": 'missing, and "telegrm" is no kind; it must be "telegram" or "console"; did you '
        'mean "telegram"?',
        "log.level": 'must be "debug", "info", "warning", "error" or "critical", not true or false',
    }


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("model = 'gpt'", "model", "must be a table ([model]), not text"),
        ("[[platforms]]\nkind = 'telegram'", "platforms", "must hold tables ([platforms.NAME]), not an array"),
        ("platforms.telegram = 1", "platforms.telegram", "must be a table ([platforms.telegram]), not a number"),
        ("[platforms.x]\nkind = 7", "platforms.x.kind", 'must be "telegram" or "console", not a number'),
        ("[platforms.x]\nkind = 'irc'", "platforms.x.kind", 'no kind "irc"; it must be "telegram" or "console"'),
        ("[platforms.'a:b']\nkind = 'console'", "platforms.'a:b'", "1 to 64 of the letters"),
        ("[platforms.console]\ntoken = '1:a'", "platforms.console.token", "unknown key"),
        ("[model]\nkind = 'openai'", "model.name", "missing"),
        ("[model]\nname = ' '", "model.name", "missing"),
        ("[model]\nname = 5", "model.name", "must be text in quotes, not a number"),
        ("[model]\nname = 'm'\nretries = 2.0", "model.retries", "must be a whole number"),
        ("[model]\nname = 'm'\nretries = true", "model.retries", "must be a whole number, not true or false"),
        ("[model]\nname = 'm'\nretries = 11", "model.retries", "must be 0 to 10, not 11"),
        ("[model]\nname = 'm'\nbase_url = 'api.example'", "model.base_url", "http:// or https://"),
        ("[model]\nname = 'm'\nbase_url = 'ftp://x'", "model.base_url", "http:// or https://"),
        ("[model]\nname = 'm'\nbase_url = 'http://u:p@x'", "model.base_url", "without user name, password"),
        ("[model]\nname = 'm'\nbase_url = 'http://x/?key=1'", "model.base_url", "without user name, password"),
        ("[model]\nname = 'm'\nbase_url = 'http://x y'", "model.base_url", "without spaces"),
        ("[model]\nname = 'm'\nbase_url = 'http://[x'", "model.base_url", "not a well-formed URL"),
        ("[model]\nname = 'm'\nbase_url = 'http://x:99999'", "model.base_url", "not a well-formed URL"),
        ("[model]\nname = 'm'\nfallback = 'x'", "model.fallback", "array of tables"),
        ("[model]\nname = 'm'\nfallback = [{}]", "model.fallback[0].name", "missing"),
        (
            "[model]\nname = 'm'\nfallback = [{name = 'n', fallback = [{name = 'o'}]}]",
            "model.fallback[0].fallback",
            "no fallback of its own",
        ),
        ("[chat]\nstream = 'yes'", "chat.stream", "true or false without quotes, not text"),
        ("[chat]\nplaceholder = ' '", "chat.placeholder", "must not be empty"),
        (f"[chat]\nplaceholder = '{'x' * 65}'", "chat.placeholder", "at most 64 characters, not 65"),
        ("[delivery]\nsettle = true", "delivery.settle", "not true or false"),
        ("[delivery]\nsettle = nan", "delivery.settle", "sensible number"),
        ("[delivery]\nsettle = inf", "delivery.settle", "sensible number"),
        (f"[delivery]\nsettle = 1{'0' * 400}", "delivery.settle", "sensible number"),
        ("[delivery]\nsettle = -1", "delivery.settle", "0 s to 3600 s (1 h), not -1 s"),
        ("[delivery]\nsettle = '30'", "delivery.settle", "number of seconds, or text such as"),
        ("[delivery]\nsettle = 2020-01-01", "delivery.settle", "not a date or time"),
        ("[delivery]\nexpire = 0", "delivery.expire", "0.001 s to"),
        ("[access]\nallow = '*'", "access.allow", "must be an array"),
        ("data_dir = ''", "data_dir", "must name a directory"),
        ("data_dir = '~nobody-of-this-name/x'", "data_dir", "home directory of a user who has none"),
    ],
)
def test_a_mistake_is_named(text: str, path: str, reason: str) -> None:
    """Each mistake is reported under its own path, and nothing else is."""
    found = refusals(text)
    assert list(found) == [path]
    assert reason in found[path]


@given(st.sampled_from([("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]), st.integers(1, 80))
def test_a_duration_with_a_unit_is_that_many_seconds(unit: tuple[str, float], count: int) -> None:
    """`"90s"` and 90 are the same; so are the other units."""
    name, factor = unit
    written = DeliveryConfig(expire=f"{count}{name}")  # type: ignore[arg-type] # as a file would give it
    assert written.expire == pytest.approx(count * factor)
    assert DeliveryConfig(expire=written.expire) == written


def test_two_accounts_never_share_a_token() -> None:
    """Two receivers on one token would take each other's messages, so the file is refused; the token is not shown."""
    found = refusals(
        f"[platforms.telegram]\ntoken = '{TOKEN}'\n[platforms.b]\nkind = 'telegram'\ntoken_env = 'T'", T=TOKEN
    )
    assert list(found) == ["platforms.b.token"]
    assert TOKEN not in found["platforms.b.token"]


def test_missing_tokens_are_not_called_equal() -> None:
    """Two accounts whose tokens are both missing have two mistakes, not a third for being the same."""
    found = refusals("[platforms.telegram]\ntoken_env = 'A'\n[platforms.b]\nkind = 'telegram'\ntoken_env = 'B'")
    assert list(found) == ["platforms.telegram.token_env", "platforms.b.token_env"]


def test_what_a_file_is_refused_for_a_program_is_refused_for_too() -> None:
    """The classes check themselves when a program constructs them."""
    with pytest.raises(ConfigError, match=r"backoff: must be 0\.001 s to 15 s"):
        DeliveryConfig(backoff=16)
    with pytest.raises(ConfigError, match="token: holds a space"):
        TelegramConfig(token=Secret("a whole sentence"))
    with pytest.raises(ConfigError, match=r"platforms\.telegram\.token: does not look right"):
        Config(platforms={"telegram": TelegramConfig(token=Secret("nonsense"))})
    telegram = TelegramConfig(token=Secret(TOKEN))
    with pytest.raises(ConfigError, match=r"delivery\.settle: 1 s is too short: write at least 10 s"):
        Config(delivery=DeliveryConfig(settle=1), platforms={"telegram": telegram})
    assert Config(platforms={"telegram": telegram, "console": ConsoleConfig()}).platforms["telegram"] == telegram


def test_a_configuration_cannot_be_changed() -> None:
    """Whoever holds a configuration may rely on it."""
    config = Config(platforms={"console": ConsoleConfig()})
    with pytest.raises(FrozenInstanceError):
        config.delivery.settle = 1  # type: ignore[misc] # the point of the test
    with pytest.raises(TypeError):
        config.platforms["other"] = ConsoleConfig()  # type: ignore[index] # the point of the test


def test_a_mapping_is_read_like_a_file() -> None:
    """A program may give the same content as a mapping, with its own environment."""
    mapping = {"data_dir": "x", "platforms": {"telegram": {"token_env": "T"}}}
    config = Config.from_mapping(mapping, "/srv", {"T": TOKEN})
    assert config.data_dir == Path("/srv/x")
    assert config == parse_config(mapping, "/srv", {"T": TOKEN}).config


def load(tmp_path: Path, content: str | bytes, **environ: str) -> LoadedConfig:
    path = tmp_path / "bot.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_config(path, environ)


def test_a_file_is_loaded_with_its_own_directory_as_the_start(tmp_path: Path) -> None:
    """Relative paths start where the file lies, and a byte order mark is no mistake."""
    loaded = load(tmp_path, b'\xef\xbb\xbfdata_dir = "data"\n')
    assert loaded.config.data_dir == tmp_path / "data"
    assert loaded.path == tmp_path / "bot.toml"


def test_the_home_directory_may_be_written_as_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the user's home, in data_dir and in the name of a secret's file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text(TOKEN)
    config = parsed("data_dir = '~/bot'\n[platforms.telegram]\ntoken_file = '~/token'")
    assert config.data_dir == tmp_path / "bot"
    assert config.platforms["telegram"] == TelegramConfig(token=Secret(TOKEN))


def test_mistakes_and_warnings_name_their_line(tmp_path: Path) -> None:
    """The operator is told where to look; a missing key has the line of its table."""
    text = 'data_dir = """\nx\n"""\n\n[platforms.telegram]\npoll_timeout = 99\n\n[access]\nallow = [\n"*",\n7,\n]\n'
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert {problem.path: problem.origin for problem in caught.value.problems} == {
        "platforms.telegram.token": "line 5",
        "platforms.telegram.poll_timeout": "line 6",
        "access.allow[1]": "line 9",
    }
    with pytest.raises(ConfigError, match=r"\(environment HERMES_TRIO__LOG__LEVEL\)"):
        load(tmp_path, "[log]\nlevel = 'info'\n", HERMES_TRIO__LOG__LEVEL="loud")
    loaded = load(tmp_path, f"\n[platforms.telegram]\ntoken = '{TOKEN}'\n")
    assert "line 3" in {warning.origin for warning in loaded.warnings}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"[model\n", "this is not TOML"), (b"a = 1\na = 2\n", "this is not TOML"), (b"x = '\xff'", "not UTF-8 text")],
)
def test_what_is_no_toml_is_refused_in_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    """A broken file is one mistake, with the file's name and the place."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content)
    assert [problem.reason.startswith(("this is not TOML", "the file is")) for problem in caught.value.problems] == [
        True
    ]
    assert reason in str(caught.value)
    assert str(tmp_path / "bot.toml") in str(caught.value)


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    """A program can tell that there is no configuration from a wrong one."""
    with pytest.raises(MissingConfig) as caught:
        load_config(tmp_path / "none.toml", {})
    assert caught.value.path == tmp_path / "none.toml"
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path, {})


def test_the_default_file_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the file in the user's configuration directory is read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = default_config_path()
    assert path == tmp_path / "hermes-trio" / "config.toml"
    path.parent.mkdir()
    path.write_text("[log]\nlevel = 'error'\n")
    assert load_config(environ={}).config.log.level == "error"


def test_the_report_counts_and_lists(tmp_path: Path) -> None:
    """What every command prints: the file, the number of mistakes, and a line for each."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "[log]\nlevel = 'x'\nfromat = 'json'\n")
    headline, *lines = report(caught.value).splitlines()
    assert headline == f"the configuration {tmp_path / 'bot.toml'} has 2 mistakes:"
    assert lines[0] == '  log.fromat: unknown key; did you mean "format"? (line 3)'
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("", "model: missing: the built-in demonstration answers"),
        ("", "platforms: missing"),
        ("[model]\nname = 'm'", "model.api_key: missing"),
        ("[platforms.telegram]\ntoken_env = 'T'", "access.allow: nobody may speak"),
        ("[access]\nallow = ['telgram:1']\n[platforms.telegram]\ntoken_env = 'T'", 'did you mean "telegram"?'),
        ("[access]\nowners = ['*']\n[platforms.telegram]\ntoken_env = 'T'", "access.owners: everyone"),
        ("[platforms.telegram]\ntoken_env = 'T'\nbase_url = 'http://x.example'", "base_url: http sends the secret"),
        ("[platforms.telegram]\ntoken = '1:a'", "platforms.telegram.token: the secret stands in the file"),
    ],
)
def test_what_is_hardly_meant_is_warned_about(text: str, warning: str) -> None:
    """Allowed and yet probably a slip: the operator is told, and the configuration is accepted."""
    assert any(warning in str(each) for each in parse_config(text, ".", {"T": TOKEN}).warnings)


def test_a_good_configuration_has_no_warnings() -> None:
    """A warning means something: the file of the reference page gives none."""
    text = """
[model]
base_url = "http://127.0.0.1:11434/v1"
name = "qwen3"
[access]
allow = ["telegram:12345"]
[platforms.telegram]
token_env = "TELEGRAM_TOKEN"
"""
    assert parse_config(text, ".", {"TELEGRAM_TOKEN": TOKEN}).warnings == ()


def test_a_server_of_ones_own_may_have_tokens_of_its_own_shape() -> None:
    """Only Telegram's own tokens are known to be digits, a colon and letters."""
    text = '[platforms.telegram]\ntoken = "secret"\nbase_url = "http://127.0.0.1:8081"'
    assert parsed(text).platforms["telegram"] == TelegramConfig(
        token=Secret("secret"), base_url="http://127.0.0.1:8081"
    )


@pytest.mark.parametrize(("written", "read"), [("INFO", "info"), ("Warning", "warning"), (" debug ", "debug")])
def test_words_are_read_in_any_case(written: str, read: str) -> None:
    """A level is often written in capitals; it means the same."""
    assert parsed(f'[log]\nlevel = "{written}"').log.level == read
