"""What stories in the simulated world share: scripted answers, and what a person reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_trio.testing import World
from hermes_trio.testing.people import Person

CREATE, EDIT, DELETE = "wire? sendMessage", "wire? editMessageText", "wire? deleteMessage"
MARKED = "[may be"
"""How a copy begins that may be a second one."""


def foot(label: str) -> str:
    """What a complete answer ends with."""
    return f"<</A-{label}>>"


def answer(label: str, size: int = 0) -> str:
    """A scripted answer: header, markup, words that fill it up to about a size, footer."""
    head = f"<<A-{label}>> **bold** and `code`."
    filling = " ".join(f"word{number:04}" for number in range(max(0, size - len(head) - len(foot(label))) // 9))
    return f"{head} {filling} {foot(label)}"


def words(texts: Sequence[str]) -> str:
    """What messages say together, without white space."""
    return "".join("".join(texts).split())


def read(label: str, size: int = 0) -> str:
    """An answer as a person reads it, without white space."""
    return words([answer(label, size).replace("*", "").replace("`", "")])


async def ask(world: World, label: str, size: int = 0, **how: Any) -> Person:
    """Alice asks, the model answers in its way, the world comes to rest, and she reads the answer exactly once."""
    alice = world.telegram.user("alice")
    world.model.when(label).says(answer(label, size), **how)
    await alice.says(f"{label}, please")
    await world.quiet()
    assert words(alice.reads()) == read(label, size), alice.sees()
    return alice
