"""The arguments of a method call: from the query, a form or a JSON body, and checked one by one.

Source: Telegram Bot API, "Making requests". In a form nested objects are JSON strings; in a JSON body they stand
plain.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from hermes_fakes.http import Request
from hermes_fakes.telegram.values import JSON, ApiError

_NESTED = frozenset(
    {
        "allowed_updates",
        "commands",
        "entities",
        "link_preview_options",
        "reply_markup",
        "reply_parameters",
        "scope",
    }
)


def read_arguments(request: Request) -> JSON:
    """All arguments of the request; those of the body win. ApiError 400 for a body that cannot be read."""
    args: JSON = dict(request.query)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if request.body and kind == "application/json":
        try:
            body = request.json()
        except ValueError:
            raise ApiError(400, "Bad Request: can't parse JSON object") from None
        if not isinstance(body, dict):
            raise ApiError(400, "Bad Request: expected JSON object")
        args.update(body)
    elif request.body and kind == "application/x-www-form-urlencoded":
        args.update(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))
    elif request.body:
        raise ApiError(400, f"Bad Request: this fake does not read a body of type {kind or 'unknown'!r}")
    return {name: _unfold(name, value) for name, value in args.items() if value is not None}


def _unfold(name: str, value: Any) -> Any:
    if name not in _NESTED or not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except ValueError:
        raise ApiError(400, f"Bad Request: can't parse {name.replace('_', ' ')} JSON object") from None


def whole(args: JSON, name: str, default: int | None = None) -> int | None:
    """An integer argument; the default when it is absent or unreadable, as Telegram does."""
    value = args.get(name, default)
    if isinstance(value, bool):
        return default
    try:
        return int(value) if value is not None else default
    except (TypeError, ValueError):
        return default


def flag(args: JSON, name: str) -> bool:
    """A boolean argument; absent is false."""
    return args.get(name) in (True, "true", "True", "1", "yes", 1)
