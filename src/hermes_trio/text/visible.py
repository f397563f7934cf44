"""What can be seen: a message of which nothing can be seen must never be sent.

White space is what `str.isspace` says. Other characters without a glyph are listed by category and by number.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cs"})
# Letters, marks and symbols that show nothing: grapheme joiner, fillers, vowel inherents, selectors, Braille blank.
_INVISIBLE = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)
_PLAIN = re.compile(r"[!-~]")


def is_visible(char: str) -> bool:
    """Whether this code point shows something on a screen when it stands alone."""
    return not (char.isspace() or unicodedata.category(char) in _INVISIBLE_CATEGORIES or ord(char) in _INVISIBLE)


def has_visible(text: str) -> bool:
    """Whether anything of `text` shows on a screen."""
    return _PLAIN.search(text) is not None or any(map(is_visible, text))
