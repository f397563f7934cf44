"""The conformance rows in the world: as they are told, and killed at every boundary."""

from __future__ import annotations

import pytest
from rows import ROWS, stranger

from hermes_trio.testing import run_world, verify_crashes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("row", ROWS)
def test_row(row: str, seed: int) -> None:
    """The story of the row ends as it says, and no promise is broken, under several schedules."""
    run_world(ROWS[row], seed)


@pytest.mark.parametrize("row", ROWS)
def test_row_killed_at_every_boundary(row: str) -> None:
    """The same, killed at any one boundary between the bot and its world, and started again."""
    verify_crashes(ROWS[row])


def test_a_stranger_leaves_no_trace() -> None:
    """Who is not allowed to speak causes no turn, no row and no message, wherever the bot is killed."""
    verify_crashes(stranger, config={"access": {"allow": ["telegram:1002"]}})
