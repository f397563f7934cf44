"""Repair of text that came from outside: afterwards every text can be stored, encoded and sent.

The rule: repaired text holds no surrogate and no NUL, and repairing it again changes nothing.
"""

from __future__ import annotations

import re

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")


def repair(text: str) -> str:
    """The same text with surrogate pairs joined, lone surrogates replaced by U+FFFD, and NUL removed.

    NUL goes first, so that a pair which it tears is joined too.
    """
    text = text.replace("\x00", "")
    if _LONE.search(text) is None:
        return text
    return _LONE.sub("\ufffd", _PAIR.sub(_joined, text))


def _joined(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")
