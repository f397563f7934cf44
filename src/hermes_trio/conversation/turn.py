"""One turn: a nursery in which the model works, the user sees that it does, and the answer becomes durable.

The rule that must not be broken: a turn ends by exactly one commit of its own (answer or failure), or by one of
somebody else's that it finds on its way; in both cases nothing of it is said afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
import trio
from attrs import frozen

from hermes_trio.agent import Agent, Answer, NoAnswer
from hermes_trio.clock import Clock
from hermes_trio.conversation import notices, records
from hermes_trio.conversation.history import request_of
from hermes_trio.conversation.records import Begun
from hermes_trio.delivery.account import Account
from hermes_trio.delivery.courier import Courier
from hermes_trio.ledger import Ledger, LedgerClosed
from hermes_trio.ledger.turns import TurnOver
from hermes_trio.model.base import ToolCall, Usage
from hermes_trio.tools.base import ToolContext

HEARTBEAT = 5.0
"""Seconds between two signs of life in the database while a turn runs: a restart must know how long it lived."""

log = structlog.get_logger(__name__)


@frozen
class TurnSettings:
    """What a turn takes from the configuration."""

    system: str
    stream: bool


class _Journal:
    """The agent's journal over the ledger and the lane."""

    def __init__(self, ledger: Ledger, clock: Clock, begun: Begun, show: Callable[[Callable[[], str]], None]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._turn = begun.turn
        self._show = show

    async def calls(self, text: str, calls: Sequence[ToolCall]) -> None:
        await self._ledger.insist(records.record_calls, self._turn, text, calls, self._clock.now())

    async def start(self, call: ToolCall) -> None:
        await self._ledger.insist(records.record_start, self._turn, call.id, self._clock.now())

    async def result(self, call: ToolCall, content: str) -> None:
        await self._ledger.insist(records.record_result, self._turn, call.id, content)

    def show(self, preview: Callable[[], str]) -> None:
        self._show(preview)


class TurnRunner:
    """Runs turns of one account."""

    def __init__(
        self, ledger: Ledger, courier: Courier, clock: Clock, account: Account, agent: Agent, settings: TurnSettings
    ) -> None:
        self._ledger = ledger
        self._courier = courier
        self._clock = clock
        self._account = account
        self._agent = agent
        self._settings = settings

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
                nursery.start_soon(self._show_life, begun)
                await self._work(begun)
                nursery.cancel_scope.cancel()
        except* TurnOver as over:
            logger.info("the turn was ended by somebody else", how=str(over.exceptions[0]))
        except* LedgerClosed:
            raise LedgerClosed from None
        except* Exception:  # the supervision border of a turn: whatever went wrong, the user gets a word
            logger.exception("a turn crashed")
            await self._crash(begun)
        finally:
            self._courier.forget(turn.address, turn.reply)
            self._courier.wake(turn.address)

    async def _work(self, begun: Begun) -> None:
        turn = begun.turn
        journal = _Journal(self._ledger, self._clock, begun, self._shower(begun))
        note = notices.RESTARTED if begun.resumed else None
        request = request_of(self._settings.system, begun.rows, note, turn=turn.id)
        context = ToolContext(turn.address, begun.inbound.sender, self._clock.now(), lambda text: None)
        result = await self._agent.run(request, journal, context, open_calls=begun.open_calls)
        now = self._clock.now()
        match result:
            case Answer(text, usage):
                await self._ledger.insist(records.answer, turn, self._account.plan(text), usage, now)
                log.info("answered", turn=turn.id, characters=len(text))
            case NoAnswer():
                log.warning("no answer", turn=turn.id, kind=str(result.kind), detail=result.detail)
                notice = self._account.plan(notices.notice_for(result))
                await self._ledger.insist(
                    records.fail, turn, notice, f"{result.kind}: {result.detail}", result.partial, result.usage, now
                )

    def _shower(self, begun: Begun) -> Callable[[Callable[[], str]], None]:
        turn = begun.turn
        if not self._settings.stream or not self._account.capabilities.edits:
            return lambda text: None
        return lambda text: self._courier.show(turn.address, turn.reply, text)

    async def _show_life(self, begun: Begun) -> None:
        """The typing sign for the user and the heartbeat for the next start, until cancelled."""
        address, account = begun.turn.address, self._account
        interval = min(HEARTBEAT, account.capabilities.typing_interval)
        beaten = trio.current_time()
        while True:
            if account.capabilities.typing and not account.down:
                await account.platform.typing(address)
            if trio.current_time() - beaten >= HEARTBEAT:
                beaten = trio.current_time()
                await self._ledger.insist(records.beat, self._clock.now())
            await trio.sleep(interval)

    async def _crash(self, begun: Begun) -> None:
        notice = self._account.plan(notices.CRASHED)
        try:
            await self._ledger.insist(
                records.fail, begun.turn, notice, "a fault of our own", "", Usage(), self._clock.now()
            )
        except TurnOver:
            log.info("the crashed turn had ended before", turn=begun.turn.id)
