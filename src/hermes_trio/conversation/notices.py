"""The words that the runtime itself says to users, as Markdown, in one place."""

from __future__ import annotations

from hermes_trio.agent import NoAnswer, NoAnswerKind
from hermes_trio.text.fences import close_fence

EMPTY = "⚠ The model had nothing to say. Please ask again, perhaps in other words."
FAILED = "⚠ The language model could not be reached or refused the request. Please try again in a while."
TOO_LONG = "⚠ This conversation has become longer than the model can read. Please start a new one."
ENDLESS = "⚠ I worked on this for too long without an answer and stopped. Please ask in smaller steps."
CUT = "⚠ *The answer broke off here and is incomplete. Please ask again.*"
CRASHED = "⚠ Something went wrong inside me while I worked on this. Please ask again."
GAVE_UP = "⚠ I was restarted too often while I worked on this, so I have given up on it. Sorry. Please ask again."
UNREADABLE = "⚠ I received something from you that I cannot read, so I could not answer it."
PART_REFUSED = "⚠ A part of my last answer was refused by the chat service and could not be shown."
EXPIRED = "⚠ An answer to an earlier message could not be delivered in time. Please ask again if you still need it."

INTERRUPTED = "⏹ *interrupted by your next message*"
STOPPED = "⏹ *stopped*"
COMPRESSED = "🗜 This conversation had become long, so I go on with a summary of it."
NOT_COMPRESSED = "⚠ I could not summarise this conversation, so nothing was changed."

RESTARTED = "[note from the runtime: your previous work on this was interrupted by a restart; go on from here]"
UNKNOWN_EFFECT = "[outcome unknown: interrupted by a restart; it may or may not have taken effect]"
CUT_SHORT = "[cut short by the user]"
NEVER_FINISHED = "[interrupted: this call has no result]"

_BY_KIND = {
    NoAnswerKind.EMPTY: EMPTY,
    NoAnswerKind.FAILED: FAILED,
    NoAnswerKind.TOO_LONG: TOO_LONG,
    NoAnswerKind.ENDLESS: ENDLESS,
}


def notice_for(result: NoAnswer) -> str:
    """What the user sees instead of an answer: a notice, behind what there was of an answer that broke off."""
    if result.kind is NoAnswerKind.CUT:
        return f"{close_fence(result.partial.rstrip())}\n\n{CUT}" if result.partial.strip() else FAILED
    return _BY_KIND[result.kind]
