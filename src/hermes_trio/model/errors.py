"""What a failed answer of an OpenAI-compatible server means, and when to try again. Pure.

Theory of operation. Servers agree on little: the status, an `error` object whose `code` may be a word, a number or
null, and a few headers. Here they become the three errors of `model.base`, with a short text for the operator.

The rule that must not be broken: a text never holds the key. Servers echo parts of it in their refusals, so their
words on authentication are not repeated at all.

Source: OpenAI API reference, "Error codes"; the retry rules are those of its published clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hermes_trio.model.base import ContextOverflow, ModelError

MAX_RETRY_AFTER: Final = 120.0
"""Seconds; a server that asks for a longer wait is not asked again."""
FIRST_DELAY: Final = 0.5
"""Seconds before the first repetition; each further one waits twice as long."""
MAX_DELAY: Final = 8.0
"""Seconds; where the doubling stops."""
JITTER: Final = 0.25
"""The share of a delay that chance may take off."""
MAX_WORDS: Final = 300
"""Code points of a server's own message that an error text repeats."""

_SECRETS: Final = frozenset({401, 403})
"""Statuses whose message is not repeated: it may quote the key."""
_RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429})
"""Besides all from 500 up."""
_FINAL_WORDS: Final = frozenset(
    {
        "authentication_error",
        "billing_error",
        "content_filter",
        "content_policy_violation",
        "insufficient_quota",
        "invalid_api_key",
        "invalid_prompt",
        "invalid_request_error",
        "invalid_value",
        "model_not_found",
        "not_found_error",
        "permission_error",
    }
)
"""Codes and types that stay as they are however often one asks."""
_OVERFLOW_WORDS: Final = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)
_OVERFLOW_TEXT: Final = re.compile(
    r"maximum context length|context (length|window|size)|prompt is too long|exceeds? the (available )?context",
    re.IGNORECASE,
)


def error_in(payload: Any) -> Mapping[str, Any] | None:
    """The error object in a decoded body or chunk: under `error`, or the payload itself; None where there is none."""
    if not isinstance(payload, Mapping):
        return None
    error = payload.get("error")
    if isinstance(error, Mapping) and error:
        return error
    if error:
        return {"message": str(error)}
    return payload if payload.get("object") == "error" else None


def classify(
    status: int | None, error: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
) -> ModelError:
    """The ModelError or ContextOverflow for a refusal.

    `status`: of the response; None for an error inside a stream that began with 200, whose code then decides.
    `headers`: of the response, names in lower case; they may say when to retry, and whether.
    """
    error, headers = error or {}, headers or {}
    code, kind = str(error.get("code") or ""), str(error.get("type") or "")
    if status is None and code.isdecimal() and 400 <= int(code[:4]) < 600:
        status = int(code[:4])
    words = {code, kind}
    message = "" if status in _SECRETS or "invalid_api_key" in words else _short(error.get("message"))
    text = "the model refused: " + ", ".join(
        filter(None, [f"status {status}" if status else "", code or kind, message])
    )
    if request_id := _short(headers.get("x-request-id")):
        text += f" (request {request_id[:64]})"
    if _is_overflow(status, words, message):
        return ContextOverflow(text, retryable=False)
    return ModelError(text, retryable=_is_retryable(status, words, headers), retry_after=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, at least 0; None where it does not say.

    A date is read against the server's own `Date`, so that our clock does not matter.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        wait = _http_date(value) - _http_date(headers.get("date"))
    except ValueError:
        return None
    return max(0.0, wait.total_seconds())


def retry_delay(attempt: int, error: ModelError, *, jitter: float = 0.0) -> float | None:
    """Seconds to wait before repeating a failed attempt; None: do not.

    `attempt`: how many repetitions there were before, from 0. `jitter`: chance between 0 and 1 takes up to a quarter
    off. The server's own wish is never undercut; one beyond MAX_RETRY_AFTER is a refusal.
    """
    if not error.retryable:
        return None
    backoff = min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(attempt, 16)) * (1 - JITTER * jitter)
    if error.retry_after is None:
        return backoff
    return None if error.retry_after > MAX_RETRY_AFTER else max(backoff, error.retry_after)


def _is_overflow(status: int | None, words: set[str], message: str) -> bool:
    if words & _OVERFLOW_WORDS or status == 413:
        return True
    # A rate limit on tokens speaks of lengths too, and is none.
    return status in (None, 400, 422, 500) and _OVERFLOW_TEXT.search(message) is not None


def _is_retryable(status: int | None, words: set[str], headers: Mapping[str, str]) -> bool:
    wish = headers.get("x-should-retry", "").strip().lower()
    if wish in ("true", "false"):
        return wish == "true"
    if "insufficient_quota" in words:
        return False
    if status is not None:
        return status in _RETRYABLE_STATUS or status >= 500
    return not words & _FINAL_WORDS


def _http_date(value: str | None) -> datetime:
    return datetime.strptime((value or "").strip(), "%a, %d %b %Y %H:%M:%S GMT")


def _number(value: str | None) -> float | None:
    """A plain, finite number of at least 0; None for all else."""
    if value is None or not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", value.strip()):
        return None
    return float(value)


def _short(message: Any) -> str:
    """The first words of a server's message, on one line and without control characters."""
    if not isinstance(message, str):
        return ""
    line = " ".join("".join(c if c.isprintable() else " " for c in message[: 4 * MAX_WORDS]).split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
