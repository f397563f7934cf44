"""Code fences that a text leaves open. Pure."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def close_fence(markdown: str) -> str:
    """The text with its open code fence closed, so that what is put behind it stands outside.

    A fence is closed by a line of the same character, at least as long, with nothing behind it (CommonMark, "Fenced
    code blocks"). Fences inside quotes and lists are not looked at.
    """
    fence = ""
    for line in markdown.splitlines():
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        mark, rest = found[1], found[2]
        if not fence:
            fence = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return f"{markdown.rstrip()}\n{fence}" if fence else markdown
