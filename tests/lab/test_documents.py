"""docs/testing.md is true: every snippet of it runs, in an empty folder, as a stranger would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "testing.md"
SNIPPET = re.compile(r"```python\n# (\S+)\n(.*?)```", re.DOTALL)


def test_every_snippet_runs(tmp_path: Path) -> None:
    """All tests of the tutorial pass when its files are written into an empty folder."""
    snippets = SNIPPET.findall(TUTORIAL.read_text())
    assert len(snippets) == TUTORIAL.read_text().count("```python")
    for name, text in snippets:
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:trio", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "7 passed" in done.stdout
