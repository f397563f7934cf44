"""What an adapter is: the Platform protocol, its capabilities, and what it hands to the runtime.

An adapter translates, once, in each direction. It decides nothing: it never retries a create, never drops an inbound
message, never formats an apology. It receives an HTTP client and makes no connection of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from attrs import frozen

from hermes_trio.platforms.outcomes import Outcome
from hermes_trio.text.body import Body
from hermes_trio.values import Address

Unit = Literal["utf16", "codepoints", "bytes"]


@frozen
class Capabilities:
    """What the wire of an account allows. Times are seconds."""

    limit: int
    """The longest text of one message, in `unit`s."""
    unit: Unit
    edits: bool
    deletes: bool
    threads: bool = False
    typing: bool = False
    key_window: float | None = None
    """How long the server answers a repeated key with the first message; None: it knows no keys."""
    lookup: bool = False
    """Our own message can be found again, with certainty once the settle time is over."""
    request_timeout: float = 10.0
    """After this long a request of ours is given up."""
    lateness: float = 25.0
    """After that, how long the platform may still accept it."""
    edit_interval: float = 1.0
    """The least time between two previews of one chat."""
    typing_interval: float = 4.0
    """How often the typing sign must be repeated to stay."""

    @property
    def guarantee(self) -> str:
        """The guarantee class: keyed, editable, lookup or plain; the strongest that holds."""
        if self.key_window is not None:
            return "keyed"
        if self.edits:
            return "editable"
        return "lookup" if self.lookup else "plain"


@frozen
class Attachment:
    """Something that came with a message and is not text."""

    kind: str
    """photo, voice, audio, video, file, sticker, location, contact, ..."""
    reference: str
    """The platform's own handle for fetching it."""
    name: str = ""
    mime: str = ""
    size: int | None = None
    """Bytes, where the platform says so."""


@frozen
class Inbound:
    """One message from a user, as it enters the inbox."""

    address: Address
    native_id: str
    """Unique within (account, chat); the same however often the platform delivers it."""
    sender: str
    """The user's id on the platform; access is decided by `account:sender`."""
    sender_name: str
    text: str
    """Repaired text: no lone surrogates, no NUL."""
    attachments: tuple[Attachment, ...] = ()
    anchor: str | None = None
    """The message id that a reply should visibly answer; None where that would only be noise (a private chat)."""
    direct: bool = True
    """A private chat, or a message that addresses the bot."""
    unreadable: str | None = None
    """The escaped payload of something that could not be understood; the text is then empty."""
    group: str | None = None
    """The same for all messages that the user sent as one (an album); None: it stands alone."""
    shared: bool = False
    """Several people speak in this chat."""
    sent_at: float | None = None
    """When it was sent, in seconds by the platform's clock, where it says so."""


class Receiver(Protocol):
    """The runtime's side of receiving."""

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        """Stores one receive batch and its cursor in one transaction; acknowledge to the platform only after it.

        Cancelled: nothing, or all of it, is stored. Raises LedgerClosed at the end of the process.
        """

    async def cursor(self) -> str | None:
        """The cursor of the last batch that was stored; None on the first start."""

    def alive(self) -> None:
        """A round trip with the platform was completed just now."""


class Platform(Protocol):
    """One account on a chat platform.

    The operations return an Outcome for everything that the wire may do and raise only for mistakes in our own code.
    A cancelled operation counts as Unknown.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    async def run(self, receiver: Receiver) -> None:
        """Receives until cancelled. Raises Disconnected to be restarted, AccountRefused when it needs the operator."""

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome: ...

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome: ...

    async def delete(self, address: Address, message_id: str) -> Outcome: ...

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome: ...

    async def typing(self, address: Address) -> None:
        """Shows the typing sign once. Cosmetic: never raises for what the wire does."""


@runtime_checkable
class FetchesFiles(Protocol):
    """What a Platform can do besides, where its files can be had."""

    async def fetch(self, attachment: Attachment) -> tuple[str, bytes]:
        """The media type and content of what came with a message.

        The type is told by the content where it is an image, else by whoever sent it. Cancelled: nothing remains.
        Raises FetchFailed.
        """


@runtime_checkable
class OffersMenu(Protocol):
    """What a Platform can do besides, where users see a menu of commands."""

    async def set_commands(self, commands: Mapping[str, str], *, hidden: Collection[str] = ()) -> Outcome:
        """Makes the menu show these commands, name to description, and nothing else.

        hidden: what the bot understands besides, such as aliases, so that it knows its own commands in a group where
        others listen too. Cancelled: as Unknown.
        """


class FetchFailed(Exception):
    """A file could not be fetched. The text is fit for the user and holds no secret."""


class Disconnected(Exception):
    """Receiving ended for a reason that a new connection may heal. The text holds no secret."""

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        """Seconds to wait at least before the next connection; None: the supervisor's own backoff."""


class AccountRefused(Exception):
    """The platform refuses the account; only the operator can help. The text holds no secret."""


JSON = dict[str, Any]
"""A decoded JSON object inside an adapter; it never leaves one."""
