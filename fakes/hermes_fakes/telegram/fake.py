"""The fake Telegram itself: what a bot reaches by HTTP, and what a test sees.

A test makes people act (`fake.user("alice").says("hi")`), injects faults (`fake.faults.add(...)`), and looks at the
ground truth: `fake.screen(chat)` is what a person sees now, `fake.history` what was accepted, `fake.requests` what
was asked.

The rule: the fake outlives the bot. No connection owns anything.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from attrs import define

from hermes_fakes.faults import Call
from hermes_fakes.http import Answer, Reply, Request, json_reply
from hermes_fakes.server import Server
from hermes_fakes.telegram.arguments import read_arguments
from hermes_fakes.telegram.control import answer_control
from hermes_fakes.telegram.limits import Limits, Meter, Violation
from hermes_fakes.telegram.methods import BotApi, spelling
from hermes_fakes.telegram.people import User
from hermes_fakes.telegram.store import Store
from hermes_fakes.telegram.updates import Updates
from hermes_fakes.telegram.values import UPGRADED, Accepted, ApiError, Chat, ScreenMessage

DEFAULT_TOKEN = "123456:fake-token"
DEFAULT_EPOCH = 1_800_000_000.0
"""Unix time at which a fake begins unless told otherwise: a fixed one, so that runs are alike."""
GENERAL = 1
"""The thread of a forum that always exists; messages to it carry no thread id."""

_PATH = re.compile(r"/bot(?P<token>[^/]+)/(?P<method>[^/]+)")
_FILE_PATH = re.compile(r"/file/bot(?P<token>[^/]+)/(?P<path>.+)")
_TOKEN = re.compile(r"\d+:[\w-]+")


@define(eq=False)
class TelegramCall(Call):
    """One method call. `method` is in Telegram's spelling; "file" is a download."""


class TelegramFake(Server[TelegramCall]):
    """See the module's text. `open_telegram_fake` makes one with its scope."""

    def __init__(
        self,
        token: str = DEFAULT_TOKEN,
        *,
        name: str = "hermes_bot",
        limits: Limits | None = None,
        epoch: float = DEFAULT_EPOCH,
        message_ids: Iterator[int] | None = None,
        update_ids: Iterator[int] | None = None,
    ) -> None:
        super().__init__()
        self.token = token
        self._store = Store(
            bot_id=int(token.partition(":")[0]),
            bot_name=name,
            epoch=epoch,
            message_ids=message_ids or itertools.count(1),
            updates=Updates(update_ids or itertools.count(1)),
            meter=Meter(limits),
        )
        self._api = BotApi(self._store)
        self._users: dict[str, User] = {}
        self._user_ids = itertools.count(1001)
        self._group_ids = itertools.count(1)

    # --- the people's side ----------------------------------------------------------------------------------------

    def user(self, name: str, id: int | None = None) -> User:
        """The person with this name; the same one each time. Without an id one is chosen."""
        if name not in self._users:
            number = next(self._user_ids) if id is None else id
            self._store.names[number] = name
            self._users[name] = User(name, number, self._store, self.changed)
        return self._users[name]

    def group(self, title: str, *, supergroup: bool = False, forum: bool = False) -> Chat:
        """A new group with the bot in it; a forum is a supergroup."""
        kind = "supergroup" if supergroup or forum else "group"
        number = next(self._group_ids)
        chat = Chat(-(10**12) - number if kind == "supergroup" else -number, kind, title, forum=forum)
        self._store.chats[chat.id] = chat
        return chat

    def topic(self, forum: Chat, name: str) -> int:
        """A new topic of the forum; returns its message_thread_id."""
        while (thread := self._store.next_message_id(forum)) == GENERAL:
            pass
        forum.threads[thread] = name
        return thread

    def closes_topic(self, forum: Chat, thread: int) -> None:
        """Removes the topic with its messages."""
        del forum.threads[thread]
        for message in tuple(forum.messages.values()):
            if message.thread == thread:
                del forum.messages[message.message_id]
        self.changed()

    def kick(self, chat: Chat) -> None:
        """The bot is thrown out of the group."""
        name = "supergroup chat" if chat.kind == "supergroup" else "group chat"
        chat.trouble = ApiError(403, f"Forbidden: bot was kicked from the {name}")
        self.changed()

    def migrate(self, chat: Chat) -> Chat:
        """The group becomes a supergroup, which is returned; the old id answers 400 with the new one."""
        new = self.group(chat.title, supergroup=True)
        chat.trouble = ApiError(400, UPGRADED, migrate_to_chat_id=new.id)
        self.changed()
        return new

    def redeliver(self, update_id: int) -> None:
        """The same update once more, although it may have been acknowledged."""
        self._store.updates.again(update_id)
        self.changed()

    # --- the ground truth -----------------------------------------------------------------------------------------

    def screen(self, chat: Chat | User | int) -> list[ScreenMessage]:
        """What is visible now, in order; nothing for a chat that does not exist yet."""
        found = self._chat(chat)
        return list(found.messages.values()) if found else []

    def bot_texts(self, chat: Chat | User | int) -> list[str]:
        """The texts of the bot that are visible now, in order."""
        return [message.text for message in self.screen(chat) if message.from_bot]

    def is_typing(self, chat: Chat | User | int) -> bool:
        """The typing sign of the bot is visible now."""
        found = self._chat(chat)
        return found is not None and trio.current_time() < found.typing_until

    @property
    def chats(self) -> dict[int, Chat]:
        return self._store.chats

    @property
    def history(self) -> list[Accepted]:
        """Every accepted request that changed something, in order of acceptance."""
        return self._store.history

    @property
    def limits(self) -> Limits | None:
        """The rate limits; None: there are none. May be changed at any time."""
        return self._store.meter.limits

    @limits.setter
    def limits(self, limits: Limits | None) -> None:
        self._store.meter.limits = limits

    @property
    def violations(self) -> list[Violation]:
        """The requests that the rate limits refused."""
        return self._store.meter.violations

    @property
    def updates(self) -> Updates:
        return self._store.updates

    @property
    def unconfirmed(self) -> int:
        """How many updates no poll has confirmed yet."""
        return len(self._store.updates.pending)

    def commands(self) -> dict[str, str]:
        """The default commands that the bot has set, with their descriptions."""
        return {command["command"]: command["description"] for command in self._api.get_my_commands({})}

    def _chat(self, chat: Chat | User | int) -> Chat | None:
        return chat if isinstance(chat, Chat) else self._store.chats.get(chat if isinstance(chat, int) else chat.id)

    # --- the bot's side -------------------------------------------------------------------------------------------

    def control(self, request: Request) -> Reply | None:
        return answer_control(self, request)

    def decode(self, request: Request) -> TelegramCall | Reply:
        found = _PATH.fullmatch(request.path) or _FILE_PATH.fullmatch(request.path)
        if found is None:
            return self._reject(request.path, 404, "Not Found")
        if not _TOKEN.fullmatch(found["token"]):
            return self._reject(found[2], 401, "Unauthorized: invalid token specified")
        if found["token"] != self.token:
            return self._reject(found[2], 401, "Unauthorized")
        now = trio.current_time()
        if found.re is _FILE_PATH:
            return TelegramCall("file", {"path": found["path"]}, now, gone=request.gone)
        method = spelling(found["method"])
        if method is None:
            return self._reject(found[2], 404, "Not Found: method not found")
        try:
            args = read_arguments(request)
        except ApiError as error:
            return self._reject(method, error.code, error.description)
        return TelegramCall(method, args, now, str(args.get("text", "")), request.gone)

    def _reject(self, name: str, status: int, description: str) -> Reply:
        """Refuses a request that is no call; `requests` shows it all the same."""
        outcome = f"refused: {description}"
        self.requests.append(TelegramCall(name, {}, trio.current_time(), outcome=outcome))
        self.changed()
        return self.decline(status, description)

    async def perform(self, call: TelegramCall) -> Answer:
        try:
            if call.method == "file":
                return self._download(call)
            if call.method == "getUpdates":
                result: Any = await self._api.get_updates(call.args, call.gone)
            else:
                result = self._api.call(call.method, call.args)
        except ApiError as error:
            call.outcome = f"refused: {error.description}"
            return self.decline(error.code, error.description, **error.parameters)
        call.outcome = "accepted"
        self.changed()
        return json_reply({"ok": True, "result": result})

    def decline(self, status: int, text: str = "", *, retry_after: float | None = None, **parameters: Any) -> Reply:
        if retry_after is not None:
            parameters["retry_after"] = retry_after
        if not text:
            text = _DESCRIPTIONS.get(status, "Internal Server Error")
            text = f"{text}: retry after {retry_after}" if retry_after is not None else text
        body: dict[str, Any] = {"ok": False, "error_code": status, "description": text}
        if parameters:
            body["parameters"] = parameters
        headers = (("retry-after", str(retry_after)),) if retry_after is not None else ()
        return json_reply(body, status, headers)

    def _download(self, call: TelegramCall) -> Reply:
        for file in self._store.files.values():
            if file.path == call.args["path"]:
                call.outcome = "accepted"
                return Reply(200, file.content, (("content-type", "application/octet-stream"),))
        raise ApiError(404, "Not Found")


_DESCRIPTIONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    502: "Bad Gateway",
}


@asynccontextmanager
async def open_telegram_fake(token: str = DEFAULT_TOKEN, **options: Any) -> AsyncIterator[TelegramFake]:
    """A fake with a scope for late effects; the options are those of TelegramFake."""
    fake = TelegramFake(token, **options)
    async with fake._scope():
        yield fake
