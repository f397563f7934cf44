"""One turn: a nursery in which the model works, the user sees that it does, and the answer becomes durable.

The rule that must not be broken: a turn ends by exactly one commit of its own (answer or failure), or by one of
somebody else's that it finds on its way; in both cases nothing of it is said afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog
import trio
from attrs import evolve, frozen

from hermes_trio.agent import Agent, Answer, NoAnswer, NoAnswerKind
from hermes_trio.clock import Clock, Ids
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.compression import summarise
from hermes_trio.conversation.history import request_of
from hermes_trio.conversation.images import Shown, look
from hermes_trio.conversation.records import Begun, Compress
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger, LedgerClosed
from hermes_trio.ledger.turns import TurnOver
from hermes_trio.model.base import Model, ModelError, ToolCall, Usage
from hermes_trio.tools.base import ToolContext

FULL = 0.8
"""The share of the model's context from which on a conversation is compressed before its next turn."""

log = structlog.get_logger(__name__)


@frozen
class TurnSettings:
    """What a turn takes from the configuration."""

    system: str
    stream: bool
    context: int
    """Tokens that the model reads; 0: nobody knows."""
    reserve_control: bool
    """Whether control messages are reserved too."""
    images: bool = False
    """Whether a model is configured that takes images."""


@frozen
class TurnPorts:
    """What all turns of a runtime share."""

    ledger: Ledger
    courier: Courier
    clock: Clock
    ids: Ids
    agent: Agent
    models: Mapping[str, Model]
    """The models that a session may choose, by name."""
    settings: TurnSettings


class _Journal:
    """The agent's journal over the ledger and the lane."""

    def __init__(self, ports: TurnPorts, begun: Begun, show: Callable[[Callable[[], str]], None]) -> None:
        self._ledger = ports.ledger
        self._clock = ports.clock
        self._turn = begun.turn
        self._show = show

    async def calls(self, text: str, calls: Sequence[ToolCall]) -> None:
        await self._ledger.insist(records.record_calls, self._turn, text, calls, self._clock.now())

    async def start(self, call: ToolCall) -> None:
        await self._ledger.insist(records.record_start, self._turn, call.id, self._clock.now())

    async def result(self, call: ToolCall, content: str) -> None:
        await self._ledger.insist(records.record_result, self._turn, call.id, content)

    async def steered(self) -> Sequence[str]:
        return await self._ledger.insist(records.take_steers, self._turn, self._clock.now())

    def show(self, preview: Callable[[], str]) -> None:
        self._show(preview)


class TurnRunner:
    """Runs turns of one account."""

    def __init__(self, ports: TurnPorts, account: Account) -> None:
        self._ports = ports
        self._account = account

    async def run(self, begun: Begun) -> None:
        """Works until the turn has ended.

        Cancelled: the turn stays as the ledger has it; unless somebody ended it there, the next start resumes it.
        Raises LedgerClosed at the end of the process.
        """
        turn = begun.turn
        logger = log.bind(turn=turn.id, address=str(turn.address))
        logger.info("a turn resumes" if begun.resumed else "a turn begins", inbox=turn.inbox)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._show_typing, begun)
                await self._work(begun)
                nursery.cancel_scope.cancel()
        except* TurnOver as over:
            logger.info("the turn was ended by somebody else", how=str(over.exceptions[0]))
        except* LedgerClosed:
            raise LedgerClosed from None
        except* Exception:  # the supervision border of a turn: whatever went wrong, the user gets a word
            logger.exception("a turn crashed")
            await self._fail(begun, notices.CRASHED, "a fault of our own")
        finally:
            self._ports.courier.forget(turn.address, turn.reply)
            self._ports.courier.wake(turn.address)

    async def compress(self, job: Compress) -> None:
        """Carries out /compress: the conversation goes on from a summary, or the user is told that it does not.

        Cancelled: nothing has changed, and the next start does it.
        """
        logger = log.bind(address=str(job.inbound.address))
        try:
            await self._try_to_compress(job)
        except TurnOver as over:
            logger.info("the compression was dropped meanwhile", how=str(over))
        except LedgerClosed:
            raise
        except Exception:  # the supervision border of a compression: the user gets a word, and nothing has changed
            logger.exception("a compression crashed")
            await self._not_compressed(job)
        self._ports.courier.wake(job.inbound.address)

    async def _try_to_compress(self, job: Compress) -> None:
        ports = self._ports
        try:
            wish = "" if job.inbound.text == "compress" else job.inbound.text
            summary = await summarise(ports.agent.model, job.rows, wish)
        except ModelError as error:
            log.warning("no summary", address=str(job.inbound.address), error=str(error))
            await self._not_compressed(job)
            return
        notice, reserve = self._account.plan(notices.COMPRESSED), ports.settings.reserve_control
        if not await ports.ledger.insist(
            records.compress, job, summary, ports.ids(), notice, reserve, ports.clock.now()
        ):
            await self._not_compressed(job)

    async def _not_compressed(self, job: Compress) -> None:
        ports, notice = self._ports, self._account.plan(notices.NOT_COMPRESSED)
        reserve = ports.settings.reserve_control
        try:
            await ports.ledger.insist(records.not_compressed, job.inbound, notice, reserve, ports.clock.now())
        except TurnOver as over:
            log.info("the compression was dropped meanwhile", address=str(job.inbound.address), how=str(over))

    async def _work(self, begun: Begun) -> None:
        if self._is_full(begun):
            begun = await self._compressed(begun) or begun
        shown = await look(self._account.platform, begun.attachments, sees=self._ports.settings.images)
        result = await self._ask(begun, shown)
        if isinstance(result, NoAnswer) and result.kind is NoAnswerKind.TOO_LONG:
            shorter = await self._compressed(begun)
            result = result if shorter is None else await self._ask(shorter, shown)
        turn, now = begun.turn, self._ports.clock.now()
        match result:
            case Answer(text, usage):
                plan = self._account.plan(text)
                await self._ports.ledger.insist(records.answer, turn, plan, usage, now)
                log.info("answered", turn=turn.id, characters=len(text))
            case NoAnswer():
                log.warning("no answer", turn=turn.id, kind=str(result.kind), detail=result.detail)
                detail = f"{result.kind}: {result.detail}"
                await self._fail(begun, notices.notice_for(result), detail, result.partial, result.usage)

    async def _ask(self, begun: Begun, shown: Shown) -> Answer | NoAnswer:
        turn = begun.turn
        journal = _Journal(self._ports, begun, self._shower(begun))
        system = self._ports.settings.system
        request = request_of(system, begun.rows, turn=turn.id, images=shown.images, remark=shown.remark)
        now = self._ports.clock.now()
        context = ToolContext(turn.address, begun.inbound.sender, now, lambda text: None)
        agent = self._ports.agent
        chosen = self._ports.models.get(begun.model or "")
        if chosen is not None:
            agent = evolve(agent, model=chosen)
        note = notices.RESTARTED if begun.resumed else ""
        return await agent.run(request, journal, context, open_calls=begun.open_calls, note=note)

    def _is_full(self, begun: Begun) -> bool:
        context = self._ports.settings.context
        return not begun.resumed and 0 < FULL * context < begun.last_context

    async def _compressed(self, begun: Begun) -> Begun | None:
        """The same turn in a new session, behind a summary of what came before it; None when there is none."""
        earlier = [row for row in begun.rows if row.turn != begun.turn.id]
        if not earlier:
            return None
        try:
            summary = await summarise(self._ports.agent.model, earlier)
        except ModelError as error:
            log.warning("no summary", turn=begun.turn.id, error=str(error))
            return None
        ports = self._ports
        return await ports.ledger.insist(
            records.compress_under_turn,
            begun,
            summary,
            ports.ids(),
            self._account.plan(notices.COMPRESSED),
            ports.settings.reserve_control,
            ports.clock.now(),
        )

    def _shower(self, begun: Begun) -> Callable[[Callable[[], str]], None]:
        turn = begun.turn
        if not self._ports.settings.stream or not self._account.capabilities.edits:
            return lambda text: None
        return lambda text: self._ports.courier.show(turn.address, turn.reply, text)

    async def _show_typing(self, begun: Begun) -> None:
        """The typing sign, until the user sees the first words, or until cancelled."""
        turn, account = begun.turn, self._account
        while account.capabilities.typing and not self._ports.courier.all_said([turn.address]):
            await account.show_typing(turn.address)
            await trio.sleep(account.capabilities.typing_interval)

    async def _fail(self, begun: Begun, notice: str, error: str, partial: str = "", usage: Usage | None = None) -> None:
        plan, now = self._account.plan(notice), self._ports.clock.now()
        try:
            await self._ports.ledger.insist(records.fail, begun.turn, plan, error, partial, usage or Usage(), now)
        except TurnOver as over:
            log.info("the turn was ended by somebody else", turn=begun.turn.id, how=str(over))
