"""`python -m hermes_trio` without a command: whatever is most useful with what there is.

With a configuration it is `run`, or `chat` where the configuration names no account. Without one it is a chat on this
terminal: with the model that OPENAI_API_KEY opens, else with the built-in demo model. Without a terminal and without
any input it plays the demonstration once. The rule that must not be broken: it always says what it has chosen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import click
from attrs import evolve

from hermes_trio.assembly import model_of
from hermes_trio.commands.chat import converse, in_trio
from hermes_trio.commands.probe import ProbeFailed, name_model, probe_model
from hermes_trio.commands.run import EX_UNAVAILABLE
from hermes_trio.config import (
    EX_CONFIG,
    Config,
    ConfigError,
    MissingConfig,
    ModelConfig,
    Secret,
    load_config,
    parse_config,
    report,
)
from hermes_trio.config.schema import OPENAI
from hermes_trio.http import open_http_client

FIRST_READ = 65536
"""Bytes."""
DEMO_LINES = (
    "hermes_trio: a chat on this terminal. There is no language model here, the built-in demo model answers.",
    "For a real one set OPENAI_API_KEY and start again, or write a configuration with `hermes-trio init`.",
)
DEMO_HINT = "Say `help` to see what to try, `/demo crash` to see a crash survived, and end with Ctrl-D."
MODEL_HINT = "`/help` lists the commands, `/demo crash` shows a crash survived, Ctrl-D ends."


@click.command(hidden=True)
@click.pass_context
def start(ctx: click.Context) -> None:
    """What happens without a command."""
    try:
        config = _load()
    except ConfigError as error:
        click.echo(report(error), err=True)
        raise SystemExit(EX_CONFIG) from None
    if config is not None:
        _invoke(ctx, "run" if config.platforms else "chat")
        return
    begun = b""
    if not os.isatty(0):
        begun = os.read(0, FIRST_READ)
        if not begun:
            click.echo("Neither a terminal nor input: this is the demonstration.")
            _invoke(ctx, "demonstration")
            return
    try:
        config = parse_config({}).config
    except ConfigError as error:
        click.echo(report(error), err=True)
        raise SystemExit(EX_CONFIG) from None
    raise SystemExit(in_trio(chat_unconfigured, config, os.environ, begun))


def _load() -> Config | None:
    """The user's configuration; None when there is none."""
    try:
        return load_config().config
    except MissingConfig:
        return None


def _invoke(ctx: click.Context, name: str) -> None:
    """Another command, which is imported only now."""
    group = ctx.parent.command if ctx.parent is not None else None
    assert isinstance(group, click.Group)
    command = group.get_command(ctx, name)
    assert command is not None
    ctx.invoke(command)


async def chat_unconfigured(config: Config, environ: Mapping[str, str], begun: bytes) -> int:
    """The chat without a configuration; returns the exit status. begun: what was read of standard input already."""
    try:
        config, opening = await choose_model(config, environ)
    except ProbeFailed as failure:
        if begun:  # a script must not take the demonstration's words for the model's
            click.echo(str(failure), err=True)
            return EX_UNAVAILABLE
        opening = (str(failure), *DEMO_LINES[:1])
    hint = DEMO_HINT if config.model.kind == "demo" else MODEL_HINT
    return await converse(config, (*opening, hint), begun)


async def choose_model(config: Config, environ: Mapping[str, str]) -> tuple[Config, tuple[str, ...]]:
    """The configuration with the model that the environment opens, and what to say of the choice.

    Raises ProbeFailed when the environment names one that does not work.
    """
    key, base_url = environ.get("OPENAI_API_KEY", ""), environ.get("OPENAI_BASE_URL", "") or OPENAI
    if config.model.kind != "demo" or not (key or environ.get("OPENAI_BASE_URL")):
        return config, DEMO_LINES
    try:
        table = ModelConfig(
            base_url=base_url, name=environ.get("OPENAI_MODEL", "") or "-", api_key=Secret(key) if key else None
        )
        async with open_http_client() as client:
            table = await name_model(client, table, environ.get("OPENAI_MODEL", ""))
            await probe_model(model_of(table, client))
    except (ProbeFailed, ConfigError) as error:
        reason = str(error) if isinstance(error, ProbeFailed) else error.problems[0].reason
        raise ProbeFailed(f"The model at {base_url} does not work: {reason}") from None
    words = f"hermes_trio: a chat on this terminal. {table.name} answers, at {base_url}; it was tried just now."
    return evolve(config, model=table), (words,)
