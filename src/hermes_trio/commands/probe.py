"""Whether a model and a bot's token work, tried on the real thing before anything relies on them.

A probe costs one small request and changes nothing. The rule that must not be broken: what it returns is for a
person's eyes and never holds a key or a token.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio
from attrs import evolve, frozen

from hermes_trio.config import ModelConfig, Secret
from hermes_trio.config.schema import OPENAI
from hermes_trio.http import HttpClient, NothingLeft, Uncertain
from hermes_trio.model.base import Message, Model, ModelError
from hermes_trio.platforms.telegram.wire import BotApi

MODEL_DEADLINE = 20.0
"""Seconds for the first sign of an answer; a local server may have to load the model first."""
REQUEST_DEADLINE = 10.0
"""Seconds for any other request."""
DEFAULT_MODEL = "gpt-4o-mini"
"""What is asked of OpenAI itself when nobody names a model."""


class ProbeFailed(Exception):
    """It does not work; the text says why, without secrets."""


@frozen
class Bot:
    """Who a token belongs to."""

    username: str
    id: int


async def probe_model(model: Model) -> None:
    """Returns when the model has begun to answer. Raises ProbeFailed. Cancelled: the request is closed."""
    with trio.move_on_after(MODEL_DEADLINE):
        try:
            async with model.stream((Message("user", "Answer with one word: hello."),), ()) as events:
                await anext(events)
        except ModelError as error:
            raise ProbeFailed(str(error)) from None
        except StopAsyncIteration:
            raise ProbeFailed("the server ended its answer before it began") from None
        return
    raise ProbeFailed(f"no answer within {MODEL_DEADLINE:g} s")


async def probe_telegram(client: HttpClient, base_url: str, token: Secret) -> Bot:
    """Who the bot is ("getMe"). Raises ProbeFailed. Cancelled: nothing has changed."""
    api = BotApi(client, base_url, token.reveal(), REQUEST_DEADLINE)
    try:
        answer = await api.call("getMe", {}, read_timeout=REQUEST_DEADLINE)
    except (NothingLeft, Uncertain) as error:
        raise ProbeFailed(f"Telegram cannot be reached: {error}") from None
    if answer.envelope is None:
        raise ProbeFailed(f"status {answer.status} and nothing that Telegram would say; is {base_url} a Bot API?")
    result = answer.envelope.result
    if not answer.envelope.ok or not isinstance(result, dict) or type(result.get("id")) is not int:
        raise ProbeFailed(f"Telegram refuses the token ({answer.envelope.code} {answer.envelope.description[:100]})")
    return Bot(str(result.get("username") or result["id"]), result["id"])


async def name_model(client: HttpClient, table: ModelConfig, wanted: str) -> ModelConfig:
    """The table with the wanted name, or with one that the server offers where none is wanted.

    Raises ProbeFailed when the server does not say what it offers. Cancelled: nothing has changed.
    """
    if wanted or table.base_url == OPENAI:
        return evolve(table, name=wanted or DEFAULT_MODEL)
    headers = {} if table.api_key is None else {"authorization": f"Bearer {table.api_key.reveal()}"}
    try:
        answer = await client.request(
            "GET", f"{table.base_url.rstrip('/')}/models", headers=headers, read_timeout=REQUEST_DEADLINE
        )
        offered = _names(answer.json()) if answer.status == 200 else []
    except (NothingLeft, Uncertain) as error:
        raise ProbeFailed(f"the server cannot be reached: {error}") from None
    except ValueError:
        offered = []
    if not offered:
        hint = "" if table.base_url.rstrip("/").endswith("/v1") else ", or does its address end in /v1?"
        raise ProbeFailed(
            f"the server does not say which models it has (status {answer.status}); name one{hint or '.'}"
        )
    return evolve(table, name=offered[0])


def _names(found: object) -> list[str]:
    data = found.get("data") if isinstance(found, Mapping) else None
    entries = data if isinstance(data, list) else []
    names = [entry.get("id") for entry in entries if isinstance(entry, Mapping)]
    return [name for name in names if isinstance(name, str) and name]
