"""The story of a run as lines for a reader: who said what, what became visible, where it crashed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_trio.testing.world import World

Line = tuple[float, str]
_VERBS = {"sendMessage": "appears as", "editMessageText": "now says", "deleteMessage": "is gone"}
SHOWN = 200
"""Lines of a long story, at its beginning and at its end."""


def brief(numbers: Sequence[int]) -> str:
    """Numbers in a line: of very many only the first and the last ones."""
    if len(numbers) <= 40:
        return ", ".join(map(str, numbers))
    return f"{brief(numbers[:20])}, ... {len(numbers) - 40} more ..., {brief(numbers[-20:])}"


def tell(world: World) -> str:
    """The story so far."""
    lines = sorted(
        [*_people(world), *_model(world), *_screen(world), *_crashes(world), *world.errors], key=lambda line: line[0]
    )
    head = f"seed {world.seed}, {world.lives} lives, crashes at [{brief([p.number for p in world.boundaries.crashes])}]"
    if len(lines) > 2 * SHOWN:
        left_out = (lines[SHOWN][0], f"... {len(lines) - 2 * SHOWN} lines are left out here ...")
        lines = [*lines[:SHOWN], left_out, *lines[-SHOWN:]]
    return "\n".join([head, *(f"  {time:9.3f}  {text}" for time, text in lines)])


def _people(world: World) -> Iterator[Line]:
    for person in world.telegram.people:
        for time, text in person.said:
            yield time, f"{person.name} says {_short(text)}"


def _model(world: World) -> Iterator[Line]:
    for request in world.model.requests:
        yield request.time, f"the model is asked {_short(request.text)}"


def _screen(world: World) -> Iterator[Line]:
    for change in world.telegram.fake.history:
        if change.method in _VERBS:
            text = "" if change.method == "deleteMessage" else f" {_short(str(change.args.get('text')))}"
            yield change.time, f"message {change.message_id} {_VERBS[change.method]}{text}"


def _crashes(world: World) -> Iterator[Line]:
    for passed in world.boundaries.crashes:
        yield passed.time, f"CRASH of life {passed.incarnation} at {passed}"


def _short(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:40]!r}…{text[-15:]!r} ({len(text)} characters)"
