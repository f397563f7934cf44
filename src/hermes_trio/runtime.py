"""The runtime: the task tree, and the only room that joins the others.

    open_runtime
     └─ ledger                       outlives everything else
         └─ inner nursery
             ├─ courier              lanes
             ├─ supervisors          one for each account
             ├─ conversations        one for each active address
             └─ control socket       what other processes ask

Cancelling the block of `open_runtime` from outside equals a crash: nothing more is committed, and the next start
recovers. `Runtime.drain` is the polite end.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

import httpcore
import structlog
import trio
from attrs import field, frozen

from hermes_trio.agent import Agent
from hermes_trio.assembly import (
    first_of,
    models_of,
    notices_of,
    owned_consoles,
    platform_of,
    rules_of,
    tools_of,
    wire_of,
    with_program,
)
from hermes_trio.clock import Clock, Ids, SystemClock, random_id
from hermes_trio.config import Config, LogConfig
from hermes_trio.control.asking import Asker
from hermes_trio.control.desk import Desk
from hermes_trio.control.life import LifeOnly
from hermes_trio.control.protocol import SOCKET_NAME
from hermes_trio.control.server import serve_control
from hermes_trio.conversation.actor import Conversations
from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.conversation.ingress import Ingress
from hermes_trio.conversation.supervisor import Supervisor
from hermes_trio.conversation.turn import TurnPorts, TurnRunner, TurnSettings
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.delivery.operating import Delivery
from hermes_trio.http import open_http_client
from hermes_trio.ledger import (
    FILE_NAME,
    Executor,
    Ledger,
    accounts,
    connect,
    hold_lock,
    open_ledger,
    open_thread_executor,
)
from hermes_trio.ledger.accounts import Life
from hermes_trio.logs import Enduring
from hermes_trio.model.base import Model
from hermes_trio.platforms.base import Platform
from hermes_trio.platforms.script import SCRIPT, ScriptPlatform
from hermes_trio.tools.base import Tool
from hermes_trio.values import Address

LOCK_NAME = "state.db.lock"
LONG_DELIVERY = 1.0
"""Seconds after which a command that delivers without a bot connects to the account, to see whether it lives."""
MODEL_CONNECTIONS = 4096
"""Model streams at a time, over a client of their own, so that they never keep a chat from a connection. Each open turn
needs one, and one that gets none fails; so the limit is far above what a machine can serve."""

log = structlog.get_logger(__name__)

OpenExecutor = Callable[[Path, Clock], AbstractAsyncContextManager[Executor]]


@asynccontextmanager
async def _open_disk(data_dir: Path, clock: Clock) -> AsyncIterator[Executor]:
    """The executor of a real database in `data_dir`, under its lock."""
    with hold_lock(data_dir / LOCK_NAME):
        async with open_thread_executor(partial(connect, data_dir / FILE_NAME), clock.now) as executor:
            yield executor


@frozen
class Ports:
    """Time, chance, network and storage: production's by default, a simulated world's in tests."""

    clock: Clock = field(factory=SystemClock)
    ids: Ids = random_id
    chance: Callable[[], float] = random.random
    """A number from 0 to 1, for jitter."""
    open_executor: OpenExecutor = _open_disk
    network: httpcore.AsyncNetworkBackend | None = None
    """Replaces the sockets of the HTTP client."""


class Runtime:
    """A running bot. Made by `open_runtime`; valid inside its block."""

    def __init__(
        self,
        conversations: Conversations,
        courier: Courier,
        receiving: trio.CancelScope,
        turns: trio.CancelScope,
        desk: Desk,
        asker: Asker,
    ) -> None:
        self._conversations = conversations
        self._courier = courier
        self._receiving = receiving
        self._turns = turns
        self._desk = desk
        self._asker = asker

    async def ask(self, text: str, *, session: str = "default", key: str | None = None) -> str:
        """The model's answer to a question of the program itself, as Markdown.

        The question goes the way of every message: it is durable before the model is asked, its turn may use the
        tools, and a restart goes on with it. session: which conversation it belongs to; questions of one session are
        answered one after the other and remember each other. key: the same key of a session is the same question, and
        has one answer, however often and in whichever life of the process it is asked; the text of the first counts.
        The text is always a question, never a command. Cancelled: the question stays asked. Raises AskFailed when
        there is no answer, AskInterrupted when the runtime ends first, RequestRefused for what cannot be asked.
        """
        return await self._asker.ask(text, session, key)

    async def send(self, address: Address | str, text: str, *, key: str | None = None, wait: bool = False) -> Delivery:
        """Sends `text` (Markdown) to an address such as "telegram:12345", once for this key.

        Returns when it is durable that it will be delivered; with `wait`, when it has been delivered, abandoned or
        held, which may be long while a platform cannot be reached. key: at one address the same key is the same
        message, however often it is sent, also after a restart; the text of the first counts. Cancelled: it is sent,
        or nothing happened; the same key tells. Raises RequestRefused for an unknown account, an address that is
        none, and a blank text; SendInterrupted when the runtime ends before the end that was waited for.
        """
        return await self._desk.send(address, text, key, wait=wait)

    async def deliveries(self, *, everything: bool = False) -> tuple[Delivery, ...]:
        """What waits for the operator (held or abandoned), newest first, at most 200.

        everything: also what is on its way, and what the operator has seen to.
        """
        return await self._desk.deliveries(everything)

    async def resend(self, delivery: str, *, wait: bool = False) -> Delivery:
        """Lets a held delivery go on with one more marked copy, or sends the text of an abandoned one again.

        delivery: its id. Of an abandoned one the new delivery is returned, marked if a copy may be on screen. wait:
        as for `send`. Cancelled: as for `send`. Raises RequestRefused for any other delivery, SendInterrupted as
        `send` does.
        """
        return await self._desk.resend(delivery, wait=wait)

    async def drop(self, delivery: str) -> Delivery:
        """Gives a held delivery up, or takes an abandoned one off the list. Raises RequestRefused for any other."""
        return await self._desk.drop(delivery)

    async def wait_idle(self) -> None:
        """Returns when no turn runs or waits, and no delivery is due now, or when the runtime ends.

        Cancelled: nothing changes.
        """
        with self._desk.ending.cuts_short():
            await self._conversations.wait_idle()
            await self._courier.wait_idle()

    async def drain(self, seconds: float) -> None:
        """Ends politely: receives no more, lets turns and deliveries finish for `seconds`, then stops the rest.

        What is unfinished then stays open in the ledger, and the next start goes on with it. Requests in flight end
        under their own deadline. Cancelled: equals a crash.
        """
        with self._desk.ending.cuts_short():
            await self._drain(seconds)
        self._desk.ending.announce()

    async def _drain(self, seconds: float) -> None:
        self._receiving.cancel()
        self._conversations.close()
        with trio.move_on_after(seconds):
            await self._conversations.wait_idle()
            await self._courier.wait_idle()
        self._turns.cancel()
        await self._conversations.wait_idle()
        await self._courier.close()


@frozen
class _Delivering:
    """The part of the task tree that delivers; it works without conversations, too."""

    ledger: Ledger
    courier: Courier
    known: Mapping[str, Account]
    """All accounts, that of the program's own questions among them."""
    script: ScriptPlatform
    life: Life
    desk: Desk
    nursery: trio.Nursery


@asynccontextmanager
async def _open_delivering(
    config: Config, ports: Ports, platforms: Mapping[str, Platform], *, only: Address | None = None
) -> AsyncIterator[_Delivering]:
    """The ledger and the courier, recovered and running."""
    async with (
        open_http_client(ports.network) as client,
        ports.open_executor(config.data_dir, ports.clock) as executor,
        open_ledger(executor) as ledger,
        trio.open_nursery() as nursery,
    ):
        begin = accounts.begin_life if only is None else accounts.begin_visit
        life = await ledger.insist(begin, ports.clock.now())
        configured = {
            name: platform_of(name, table, client, config.delivery.settle, ports.ids)
            for name, table in config.platforms.items()
        }
        script = ScriptPlatform()
        known = {
            name: Account(name, platform, wire_of(platform.capabilities, config), config.delivery.expire)
            for name, platform in {**configured, **platforms, SCRIPT: script}.items()
        }
        words = {name: notices_of(each, config) for name, each in known.items()}
        courier = Courier(ledger, ports.clock, known, words, only=only)
        await courier.recover(life.stepped)
        nursery.start_soon(courier.run, name="courier")
        reachable = {name: account for name, account in known.items() if name != SCRIPT}
        desk = Desk(ledger, courier, ports.clock, ports.ids, reachable, config.delivery.reserve == "all")
        try:
            yield _Delivering(ledger, courier, known, script, life, desk, nursery)
        finally:
            desk.ending.announce()  # however the block ends: who waits outside it must not wait for ever
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_desk(config: Config, only: Address, *, ports: Ports | None = None) -> AsyncIterator[Desk]:
    """Delivers to one address while the block runs, and does nothing else: for a command that found no bot running.

    No message is accepted and no turn runs. Leaving the block lets a request in flight end. Raises LedgerLocked and
    LedgerUnusable.
    """
    ports = ports or Ports()
    async with _open_delivering(config, ports, {}, only=only) as delivering:
        account = delivering.desk.accounts.get(only.account)
        if account is not None:
            delivering.nursery.start_soon(_listen_for_life, delivering, account, ports.chance)
        yield delivering.desk
        await delivering.courier.close()


@asynccontextmanager
async def open_runtime(
    config: Config,
    *,
    ports: Ports | None = None,
    model: Model | None = None,
    tools: Sequence[Tool] | None = None,
    platforms: Mapping[str, Platform] | None = None,
) -> AsyncIterator[Runtime]:
    """A bot that runs while the block does.

    model, tools: instead of what the configuration names. platforms: besides what it names, by account. Entering
    returns when the ledger is recovered and everything has started. Raises LedgerLocked and LedgerUnusable when the
    database cannot be used. Leaving the block cancels what still runs; call `drain` before for a polite end.
    """
    ports = ports or Ports()
    config = owned_consoles(config)
    _keep_off_stdout(config.log)
    async with (
        open_http_client(ports.network, connections=MODEL_CONNECTIONS) as model_client,
        _open_delivering(config, ports, platforms or {}) as delivering,
    ):
        ledger, courier, nursery = delivering.ledger, delivering.courier, delivering.nursery
        models = models_of(config.model, model_client) if model is None else {model.name: model}
        agent = Agent(
            first_of(models),
            {tool.spec.name: tool for tool in (tools_of(config) if tools is None else tools)},
            config.model.retries,
            ports.chance,
        )
        log.info(
            "started", life=delivering.life.number, accounts=list(delivering.desk.accounts), model=agent.model.name
        )
        turns: trio.Nursery = await nursery.start(_hold_nursery, name="conversations")
        reserve_control = config.delivery.reserve == "all"
        sees = any(table.images for table in (config.model, *config.model.fallback))
        settings = TurnSettings(config.chat.system, config.chat.stream, config.model.context, reserve_control, sees)
        shared = TurnPorts(ledger, courier, ports.clock, ports.ids, agent, models, settings)
        conversations = Conversations(
            turns,
            ledger,
            courier,
            ports.clock,
            ports.ids,
            with_program(config.access.rules),
            delivering.known,
            partial(TurnRunner, shared),
            reserve=config.delivery.reserve != "off",
            previous_death=delivering.life.previous_death,
        )
        await conversations.recover()
        nursery.start_soon(conversations.show_life, name="heartbeat")
        if ports.open_executor is _open_disk:
            status = partial(_status, delivering)
            await nursery.start(serve_control, config.data_dir / SOCKET_NAME, delivering.desk, status, name="control")
        receiving: trio.Nursery = await nursery.start(_hold_nursery, name="receiving")
        for account in delivering.desk.accounts.values():
            supervisor = Supervisor(account.name, account.platform, ports.chance)
            rules = rules_of(account, config, tuple(models))
            ingress = Ingress(
                ledger,
                ports.clock,
                ports.ids,
                config.access.rules,
                rules,
                courier,
                conversations,
                supervisor.completed,
            )
            offer = partial(supervisor.offer_menu, REGISTRY.menu(), REGISTRY.spellings)
            receiving.start_soon(offer, name=f"menu of {account.name}")
            receiving.start_soon(
                supervisor.run, ingress, partial(courier.trouble, account), name=f"account {account.name}"
            )
        asker = Asker(ledger, conversations, delivering.script, ports.clock, ports.ids, delivering.desk.ending)
        yield Runtime(conversations, courier, receiving.cancel_scope, turns.cancel_scope, delivering.desk, asker)


def _status(delivering: _Delivering) -> Mapping[str, Any]:
    """What the control socket tells of a running bot."""
    return {
        "pid": os.getpid(),
        "life": delivering.life.number,
        "writes": delivering.ledger.healthy,
        "accounts": {
            name: {"guarantee": account.capabilities.guarantee, "up": not account.down}
            for name, account in delivering.desk.accounts.items()
        },
    }


async def _listen_for_life(delivering: _Delivering, account: Account, chance: Callable[[], float]) -> None:
    """Connects to the account when a delivery takes long: it may wait for a sign of life."""
    await trio.sleep(LONG_DELIVERY)
    supervisor = Supervisor(account.name, account.platform, chance)
    receiver = LifeOnly(delivering.ledger, delivering.courier, account, supervisor.completed)
    await supervisor.run(receiver, partial(delivering.courier.trouble, account))


async def _hold_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """A nursery that stays open until its scope is cancelled, and can be cancelled by itself."""
    async with trio.open_nursery() as nursery:
        task_status.started(nursery)
        await trio.sleep_forever()


def _keep_off_stdout(table: LogConfig) -> None:
    """A program that has not configured structlog gets our log on standard error; its own output stays its own."""
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[table.level.upper()]),
            logger_factory=structlog.PrintLoggerFactory(cast(TextIO, Enduring())),
        )
