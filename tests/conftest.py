"""What all tests share: the soak marker, one worker for the process tests, and how hypothesis behaves here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

SOAK = os.environ.get("SOAK") == "1"
PROCESS = Path(__file__).parent / "process"

# What several test files share stands in tests/support and is imported by its plain name.
sys.path.insert(0, str(Path(__file__).parent / "support"))

# No deadline: the machine may be busy. Every run tries the same examples, except in a soak. The explain phase is left
# out because it slows asynchronous tests four times.
settings.register_profile(
    "project", deadline=None, derandomize=not SOAK, phases=[phase for phase in Phase if phase is not Phase.explain]
)
settings.load_profile("project")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the project's marker."""
    config.addinivalue_line("markers", "soak: a long random campaign, run by `make soak` only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the campaigns out unless SOAK=1, and keeps the process tests on one worker."""
    campaigns = [item for item in items if item.get_closest_marker("soak")]
    if campaigns and not SOAK:
        config.hook.pytest_deselected(items=campaigns)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        if item.path.is_relative_to(PROCESS) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("process"))
