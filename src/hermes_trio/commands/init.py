"""`hermes-trio init`: writes a configuration that works.

It asks for what only the operator knows, or takes it from options and the environment, tries the model and the token
for real, and writes the file only then. The rule that must not be broken: nothing that exists is overwritten without
--force, and no secret stands in the configuration: it names an environment variable, or a file that only its owner
reads.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import trio
from attrs import evolve, frozen

from hermes_trio.assembly import model_of
from hermes_trio.commands.probe import DEFAULT_MODEL, Bot, ProbeFailed, name_model, probe_model, probe_telegram
from hermes_trio.config import (
    EX_CONFIG,
    ConfigError,
    ModelConfig,
    Secret,
    default_config_path,
    parse_config,
    report,
)
from hermes_trio.config.schema import OPENAI, TELEGRAM
from hermes_trio.http import open_http_client

KEY_VARIABLE, TOKEN_VARIABLE = "OPENAI_API_KEY", "TELEGRAM_TOKEN"
FIND_ID = "Write to the bot while it runs: its log says `ignored a stranger` with your id."
KEY_FILE, TOKEN_FILE = "model.key", "telegram.token"
"""Where a secret goes that did not come from the environment: beside the configuration."""


@frozen
class SecretFrom:
    """A secret and where the configuration will say that it comes from."""

    secret: Secret
    variable: str | None
    """The environment variable; None: a file of our own."""


@frozen
class Wishes:
    """What the operator wants."""

    path: Path
    model_url: str
    model_name: str
    key: SecretFrom | None
    token: SecretFrom | None
    telegram_url: str
    allow: tuple[str, ...]


def _user(text: str) -> str:
    """A Telegram user id, or "*"; empty for none. Raises click.BadParameter, after which a terminal asks again."""
    user = text.strip().removeprefix("telegram:")
    if user in ("", "*") or (user.isascii() and user.isdecimal()):
        return user
    raise click.BadParameter(f"{user!r} is no Telegram user id: it is a number such as 12345, no name. {FIND_ID}")


def _users(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(user for user in map(_user, given) if user)


@click.command(short_help="Write a configuration, after trying model and token.")
@click.option("--config", "path", type=click.Path(path_type=Path), help="The file to write.")
@click.option("--model-url", help=f"The root of the model server's API.  [default: {OPENAI}]")
@click.option("--model-name", help="The model's name; by default the first that the server offers.")
@click.option("--model-key", help=f"The key; better in {KEY_VARIABLE}, because options are seen by everyone.")
@click.option("--telegram-token", help=f"The bot's token; better in {TOKEN_VARIABLE}. Empty: no Telegram.")
@click.option("--telegram-url", default=TELEGRAM, help="The root of the Bot API.", show_default=True)
@click.option(
    "--allow", multiple=True, metavar="ID", callback=_users, help="A Telegram user who may speak; may be repeated."
)
@click.option("--no-test", is_flag=True, help="Write without trying the model and the token.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def init(
    path: Path | None,
    model_url: str | None,
    model_name: str | None,
    model_key: str | None,
    telegram_token: str | None,
    telegram_url: str,
    allow: tuple[str, ...],
    no_test: bool,
    force: bool,
) -> None:
    """Write a commented configuration, after trying the model and the token.

    Asks for what is missing when it runs on a terminal; else takes options, OPENAI_API_KEY, OPENAI_BASE_URL,
    OPENAI_MODEL and TELEGRAM_TOKEN.
    """
    ask = _Asker(os.environ, interactive=sys.stdin.isatty())
    target = path or default_config_path()
    _refuse_existing((target,), force)
    url = model_url or ask("Model server", "OPENAI_BASE_URL", OPENAI)
    key = ask.secret(model_key, "Its key (empty: it needs none)", KEY_VARIABLE)
    name = model_name or ask("Model name (empty: the first that the server offers)", "OPENAI_MODEL", "")
    token = ask.secret(telegram_token, "Telegram token from @BotFather (empty: no Telegram)", TOKEN_VARIABLE)
    if token is not None and not allow and ask.interactive:
        question = "Your Telegram user id, a number (empty: nobody may speak yet)"
        user = click.prompt(question, default="", show_default=False, value_proc=_user)
        allow = (user,) if user else ()
    wishes = Wishes(target, url, name, key, token, telegram_url, tuple(f"telegram:{each}" for each in allow))
    secrets = _secret_files(wishes)
    _refuse_existing(secrets, force)
    try:
        wishes, bot = trio.run(_tried, wishes, not no_test)
    except ProbeFailed as error:
        click.echo(f"{error}\nNothing was written. With --no-test it is written untried.", err=True)
        raise SystemExit(1) from None
    text = configuration(wishes, bot)
    _check(text, wishes)
    try:
        for file, content in {**secrets, target: text}.items():
            _write(file, content)
    except OSError as error:
        click.echo(f"{target} cannot be written: {error.strerror}", err=True)
        raise SystemExit(1) from None
    _say_what_next(wishes, bot, written=path is not None)


class _Asker:
    """Takes an answer from the environment, from the operator, or the default."""

    def __init__(self, environ: Mapping[str, str], *, interactive: bool) -> None:
        self._environ = environ
        self.interactive = interactive

    def __call__(self, question: str, variable: str, default: str) -> str:
        if self._environ.get(variable):
            return self._environ[variable]
        return str(click.prompt(question, default=default, show_default=bool(default))) if self.interactive else default

    def secret(self, given: str | None, question: str, variable: str) -> SecretFrom | None:
        """given: by an option; an empty one means none."""
        if given is not None:
            return SecretFrom(Secret(given), None) if given else None
        if self._environ.get(variable):
            click.echo(f"{variable} is set; the configuration will name it.")
            return SecretFrom(Secret(self._environ[variable]), variable)
        if not self.interactive:
            return None
        answer = click.prompt(question, default="", show_default=False, hide_input=True).strip()
        return SecretFrom(Secret(answer), None) if answer else None


async def _tried(wishes: Wishes, test: bool) -> tuple[Wishes, Bot | None]:
    """The wishes with the model's name, and who the bot is, tried for real. Raises ProbeFailed."""
    key = wishes.key.secret if wishes.key else None
    if not test:
        return evolve(wishes, model_name=wishes.model_name or DEFAULT_MODEL), None
    bot = None
    async with open_http_client() as client:
        try:
            table = ModelConfig(base_url=wishes.model_url, name=wishes.model_name or "-", api_key=key)
            table = await name_model(client, table, wishes.model_name)
            click.echo(f"Trying {table.name} at {table.base_url} ... ", nl=False)
            await probe_model(model_of(table, client))
        except ProbeFailed as error:
            raise ProbeFailed(f"The model does not work: {error}") from None
        except ConfigError as error:
            raise ProbeFailed(report(error)) from None
        click.echo("it answers.")
        if wishes.token is not None:
            click.echo(f"Trying the token at {wishes.telegram_url} ... ", nl=False)
            bot = await probe_telegram(client, wishes.telegram_url, wishes.token.secret)
            click.echo(f"it is @{bot.username}.")
    return evolve(wishes, model_name=table.name), bot


def configuration(wishes: Wishes, bot: Bot | None) -> str:
    """The text of the file."""
    lines = [
        "# The configuration of hermes_trio. `hermes-trio config explain KEY` explains a key.",
        "",
        '# data_dir = "..."           # where the database lies; by default the user\'s data directory',
        "",
        "[model]",
        "# Any server with OpenAI's chat completions API.",
        f"base_url = {_quoted(wishes.model_url)}",
        f"name = {_quoted(wishes.model_name)}",
        _source("api_key", wishes.key, KEY_FILE, "the server needs no key"),
        "",
        "[chat]",
        '# busy = "interrupt"          # or "queue" or "steer": what a message does while an answer is written',
        "",
        "[access]",
        '# Who may speak to the bot; everyone else is ignored. A user\'s id on an account, or "telegram:*".',
        f"allow = [{', '.join(map(_quoted, wishes.allow))}]",
        "",
    ]
    if wishes.token is not None:
        lines += [
            "[platforms.telegram]" + (f"           # @{bot.username}" if bot else ""),
            'kind = "telegram"',
            _source("token", wishes.token, TOKEN_FILE, ""),
            *([f"base_url = {_quoted(wishes.telegram_url)}"] if wishes.telegram_url != TELEGRAM else []),
            "",
        ]
    return "\n".join(lines)


def _source(key: str, given: SecretFrom | None, file: str, without: str) -> str:
    if given is None:
        return f'# {key}_env = "..."         # {without}'
    return f"{key}_env = {_quoted(given.variable)}" if given.variable else f"{key}_file = {_quoted(file)}"


def _quoted(text: str) -> str:
    """A TOML string: JSON's escapes are among TOML's."""
    return json.dumps(text)


def _secret_files(wishes: Wishes) -> dict[Path, str]:
    """The files that hold the secrets which came from no environment variable."""
    given = {KEY_FILE: wishes.key, TOKEN_FILE: wishes.token}
    return {
        wishes.path.parent / name: f"{each.secret.reveal()}\n"
        for name, each in given.items()
        if each is not None and each.variable is None
    }


def _refuse_existing(files: Mapping[Path, str] | tuple[Path, ...], force: bool) -> None:
    for file in files:
        if file.exists() and not force:
            click.echo(f"{file} exists; --force replaces it. Nothing was written.", err=True)
            raise SystemExit(1)


def _check(text: str, wishes: Wishes) -> None:
    """Refuses what `run` would refuse, before it is written."""
    stand_ins = {KEY_VARIABLE: "stand-in", TOKEN_VARIABLE: "0:stand-in"}
    written = text.replace(f"_file = {_quoted(KEY_FILE)}", f"_env = {_quoted(KEY_VARIABLE)}")
    written = written.replace(f"_file = {_quoted(TOKEN_FILE)}", f"_env = {_quoted(TOKEN_VARIABLE)}")
    given = {KEY_VARIABLE: wishes.key, TOKEN_VARIABLE: wishes.token}
    secrets = {name: each.secret.reveal() for name, each in given.items() if each is not None}
    try:
        parse_config(written, wishes.path.parent, {**stand_ins, **secrets})
    except ConfigError as error:
        click.echo(f"{report(error)}\nNothing was written.", err=True)
        raise SystemExit(EX_CONFIG) from None


def _write(path: Path, text: str) -> None:
    """Puts a file in its place at once, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def _say_what_next(wishes: Wishes, bot: Bot | None, *, written: bool) -> None:
    option = f" --config {wishes.path}" if written else ""
    click.echo(f"Wrote {wishes.path}.")
    if wishes.token is None:
        click.echo(f"Next: hermes-trio chat{option}")
        return
    click.echo(f"Next: hermes-trio run{option}" + (f", then write to @{bot.username}" if bot else ""))
    if not wishes.allow:
        click.echo(
            f'Nobody may speak to it yet. {FIND_ID}\nAdd it as "telegram:ID" to [access] allow in {wishes.path}.'
        )
