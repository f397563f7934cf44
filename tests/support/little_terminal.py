"""A small terminal: what a person sees after a program has written this.

It knows the line feed (as a new line), the carriage return, wrapping, scrolling, and of ECMA-48 the sequences CUU (up)
and ED (clear to the end); colours are ignored. Any other control character is an error: the program under test must
not send one.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\x1b\[(?P<numbers>[0-9;]*)(?P<end>[A-Za-z])|(?P<character>[\s\S])")


class LittleTerminal:
    """Rows from the first that was ever written; those above the window can only be read."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.columns = columns
        self.rows = rows
        self._lines = [""]
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        """The program writes, or the terminal echoes what the user types."""
        for token in _TOKEN.finditer(text):
            character = token["character"]
            if character is None:
                self._obey(token["end"], token["numbers"])
            elif character == "\n":
                self._row, self._column = self._row + 1, 0
                self._grow()
            elif character == "\r":
                self._column = 0
            else:
                assert character.isprintable(), f"a control character reached the terminal: {character!r}"
                self._put(character)

    def _obey(self, end: str, numbers: str) -> None:
        top = max(0, len(self._lines) - self.rows)
        if end == "A":
            wanted = self._row - int(numbers or 1)
            assert wanted >= top, "the program believes that it can reach above the window"
            self._row = wanted
        elif end == "J":
            assert numbers in ("", "0")
            self._lines[self._row] = self._lines[self._row][: self._column]
            self._lines[self._row + 1 :] = []
        else:
            assert end == "m", f"an unknown escape sequence: {end!r}"

    def _put(self, character: str) -> None:
        if self._column >= self.columns:
            self._row, self._column = self._row + 1, 0
            self._grow()
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _grow(self) -> None:
        while self._row >= len(self._lines):
            self._lines.append("")

    @property
    def lines(self) -> list[str]:
        """Everything that was shown, also what has scrolled away, without spaces at the end."""
        return [line.rstrip() for line in self._lines]

    @property
    def text(self) -> str:
        """The same as one text, without empty lines at the end."""
        return "\n".join(self.lines).rstrip()
