"""What a turn looks at: the images that came with its message, fetched at its start and never stored.

A photo that cannot be shown is told in words instead, so that the model can say so. What a later turn sees of an
image is the line about it in the transcript and what was said of it.

The rule that must not be broken: nothing about an image ends a turn, and nobody waits for one longer than FETCH_TIME.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
import trio
from attrs import frozen

from hermes_trio.model.base import Image
from hermes_trio.platforms.base import Attachment, FetchesFiles, FetchFailed, Platform

TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
"""What every server with a model for images reads."""
MAX_IMAGES = 10
"""Images in one turn, as many as an album holds."""
MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""The largest image that all servers take."""
MAX_TOTAL_BYTES = 20 * 1024 * 1024
"""Of one turn: base64 makes a third more of it, and a server refuses a request that is much longer."""
FETCH_TIME = 30.0
"""Seconds for all images of a turn."""

UNSEEN = "[you cannot see images here]"

log = structlog.get_logger(__name__)


@frozen
class Shown:
    """What a turn's message shows besides its text."""

    images: tuple[Image, ...] = ()
    remark: str = ""
    """Lines about what is not shown; for the model."""


async def look(platform: Platform, attachments: Sequence[Attachment], *, sees: bool) -> Shown:
    """The images among the attachments, within the limits above. sees: whether any model takes them.

    Cancelled: nothing remains. Raises nothing for what the platform does.
    """
    wanted = [each for each in attachments if each.kind == "photo" or each.mime in TYPES]
    if not wanted:
        return Shown()
    if not sees or not isinstance(platform, FetchesFiles):
        return Shown(remark=UNSEEN)
    images: list[Image] = []
    remarks: list[str] = []
    with trio.move_on_after(FETCH_TIME) as limit:
        for attachment in wanted[:MAX_IMAGES]:
            seen = await _fetch(platform, attachment, MAX_TOTAL_BYTES - sum(len(image.data) for image in images))
            if isinstance(seen, Image):
                images.append(seen)
            else:
                remarks.append(f"[the {_named(attachment)} cannot be shown: {seen}]")
    missing = len(wanted) - len(images) - len(remarks)
    if missing:
        why = "they took too long to arrive" if limit.cancelled_caught else f"{MAX_IMAGES} at a time can be shown"
        remarks.append(f"[{missing} more cannot be shown: {why}]")
    if remarks:
        log.warning("not all images are shown", shown=len(images), remarks=remarks)
    return Shown(tuple(images), "\n".join(remarks))


async def _fetch(platform: FetchesFiles, attachment: Attachment, room: int) -> Image | str:
    """The image, or why there is none."""
    most = min(room, MAX_IMAGE_BYTES)
    if attachment.size is not None and attachment.size > most:
        return _too_large(attachment.size)
    try:
        mime, data = await platform.fetch(attachment)
    except FetchFailed as error:
        return str(error)
    if len(data) > most:
        return _too_large(len(data))
    if mime not in TYPES:
        return "it is no image of a kind that can be shown"
    return Image(mime, data)


def _too_large(size: int) -> str:
    return f"it is too large ({size} bytes)"


def _named(attachment: Attachment) -> str:
    return f"{attachment.kind} {attachment.name!r}" if attachment.name else attachment.kind
