"""The Telegram Bot API: one account, received by long polls.

`updates` turns what Telegram delivers into inbound messages, `render` turns a body into text and entities, `classify`
turns an answer into an outcome; all three are pure. `wire` makes one request, and `adapter` puts them together.
"""

from hermes_trio.platforms.telegram.adapter import TelegramPlatform

__all__ = ["TelegramPlatform"]
