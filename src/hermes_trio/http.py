"""The only door to the network for HTTP: one small client over httpx, and two words for what went wrong.

Theory of operation. Whoever sends a message must know whether it may have arrived, so every failure is told apart by
the phase in which it happened. Up to the first byte of the request (a free connection, name, TCP, TLS) it is
`NothingLeft`; from then on it is `Uncertain`, whatever it looks like. The client never repeats a request, follows no
redirect, keeps no cookie, reads no environment and knows no proxy. It is an `httpx.AsyncClient` over a transport of
our own, which stands on httpcore's connection pool: there the phases are types of exceptions, and the network backend
is a public parameter, so that the same code runs over memory streams. The transport is where a failure is told in our
words; nothing above it has to guess.

The rule that must not be broken: no exception text and no log line holds a path, a query or a header, because they
hold the secrets. So httpx sees only scheme, host and port of an address; what follows them travels beside it as the
extension "target", which is httpcore's documented way to say it.
"""

from __future__ import annotations

import json as jsonlib
import logging
import re
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final, Protocol, cast

import httpcore
import trio
from attrs import field, frozen


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Makes `import NAME` fail within, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast(ModuleType, None)
    try:
        yield
    finally:
        del sys.modules[name]


with _without("httpx._main"):  # its command line: it would import click, pygments and rich wherever they are installed
    import httpx

MAX_CONNECTIONS: Final = 100
"""Connections at a time for each scheme, by default; a request that finds none free waits `connect_timeout` for one."""
MAX_IDLE_CONNECTIONS: Final = 20
"""Connections kept open without a request; further ones are closed after their answer."""
KEEP_ALIVE: Final = 20.0
"""Seconds after which an idle connection is not used again; what stands between drops it silently later."""
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""The longest body that `request` reads; a longer one is Uncertain. Files are fetched by `stream`."""

_WRITING: Final = "http11.send_request_headers.started"
"""httpcore's name for the instant before the first byte of a request is written (its documented trace extension)."""


class NothingLeft(Exception):
    """Provably no byte of the request reached the server; it may be repeated without a second effect."""


class Uncertain(Exception):
    """The request, or its answer, broke off; the server may have done what was asked."""


@frozen
class Response:
    """A whole answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; repeated ones are joined by a comma."""
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        return load_json(self.body)


class StreamedResponse(Protocol):
    """An answer whose body is still arriving."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, once. Needs no closing. Raises Uncertain when it breaks off."""

    async def read(self, limit: int) -> bytes:
        """The rest of the body. Raises Uncertain when it breaks off or is longer than `limit` bytes."""


class HttpClient(Protocol):
    """Makes one HTTP request at a time as often as one likes; safe to share between tasks."""

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
        """Sends one request and returns the whole answer, of any status.

        `connect_timeout`: seconds, each for a free connection, TCP and TLS. `read_timeout`: seconds from the first
        byte written to the last byte of the answer, in all. `json`: a body; lone surrogates in it become "?".

        Cancelled: the connection is closed; the server may have taken the request. Raises NothingLeft, Uncertain, and
        ValueError for an address that is no URL.
        """

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
        """As `request`, but the body is read as it arrives; `read_timeout` is the seconds between two reads.

        Leaving the context closes the connection unless the body was read to its end.
        """


@asynccontextmanager
async def open_http_client(
    network: httpcore.AsyncNetworkBackend | None = None, *, connections: int = MAX_CONNECTIONS
) -> AsyncGenerator[HttpClient]:
    """Opens a client whose connections are closed when the context is left.

    connections: how many at a time; a request that finds none free waits for one, and then is NothingLeft.
    `network` replaces the sockets, e.g. by memory streams. TLS is then its own business: it is asked for `start_tls`
    with a context that trusts nobody, and idle connections do not age, because httpcore counts that in real time.
    """
    client = _Client(network, connections)
    try:
        yield client
    finally:
        await client.aclose()


def load_json(data: bytes | str) -> Any:
    """The JSON value that `data` holds. Raises ValueError if it is none, is nested too deeply, or holds NaN."""
    try:
        return jsonlib.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Client:
    """An HttpClient."""

    def __init__(self, network: httpcore.AsyncNetworkBackend | None, connections: int) -> None:
        # Requests are sent as they are built here, so that none of httpx's own headers or time limits applies.
        self._httpx = httpx.AsyncClient(
            transport=_Transport(network, connections), follow_redirects=False, trust_env=False
        )

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
        with trio.CancelScope() as scope:

            async def start_the_clock(event: str, info: Mapping[str, Any]) -> None:
                if event == _WRITING:
                    scope.deadline = trio.current_time() + read_timeout

            request = _request(method, url, json, headers, connect_timeout, read_timeout)
            request.extensions["trace"] = start_the_clock
            async with self._exchange(request) as answer:
                body = await answer.read(MAX_RESPONSE_BYTES)
            return Response(answer.status, answer.headers, body)
        # The deadline is set only once writing has begun.
        raise Uncertain("no complete answer in time")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 60.0,
    ) -> AsyncGenerator[StreamedResponse]:
        async with self._exchange(_request(method, url, json, headers, connect_timeout, read_timeout)) as answer:
            yield answer

    async def aclose(self) -> None:
        """Closes all connections. Requests in flight fail as Uncertain."""
        await self._httpx.aclose()

    @asynccontextmanager
    async def _exchange(self, request: httpx.Request) -> AsyncGenerator[_Streamed]:
        ours = _SENDING.set(True)
        try:
            response = await self._httpx.send(request, stream=True)
        finally:
            _SENDING.reset(ours)
        answer = _Streamed(response)
        try:
            yield answer
        finally:
            await answer.aclose()


_SENDING: ContextVar[bool] = ContextVar("hermes_trio.http.sending", default=False)
"""Whether this task is just now inside a request of ours."""


def _not_ours(record: logging.LogRecord) -> bool:
    """Keeps what the libraries say of a request of ours out of every log; others who use them keep theirs.

    httpx tells the address of each, and httpcore, at DEBUG, the headers of its answer: a redirect repeats the address.
    """
    return not _SENDING.get()


for _name in ("httpx", "httpcore.connection", "httpcore.http11"):
    logging.getLogger(_name).addFilter(_not_ours)


class _Transport(httpx.AsyncBaseTransport):
    """Carries httpx's requests to httpcore; a pool for each scheme, so that the first https makes the TLS context."""

    def __init__(self, network: httpcore.AsyncNetworkBackend | None, connections: int) -> None:
        self._network = network
        self._connections = connections
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises NothingLeft and Uncertain, which httpx lets pass."""
        url = request.url
        with _failures_told():
            response = await self._pool(url.scheme).handle_async_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        headers = [(name, value) for name, value in response.headers if name.lower() not in _UNWANTED]
        return httpx.Response(response.status, headers=headers, stream=_Incoming(response))

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    def _pool(self, scheme: str) -> httpcore.AsyncConnectionPool:
        pool = self._pools.get(scheme)
        if pool is None:
            pool = self._pools[scheme] = httpcore.AsyncConnectionPool(
                ssl_context=self._tls() if scheme == "https" else None,
                max_connections=self._connections,
                max_keepalive_connections=MAX_IDLE_CONNECTIONS,
                keepalive_expiry=KEEP_ALIVE if self._network is None else None,
                network_backend=self._network,
            )
        return pool

    def _tls(self) -> ssl.SSLContext:
        if self._network is None:
            return httpcore.default_ssl_context()
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


_UNWANTED: Final = frozenset({b"set-cookie", b"location"})
"""What httpx does not get to see: it would keep the one, and prepare to follow the other or fail on it."""


class _Incoming(httpx.AsyncByteStream):
    """The body of an answer on its way up through httpx (a class: httpcore's own generators are nested enough)."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response
        self._parts: AsyncIterator[bytes] | None = None
        """None until the first chunk is asked for."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._parts is None:
            self._parts = aiter(self._response.aiter_stream())
        with _failures_told():
            return await anext(self._parts)

    async def aclose(self) -> None:
        await self._response.aclose()


class _Streamed:
    """A StreamedResponse, and an iterator over its own chunks (a class: nothing is left to the garbage collector)."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = _fold_headers(response.headers.raw)
        self._response = response
        self._parts: AsyncIterator[bytes] | None = None
        """None until the first chunk is asked for."""

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._parts is None:
            self._parts = self._response.aiter_raw()
        return await anext(self._parts)

    async def read(self, limit: int) -> bytes:
        body = bytearray()
        async for chunk in self:
            body += chunk
            if len(body) > limit:
                raise Uncertain(f"the answer is longer than {limit} bytes")
        return bytes(body)

    async def aclose(self) -> None:
        """Closes the connection, unless the body was read to its end."""
        await self._response.aclose()
        if self._parts is None:
            return
        # httpx and httpcore nest generators, and only an exception that passes through them closes all of them at
        # once. Reading on from the closed connection raises one, behind the few chunks that were already parsed.
        try:
            async for _ in self._parts:
                pass
        except Uncertain:
            pass


class _Body(httpx.AsyncByteStream):
    """The body of a request, in one piece. httpx's own is a generator that a cancelled write would leave behind."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._content:
            raise StopAsyncIteration
        content, self._content = self._content, b""
        return content


def _request(
    method: str,
    url: str,
    json: Any,
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    read_timeout: float,
) -> httpx.Request:
    """The request complete with Host and Content-Length, as httpx takes it and adds nothing to it."""
    address = _parse_url(url)
    fields = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "hermes_trio"}
    content = b""
    if json is not None:
        fields["content-type"] = "application/json"
        text = jsonlib.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        content = text.encode("utf-8", "replace")
    if json is not None or method not in ("GET", "HEAD", "DELETE"):
        fields["content-length"] = str(len(content))
    fields |= {name.lower(): value for name, value in (headers or {}).items()}
    timeouts = {"pool": connect_timeout, "connect": connect_timeout, "write": read_timeout, "read": read_timeout}
    return httpx.Request(
        method,
        address.copy_with(userinfo=b"", raw_path=b"/", fragment=None),
        headers=[(b"host", address.netloc), *((name.encode(), _header(value)) for name, value in fields.items())],
        stream=_Body(content),
        extensions={"timeout": timeouts, "target": address.raw_path},
    )


def _parse_url(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise ValueError("the address is not a URL") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("the address must begin with http:// or https:// and name a host")
    if not url.isascii():
        raise ValueError("the address is not in ASCII")
    if not all(0 < len(label) < 64 for label in address.raw_host.removesuffix(b".").split(b".")):
        raise ValueError("the address does not name a valid host")
    return address


_LEGAL_VALUE: Final = re.compile(rb"([\x21-\x7e\x80-\xff]+([ \t]+[\x21-\x7e\x80-\xff]+)*)?")
"""RFC 9110, 5.5: what a header may hold."""


def _header(value: str) -> bytes:
    """Checks a value here, because what h11 and httpcore say of an illegal one quotes it, also in the log."""
    try:
        data = value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError("a header holds a character that HTTP does not allow there") from None
    if not _LEGAL_VALUE.fullmatch(data):
        raise NothingLeft("a header holds a character that HTTP does not allow there")
    return data


def _fold_headers(raw: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    folded: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        folded[name] = f"{folded[name]}, {value}" if name in folded else value
    return folded


_FAILURES: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    # A backend should have translated these; what it forgot is told in the same words.
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
)


@contextmanager
def _failures_told() -> Iterator[None]:
    """Turns what httpcore raises into NothingLeft or Uncertain, by phase. Cancelled passes."""
    try:
        yield
    except _FAILURES as error:
        raise _told(error) from None


def _told(error: Exception) -> NothingLeft | Uncertain:
    """The failure in our words; the original text may hold a secret and is dropped."""
    match error:
        case httpcore.PoolTimeout():
            return NothingLeft("no connection became free in time")
        case httpcore.ConnectTimeout():
            return NothingLeft("no connection in time")
        case httpcore.ConnectError():
            return NothingLeft(_why_no_connection(error))
        case httpcore.LocalProtocolError():
            # The whole head is checked before its first byte is written, and the body's length is our own.
            return NothingLeft("the method, path or a header holds a character that HTTP does not allow")
        case httpcore.ReadTimeout() | httpcore.WriteTimeout():
            return Uncertain("no answer in time")
        case httpcore.RemoteProtocolError():
            return Uncertain("the answer broke off or is not HTTP")
        case _:
            return Uncertain("the connection broke")


def _why_no_connection(error: BaseException) -> str:
    """Which kind of connect error it was, from the exceptions behind it (httpcore's pool clears the cause)."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ssl.SSLError():
                return f"TLS failure: {cause.reason or 'no handshake'}"
            case socket.gaierror():
                return "no such host"
            case ConnectionRefusedError():
                return "connection refused"
            case BaseExceptionGroup():
                cause = cause.exceptions[0]
            case _:
                cause = cause.__cause__ or cause.__context__
    return "no connection"
