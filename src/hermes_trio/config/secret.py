"""A value that must not be seen. The one rule: only `reveal()` gives the text away, and only the wire calls it."""

from __future__ import annotations

from typing import final


@final
class Secret:
    """A token or a key. `repr`, `str` and formatting show `Secret("***")`, so that it may stand in any value."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself, for the request that needs it."""
        return self._text

    def __repr__(self) -> str:
        return 'Secret("***")'

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled: the pickle would show it")
