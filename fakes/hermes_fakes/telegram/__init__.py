"""Telegram's Bot API as a program on the other side of it sees it, and the people who chat there.

async with open_telegram_fake() as fake:
    alice = fake.user("alice")
    alice.says("hi")
    ...                                  # a bot is served by fake.serve(stream)
    print(fake.screen(alice.chat))
"""

from hermes_fakes.telegram.fake import DEFAULT_TOKEN, TelegramFake, open_telegram_fake
from hermes_fakes.telegram.limits import Limits, Violation
from hermes_fakes.telegram.people import User
from hermes_fakes.telegram.values import Accepted, ApiError, Chat, Pressed, ScreenMessage

__all__ = [
    "DEFAULT_TOKEN",
    "Accepted",
    "ApiError",
    "Chat",
    "Limits",
    "Pressed",
    "ScreenMessage",
    "TelegramFake",
    "User",
    "Violation",
    "open_telegram_fake",
]
