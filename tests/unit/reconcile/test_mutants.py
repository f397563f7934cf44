"""The random test is tested itself: mistakes planted in the core are found.

A dozen that few schedules find run here; all of them run with `python -m reconcile.mutants` (in `make soak`).
"""

from __future__ import annotations

import pytest

from . import core
from .mutants import MISTAKES, RARE, find

QUICK = (
    "a restart forgets what was only intended",
    "a key is repeated for ever",
    "an unknown create counts as refused",
    "look-up without settling",
    "absent is taken for doubtful",
    "content is forgotten like a placeholder",
    "no marker",
    "held after the first marked copy",
    "any edit clears the loose ones",
    "surplus posts stay",
    "a refused part is skipped without a note",
    "what cannot be shorter is tried for ever",
    "each part answers the anchor",
    "a locked post is edited for ever",
    "what is all shown expires",
    "a final holds up nothing",
)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_mistake_is_found(name: str) -> None:
    """Few random schedules are enough for the common ones."""
    assert find(MISTAKES[name], 60) is not None


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_can_be_planted(name: str) -> None:
    """The core still says what each of them changes, in one place."""
    assert sum(source.count(MISTAKES[name].old) for source in core.SOURCES.values()) == 1
    core.mistaken(*MISTAKES[name])


def test_a_mistake_that_cannot_be_planted_is_told() -> None:
    """A change of the core does not silently disarm the proof."""
    with pytest.raises(LookupError, match="does not say"):
        core.mistaken("nothing of the kind", "")


def test_the_rare_ones_are_known() -> None:
    """Only names that exist get more schedules."""
    assert set(MISTAKES) >= RARE
