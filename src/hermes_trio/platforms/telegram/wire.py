"""One request to the Bot API: where it goes, and that the token stays out of everything that comes back.

The rule that must not be broken: the token is in the URL of a request and nowhere else. Whatever an answer holds of
it (an echo of the URL, a user who pasted it) is blotted out before anything else sees the answer.

Sources: Telegram Bot API, "Making requests", "getFile".
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from attrs import field, frozen

from hermes_trio.http import HttpClient, NothingLeft, Uncertain
from hermes_trio.platforms.base import JSON, Attachment, FetchFailed
from hermes_trio.platforms.telegram.classify import Envelope, envelope

FILE_LIMIT = 20 * 1024 * 1024
"""Bytes of a file that the Bot API hands out; larger ones are not fetched."""

BLOT = "[token]"
"""Stands where the token stood."""


@frozen
class Answer:
    """What came back: status, lower-case headers, body without the token, and its envelope if it has one."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    envelope: Envelope | None


@frozen
class BotApi:
    """The methods of one bot."""

    client: HttpClient
    base_url: str
    token: str = field(repr=False)
    connect_timeout: float
    """Seconds, for each step until the request can be written."""

    async def call(self, method: str, parameters: JSON, *, read_timeout: float) -> Answer:
        """Makes one request and returns its answer, whatever its status.

        read_timeout: seconds from the first byte of the request to the last one of the answer. Cancelled: the server
        may have done it. Raises NothingLeft and Uncertain.
        """
        response = await self.client.request(
            "POST",
            self._url("", method),
            json=parameters,
            connect_timeout=self.connect_timeout,
            read_timeout=read_timeout,
        )
        body = response.body.replace(self.token.encode(), BLOT.encode())
        return Answer(response.status, response.headers, body, envelope(response.status, body))

    async def fetch(self, attachment: Attachment, *, read_timeout: float) -> tuple[str, bytes]:
        """The media type and content of a file, at most FILE_LIMIT bytes (Bot API, "getFile").

        read_timeout: seconds for getFile, and between two reads of the content. Cancelled: nothing remains. Raises
        FetchFailed.
        """
        if attachment.size is not None and attachment.size > FILE_LIMIT:
            raise FetchFailed("the file is larger than the 20 MB that Telegram hands out to bots")
        try:
            path = await self._file_path(attachment.reference, read_timeout)
            url = self._url("file/", quote(path, safe="/"))
            async with self.client.stream(
                "GET", url, connect_timeout=self.connect_timeout, read_timeout=read_timeout
            ) as answer:
                if answer.status != 200:
                    raise FetchFailed(f"Telegram answered with status {answer.status}")
                content = await answer.read(FILE_LIMIT)
        except (NothingLeft, Uncertain) as error:
            raise FetchFailed(f"the file could not be fetched: {error}") from None
        return media_type(content, attachment.mime), content

    async def _file_path(self, file_id: str, read_timeout: float) -> str:
        answer = await self.call("getFile", {"file_id": file_id}, read_timeout=read_timeout)
        result = answer.envelope.result if answer.envelope is not None and answer.envelope.ok else None
        path = result.get("file_path") if isinstance(result, dict) else None
        if not isinstance(path, str):
            why = answer.envelope.description if answer.envelope else ""
            raise FetchFailed(f"Telegram does not hand out the file: {why[:200] or f'status {answer.status}'}")
        return path

    def _url(self, folder: str, rest: str) -> str:
        return f"{self.base_url.rstrip('/')}/{folder}bot{quote(self.token, safe=':')}/{rest}"


_SIGNATURES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
)


def media_type(content: bytes, claimed: str = "") -> str:
    """The media type: of an image told by its first bytes, of anything else what the sender claims.

    A file that claims to be an image of a kind that is known here and is not one has no type (octet-stream).
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    found = next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)
    known = {"image/webp", *(kind for _, kind in _SIGNATURES)}
    return found or (claimed if claimed and claimed not in known else "application/octet-stream")
