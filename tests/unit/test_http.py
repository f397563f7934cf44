"""The HTTP client: what it sends and reads, and the phase that it names for each failure."""

from __future__ import annotations

import gc
import logging
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
import trio
from memory_net import MemoryNet, Serve

import hermes_trio.http
from hermes_fakes.http import CutOff, Hangup, Reply, Request, Send, Silence, StreamReply, json_reply, serve_http
from hermes_trio.http import (
    MAX_CONNECTIONS,
    MAX_RESPONSE_BYTES,
    HttpClient,
    NothingLeft,
    Response,
    Uncertain,
    load_json,
    open_http_client,
)

SECRET = "123:TOKEN"
URL = f"http://api.example/bot{SECRET}/sendMessage"


@asynccontextmanager
async def client_of(serve: Serve | None) -> AsyncGenerator[tuple[HttpClient, MemoryNet]]:
    """A client whose only reachable host runs `serve` (none at all for None)."""
    async with trio.open_nursery() as nursery:
        net = MemoryNet(nursery, {} if serve is None else {"api.example": serve})
        async with open_http_client(net) as client:
            yield client, net
        nursery.cancel_scope.cancel()


def answering(handler: Callable[[Request], Awaitable[object]]) -> Serve:
    async def serve(stream: trio.abc.Stream) -> None:
        await serve_http(handler, stream)  # type: ignore[arg-type]  # the handlers return one kind of answer each

    return serve


def always(answer: object) -> Serve:
    async def handler(request: Request) -> object:
        return answer

    return answering(handler)


def raw(first: bytes) -> Serve:
    """A server that reads once, writes these bytes and closes."""

    async def serve(stream: trio.abc.Stream) -> None:
        async with stream:
            await stream.receive_some()
            if first:
                await stream.send_all(first)

    return serve


async def test_request_and_answer() -> None:
    """Method, path, query, host, headers and JSON arrive; status, headers in lower case and body come back."""
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Reply(418, b'{"a": "\xc3\xa9"}', (("X-One", "1"), ("x-one", "2")))

    async with client_of(answering(handler)) as (client, _):
        answer = await client.request("POST", URL + "?q=1", json={"t": "é\ud83d"}, headers={"Authorization": "x"})
    [request] = seen
    assert (request.method, request.target) == ("POST", f"/bot{SECRET}/sendMessage?q=1")
    assert request.headers["host"] == "api.example"
    assert request.headers["authorization"] == "x"
    assert request.headers["content-type"] == "application/json"
    assert request.json() == {"t": "é?"}
    assert (answer.status, answer.headers["x-one"], answer.json()) == (418, "1, 2", {"a": "é"})


async def test_get_has_no_body_and_post_without_json_has_length_zero() -> None:
    """No body is announced where there is none, except to methods whose servers insist on a length."""
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Reply()

    async with client_of(answering(handler)) as (client, _):
        await client.request("GET", "http://api.example:8080")
        await client.request("POST", URL)
    assert "content-length" not in seen[0].headers
    assert (seen[0].target, seen[0].headers["host"]) == ("/", "api.example:8080")
    assert seen[1].headers["content-length"] == "0"


async def test_redirects_are_answers() -> None:
    """A redirect is not followed: a token must not travel to another host."""
    async with client_of(always(Reply(302, b"", (("location", "http://elsewhere/"),)))) as (client, net):
        assert (await client.request("GET", URL)).status == 302
    assert net.connections == 1


@pytest.mark.parametrize("location", [b"http://[::1/", b"http://\xff/", b"mailto:x", b""])
async def test_a_redirect_to_nowhere_is_an_answer(location: bytes) -> None:
    """Where a redirect points is never looked at, so that no oddity there spoils the answer."""
    serve = raw(b"HTTP/1.1 302 Found\r\nlocation: " + location + b"\r\ncontent-length: 0\r\n\r\n")
    async with client_of(serve) as (client, _):
        assert (await client.request("POST", URL, json={})).status == 302


async def test_no_cookie_is_kept() -> None:
    """What a server wants remembered is not sent back: two accounts share a client."""
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Reply(200, b"{}", (("set-cookie", "id=1; path=/"), ("set-cookie", "bad")))

    async with client_of(answering(handler)) as (client, _):
        await client.request("GET", URL)
        await client.request("GET", URL)
    assert "cookie" not in seen[1].headers


async def test_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names does not get to see a token."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example:1")
    async with client_of(always(json_reply([1]))) as (client, _):
        assert (await client.request("GET", URL)).json() == [1]


async def test_nothing_but_ours_is_sent() -> None:
    """The headers of a request are exactly these, whatever httpx would add by itself."""
    seen: list[Request] = []

    async def handler(request: Request) -> Reply:
        seen.append(request)
        return Reply()

    async with client_of(answering(handler)) as (client, _):
        await client.request("POST", URL.replace("//", "//user:word@"), json={})
    assert seen[0].headers == {
        "host": "api.example",
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": "hermes_trio",
        "content-type": "application/json",
        "content-length": "2",
    }


async def test_a_compressed_answer_is_handed_over_as_it_came() -> None:
    """Bytes are not interpreted, so that a limit counts what arrives."""
    async with client_of(always(Reply(200, b"\x1f\x8b", (("content-encoding", "gzip"),)))) as (client, _):
        assert (await client.request("GET", URL)).body == b"\x1f\x8b"


@pytest.mark.parametrize(
    "serve",
    [
        pytest.param(always(json_reply({})), id="answered"),
        pytest.param(always(Reply(302, b"", (("location", f"https://api.example/{SECRET}"),))), id="redirected"),
        pytest.param(always(Hangup()), id="closed"),
        pytest.param(raw(b"garbage\r\n\r\n"), id="garbage"),
        pytest.param(None, id="unreachable"),
    ],
)
async def test_no_log_at_any_level_sees_the_token(serve: Serve | None, caplog: pytest.LogCaptureFixture) -> None:
    """A root logger at DEBUG gets no path, no query and no header of ours, also when a header is illegal."""
    caplog.set_level(logging.DEBUG)
    async with client_of(serve) as (client, _):
        for value in (SECRET, f"{SECRET}\x07", f" {SECRET}"):
            try:
                await client.request("POST", f"{URL}?key={SECRET}", json={}, headers={"authorization": value})
                async with client.stream("GET", URL, headers={"authorization": value}) as answer:
                    await answer.read(1000)
            except (NothingLeft, Uncertain):
                pass
    assert "httpx" not in {record.name for record in caplog.records}
    assert not [record for record in caplog.records if SECRET in f"{record.getMessage()} {record.__dict__}"]


async def test_others_keep_their_log_of_httpx(caplog: pytest.LogCaptureFixture) -> None:
    """Only lines about our own requests are dropped: the program around us may use httpx too."""
    caplog.set_level(logging.INFO)
    async with client_of(always(Reply())) as (client, _):
        await client.request("GET", URL)
        transport = httpx.MockTransport(lambda request: httpx.Response(200))
        async with httpx.AsyncClient(transport=transport) as other:
            await other.get("http://other.example/")
    assert [record.name for record in caplog.records] == ["httpx"]


async def test_connections_are_reused() -> None:
    """Requests in a row share a connection, also after a streamed body that was read to its end."""
    async with client_of(always(json_reply({}))) as (client, net):
        for _ in range(3):
            await client.request("POST", URL, json={})
        async with client.stream("GET", URL) as answer:
            assert await answer.read(100) == b"{}"
        await client.request("POST", URL, json={})
    assert net.connections == 1


async def test_https_needs_no_certificates_on_a_replaced_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a network of its own, https:// makes no TLS context of the system."""
    monkeypatch.setattr(ssl, "create_default_context", lambda *_: pytest.fail("a costly context was made"))
    async with client_of(always(json_reply([1]))) as (client, _):
        assert (await client.request("GET", URL.replace("http:", "https:"))).json() == [1]


async def test_unreachable_is_nothing_left() -> None:
    """A host that refuses never saw the request."""
    async with client_of(None) as (client, _):
        with pytest.raises(NothingLeft, match="no connection"):
            await client.request("POST", URL, json={})


async def test_tls_failure_is_nothing_left() -> None:
    """No byte of the request leaves before the handshake is done."""
    async with client_of(always(Reply())) as (client, net):
        net.tls_fails = True
        with pytest.raises(NothingLeft):
            await client.request("POST", URL.replace("http:", "https:"), json={})


async def test_connect_timeout_is_nothing_left(autojump_clock: trio.testing.MockClock) -> None:
    """A connection that is not made in time is given up after connect_timeout, and nothing was sent."""
    async with client_of(always(Reply())) as (client, net):
        net.connect_takes = 100
        began = trio.current_time()
        with pytest.raises(NothingLeft, match="in time"):
            await client.request("POST", URL, json={}, connect_timeout=7, read_timeout=1)
    assert trio.current_time() - began == pytest.approx(7)


async def test_full_pool_is_nothing_left(autojump_clock: trio.testing.MockClock) -> None:
    """Connections are bounded; a request that finds none free in time was never sent."""
    async with client_of(always(Silence())) as (client, net):
        async with trio.open_nursery() as nursery:

            async def hang() -> None:
                await client.request("GET", URL, read_timeout=1000)

            for _ in range(MAX_CONNECTIONS):
                nursery.start_soon(hang)
            await trio.sleep(1)
            with pytest.raises(NothingLeft, match="free"):
                await client.request("POST", URL, json={}, connect_timeout=2)
            nursery.cancel_scope.cancel()
    assert net.connections == MAX_CONNECTIONS


@pytest.mark.parametrize(
    "serve",
    [
        pytest.param(always(Hangup()), id="closed before the answer"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\ncontent-le"), id="closed within the head"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), id="closed within the body"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"), id="closed within a chunk"),
        pytest.param(raw(b"\x00\xffgarbage\r\n\r\n"), id="garbage"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000), id="an endless head"),
    ],
)
async def test_broken_answers_are_uncertain(serve: Serve) -> None:
    """From the first byte written on, whatever breaks leaves it open whether the server acted."""
    async with client_of(serve) as (client, _):
        with pytest.raises(Uncertain):
            await client.request("POST", URL, json={})
        with pytest.raises(Uncertain):
            async with client.stream("POST", URL, json={}) as answer:
                await answer.read(1000)


async def test_silence_is_uncertain_after_the_read_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """read_timeout runs from the first byte written."""
    async with client_of(always(Silence())) as (client, net):
        net.connect_takes = 3
        began = trio.current_time()
        with pytest.raises(Uncertain, match="in time"):
            await client.request("POST", URL, json={}, connect_timeout=5, read_timeout=2)
    assert trio.current_time() - began == pytest.approx(5)


async def test_a_dribbling_answer_does_not_stretch_the_read_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """The read timeout of `request` bounds the whole answer, not each read of it."""

    async def dribble(send: Send) -> None:
        while True:
            await send(b".")
            await trio.sleep(1)

    async with client_of(always(StreamReply(dribble))) as (client, _):
        began = trio.current_time()
        with pytest.raises(Uncertain):
            await client.request("POST", URL, json={}, read_timeout=5)
    assert trio.current_time() - began == pytest.approx(5)


async def test_long_poll_may_outlast_the_connect_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """An answer that comes late but within read_timeout is read."""

    async def late(request: Request) -> Reply:
        await trio.sleep(50)
        return json_reply({"ok": True})

    async with client_of(answering(late)) as (client, _):
        assert (await client.request("GET", URL, connect_timeout=5, read_timeout=60)).json() == {"ok": True}


async def test_cancelling_closes_the_connection() -> None:
    """A cancelled request leaves no connection behind that a later answer could be mistaken on."""
    seen: list[Request] = []
    arrived = trio.Event()

    async def handler(request: Request) -> Reply:
        seen.append(request)
        if len(seen) == 1:
            arrived.set()
            await request.gone.wait()
        return json_reply("second")

    async with client_of(answering(handler)) as (client, net):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.request, "GET", URL)
            await arrived.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await seen[0].gone.wait()
        assert (await client.request("GET", URL)).json() == "second"
    assert net.connections == 2


async def test_bodies_are_bounded() -> None:
    """A body beyond the limit is not kept in memory; the request counts as uncertain."""

    async def flood(send: Send) -> None:
        for _ in range(MAX_RESPONSE_BYTES // 65536 + 2):
            await send(b"x" * 65536)

    async with client_of(always(StreamReply(flood))) as (client, _):
        with pytest.raises(Uncertain, match="longer"):
            await client.request("GET", URL)
        with pytest.raises(Uncertain, match="longer than 10 bytes"):
            async with client.stream("GET", URL) as answer:
                await answer.read(10)


async def test_streams_arrive_as_they_are_sent(autojump_clock: trio.testing.MockClock) -> None:
    """A chunk is handed over when it arrives, and the read timeout counts between two of them."""

    async def feed(send: Send) -> None:
        for piece in (b"one", b"two"):
            await send(piece)
            await trio.sleep(8)
        await trio.sleep(100)

    async with client_of(always(StreamReply(feed))) as (client, _):
        began, seen = trio.current_time(), []
        with pytest.raises(Uncertain, match="in time"):
            async with client.stream("GET", URL, read_timeout=10) as answer:
                assert answer.status == 200
                async for chunk in answer.chunks():
                    seen.append((trio.current_time() - began, chunk))
    assert seen == [(pytest.approx(0), b"one"), (pytest.approx(8), b"two")]


async def test_leaving_a_stream_early_leaves_nothing_to_the_garbage_collector() -> None:
    """Breaking off in the middle closes the connection, without a warning from an unfinished generator."""
    gone: list[Request] = []

    async def handler(request: Request) -> StreamReply:
        gone.append(request)
        return StreamReply(endless)

    async def endless(send: Send) -> None:
        while True:
            await send(b"more")

    async with client_of(answering(handler)) as (client, _):
        async with client.stream("GET", URL) as answer:
            async for _chunk in answer.chunks():
                break
        gc.collect()
        with trio.fail_after(5):
            await gone[0].gone.wait()


async def test_a_stream_that_is_cut_is_uncertain() -> None:
    """The end of the connection is not the end of the body."""

    async def cut(send: Send) -> None:
        await send(b"begun")
        raise CutOff

    async with client_of(always(StreamReply(cut))) as (client, _):
        async with client.stream("GET", URL) as answer:
            chunks = answer.chunks()
            assert await anext(chunks) == b"begun"
            with pytest.raises(Uncertain):
                await anext(chunks)


@pytest.mark.parametrize("serve", [None, always(Hangup()), raw(b"garbage\r\n\r\n")])
async def test_failures_tell_no_secret(serve: Serve | None) -> None:
    """Neither the text of a failure nor its repr holds the token of the path or a header."""
    async with client_of(serve) as (client, _):
        with pytest.raises((NothingLeft, Uncertain)) as caught:
            await client.request("POST", URL, json={}, headers={"authorization": SECRET})
    assert SECRET not in f"{caught.value} {caught.value!r}"
    assert "api.example" not in f"{caught.value} {caught.value!r}"
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "api.example/x",
        "ftp://api.example/x",
        "http:///x",
        f"http://api.example:{SECRET}/",
        f"http://é.example/{SECRET}",
        f"http://a..b/{SECRET}",
        f"http://[::1/{SECRET}",
    ],
)
async def test_an_address_that_is_no_url(url: str) -> None:
    """It is refused as a mistake of the caller, without being quoted."""
    async with client_of(None) as (client, _):
        with pytest.raises(ValueError, match=r"the address") as caught:
            await client.request("GET", url)
    assert SECRET not in str(caught.value)


async def test_an_illegal_header_is_nothing_left_and_untold() -> None:
    """A header that HTTP forbids is found before the first byte, and not quoted."""
    async with client_of(always(Reply())) as (client, _):
        with pytest.raises(NothingLeft) as caught:
            await client.request("GET", URL, headers={"authorization": f"{SECRET}\r\nx: y"})
        assert SECRET not in str(caught.value)
        with pytest.raises(ValueError, match="header") as bad:
            await client.request("GET", URL, headers={"authorization": f"{SECRET}☃"})
    assert SECRET not in str(bad.value)


async def test_real_sockets_name_the_kind_of_failure() -> None:
    """Over the real network: a refused port and a failed handshake are named, and are nothing left."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]

    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with open_http_client() as client, trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, hang_up, [listener])
        with pytest.raises(NothingLeft, match="TLS failure"):
            await client.request("POST", f"https://127.0.0.1:{port}/")
        with pytest.raises(Uncertain):
            await client.request("POST", f"http://127.0.0.1:{port}/")
        nursery.cancel_scope.cancel()
        await listener.aclose()
        with pytest.raises(NothingLeft, match="connection refused"):
            await client.request("POST", f"http://127.0.0.1:{port}/")


async def test_the_tls_context_is_made_once_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a client and plain http cost no TLS context; two https requests share one."""
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    monkeypatch.setattr(hermes_trio.http.httpcore, "default_ssl_context", make)
    async with open_http_client() as client:
        with pytest.raises(NothingLeft):
            await client.request("GET", "http://127.0.0.1:1/")
        assert made == []
        for _ in range(2):
            with pytest.raises(NothingLeft):
                await client.request("GET", "https://127.0.0.1:1/")
    assert len(made) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"NaN", b"[" * 100_000, b'{"a": 1'])
def test_json_that_is_none(body: bytes) -> None:
    """Whatever is not JSON is a ValueError, however odd."""
    with pytest.raises(ValueError, match=r"."):
        Response(200, {}, body).json()


def test_load_json_takes_text() -> None:
    """Text and bytes load alike."""
    assert load_json('{"a": 1}') == load_json(b'{"a": 1}') == {"a": 1}


def test_the_import_is_lean() -> None:
    """Importing the client imports no command line and no terminal library, also where they are installed, and leaves
    httpx as it is for others."""
    heavy = ("httpx._main", "click", "rich", "pygments")
    code = f"import sys, hermes_trio.http; print([m for m in {heavy} if m in sys.modules]); import httpx._main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]"
    assert not done.stderr or "No module named 'rich'" in done.stderr


async def test_cancelling_at_any_instant_leaves_nothing_to_the_garbage_collector() -> None:
    """However far a request or a stream has come when it is cancelled, all generators beneath it are finished."""

    async def feed(send: Send) -> None:
        for _ in range(5):
            await send(b"piece")

    async def use(client: HttpClient) -> None:
        await client.request("POST", URL, json={"a": 1})
        async with client.stream("POST", URL, json={"a": 1}) as answer:
            async for _ in answer.chunks():
                await trio.lowlevel.checkpoint()

    for instant in range(60):
        async with client_of(always(StreamReply(feed))) as (client, _):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(use, client)
                for _ in range(instant):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
    gc.collect()
