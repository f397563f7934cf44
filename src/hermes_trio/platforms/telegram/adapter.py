"""The Telegram adapter: long polls in, creates, edits and deletes out.

Receiving is one loop in one task: ask, store, ask again with the next offset. Telegram forgets everything below an
offset when it sees it, so the offset is the acknowledgement.

The rule that must not be broken: an offset is sent only after the receiver has stored everything below it. And
nothing here repeats a create.

Decisions:
- A reply's anchor is sent with `allow_sending_without_reply`. When the user has deleted the message, Telegram itself
  drops the anchor and sends the reply in the same request: one attempt instead of two, and no second create that
  could be uncertain.
- A webhook that stands in the way of getUpdates is not deleted: somebody set it. The account is refused with words
  that say what to do.
- Another poller on the same token is reported and left alone for CONFLICT_PAUSE; polling on would only take the
  updates away from each other.
- Edits of the user's messages and presses of buttons are received, and so confirmed, but are no messages.

Sources: Telegram Bot API, "getMe", "getUpdates", "sendMessage", "editMessageText", "deleteMessage", "sendChatAction",
"setMyCommands".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import trio
from attrs import evolve

from hermes_trio.http import HttpClient, NothingLeft, Uncertain
from hermes_trio.platforms.base import (
    JSON,
    AccountRefused,
    Attachment,
    Capabilities,
    Disconnected,
    Receiver,
)
from hermes_trio.platforms.outcomes import Outcome, Reason, Refused, Unknown
from hermes_trio.platforms.telegram.classify import CREATE, DELETE, EDIT, classify, retry_after
from hermes_trio.platforms.telegram.render import render
from hermes_trio.platforms.telegram.updates import Identity, read_batch
from hermes_trio.platforms.telegram.wire import Answer, BotApi
from hermes_trio.text.body import Body
from hermes_trio.values import Address

TEXT_LIMIT = 4096
"""UTF-16 units of one message. Telegram counts code points, of which there are never more."""

POLL_TIMEOUT_LIMIT = 50.0
"""Seconds; the server takes a longer timeout of getUpdates for this one."""

POLL_MARGIN = 10.0
"""Seconds that the answer of a long poll may take beyond its own timeout; after that the adapter counts as deaf."""

CONFLICT_PAUSE = 10.0
"""Seconds to stay away after another poller was seen. Telegram spaces these refusals at least 3 s apart."""

COMMANDS_LIMIT = 100
"""Commands that the menu of a bot holds."""

ALLOWED_UPDATES = ["message", "edited_message", "callback_query", "my_chat_member"]
"""The kinds of updates that we ask for; said with each poll, because the server remembers what it was told last."""

GENERAL_TOPIC = "1"
"""The topic of a forum that a message must not name: what names none goes there."""

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")


class TelegramPlatform:
    """One bot on Telegram; a Platform.

    account: its name in addresses. base_url: of the Bot API server. poll_timeout: seconds that a poll waits for
    updates, at most 50. request_timeout: seconds for a create, edit or delete, from the first byte written.
    connect_timeout: seconds for each step of connecting. edit_interval, lateness: see Capabilities.
    """

    def __init__(
        self,
        client: HttpClient,
        account: str,
        token: str,
        *,
        base_url: str = "https://api.telegram.org",
        poll_timeout: float = 30.0,
        request_timeout: float = 10.0,
        connect_timeout: float = 5.0,
        edit_interval: float = 1.0,
        lateness: float = 25.0,
    ) -> None:
        self._api = BotApi(client, base_url, token, connect_timeout)
        self._account = account
        self._request_timeout = request_timeout
        self._poll_timeout = max(1, int(min(poll_timeout, POLL_TIMEOUT_LIMIT)))
        """Whole seconds, as the wire wants them; 0 would be no long poll."""
        self._commands: frozenset[str] | None = None
        """What `set_commands` said last."""
        self.capabilities = Capabilities(
            limit=TEXT_LIMIT,
            unit="utf16",
            edits=True,
            deletes=True,
            threads=True,
            typing=True,
            key_window=None,
            lookup=False,
            request_timeout=request_timeout,
            lateness=lateness,
            edit_interval=edit_interval,
        )

    # -- receiving ------------------------------------------------------------------------------------------------

    async def run(self, receiver: Receiver) -> None:
        """Receives until cancelled.

        Cancelled: what was stored stays stored, and what was not will be delivered again. Raises Disconnected when a
        new connection may help (a poll without an answer counts after its timeout and POLL_MARGIN), AccountRefused
        when only the operator can, and whatever the receiver raises.
        """
        me = await self._identify(receiver)
        cursor = await receiver.cursor()
        offset = int(cursor) if cursor is not None and _NUMBER.fullmatch(cursor) else None
        while True:
            offset = await self._poll(receiver, me, offset)

    async def _identify(self, receiver: Receiver) -> Identity:
        """Who we are; without our id our own and others' messages cannot be told apart, so nothing starts."""
        result = await self._ask("getMe", {}, self._request_timeout, receiver)
        held: JSON = result if isinstance(result, dict) else {}
        user_id, username, name = held.get("id"), held.get("username"), held.get("first_name")
        if type(user_id) is not int:
            raise Disconnected("Telegram did not say who the bot is (getMe has no id)")
        return Identity(user_id, username if isinstance(username, str) else "", name if isinstance(name, str) else "")

    async def _poll(self, receiver: Receiver, me: Identity, offset: int | None) -> int | None:
        """One poll: returns the offset of the next one, after everything below it was stored."""
        parameters: JSON = {"timeout": self._poll_timeout, "allowed_updates": ALLOWED_UPDATES}
        if offset is not None:
            parameters["offset"] = offset
        result = await self._ask("getUpdates", parameters, self._poll_timeout + POLL_MARGIN, receiver)
        if not isinstance(result, list):
            raise Disconnected("Telegram answered getUpdates with something that is no list of updates")
        if not result:
            return offset
        batch = read_batch(result, self._account, evolve(me, commands=self._commands))
        confirmed = offset if batch.next_offset is None else batch.next_offset
        await receiver.receive(batch.inbound, None if confirmed is None else str(confirmed))
        if batch.next_offset is None:
            raise Disconnected("Telegram sent updates without update ids, which cannot be confirmed")
        return confirmed

    async def _ask(self, method: str, parameters: JSON, read_timeout: float, receiver: Receiver) -> Any:
        """The result of a request that receiving stands on. Waits out a short flood wait by itself.

        Raises Disconnected and AccountRefused.
        """
        while True:
            try:
                answer = await self._api.call(method, parameters, read_timeout=read_timeout)
            except NothingLeft as error:
                raise Disconnected(f"Telegram cannot be reached: {error}") from None
            except Uncertain as error:
                raise Disconnected(f"Telegram did not answer {method}: {error}") from None
            if answer.envelope is not None and answer.status < 500:
                receiver.alive()
                if answer.envelope.ok:
                    return answer.envelope.result
            await trio.sleep(_pause_or_raise(method, answer, self._poll_timeout))

    # -- sending --------------------------------------------------------------------------------------------------

    async def create(self, address: Address, body: Body, *, key: str, reply_to: str | None) -> Outcome:
        """Sends one message (Bot API, "sendMessage"). The wire knows no keys, so `key` is not used.

        reply_to: the id of a message of the same chat; dropped by Telegram when that is gone. Cancelled: it counts
        as Unknown.
        """
        parameters: JSON = {"chat_id": _chat(address), **render(body)}
        if _NUMBER.fullmatch(address.thread) and address.thread != GENERAL_TOPIC:
            parameters["message_thread_id"] = int(address.thread)
        if reply_to is not None and _NUMBER.fullmatch(reply_to):
            parameters["reply_parameters"] = {"message_id": int(reply_to), "allow_sending_without_reply": True}
        return await self._operate(CREATE, parameters)

    async def edit(self, address: Address, message_id: str, body: Body) -> Outcome:
        """Makes a message of ours show this body (Bot API, "editMessageText"). Cancelled: it counts as Unknown."""
        return await self._operate(EDIT, {**_place(address, message_id), **render(body)})

    async def delete(self, address: Address, message_id: str) -> Outcome:
        """Deletes a message of ours, at most 48 hours old (Bot API, "deleteMessage"). Cancelled: as Unknown."""
        return await self._operate(DELETE, _place(address, message_id))

    async def lookup(self, address: Address, key: str, body: Body | None) -> Outcome:
        """Unknown: the Bot API has no way to find our own messages again."""
        return Unknown("Telegram cannot look up a message")

    async def typing(self, address: Address) -> None:
        """Shows the typing sign for 5 s (Bot API, "sendChatAction"). Raises nothing for what the wire does."""
        parameters: JSON = {"chat_id": _chat(address), "action": "typing"}
        if _NUMBER.fullmatch(address.thread):
            parameters["message_thread_id"] = int(address.thread)
        await self._operate("sendChatAction", parameters)

    async def set_commands(self, commands: Mapping[str, str], *, hidden: Collection[str] = ()) -> Outcome:
        """Makes the menu behind "/" show these commands (name to description; Bot API, "setMyCommands").

        In groups they, and those that are hidden, are then for this bot also without its name, and no others. Names
        that Telegram does not take (anything but 1 to 32 of a-z, 0-9 and _) work as commands and are left out of the
        menu. Cancelled: it counts as Unknown.
        """
        self._commands = frozenset(name.lower() for name in (*commands, *hidden))
        menu = [
            {"command": name, "description": description[:256] or name}
            for name, description in commands.items()
            if _COMMAND.fullmatch(name)
        ]
        return await self._operate("setMyCommands", {"commands": menu[:COMMANDS_LIMIT]})

    async def fetch(self, attachment: Attachment) -> tuple[str, bytes]:
        """The media type and content of what came with a message, at most 20 MB.

        Cancelled: nothing remains. Raises FetchFailed, whose text is fit for the user.
        """
        return await self._api.fetch(attachment, read_timeout=self._request_timeout)

    async def _operate(self, method: str, parameters: JSON) -> Outcome:
        try:
            answer = await self._api.call(method, parameters, read_timeout=self._request_timeout)
        except NothingLeft as error:
            return Refused(Reason.NOTHING_LEFT, detail=str(error))
        except Uncertain as error:
            return Unknown(str(error))
        return classify(method, answer.status, answer.headers, answer.body)


def _pause_or_raise(method: str, answer: Answer, patience: float) -> float:
    """Seconds to wait before the same request, when it was refused by a flood wait that is no longer than `patience`.

    Raises Disconnected for a longer one and for what may heal, AccountRefused for what will not.
    """
    found = answer.envelope
    if answer.status == 429 or (found is not None and found.code == 429 and answer.status < 500):
        wait = retry_after(answer.headers, found)
        if wait <= patience:
            return wait
        raise Disconnected(f"Telegram asks to wait {wait:g} s before the next {method}", retry_after=wait)
    if found is None or answer.status >= 500:
        raise Disconnected(f"Telegram answered {method} with status {answer.status} and nothing that helps")
    said = found.description[:200]
    if found.code in (401, 404):
        raise AccountRefused(
            f"Telegram refuses the token ({found.code} {said}). Compare it with the one that @BotFather shows."
        )
    if found.code == 409 and "webhook is active" in said.lower():
        raise AccountRefused(
            "A webhook is set for this bot, so its messages go there and not here. If nothing needs it any more, "
            "remove it with the Bot API's deleteWebhook, then start again."
        )
    if found.code == 409:
        raise Disconnected(
            f"Another program receives with the same token; stop one of the two. ({said})", retry_after=CONFLICT_PAUSE
        )
    raise Disconnected(f"Telegram refused {method}: {found.code} {said}")


def _chat(address: Address) -> int | str:
    """The chat as the wire wants it: a number, or the @name of a public one."""
    return int(address.chat) if _NUMBER.fullmatch(address.chat) else address.chat


def _place(address: Address, message_id: str) -> JSON:
    return {"chat_id": _chat(address), "message_id": int(message_id)}
