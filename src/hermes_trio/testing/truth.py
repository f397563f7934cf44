"""What the database says, read without the ledger's own code, and what texts have in common. For the checker.

The rule that must not be broken: nothing here trusts how the runtime reads its rows; rows are read as they are.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import define

from hermes_trio.ledger.inspection import every_row

Row = Mapping[str, Any]
_LINK = re.compile(r"\]\(<?[A-Za-z][A-Za-z0-9+.-]*:(?:[^()\s]|\([^()\s]*\))*")
"""The target of a link that becomes one on screen; one without a scheme is shown as text."""
_ADDRESS = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^<>\s]*)>")
_INFO = re.compile(r"^[ >]*(```|~~~)[^\n]*$", re.MULTILINE)
_LETTERS = re.compile(r"[^\w<>/]+")


def essence(text: str) -> str:
    """What is left of a text when white space, markup and punctuation are taken away: two renderings agree on it."""
    return _LETTERS.sub("", _LINK.sub("]", _ADDRESS.sub(r"\1", _INFO.sub("", text)))).replace("_", "")


@define(eq=False, slots=False)
class Rows:
    """All rows of a database as they are now."""

    connection: sqlite3.Connection

    def _all(self, table: str, order: str) -> list[Row]:
        return every_row(self.connection, table, order)

    @cached_property
    def inbox(self) -> list[Row]:
        """In order of arrival."""
        return self._all("inbox", "id")

    @cached_property
    def turns(self) -> list[Row]:
        """In the order of their inbox rows."""
        return self._all("turns", "inbox")

    @cached_property
    def messages(self) -> list[Row]:
        """In the order of the transcript."""
        return self._all("messages", "id")

    @cached_property
    def obligations(self) -> list[Row]:
        """In order of arrival."""
        return self._all("delivery_obligations", "seq")

    @cached_property
    def posts(self) -> list[Row]:
        """By obligation, in the order of their creation."""
        return self._all("posts", "obligation, serial")

    @cached_property
    def dead(self) -> set[tuple[str, str]]:
        """Accounts and chats to which nothing can be sent."""
        return {(row["account"], row["chat"]) for row in self._all("dead_addresses", "account")}

    @cached_property
    def delegations(self) -> list[Row]:
        """In the order of their birth."""
        return self._all("async_delegations", "created_at")

    def posts_of(self, obligation: str) -> list[Row]:
        """The posts of one obligation in the order of their creation."""
        return [post for post in self.posts if post["obligation"] == obligation]


def parts_of(obligation: Row) -> list[str]:
    """The texts of the parts as they were planned."""
    return [str(part["text"]) for part in json.loads(obligation["parts"])]


def progress_of(row: Row) -> Mapping[str, Any]:
    """What the delivery core keeps in the row."""
    progress: Mapping[str, Any] = json.loads(row["progress"])
    return progress
