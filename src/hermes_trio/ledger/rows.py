"""What the rows of the ledger look like outside it: frozen values, read once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from hermes_trio.model.base import ToolCall
from hermes_trio.platforms.base import Attachment
from hermes_trio.text.body import Body
from hermes_trio.values import Address


@frozen
class InboxRow:
    """One inbound, as it was stored."""

    id: int
    address: Address
    native_id: str
    sender: str
    sender_name: str
    text: str
    attachments: tuple[Attachment, ...]
    anchor: str | None
    group: str | None
    """The same for all messages that were sent as one."""
    shared: bool
    """Several people speak in this chat."""
    kind: str
    state: str
    turn: str | None
    sent_at: float | None
    """When the platform says that it was sent, in its seconds."""
    received_at: float
    """Wall-clock seconds."""


@frozen
class TurnRow:
    """One run of the model and its tools for one inbound."""

    id: str
    inbox: int
    session: str
    address: Address
    state: str
    resumes: int
    """How often a restart found it running."""
    charged: int
    """How many of these count against it."""
    resumed_at: float | None
    started_at: float

    @property
    def reply(self) -> str:
        """The id of the obligation of its reply."""
        return f"{self.id}.reply"


@frozen
class MessageRow:
    """One message of a transcript."""

    id: int
    turn: str | None
    role: str
    content: str | None
    """Of a tool: its result; None while there is none."""
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    tool_name: str | None
    started: float | None
    """Of a tool: when it was marked as started; None: it never began."""
    interrupted: bool
    created_at: float


@frozen
class ObligationRow:
    """The debt of one visible message, without its posts."""

    seq: int
    """The order of arrival."""
    id: str
    kind: str
    turn: str | None
    address: Address
    anchor: str | None
    content: str
    parts: tuple[Body, ...]
    progress: Mapping[str, Any]
    """What the delivery core keeps of the whole; only the delivery room knows its shape."""
    state: str
    attempts: int
    not_before: float | None
    due_at: float
    expires_at: float | None
    last_error: str | None
    created_at: float


@frozen
class PostRow:
    """A message that we created, or may have created, on the platform."""

    key: str
    serial: int
    ordinal: int
    state: str
    message_id: str | None
    body: Body | None
    shown: str | None
    marked: bool
    progress: Mapping[str, Any]
    created_at: float
    ended_at: float
