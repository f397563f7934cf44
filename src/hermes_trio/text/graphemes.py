"""Where a text may be cut without tearing what a reader sees as one character.

A small form of the extended grapheme clusters of UAX 29, by the tables that Python brings. Where it differs it joins
more: nothing is ever parted after a zero-width joiner, nor a consonant from the virama before it.
"""

from __future__ import annotations

import unicodedata

_EXTENDING = frozenset({"Mn", "Me", "Mc"})
_VIRAMAS = frozenset("\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d")
_TRAILING_LETTERS = frozenset("\u0e33\u0eb3")
_JOINER = "\u200d"


def is_boundary(text: str, index: int, start: int = 0) -> bool:
    """Whether `text` may be cut before `index`. Offsets count code points; `start` is a boundary known already.

    Looks back at most to `start`, and further than one code point only in a row of flags.
    """
    if index <= start or index >= len(text):
        return True
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return False
    if _is_control(before) or _is_control(after):
        return True
    if _extends(after) or after in _TRAILING_LETTERS:
        return False
    if before == _JOINER:
        return after.isspace()
    if before in _VIRAMAS:
        return unicodedata.category(after) != "Lo"
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, index, start) % 2 == 0
    return not _jamo_join(ord(before), ord(after))


def last_boundary(text: str, start: int, end: int) -> int:
    """The last boundary in `(start, end]`; `end` itself when there is none, for a character longer than that."""
    index = end
    while index > start:
        if is_boundary(text, index, start):
            return index
        index -= 1
    return end


def _is_control(char: str) -> bool:
    return char in "\r\n" or (unicodedata.category(char) in ("Cc", "Zl", "Zp"))


def _extends(char: str) -> bool:
    if char < "\u0300":
        return False
    return (
        char in (_JOINER, "\u200c")
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags of regional flags
        or "\uff9e" <= char <= "\uff9f"  # halfwidth voiced marks
        or unicodedata.category(char) in _EXTENDING
    )


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_letters_before(text: str, index: int, start: int) -> int:
    first = index
    while first > start and _is_flag_letter(text[first - 1]):
        first -= 1
    return index - first


def _jamo_join(before: int, after: int) -> bool:
    """Hangul syllables from parts: leading, vowel, trailing; or a whole syllable that a part completes."""
    leading = 0x1100 <= before <= 0x115F or 0xA960 <= before <= 0xA97C
    syllable = 0xAC00 <= before <= 0xD7A3
    vowel = 0x1160 <= before <= 0x11A7 or 0xD7B0 <= before <= 0xD7C6
    trailing = 0x11A8 <= before <= 0x11FF or 0xD7CB <= before <= 0xD7FB
    to_vowel = 0x1160 <= after <= 0x11A7 or 0xD7B0 <= after <= 0xD7C6
    to_trailing = 0x11A8 <= after <= 0x11FF or 0xD7CB <= after <= 0xD7FB
    to_syllable = 0x1100 <= after <= 0x115F or 0xA960 <= after <= 0xA97C or 0xAC00 <= after <= 0xD7A3
    open_syllable = syllable and (before - 0xAC00) % 28 == 0
    return (
        (leading and (to_vowel or to_syllable))
        or ((vowel or open_syllable) and (to_vowel or to_trailing))
        or ((trailing or syllable) and to_trailing)
    )
