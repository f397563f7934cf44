"""From the configuration to the parts of a runtime: adapters, models, tools, rules, the wire as delivery sees it.

Each function makes one part and starts nothing. `runtime` joins them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from attrs import evolve

from hermes_trio.access import Access
from hermes_trio.clock import Ids
from hermes_trio.config import Config, ConsoleConfig, ModelConfig, PlatformConfig, TelegramConfig
from hermes_trio.conversation import notices
from hermes_trio.conversation.admission import Rules
from hermes_trio.conversation.commands import Facts
from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.lane import Notices
from hermes_trio.delivery.view import Wire
from hermes_trio.http import HttpClient
from hermes_trio.model.base import Model
from hermes_trio.model.demo import DemoModel
from hermes_trio.model.fallback import FallbackModel
from hermes_trio.model.openai import OpenAIModel
from hermes_trio.platforms.base import Capabilities, Platform
from hermes_trio.platforms.console import SENDER, console_platform
from hermes_trio.platforms.script import SCRIPT
from hermes_trio.platforms.script import SENDER as PROGRAM
from hermes_trio.platforms.telegram import TelegramPlatform
from hermes_trio.tools.base import Tool
from hermes_trio.tools.clock import ClockTool
from hermes_trio.tools.terminal import TerminalTool

MAX_BACKOFF_DOWN = 5.0
"""Seconds between two attempts while nothing leaves, at most: the platform may be back any moment."""
MARKED_COPIES = 2
"""Marked copies of unknown outcome before a delivery is held for the operator."""


def owned_consoles(config: Config) -> Config:
    """Whoever sits at the terminal that the program runs on is an owner there; no pattern needs to say so."""
    consoles = (name for name, table in config.platforms.items() if isinstance(table, ConsoleConfig))
    owners = (*config.access.owners, *(f"{name}:{SENDER}" for name in consoles))
    return evolve(config, access=evolve(config.access, owners=owners))


def with_program(access: Access) -> Access:
    """The program's own questions need no pattern."""
    return evolve(access, allow={*access.allow, f"{SCRIPT}:{PROGRAM}"})


def platform_of(name: str, table: PlatformConfig, client: HttpClient, settle: float | None, ids: Ids) -> Platform:
    """The adapter of a `[platforms.NAME]` table. settle: the operator's settle time."""
    match table:
        case TelegramConfig():
            return TelegramPlatform(
                client,
                name,
                table.token.reveal(),
                base_url=table.base_url,
                poll_timeout=table.poll_timeout,
                request_timeout=table.request_timeout,
                connect_timeout=table.connect_timeout,
                edit_interval=table.edit_interval,
                lateness=table.lateness_within(settle),
            )
        case ConsoleConfig():
            return console_platform(name, ids(), edit_interval=table.edit_interval)
    raise AssertionError(f"no adapter for {type(table).__name__}")


def models_of(table: ModelConfig, client: HttpClient) -> Mapping[str, Model]:
    """The models of a `[model]` table by name, the configured one first."""
    return {model.name: model for model in (model_of(each, client) for each in (table, *table.fallback))}


def first_of(models: Mapping[str, Model]) -> Model:
    """The model that answers unless a session chose another: the configured one, with its fallbacks."""
    listed = tuple(models.values())
    return listed[0] if len(listed) == 1 else FallbackModel(listed)


def tools_of(config: Config) -> Sequence[Tool]:
    """The built-in tools that the configuration allows."""
    terminal = config.tools.terminal
    return [ClockTool(), *([TerminalTool(terminal.directory, terminal.timeout)] if terminal.enabled else [])]


def rules_of(account: Account, config: Config, models: tuple[str, ...]) -> Rules:
    """How an account admits messages."""
    table = config.platforms.get(account.name)
    busy = config.chat.busy if table is None or table.busy is None else table.busy
    return Rules(
        account=account,
        registry=REGISTRY,
        facts=Facts(config.access.rules, models, busy),
        reserve=config.delivery.reserve == "all",
        always=config.chat.groups == "always",
        others_interrupt=config.chat.others_interrupt,
    )


def model_of(table: ModelConfig, client: HttpClient) -> Model:
    """The model of one table, without its fallbacks, over an HTTP client that must stay open."""
    if table.kind == "demo":
        return DemoModel()
    return OpenAIModel(
        client,
        table.base_url,
        table.name,
        None if table.api_key is None else table.api_key.reveal(),
        timeout=table.timeout,
        idle_timeout=table.idle_timeout,
        finish=table.finish,
        images=table.images,
    )


def wire_of(capabilities: Capabilities, config: Config) -> Wire:
    """What the delivery core must know of an account: the wire's facts and the operator's choices."""
    delivery = config.delivery
    return Wire(
        edits=capabilities.edits,
        deletes=capabilities.deletes,
        key_window=capabilities.key_window,
        lookup=capabilities.lookup,
        request_timeout=capabilities.request_timeout,
        lateness=capabilities.lateness,
        settle_time=delivery.settle,
        marked_copies=0 if delivery.on_uncertain == "hold" else MARKED_COPIES,
        max_backoff=delivery.backoff,
        max_backoff_down=min(delivery.backoff, MAX_BACKOFF_DOWN),
        placeholder=config.chat.placeholder,
    )


def notices_of(account: Account, config: Config) -> Notices:
    """The words for what was abandoned. They do not expire: a chat that comes back late still learns of it."""
    return Notices(
        expired=evolve(account.plan(notices.EXPIRED), expire=inf),
        refused=evolve(account.plan(notices.PART_REFUSED), expire=inf),
        reserve=config.delivery.reserve == "all",
    )
