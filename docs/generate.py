"""Rewrites the parts of the documents that are made from the code.

They stand between a comment that names them and `<!-- end -->`: `<!-- lifecycle: NAME -->`, where NAME is a table of
`ledger.transitions`, `<!-- policy -->` and `<!-- commands -->`.
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_trio.conversation.handlers import REGISTRY
from hermes_trio.conversation.policy import table_as_markdown
from hermes_trio.ledger import transitions

BLOCK = re.compile(r"(<!-- (lifecycle|policy|commands)(?:: (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def _made(block: re.Match[str]) -> str:
    match block[2]:
        case "policy":
            return table_as_markdown()
        case "commands":
            return REGISTRY.as_markdown()
    return f"```mermaid\n{transitions.diagram(getattr(transitions, block[3]))}\n```"


def regenerated(text: str) -> str:
    """The document with every generated block made anew. Raises AttributeError for an unknown lifecycle."""
    return BLOCK.sub(lambda block: f"{block[1]}{_made(block)}\n{block[4]}", text)


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.md")):
        path.write_text(regenerated(path.read_text()))
