"""The conformance rows killed more often: under other schedules, and at pairs of boundaries, the short way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rows import ROWS

from hermes_trio.testing import direct_bot, run_world, verify_crashes

SHORT = (
    "a1_clean",
    "a7_rate_limit",
    "a9_send_timeout",
    "a10_ack_lost",
    "a14_stream_timeout_first",
    "a16_late_accept",
    "a18d_deleted",
    "late_preview",
    "uncertain_control",
    "d10_quiet_restart",
)
"""Rows of under 40 boundaries."""
THOROUGH = ("a1_clean", "uncertain_control")


def every(step: int, first: int) -> object:
    """Chooses every `step`-th boundary."""

    def points(numbers: Sequence[int]) -> Sequence[int]:
        return numbers[first % step :: step]

    return points


@pytest.mark.parametrize("row", ROWS)
def test_the_short_way_is_the_same_story(row: str) -> None:
    """A row that needs no bytes ends as it does through HTTP."""
    run_world(ROWS[row], bot=direct_bot)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("row", ROWS)
def test_row_killed_under_other_schedules(row: str, seed: int) -> None:
    """Every boundary of other schedules."""
    verify_crashes(ROWS[row], seed=seed, bot=direct_bot)


@pytest.mark.parametrize("row", SHORT)
def test_row_killed_at_pairs(row: str) -> None:
    """Killed twice: at every third boundary, and at every third one after it."""
    verify_crashes(ROWS[row], depth=2, bot=direct_bot, points=every(3, 1))


@pytest.mark.parametrize("row", THOROUGH)
def test_row_killed_at_every_pair(row: str) -> None:
    """Killed twice, at every pair of boundaries."""
    verify_crashes(ROWS[row], depth=2, bot=direct_bot)


@pytest.mark.soak
@pytest.mark.parametrize("row", ROWS)
def test_row_killed_at_every_pair_of_all(row: str) -> None:
    """The same for every row."""
    verify_crashes(ROWS[row], depth=2, bot=direct_bot)
