"""What the fake Telegram understands under /control/. See hermes_fakes.control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_fakes.control import JSON, Action, common_actions, dispatch, plain
from hermes_fakes.http import Reply, Request

if TYPE_CHECKING:
    from hermes_fakes.telegram.fake import TelegramFake
    from hermes_fakes.telegram.people import User


def answer_control(fake: TelegramFake, request: Request) -> Reply | None:
    """None for a request that is not one of the control interface."""
    return dispatch(_actions(fake), request)


def _actions(fake: TelegramFake) -> dict[str, Action]:
    return {
        **common_actions(fake),
        "say": lambda args: {"update_id": _say(fake, args)},
        "edit": lambda args: {"update_id": _user(fake, args).edits(args["text"], _number(args, "message"))},
        "delete": lambda args: _user(fake, args).deletes(int(args["message"]), chat=_number(args, "chat")),
        "press": lambda args: {"id": _user(fake, args).presses(args["button"], chat=_number(args, "chat")).id},
        "block": lambda args: {"update_id": _user(fake, args).blocks()},
        "unblock": lambda args: {"update_id": _user(fake, args).unblocks()},
        "redeliver": lambda args: fake.redeliver(int(args["update_id"])),
        "group": lambda args: {"chat": fake.group(args["title"], forum=bool(args.get("forum"))).id},
        "screen": lambda args: [plain(message) for message in fake.screen(_place(fake, args))],
        "typing": lambda args: fake.is_typing(_place(fake, args)),
        "history": lambda args: [plain(entry) for entry in fake.history],
        "commands": lambda args: fake.commands(),
        "state": lambda args: {"unconfirmed": fake.unconfirmed, "violations": len(fake.violations)},
    }


def _user(fake: TelegramFake, args: JSON) -> User:
    return fake.user(str(args["user"]), _number(args, "id"))


def _number(args: JSON, name: str) -> int | None:
    return int(args[name]) if args.get(name) is not None else None


def _place(fake: TelegramFake, args: JSON) -> int:
    return int(args["chat"]) if "chat" in args else _user(fake, args).chat


def _say(fake: TelegramFake, args: JSON) -> int:
    return _user(fake, args).says(
        str(args["text"]),
        chat=_number(args, "chat"),
        reply_to=_number(args, "reply_to"),
        thread=_number(args, "thread"),
    )
