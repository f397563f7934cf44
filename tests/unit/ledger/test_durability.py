"""What was acknowledged is there after SIGKILL, whenever it comes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("committing.py")


def lives(database: Path, kills: int, seed: int) -> dict[str, Any]:
    """The findings of so many killed lives over one database."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(database), str(kills), str(seed)], check=True, capture_output=True, text=True
    )
    findings: dict[str, Any] = json.loads(done.stdout)
    return findings


def judge(findings: dict[str, Any], kills: int) -> None:
    """No acknowledged row is missing, none is there twice, and no more than was in flight is there unacknowledged."""
    acknowledged, found = set(findings["acknowledged"]), set(findings["found"])
    assert len({name.split(".")[0] for name in acknowledged}) == kills, "each life should have said something"
    assert acknowledged - found == set(), "acknowledged and lost"
    assert len(found - acknowledged) <= findings["in flight"]
    assert findings["sound"] == "ok"


def test_no_acknowledged_commit_is_lost(tmp_path: Path) -> None:
    """Twenty lives over one database, each killed at a random moment under load."""
    judge(lives(tmp_path / "state.db", 20, 1), 20)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_no_acknowledged_commit_is_lost_in_the_long_run(tmp_path: Path, seed: int) -> None:
    """The same with a thousand lives."""
    judge(lives(tmp_path / "state.db", 200, seed + 2), 200)
