"""Rewrites the parts of the documents that are made from the code.

They stand between `<!-- lifecycle: NAME -->` and `<!-- end -->`, where NAME is a table of `ledger.transitions`.
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_trio.ledger import transitions

BLOCK = re.compile(r"(<!-- lifecycle: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def regenerated(text: str) -> str:
    """The document with every generated block made anew. Raises AttributeError for an unknown lifecycle."""
    return BLOCK.sub(
        lambda m: f"{m[1]}```mermaid\n{transitions.diagram(getattr(transitions, m[2]))}\n```\n{m[3]}", text
    )


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.md")):
        path.write_text(regenerated(path.read_text()))
