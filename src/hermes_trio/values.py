"""The values that every room speaks of. Nothing here does I/O or imports another room."""

from __future__ import annotations

from attrs import frozen


@frozen
class Address:
    """Where a reply goes: an account, a chat on it, and a thread of that chat.

    The three are opaque strings; only the adapter of the account knows their grammar. `thread` is empty where the
    platform has none or the message stands in the main thread.
    """

    account: str
    chat: str
    thread: str = ""

    def __str__(self) -> str:
        """The key of this address in rows, logs and commands: `account:chat` or `account:chat/thread`."""
        tail = f"/{self.thread}" if self.thread else ""
        return f"{self.account}:{self.chat}{tail}"

    @classmethod
    def parse(cls, key: str) -> Address:
        """The inverse of `str(address)`. Raises ValueError when there is no account or no chat in it."""
        account, colon, rest = key.partition(":")
        chat, _, thread = rest.partition("/")
        if not (account and colon and chat):
            raise ValueError(f"{key!r} is not an address; write account:chat or account:chat/thread")
        return cls(account, chat, thread)
