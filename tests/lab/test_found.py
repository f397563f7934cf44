"""What random weather found: each line is a schedule that once broke a promise."""

from __future__ import annotations

import pytest
from rows import ROWS

from hermes_trio.testing import Fault, run_world

FOUND = [
    ("uncertain_control", [Fault("clock_step", "commit! revive", seconds=-600)]),
    ("two_questions", [Fault("late_accept", "wire? sendMessage", after=20)]),
]


@pytest.mark.parametrize(("row", "faults"), FOUND)
def test_it_stays_found(row: str, faults: list[Fault]) -> None:
    """The schedule breaks nothing any more."""
    run_world(ROWS[row], faults=faults)
