"""The supervisor of an account: runs its adapter, and starts it again when it failed or went deaf.

The rule that must not be broken: the old run has ended, connections and all, before the next begins; two receivers on
one account would take each other's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import structlog
import trio

from hermes_trio.ledger import LedgerClosed
from hermes_trio.platforms.base import AccountRefused, Disconnected, OffersMenu, Platform, Receiver
from hermes_trio.platforms.outcomes import Accepted

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds before an adapter is started again; doubled after each failure without a round trip in between."""
REFUSED_PAUSE = 60.0
"""Seconds before a refused account is tried again: the operator may have healed it outside."""

log = structlog.get_logger(__name__)


class Supervisor:
    """Keeps one account receiving."""

    def __init__(self, name: str, platform: Platform, jitter: Callable[[], float]) -> None:
        self._name = name
        self._platform = platform
        self._jitter = jitter
        self._pause = FIRST_PAUSE
        self._reached = trio.Event()
        """Set by the first round trip."""

    def completed(self) -> None:
        """The adapter has completed a round trip: its next failure is a first one."""
        self._pause = FIRST_PAUSE
        self._reached.set()

    async def offer_menu(self, menu: Mapping[str, str], hidden: Collection[str]) -> None:
        """Shows the commands, name to summary, where the platform has a menu: once, when it can first be reached.

        hidden: what is understood besides.

        A convenience: it keeps nothing waiting, and a failure is logged and left at that. Cancelled: the menu is what
        it was, or the new one.
        """
        platform = self._platform
        if not isinstance(platform, OffersMenu):
            return
        await self._reached.wait()
        try:
            outcome = await platform.set_commands(menu, hidden=hidden)
        except Exception:  # the supervision border of an adapter: a fault of its own must not end the others
            log.exception("the menu of commands failed", account=self._name)
            return
        if not isinstance(outcome, Accepted):
            log.warning("the menu of commands was not set", account=self._name, outcome=str(outcome))

    async def run(self, receiver: Receiver, failed: Callable[[], None]) -> None:
        """Receives until cancelled. `failed` is called whenever the adapter ended. Raises what the ledger raises."""
        while True:
            pause = await self._receive(receiver)
            failed()
            await trio.sleep(pause)

    async def _receive(self, receiver: Receiver) -> float:
        """One run of the adapter; returns the seconds to wait before the next."""
        logger = log.bind(account=self._name)
        try:
            await self._platform.run(receiver)
        except Disconnected as error:
            pause = max(self._backoff(), error.retry_after or 0.0)
            logger.warning("disconnected", reason=str(error), again_in=round(pause, 1))
            return pause
        except AccountRefused as error:
            logger.error("the account is refused; it needs its operator", reason=str(error), again_in=REFUSED_PAUSE)
            return REFUSED_PAUSE
        except LedgerClosed:
            raise
        except Exception:  # the supervision border of an adapter: a fault of its own must not end the others
            logger.exception("the adapter failed")
            return self._backoff()
        logger.warning("the adapter ended by itself")
        return self._backoff()

    def _backoff(self) -> float:
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE)
        return pause * (1 - 0.25 * self._jitter())
