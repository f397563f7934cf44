"""The fake model itself: which script answers a request, and what a test sees of the requests.

A request takes the next queued script (`model.says(...)` on the fake itself), else the newest rule that matches
(`model.when("weather")...`), else the default: an echo. A request that the real API would refuse takes none.

The rule: every accepted request is in `requests`, with its whole body, before anything of its answer is sent.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from hermes_fakes.http import Answer, Reply, Request, Silence, StreamReply, json_reply, unless_gone
from hermes_fakes.model.control import answer_control
from hermes_fakes.model.player import Player
from hermes_fakes.model.requests import BadRequest, ModelRequest, last_user_text, validate
from hermes_fakes.model.script import Pattern, Rule, Script, Verbs
from hermes_fakes.server import Server

COMPLETIONS = "chat.completions"
DEFAULT_EPOCH = 1_800_000_000.0

_SSE_HEADERS = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
_KINDS = {401: "invalid_request_error", 429: "requests", 400: "invalid_request_error"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def echo(request: ModelRequest) -> Script:
    """The default answer."""
    return Script().says(f"You said: {request.last_user_text}", chunks=16)


class ModelFake(Server[ModelRequest], Verbs):
    """See the module's text. The verbs (`says`, `calls`, `fails`, ...) on the fake itself queue one script each."""

    def __init__(
        self,
        *,
        default: Callable[[ModelRequest], Script] = echo,
        models: tuple[str, ...] = ("fake-model",),
        api_key: str | None = None,
        epoch: float = DEFAULT_EPOCH,
    ) -> None:
        super().__init__()
        self.default = default
        self.models = models
        self.api_key = api_key
        """The only key that is accepted; None: any, or none."""
        self.rules: list[Rule] = []
        self.queue: list[Script] = []
        """Scripts for the next requests, in order."""
        self.rejected: list[tuple[int, str]] = []
        """The requests that were refused as wrong, with status and reason: they are not in `requests`."""
        self.held: list[trio.Event] = []
        """What the scripts of the control interface wait for."""
        self._epoch = epoch
        self._born: float | None = None
        self._numbers = itertools.count(1)

    def script(self) -> Script:
        queued = Script(self.queue)
        self.queue.append(queued)
        return queued

    def when(self, pattern: Pattern, *, once: bool = False) -> Rule:
        """A rule for requests whose last user text contains the pattern, or for which the predicate is true.

        `then()` in its script leads to the answers after the results of tools. It holds for every such turn, or with
        `once` for one. The newest rule is asked first.
        """
        rule = Rule(pattern, once)
        self.rules.insert(0, rule)
        return rule

    def release(self) -> None:
        """Lets every script go on that a control request made hold."""
        while self.held:
            self.held.pop().set()

    @property
    def open_streams(self) -> list[ModelRequest]:
        """The requests whose answer is not complete and whose client is still there."""
        return [r for r in self.requests if r.outcome == "accepted" and not r.finished and not r.gone.is_set()]

    # --- the client's side ----------------------------------------------------------------------------------------

    def control(self, request: Request) -> Reply | None:
        return answer_control(self, request)

    def decode(self, request: Request) -> ModelRequest | Reply:
        if self.api_key is not None and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return self._reject(401, "Incorrect API key provided.")
        if request.path.endswith("/models") and request.method == "GET":
            return ModelRequest("models", {}, trio.current_time(), gone=request.gone)
        if not request.path.endswith("/chat/completions"):
            return self._reject(404, f"Invalid URL ({request.method} {request.path})")
        if request.method != "POST":
            return self._reject(405, f"Not allowed to {request.method} on {request.path}.")
        try:
            body = validate(request.json())
        except BadRequest as error:
            return self._reject(400, error.message, error.param, error.code)
        except ValueError:
            return self._reject(400, "We could not parse the JSON body of your request.")
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        now = trio.current_time()
        return ModelRequest(COMPLETIONS, body, now, last_user_text(body), request.gone, headers=headers)

    def _reject(self, status: int, message: str, param: str | None = None, code: str | None = None) -> Reply:
        self.rejected.append((status, message))
        self.changed()
        return _error(status, message, param=param, code=code or _CODES.get(status))

    async def perform(self, call: ModelRequest) -> Answer:
        call.outcome = "accepted"
        if call.method == "models":
            entries = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in self.models]
            return json_reply({"object": "list", "data": entries})
        script = self._choose(call)
        player = Player(script, call, next(self._numbers), self._created(call), self.changed)
        self.changed()
        if script.failure is not None or not call.streams:
            answer = await unless_gone(call.gone, partial(self._answer_whole, player))
            call.aborted = answer is None
            return answer or Silence()

        async def feed(send: Callable[[bytes], Any]) -> None:
            try:
                await player.stream(send)
            finally:
                self.changed()

        return StreamReply(feed, 200, (*_SSE_HEADERS, ("x-request-id", f"req_{player.number}")))

    async def _answer_whole(self, player: Player) -> Answer:
        failure = player.script.failure
        if failure is None:
            return await player.whole()
        await player.before_failure()
        player.request.outcome = f"refused: {failure.status}"
        player.request.finished = True
        if failure.body is None:
            plain = self.decline(failure.status)
            return Reply(plain.status, plain.body, (*plain.headers, *failure.headers))
        if isinstance(failure.body, bytes):
            return Reply(failure.status, failure.body, failure.headers)
        return json_reply(failure.body, failure.status, failure.headers)

    def decline(self, status: int, text: str = "", *, retry_after: float | None = None, **parameters: Any) -> Reply:
        words = text or ("Rate limit reached" if status == 429 else "The server had an error.")
        headers = (("retry-after", str(retry_after)),) if retry_after is not None else ()
        return _error(status, words, code=_CODES.get(status), headers=headers)

    def _created(self, call: ModelRequest) -> int:
        """Unix time of a completion; the first request comes at the epoch."""
        if self._born is None:
            self._born = call.time
        return int(self._epoch + call.time - self._born)

    def _choose(self, request: ModelRequest) -> Script:
        if self.queue:
            return self.queue.pop(0)
        for rule in self.rules:
            if (script := rule.choose(request)) is not None:
                return script
        return self.default(request)


def _error(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Reply:
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return json_reply(body, status, headers)


@asynccontextmanager
async def open_model_fake(**options: Any) -> AsyncIterator[ModelFake]:
    """A fake with a scope for late effects; the options are those of ModelFake."""
    fake = ModelFake(**options)
    async with fake._scope():
        yield fake
