"""The Telegram adapter against a scripted Bot API: what it asks, when it confirms, and how it ends."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field, frozen

from hermes_trio.http import HttpClient, NothingLeft, Response, StreamedResponse, Uncertain
from hermes_trio.platforms.base import (
    AccountRefused,
    Attachment,
    Disconnected,
    FetchFailed,
    Inbound,
    Platform,
    Receiver,
)
from hermes_trio.platforms.outcomes import Accepted, Reason, Refused, Unknown
from hermes_trio.platforms.telegram import TelegramPlatform
from hermes_trio.platforms.telegram.adapter import CONFLICT_PAUSE, POLL_MARGIN
from hermes_trio.text.body import Body, Span
from hermes_trio.values import Address

TOKEN = "4711:AAE-secret_token"
BASE = "https://telegram.test"
ANN = {"id": 42, "is_bot": False, "first_name": "Ann"}
CHAT = Address("telegram", "42")


@frozen
class Asked:
    """A request that the adapter made."""

    method: str
    parameters: dict[str, Any]
    at: float
    read_timeout: float


Step = Response | Exception | None
"""What happens to a request: an answer, a failure, or (None) silence until its read timeout."""


@define
class Script:
    """An HttpClient that answers from a list, and with silence when the list is empty."""

    steps: list[Step]
    asked: list[Asked] = field(factory=list)
    file: bytes = b""
    file_status: int = 200

    async def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 10.0,
    ) -> Response:
        base, _, name = url.rpartition("/")
        assert (method, base) == ("POST", f"{BASE}/bot{TOKEN}")
        self.asked.append(Asked(name, json, trio.current_time(), read_timeout))
        step = self.steps.pop(0) if self.steps else None
        if step is None:
            await trio.sleep(read_timeout)
            raise Uncertain("no complete answer in time")
        await trio.lowlevel.checkpoint()
        if isinstance(step, Exception):
            raise step
        return step

    def stream(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 60.0,
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        assert (method, url) == ("GET", f"{BASE}/file/bot{TOKEN}/photos/file%200.jpg")
        return self._streamed()

    @asynccontextmanager
    async def _streamed(self) -> AsyncIterator[StreamedResponse]:
        yield File(self.file_status, {}, self.file)


@frozen
class File:
    """A StreamedResponse that is already here."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.content

    async def read(self, limit: int) -> bytes:
        if len(self.content) > limit:
            raise Uncertain(f"the answer is longer than {limit} bytes")
        return self.content


@define
class Inbox:
    """A Receiver that keeps what it is given."""

    stored: str | None = None
    batches: list[tuple[tuple[Inbound, ...], str | None]] = field(factory=list)
    signs_of_life: int = 0
    on_receive: Callable[[], None] = lambda: None
    hold: trio.Event | None = None

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        self.on_receive()
        if self.hold is not None:
            await self.hold.wait()
        self.batches.append((batch, cursor))
        self.stored = cursor

    async def cursor(self) -> str | None:
        return self.stored

    def alive(self) -> None:
        self.signs_of_life += 1

    @property
    def texts(self) -> list[str]:
        return [inbound.text for batch, _ in self.batches for inbound in batch]


def ok(result: object) -> Response:
    return Response(200, {}, json.dumps({"ok": True, "result": result}).encode())


def refused(code: int, description: str, **parameters: object) -> Response:
    held = {"ok": False, "error_code": code, "description": description, "parameters": parameters}
    return Response(code, {}, json.dumps(held).encode())


ME = ok({"id": 4711, "is_bot": True, "first_name": "Hermes", "username": "HermesBot"})


def update(number: int, text: str) -> dict[str, Any]:
    message = {"message_id": number - 100, "from": ANN, "chat": {"id": 42, "type": "private"}, "text": text}
    return {"update_id": number, "message": message}


def telegram(script: HttpClient) -> TelegramPlatform:
    return TelegramPlatform(script, "telegram", TOKEN, base_url=BASE)


async def run(script: Script, inbox: Inbox | None = None) -> Disconnected | AccountRefused:
    """Runs until the adapter gives up, and returns why."""
    receiver: Receiver = inbox or Inbox()
    with pytest.raises((Disconnected, AccountRefused)) as caught:
        await telegram(script).run(receiver)
    assert isinstance(caught.value, Disconnected | AccountRefused)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))
    return caught.value


# -- receiving ----------------------------------------------------------------------------------------------------


async def test_the_first_poll_comes_at_once_and_takes_the_backlog(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing but getMe comes before the first poll, which has no offset and so receives what waited."""
    script, inbox = Script([ME, ok([update(107, "a"), update(108, "b")])]), Inbox()
    await run(script, inbox)
    assert [asked.method for asked in script.asked] == ["getMe", "getUpdates", "getUpdates"]
    assert "offset" not in script.asked[1].parameters
    assert script.asked[1].at == script.asked[0].at
    assert script.asked[1].parameters["timeout"] == 30
    assert script.asked[1].parameters["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]
    assert inbox.texts == ["a", "b"]
    assert inbox.batches[0][1] == "109"


async def test_an_offset_is_sent_only_after_its_batch_was_stored(autojump_clock: trio.testing.MockClock) -> None:
    """While the receiver is still storing there is no further request, so nothing is confirmed too early."""
    script, inbox = Script([ME, ok([update(107, "a")])]), Inbox(hold=trio.Event())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(telegram(script).run, inbox)
        await trio.sleep(1000)
        assert len(script.asked) == 2
        assert inbox.hold is not None
        inbox.hold.set()
        await trio.sleep(1)
        assert script.asked[2].parameters["offset"] == 108
        nursery.cancel_scope.cancel()


async def test_what_was_not_stored_is_not_confirmed() -> None:
    """When the receiver fails, its error comes out and no request follows."""

    class Full(Exception):
        pass

    def fail() -> None:
        raise Full

    script = Script([ME, ok([update(107, "a")])])
    with pytest.raises(Full):
        await telegram(script).run(Inbox(on_receive=fail))
    assert len(script.asked) == 2


async def test_a_restart_goes_on_at_the_stored_cursor(autojump_clock: trio.testing.MockClock) -> None:
    """The cursor of the last batch is the first offset; an empty answer changes nothing."""
    script, inbox = Script([ME, ok([])]), Inbox(stored="109")
    await run(script, inbox)
    assert [asked.parameters["offset"] for asked in script.asked[1:]] == [109, 109]
    assert inbox.batches == []


async def test_updates_without_a_message_move_the_cursor(autojump_clock: trio.testing.MockClock) -> None:
    """A batch of nothing to say is still confirmed, and its cursor is stored."""
    script, inbox = Script([ME, ok([{"update_id": 7, "my_chat_member": {}}])]), Inbox()
    await run(script, inbox)
    assert inbox.batches == [((), "8")]
    assert script.asked[2].parameters["offset"] == 8


async def test_a_smaller_update_id_is_taken(autojump_clock: trio.testing.MockClock) -> None:
    """After a long silence Telegram may begin anywhere; the new id counts."""
    script, inbox = Script([ME, ok([update(107, "a")])]), Inbox(stored="999999")
    await run(script, inbox)
    assert inbox.texts == ["a"]
    assert script.asked[2].parameters["offset"] == 108


async def test_every_completed_round_trip_is_a_sign_of_life(autojump_clock: trio.testing.MockClock) -> None:
    """getMe, two polls and a flood wait were answered; the poll that was not gives no sign."""
    inbox = Inbox()
    await run(Script([ME, ok([]), refused(429, "Too Many Requests", retry_after=1), ok([])]), inbox)
    assert inbox.signs_of_life == 4


async def test_an_update_without_an_id_is_kept_and_not_polled_in_a_circle() -> None:
    """What cannot be confirmed is stored, and the adapter steps back instead of asking again at once."""
    script, inbox = Script([ME, ok(["garbage"])]), Inbox()
    assert "cannot be confirmed" in str(await run(script, inbox))
    assert [inbound.unreadable for inbound in inbox.batches[0][0]] == ['"garbage"']


# -- how receiving ends -------------------------------------------------------------------------------------------


async def test_a_deaf_poll_ends_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """A poll that is never answered is given up its own timeout and a margin after it began."""
    reason = await run(Script([ME]))
    assert isinstance(reason, Disconnected)
    assert trio.current_time() == pytest.approx(30 + POLL_MARGIN)


@pytest.mark.parametrize(
    "answer",
    [
        ok(True),
        ok({}),
        ok({"id": "4711", "username": "HermesBot"}),
        Response(200, {}, b"<html>"),
    ],
)
async def test_without_an_identity_nothing_is_received(answer: Response) -> None:
    """Who does not know himself would answer himself; the adapter does not start."""
    script = Script([answer])
    assert isinstance(await run(script), Disconnected)
    assert [asked.method for asked in script.asked] == ["getMe"]


@pytest.mark.parametrize(
    "step",
    [
        NothingLeft("no such host"),
        Uncertain("the connection broke"),
        Response(502, {}, b"<html>Bad Gateway</html>"),
        refused(500, "Internal Server Error: restart"),
        Response(502, {}, refused(401, "Unauthorized").body),
        Response(200, {}, b"garbage"),
        Response(404, {}, b"<html>nginx</html>"),
        Response(302, {}, b""),
        ok({"not": "a list"}),
        refused(400, "Bad Request: something"),
    ],
)
@pytest.mark.parametrize("before", [[], [ME]])
async def test_what_may_heal_disconnects(step: Response | Exception, before: list[Step]) -> None:
    """Failures of the network, of the server and of proxies are no reason to give the account up."""
    reason = await run(Script([*before, step]))
    assert isinstance(reason, Disconnected)
    assert reason.retry_after is None


@pytest.mark.parametrize("answer", [refused(401, "Unauthorized"), refused(404, "Not Found")])
@pytest.mark.parametrize("before", [[], [ME]])
async def test_a_refused_token_is_for_the_operator(answer: Response, before: list[Step]) -> None:
    """Nobody but the operator can heal a wrong or revoked token."""
    reason = await run(Script([*before, answer]))
    assert isinstance(reason, AccountRefused)
    assert "token" in str(reason)


async def test_another_poller_is_reported_and_given_way() -> None:
    """Two programs on one token: this one says so, and stays away for a while."""
    said = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    reason = await run(Script([ME, refused(409, said)]))
    assert isinstance(reason, Disconnected)
    assert reason.retry_after == CONFLICT_PAUSE
    assert "Another program" in str(reason)


async def test_a_webhook_is_reported_and_left_alone() -> None:
    """A webhook belongs to somebody: the operator is told how to remove it, and it is not removed."""
    said = (
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
    )
    script = Script([ME, refused(409, said)])
    reason = await run(script)
    assert isinstance(reason, AccountRefused)
    assert "deleteWebhook" in str(reason)
    assert [asked.method for asked in script.asked] == ["getMe", "getUpdates"]


async def test_a_short_flood_wait_is_waited_out(autojump_clock: trio.testing.MockClock) -> None:
    """After 429 the same poll is made again, not before the time named."""
    script = Script([ME, refused(429, "Too Many Requests", retry_after=7), ok([])])
    await run(script)
    assert script.asked[2].at - script.asked[1].at >= 7
    assert script.asked[2].parameters == script.asked[1].parameters


async def test_a_long_flood_wait_is_the_supervisors(autojump_clock: trio.testing.MockClock) -> None:
    """A wait longer than a poll would look like deafness; it is handed up with its time."""
    reason = await run(Script([ME, refused(429, "Too Many Requests", retry_after=900)]))
    assert isinstance(reason, Disconnected)
    assert reason.retry_after == 900


# -- sending ------------------------------------------------------------------------------------------------------


async def test_a_create_carries_text_entities_topic_and_anchor() -> None:
    """Everything about a message is in one request; Telegram may drop the anchor, and shows no link previews."""
    script = Script([ok({"message_id": 77})])
    platform: Platform = telegram(script)
    body = Body("Hello", (Span(0, 5, "bold"),))
    outcome = await platform.create(Address("telegram", "-1005", "9"), body, key="k", reply_to="33")
    assert outcome == Accepted(message_id="77")
    assert script.asked[0].method == "sendMessage"
    assert script.asked[0].parameters == {
        "chat_id": -1005,
        "message_thread_id": 9,
        "text": "Hello",
        "entities": [{"type": "bold", "offset": 0, "length": 5}],
        "link_preview_options": {"is_disabled": True},
        "reply_parameters": {"message_id": 33, "allow_sending_without_reply": True},
    }


async def test_a_create_names_no_general_topic_and_no_foreign_anchor() -> None:
    """Topic 1 is where a message without a topic goes; an anchor that is no message id is left out."""
    script = Script([ok({"message_id": 77})])
    await telegram(script).create(Address("telegram", "@team", "1"), Body("x"), key="k", reply_to="$event")
    assert script.asked[0].parameters == {
        "chat_id": "@team",
        "text": "x",
        "link_preview_options": {"is_disabled": True},
    }


async def test_an_edit_and_a_delete_name_their_message() -> None:
    """An edit carries the whole new text; a delete nothing but the place."""
    script = Script([ok({"message_id": 77}), ok(True)])
    assert await telegram(script).edit(CHAT, "77", Body("new")) == Accepted()
    assert await telegram(script).delete(CHAT, "77") == Accepted()
    assert [asked.method for asked in script.asked] == ["editMessageText", "deleteMessage"]
    assert script.asked[0].parameters["text"] == "new"
    assert script.asked[1].parameters == {"chat_id": 42, "message_id": 77}


async def test_what_never_left_is_refused_and_what_may_have_is_unknown() -> None:
    """The phase of a failure decides, and neither is tried again."""
    script = Script([NothingLeft("connection refused"), Uncertain("the connection broke")])
    platform = telegram(script)
    assert await platform.create(CHAT, Body("x"), key="k", reply_to=None) == Refused(
        Reason.NOTHING_LEFT, detail="connection refused"
    )
    assert isinstance(await platform.create(CHAT, Body("x"), key="k", reply_to=None), Unknown)
    assert len(script.asked) == 2


async def test_a_silent_server_leaves_a_create_unknown(autojump_clock: trio.testing.MockClock) -> None:
    """After the request timeout that the capabilities promise the outcome is unknown."""
    platform = telegram(Script([]))
    assert isinstance(await platform.create(CHAT, Body("x"), key="k", reply_to=None), Unknown)
    assert trio.current_time() == pytest.approx(platform.capabilities.request_timeout)


async def test_a_cancelled_create_is_not_caught(autojump_clock: trio.testing.MockClock) -> None:
    """Cancellation comes out as cancellation, not as an outcome."""
    script = Script([])
    with trio.move_on_after(1) as scope:
        await telegram(script).create(CHAT, Body("x"), key="k", reply_to=None)
    assert scope.cancelled_caught
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "step",
    [ok(True), Uncertain("x"), NothingLeft("x"), refused(429, "Too Many Requests", retry_after=9), refused(403, "x")],
)
async def test_typing_never_raises(step: Response | Exception) -> None:
    """The typing sign is cosmetic, whatever the wire says; in a forum it goes to the topic."""
    script = Script([step])
    await telegram(script).typing(Address("telegram", "-1005", "1"))
    assert script.asked[0].parameters == {"chat_id": -1005, "action": "typing", "message_thread_id": 1}


async def test_a_lookup_is_not_to_be_had() -> None:
    """There is no read-back on this wire, and no request is made for one."""
    script = Script([])
    assert isinstance(await telegram(script).lookup(CHAT, "k", Body("x")), Unknown)
    assert script.asked == []


def test_the_capabilities_are_those_of_the_wire() -> None:
    """Editable, with threads; no key, no look-up."""
    capabilities = telegram(Script([])).capabilities
    assert (capabilities.limit, capabilities.unit, capabilities.guarantee) == (4096, "utf16", "editable")
    assert (capabilities.threads, capabilities.typing, capabilities.deletes) == (True, True, True)


async def test_the_menu_holds_what_telegram_takes() -> None:
    """Names that Telegram refuses are left out, so that they do not spoil the rest."""
    script = Script([ok(True)])
    assert await telegram(script).set_commands({"stop": "Stops", "Bad-Name": "x", "new": ""}) == Accepted()
    assert script.asked[0].parameters == {
        "commands": [{"command": "stop", "description": "Stops"}, {"command": "new", "description": "new"}]
    }


# -- files --------------------------------------------------------------------------------------------------------

FOUND = ok({"file_id": "f", "file_path": "photos/file 0.jpg"})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"hello", "application/octet-stream"),
    ],
)
async def test_a_file_is_fetched_with_its_type(content: bytes, kind: str) -> None:
    """A photo has no media type in its message; its first bytes tell it."""
    script = Script([FOUND], file=content)
    assert await telegram(script).fetch(Attachment("photo", "f")) == (kind, content)
    assert script.asked[0].parameters == {"file_id": "f"}


@pytest.mark.parametrize(
    ("script", "attachment"),
    [
        (Script([]), Attachment("file", "f", size=21 * 1024 * 1024)),
        (Script([refused(400, "Bad Request: file is too big")]), Attachment("file", "f")),
        (Script([ok({"file_id": "f"})]), Attachment("file", "f")),
        (Script([Uncertain("the connection broke")]), Attachment("file", "f")),
        (Script([FOUND], file_status=404), Attachment("file", "f")),
        (Script([FOUND], file=bytes(20 * 1024 * 1024 + 1)), Attachment("file", "f")),
    ],
)
async def test_a_file_that_is_not_to_be_had_says_why(script: Script, attachment: Attachment) -> None:
    """Too large, gone, refused or broken off: one error with words for the user."""
    with pytest.raises(FetchFailed) as caught:
        await telegram(script).fetch(attachment)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


# -- the token ----------------------------------------------------------------------------------------------------


async def test_the_token_is_in_no_outcome_row_or_text(autojump_clock: trio.testing.MockClock) -> None:
    """An answer that echoes the token, and a user who pasted it, are blotted out; a repr does not show it."""
    echo = f"Bad Request: no such thing as /bot{TOKEN}/sendMessage"
    platform = telegram(Script([refused(400, "x" * 190 + echo)]))
    outcome = await platform.create(CHAT, Body("x"), key="k", reply_to=None)
    inbox = Inbox()
    reason = await run(Script([ME, ok([update(107, f"my token is {TOKEN}, why?")]), refused(400, echo)]), inbox)
    assert inbox.texts == ["my token is [token], why?"]
    for shown in (repr(outcome), repr(reason), repr(platform), repr(vars(platform)), repr(inbox)):
        assert TOKEN not in shown
        assert TOKEN[:12] not in shown


async def test_a_token_that_is_none_makes_no_broken_request() -> None:
    """A pasted sentence becomes a path that Telegram refuses, and not an error that shows it."""
    seen: list[str] = []

    class Watching(Script):
        async def request(self, method: str, url: str, **more: Any) -> Response:
            seen.append(url)
            return refused(404, "Not Found")

    platform = TelegramPlatform(Watching([]), "telegram", f"my token is {TOKEN}\n/é", base_url=BASE + "/")
    with pytest.raises(AccountRefused) as caught:
        await platform.run(Inbox())
    assert seen == [f"{BASE}/botmy%20token%20is%20{TOKEN}%0A%2F%C3%A9/getMe"]
    assert TOKEN not in str(caught.value)
