"""Every fault does to the wire, and to the ground truth, exactly what its name says."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from attrs import define

from hermes_fakes import __main__ as command_line
from hermes_fakes.client import Client, Lost, Response, connect_memory, open_client
from hermes_fakes.faults import (
    AckLost,
    AnswerWith,
    Call,
    CutStream,
    Delay,
    Effect,
    ErrorAfter,
    ErrorBefore,
    Garbage,
    HtmlError,
    LateAccept,
    NeverSeen,
    RateLimited,
    Refuse,
    ResetBefore,
)
from hermes_fakes.http import Hangup, Reply, Request, Send, StreamReply, serve_http
from hermes_fakes.loopback import listen
from hermes_fakes.server import Server
from hermes_fakes.telegram import DEFAULT_TOKEN, TelegramFake, User, open_telegram_fake

SEND = f"/bot{DEFAULT_TOKEN}/sendMessage"


@define
class Scene:
    fake: TelegramFake
    alice: User
    nursery: trio.Nursery

    def connect(self) -> Client:
        return connect_memory(self.nursery, self.fake.serve)

    async def send(self, text: str, client: Client | None = None) -> Response | None:
        """The answer to one sendMessage; None when the client gave up after 10 s. Raises Lost."""
        client = client or self.connect()
        with trio.move_on_after(10):
            return await client.request("POST", SEND, json={"chat_id": self.alice.chat, "text": text})
        await client.aclose()
        return None

    @property
    def texts(self) -> list[str]:
        return self.fake.bot_texts(self.alice)


@asynccontextmanager
async def open_scene() -> AsyncIterator[Scene]:
    async with open_telegram_fake() as fake, trio.open_nursery() as nursery:
        alice = fake.user("alice")
        alice.says("hi")
        yield Scene(fake, alice, nursery)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("effect", "applied", "seen"),
    [
        (ResetBefore(), False, "lost"),
        (NeverSeen(), False, "silence"),
        (AckLost(), True, "lost"),
        (AckLost(silent=True), True, "silence"),
        (RateLimited(2), False, 429),
        (ErrorBefore(503), False, 503),
        (ErrorBefore(400, "Bad Request: no"), False, 400),
        (ErrorAfter(500), True, 500),
        (Delay(3), True, 200),
        (Delay(answer=3), True, 200),
        (Garbage(), True, "lost"),
        (Garbage(http=True), True, 200),
        (HtmlError(), False, 502),
        (CutStream(), True, "lost"),
        (AnswerWith(Reply(418)), False, 418),
        (Refuse(5), True, 200),
    ],
    ids=repr,
)
async def test_each_effect(effect: Effect, applied: bool, seen: object, autojump_clock: trio.testing.MockClock) -> None:
    """Whether the message appears and what the client sees are two questions; the next request is untouched."""
    async with open_scene() as scene:
        fault = scene.fake.faults.add(effect, "sendMessage")
        try:
            response = await scene.send("x")
            result: object = "silence" if response is None else response.status
        except Lost:
            result = "lost"
        assert (result, scene.texts) == (seen, ["x"] if applied else [])
        assert fault.hits == 1
        assert scene.fake.faults.unhit() == []
        scene.fake.admit()
        await scene.send("y")
        assert scene.texts[-1] == "y"


async def test_a_rate_limit_names_its_time(autojump_clock: trio.testing.MockClock) -> None:
    """429 carries retry_after in the body and in the header."""
    async with open_scene() as scene:
        scene.fake.faults.add(RateLimited(0.3))
        response = await scene.send("x")
        assert response is not None
        assert response.headers["retry-after"] == "0.3"
        assert response.json() == {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 0.3",
            "parameters": {"retry_after": 0.3},
        }


async def test_an_html_page_and_a_body_that_is_no_json(autojump_clock: trio.testing.MockClock) -> None:
    """A proxy's page and garbage inside of HTTP cannot be read as JSON."""
    async with open_scene() as scene:
        scene.fake.faults.add(HtmlError(502))
        scene.fake.faults.add(Garbage(http=True))
        for _ in range(2):
            response = await scene.send("x")
            assert response is not None
            with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
                response.json()


async def test_late_acceptance(autojump_clock: trio.testing.MockClock) -> None:
    """It appears 12 s after the request, long after the client gave up and went."""
    async with open_scene() as scene:
        scene.fake.faults.add(LateAccept(12), contains="footer")
        assert await scene.send("with footer") is None
        assert scene.texts == []
        await trio.sleep(1.9)
        assert scene.texts == []
        await trio.sleep(0.2)
        assert scene.texts == ["with footer"]
        assert scene.fake.history[-1].time == pytest.approx(12)


async def test_a_late_effect_needs_the_scope() -> None:
    """A fake without its scope says so instead of losing the effect."""
    fake = TelegramFake()
    with pytest.raises(RuntimeError, match=r"TelegramFake\.run"):
        fake.later(1, trio.lowlevel.checkpoint)


async def test_run_is_a_scope_as_well(autojump_clock: trio.testing.MockClock) -> None:
    """`nursery.start(fake.run)` gives a fake its scope."""
    done = trio.Event()

    async def finish() -> None:
        done.set()

    async with trio.open_nursery() as nursery:
        fake: TelegramFake = await nursery.start(TelegramFake().run)
        fake.later(5, finish)
        await done.wait()
        assert trio.current_time() == pytest.approx(5)
        nursery.cancel_scope.cancel()


async def test_the_matcher(autojump_clock: trio.testing.MockClock) -> None:
    """Method, text, predicate, from the n-th match on, so many times."""
    async with open_scene() as scene:
        fault = scene.fake.faults.add(ErrorBefore(503), "SENDMESSAGE", contains="b", nth=2, count=2)
        other = scene.fake.faults.add(ErrorBefore(), "editMessageText")
        never = scene.fake.faults.add(ErrorBefore(), when=lambda call: call.args["text"] == "zzz")
        statuses = [r.status for r in [await scene.send(t) for t in ("a", "b1", "b2", "b3", "b4")] if r is not None]
        assert statuses == [200, 200, 503, 503, 200]
        assert (fault.seen, fault.hits) == (3, 2)
        assert scene.fake.faults.unhit() == [other, never]
        assert [call.outcome for call in scene.fake.requests][:3] == ["accepted", "accepted", "refused: 503"]
        assert scene.fake.requests[2].fault is fault


async def test_a_black_hole_ends_with_its_time(autojump_clock: trio.testing.MockClock) -> None:
    """For 60 s every create takes effect and none is answered."""
    async with open_scene() as scene:
        fault = scene.fake.faults.black_hole(60, "sendMessage")
        for text in "abc":
            assert await scene.send(text) is None
        await trio.sleep(31)
        response = await scene.send("d")
        assert response is not None
        assert scene.texts == ["a", "b", "c", "d"]
        assert fault.hits == 3


class Alphabet(Server[Call]):
    """A fake whose only answer is a stream of three pieces."""

    def decode(self, request: Request) -> Call:
        return Call("alphabet", {}, trio.current_time())

    async def perform(self, call: Call) -> StreamReply:
        async def feed(send: Send) -> None:
            for piece in (b"a", b"b", b"c"):
                await send(piece)

        return StreamReply(feed)


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_stream_is_cut_after_n_pieces(after: int, autojump_clock: trio.testing.MockClock) -> None:
    """The client gets n pieces and then a broken end."""
    async with trio.open_nursery() as nursery:
        fake = Alphabet()
        fake.faults.add(CutStream(after))
        client = connect_memory(nursery, fake.serve)
        await client.start("GET", "/")
        received = [await client.piece() for _ in range(after)]
        assert received == [b"a", b"b"][:after]
        with pytest.raises(Lost):
            await client.piece()


# --- the door ---------------------------------------------------------------------------------------------------------


async def test_refusing_ends_idle_kept_connections_only(autojump_clock: trio.testing.MockClock) -> None:
    """A kept connection ends, a request under way is answered, a new connection is refused; then all is well again."""
    async with open_scene() as scene:
        idle, busy = scene.connect(), scene.connect()
        await scene.send("1", idle)
        scene.fake.faults.add(Delay(2), contains="slow")
        await busy.send("POST", SEND, json={"chat_id": scene.alice.chat, "text": "slow"})
        await trio.sleep(1)
        scene.fake.refuse(10)
        assert scene.fake.refusing
        with pytest.raises(Lost):
            await scene.send("2", idle)
        with pytest.raises(Lost):
            await scene.send("3")
        assert scene.fake.door.refused == 1
        assert (await busy.head()).status == 200
        await trio.sleep(11)
        assert not scene.fake.refusing
        await scene.send("4")
        assert scene.texts == ["1", "slow", "4"]


async def test_the_fault_closes_the_door_behind_its_request(autojump_clock: trio.testing.MockClock) -> None:
    """The request that strikes is answered; its connection is not kept, and the next one is refused."""
    async with open_scene() as scene:
        client = scene.connect()
        scene.fake.faults.add(Refuse(5))
        assert await scene.send("1", client) is not None
        with pytest.raises(Lost):
            await scene.send("2")
        await trio.sleep(5)
        assert await scene.send("3") is not None


async def test_an_outage_ends_everything(autojump_clock: trio.testing.MockClock) -> None:
    """Also a poll in the middle of its wait."""
    async with open_scene() as scene:
        poller = scene.connect()
        await poller.send("POST", f"/bot{DEFAULT_TOKEN}/getUpdates", json={"offset": 2, "timeout": 50})
        await trio.sleep(1)
        scene.fake.outage(60)
        with pytest.raises(Lost):
            await poller.head()
        await scene.fake.door.wait_open()
        assert trio.current_time() == pytest.approx(61)


async def test_garbage_from_a_client_ends_its_connection_only(autojump_clock: trio.testing.MockClock) -> None:
    """Noise, half a request, a vanished client: the fake serves the next one."""
    async with open_scene() as scene:
        for noise in (
            b"\x00\x01\x02\r\n\r\n",
            b"GET / HT",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        ):
            client = scene.connect()
            await client.stream.send_all(noise)
            await trio.sleep(1)
            await client.aclose()
        assert await scene.send("fine") is not None
        assert scene.texts == ["fine"]


async def test_a_connection_is_kept_and_pipelined(autojump_clock: trio.testing.MockClock) -> None:
    """Two requests sent at once on one connection are answered in order."""
    seen: list[str] = []

    async def handler(request: Request) -> Reply:
        seen.append(request.path)
        await trio.sleep(1)
        return Reply(200, request.path.encode())

    async with trio.open_nursery() as nursery:
        client = connect_memory(nursery, lambda stream: serve_http(handler, stream))
        await client.stream.send_all(b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while b"/2" not in received:
            received += bytes(await client.stream.receive_some())
        assert seen == ["/1", "/2"]
        await client.aclose()


async def test_a_hangup_may_say_something_first(autojump_clock: trio.testing.MockClock) -> None:
    """Raw bytes reach the client before the end."""

    async def handler(request: Request) -> Hangup:
        return Hangup(b"bye")

    async with trio.open_nursery() as nursery:
        client = connect_memory(nursery, lambda stream: serve_http(handler, stream))
        await client.send("GET", "/")
        assert await client.stream.receive_some() == b"bye"
        assert await client.stream.receive_some() == b""


# --- on loopback ------------------------------------------------------------------------------------------------------


async def test_a_closed_door_on_loopback_is_connection_refused() -> None:
    """The listener really closes, and opens again on the same port."""
    async with open_telegram_fake() as fake, trio.open_nursery() as nursery:
        with trio.fail_after(10):
            port = await listen(fake, nursery)
            kept = await open_client(port)
            assert (await kept.request("GET", f"/bot{DEFAULT_TOKEN}/getMe")).status == 200
            fake.refuse()
            with pytest.raises(Lost):
                await kept.request("GET", f"/bot{DEFAULT_TOKEN}/getMe")
            with pytest.raises(OSError, match="all attempts to connect"):
                await open_client(port)
            fake.admit()
            again = await _connect_when_open(port)
            assert (await again.request("GET", f"/bot{DEFAULT_TOKEN}/getMe")).status == 200
            await again.aclose()
            await kept.aclose()
        nursery.cancel_scope.cancel()


async def _connect_when_open(port: int) -> Client:
    while True:
        try:
            return await open_client(port)
        except OSError:
            await trio.sleep(0.01)


async def test_the_control_interface(autojump_clock: trio.testing.MockClock) -> None:
    """With HTTP alone one can speak, look, inject a fault, and see the requests."""
    async with open_scene() as scene:
        curl = scene.connect()
        said = await curl.request("POST", "/control/say", json={"user": "bob", "text": "hello"})
        assert said.json() == {"update_id": 2}
        bob = scene.fake.user("bob")
        fault = {"effect": "rate_limited", "with": {"retry_after": 3}, "methods": ["sendMessage"]}
        assert (await curl.request("POST", "/control/fault", json=fault)).status == 200
        send = {"chat_id": bob.chat, "text": "answer"}
        assert (await curl.request("POST", SEND, json=send)).status == 429
        assert (await curl.request("POST", SEND, json=send)).status == 200
        screen = (await curl.request("GET", "/control/screen?user=bob")).json()
        assert [message["text"] for message in screen] == ["hello", "answer"]
        requests = (await curl.request("GET", "/control/requests")).json()
        assert [entry["outcome"] for entry in requests] == ["refused: 429", "accepted"]
        unknown = await curl.request("POST", "/control/nonsense")
        assert (unknown.status, "say" in unknown.json()["known"]) == (404, True)
        assert (await curl.request("POST", "/control/say", json={"text": "no user"})).status == 400
        assert (await curl.request("POST", "/control/say", json=[1])).status == 400
        wrong = {"effect": "rate_limited", "with": {"colour": 1}}
        assert (await curl.request("POST", "/control/fault", json=wrong)).status == 400


async def test_the_command_line_serves_both(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m hermes_fakes telegram|model` answers on a port."""
    for words, target in (
        (["telegram", "--port", "0", "--token", "1:x"], "/bot1:x/getMe"),
        (["model", "--port", "0"], "/v1/models"),
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(command_line.run, command_line.parser().parse_args(words))
            with trio.fail_after(10):
                said = ""
                while "control" not in said:
                    await trio.sleep(0.01)
                    said = capsys.readouterr().err
                port = int(said.split("http://127.0.0.1:")[1].split(",")[0])
                client = await open_client(port)
                assert (await client.request("GET", target)).status == 200
                await client.aclose()
            nursery.cancel_scope.cancel()


async def test_the_fakes_run_as_a_module() -> None:
    """The entry point explains itself."""
    done = await trio.run_process([sys.executable, "-m", "hermes_fakes", "--help"], capture_stdout=True)
    assert b"telegram" in done.stdout
