"""The methods of the Bot API, each with Telegram's own checks in Telegram's own order and words.

Source: Telegram Bot API 10.3, and the Bot API server for the descriptions of errors. Every method is a plain
function of the arguments, except getUpdates, which waits; what a method accepts is done when it returns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import trio
from attrs import frozen

from hermes_fakes.telegram.arguments import flag, whole
from hermes_fakes.telegram.store import Store
from hermes_fakes.telegram.texts import read_text
from hermes_fakes.telegram.updates import CALLBACK_RETENTION, WEBHOOK_ACTIVE, WEBHOOK_SET
from hermes_fakes.telegram.values import JSON, Accepted, ApiError, Chat, ScreenMessage

NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
DELETABLE_SECONDS = 48 * 3600
TYPING_SECONDS = 5.0
MAX_DOWNLOAD = 20 * 1024 * 1024
ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)


def spelling(method: str) -> str | None:
    """Telegram's spelling of a method name; None for one that this fake does not know."""
    return _SPELLINGS.get(method.lower())


@frozen
class BotApi:
    """The methods over one store."""

    store: Store

    def call(self, method: str, args: JSON) -> Any:
        """The result of any method but getUpdates (in Telegram's spelling), or ApiError."""
        return _METHODS[method](self, args)

    async def get_updates(self, args: JSON, gone: trio.Event) -> list[JSON]:
        if self.store.webhook:
            raise ApiError(409, WEBHOOK_ACTIVE)
        allowed = args.get("allowed_updates")
        return await self.store.updates.poll(
            whole(args, "offset") or 0,
            whole(args, "limit", 100) or 100,
            whole(args, "timeout") or 0,
            allowed if isinstance(allowed, list) else None,
            gone,
        )

    def get_me(self, args: JSON) -> JSON:
        rights = {"can_join_groups": True, "can_read_all_group_messages": True, "supports_inline_queries": False}
        return {**self.store.bot_payload(), **rights, "has_topics_enabled": False}

    # --- messages -------------------------------------------------------------------------------------------------

    def send_message(self, args: JSON) -> JSON:
        chat = self.store.chat_for_bot(args.get("chat_id"))
        self._charge("sendMessage", chat, None, args)
        text, entities = read_text(args)
        markup = _markup(args)
        thread = self._thread(chat, args)
        reply_to = self._reply_target(chat, args)
        if thread is None and reply_to is not None and chat.forum:
            thread = chat.messages[reply_to].thread
        message = self.store.add(
            chat,
            text,
            sender=self.store.bot_id,
            entities=entities,
            reply_to=reply_to,
            thread=thread,
            markup=markup,
        )
        chat.typing_until = float("-inf")
        self._note("sendMessage", args, chat, message.message_id)
        return self.store.payload(message)

    def edit_message_text(self, args: JSON) -> JSON:
        chat, message = self._own_message("editMessageText", args)
        text, entities = read_text(args)
        markup = _markup(args)
        if message.kind != "text":
            raise ApiError(400, "Bad Request: there is no text in the message to edit")
        return self._edit("editMessageText", args, chat, message, text=text, entities=entities, markup=markup)

    def edit_message_reply_markup(self, args: JSON) -> JSON:
        chat, message = self._own_message("editMessageReplyMarkup", args)
        return self._edit("editMessageReplyMarkup", args, chat, message, markup=_markup(args))

    def _edit(self, method: str, args: JSON, chat: Chat, message: ScreenMessage, **new: Any) -> JSON:
        if all(getattr(message, name) == value for name, value in new.items()):
            raise ApiError(400, NOT_MODIFIED)
        edited = self.store.change(message, **new)
        self._note(method, args, chat, edited.message_id)
        return self.store.payload(edited)

    def _own_message(self, method: str, args: JSON) -> tuple[Chat, ScreenMessage]:
        """The message that an edit means."""
        chat = self.store.chat_for_bot(args.get("chat_id"))
        number = whole(args, "message_id")
        if number is None or number <= 0:
            raise ApiError(400, "Bad Request: message identifier is not specified")
        self._charge(method, chat, number, args)
        message = chat.messages.get(number)
        if message is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        if not message.from_bot or (message.markup and "inline_keyboard" not in message.markup):
            raise ApiError(400, "Bad Request: message can't be edited")
        return chat, message

    def delete_message(self, args: JSON) -> bool:
        chat = self.store.chat_for_bot(args.get("chat_id"))
        number = whole(args, "message_id")
        message = chat.messages.get(number) if number is not None else None
        if message is None:
            raise ApiError(400, "Bad Request: message to delete not found")
        foreign = not message.from_bot and chat.kind != "private"
        if foreign or self.store.now() - message.date >= DELETABLE_SECONDS:
            raise ApiError(400, "Bad Request: message can't be deleted")
        del chat.messages[message.message_id]
        self._note("deleteMessage", args, chat, message.message_id)
        return True

    def send_chat_action(self, args: JSON) -> bool:
        chat = self.store.chat_for_bot(args.get("chat_id"))
        if args.get("action") not in ACTIONS:
            raise ApiError(400, "Bad Request: wrong parameter action in request")
        self._thread(chat, args)
        chat.typing_until = trio.current_time() + TYPING_SECONDS
        return True

    def _thread(self, chat: Chat, args: JSON) -> int | None:
        thread = whole(args, "message_thread_id")
        if thread is None or thread == 0:
            return None
        if thread not in chat.threads:
            raise ApiError(400, "Bad Request: message thread not found")
        return thread

    def _reply_target(self, chat: Chat, args: JSON) -> int | None:
        wanted = args.get("reply_parameters")
        if wanted is None and "reply_to_message_id" in args:
            wanted = {
                "message_id": args["reply_to_message_id"],
                "allow_sending_without_reply": args.get("allow_sending_without_reply"),
            }
        if wanted is None:
            return None
        if not isinstance(wanted, dict):
            raise ApiError(400, "Bad Request: object expected as reply parameters")
        number = whole(wanted, "message_id")
        if not number:
            return None
        if number in chat.messages:
            return number
        if flag(wanted, "allow_sending_without_reply"):
            return None
        raise ApiError(400, "Bad Request: message to be replied not found")

    def _charge(self, method: str, chat: Chat, message_id: int | None, args: JSON) -> None:
        wait = self.store.meter.charge(method, chat.id, message_id, str(args.get("text", "")))
        if wait is not None:
            seconds = math.ceil(wait)
            raise ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    def _note(self, method: str, args: JSON, chat: Chat | None, message_id: int | None) -> None:
        chat_id = chat.id if chat is not None else None
        self.store.history.append(Accepted(trio.current_time(), method, args, chat_id, message_id))

    # --- everything else ------------------------------------------------------------------------------------------

    def get_chat(self, args: JSON) -> JSON:
        """A ChatFullInfo: the Chat and what every full one has."""
        return {**self.store.chat_for_bot(args.get("chat_id")).payload(), **_FULL_CHAT}

    def answer_callback_query(self, args: JSON) -> bool:
        press = self.store.presses.get(str(args.get("callback_query_id", "")))
        if press is None or trio.current_time() - press.date > CALLBACK_RETENTION:
            raise ApiError(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        text = str(args.get("text") or "")
        if len(text) > 200:
            raise ApiError(400, "Bad Request: MESSAGE_TOO_LONG")
        press.answered, press.answer = True, text
        self._note("answerCallbackQuery", args, None, None)
        return True

    def get_file(self, args: JSON) -> JSON:
        file = self.store.files.get(str(args.get("file_id", "")))
        if file is None:
            raise ApiError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(file.content) > MAX_DOWNLOAD:
            raise ApiError(400, "Bad Request: file is too big")
        return file.payload()

    def set_my_commands(self, args: JSON) -> bool:
        commands = args.get("commands")
        if not isinstance(commands, list) or len(commands) > 100:
            raise ApiError(400, "Bad Request: can't parse commands: expected an Array of at most 100 BotCommand")
        for command in commands:
            if not isinstance(command, dict) or not re.fullmatch("[a-z0-9_]{1,32}", str(command.get("command"))):
                raise ApiError(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(str(command.get("description", ""))) <= 256:
                raise ApiError(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        self.store.commands[_command_key(args)] = commands
        self._note("setMyCommands", args, None, None)
        return True

    def get_my_commands(self, args: JSON) -> list[JSON]:
        return self.store.commands.get(_command_key(args), [])

    def delete_my_commands(self, args: JSON) -> bool:
        self.store.commands.pop(_command_key(args), None)
        return True

    def set_webhook(self, args: JSON) -> bool:
        url = str(args.get("url", ""))
        if url and not url.startswith("https://"):
            raise ApiError(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        self.store.webhook = url
        if url:
            self.store.updates.interrupt(WEBHOOK_SET)
        return True

    def delete_webhook(self, args: JSON) -> bool:
        self.store.webhook = ""
        if flag(args, "drop_pending_updates"):
            self.store.updates.pending.clear()
        return True

    def get_webhook_info(self, args: JSON) -> JSON:
        info: JSON = {
            "url": self.store.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(self.store.updates.pending),
        }
        allowed = self.store.updates.allowed
        return info if allowed is None else {**info, "allowed_updates": sorted(allowed)}


def _markup(args: JSON) -> JSON | None:
    """The reply_markup; ApiError 400 for a keyboard that Telegram would not take."""
    markup = args.get("reply_markup")
    if markup is None or markup == {}:
        return None
    if not isinstance(markup, dict):
        raise ApiError(400, "Bad Request: object expected as reply markup")
    rows = markup.get("inline_keyboard", [])
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ApiError(400, 'Bad Request: field "inline_keyboard" must be of type Array')
    for button in (button for row in rows for button in row):
        if not isinstance(button, dict) or not isinstance(button.get("text"), str) or not button["text"]:
            raise ApiError(400, "Bad Request: can't parse inline keyboard button: text buttons must be non-empty")
        if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= 64:
            raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
        if len(button) < 2:
            raise ApiError(400, "Bad Request: can't parse inline keyboard button: text buttons are unallowed")
    return markup if rows or "inline_keyboard" not in markup else None


_FULL_CHAT: JSON = {
    "accent_color_id": 0,
    "max_reaction_count": 11,
    "accepted_gift_types": dict.fromkeys(
        ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
    ),
}


def _command_key(args: JSON) -> tuple[str, str]:
    scope = args.get("scope") or {"type": "default"}
    return json.dumps(scope, sort_keys=True), str(args.get("language_code", ""))


_METHODS: dict[str, Callable[[BotApi, JSON], Any]] = {
    "getMe": BotApi.get_me,
    "sendMessage": BotApi.send_message,
    "editMessageText": BotApi.edit_message_text,
    "editMessageReplyMarkup": BotApi.edit_message_reply_markup,
    "deleteMessage": BotApi.delete_message,
    "sendChatAction": BotApi.send_chat_action,
    "getChat": BotApi.get_chat,
    "answerCallbackQuery": BotApi.answer_callback_query,
    "getFile": BotApi.get_file,
    "setMyCommands": BotApi.set_my_commands,
    "getMyCommands": BotApi.get_my_commands,
    "deleteMyCommands": BotApi.delete_my_commands,
    "setWebhook": BotApi.set_webhook,
    "deleteWebhook": BotApi.delete_webhook,
    "getWebhookInfo": BotApi.get_webhook_info,
}
_SPELLINGS = {name.lower(): name for name in (*_METHODS, "getUpdates")}
