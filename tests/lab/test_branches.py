"""The branches that no conformance row reaches, each by a story of its own, killed at every boundary."""

from __future__ import annotations

import pytest
from branches import BRANCHES, STORIES, noted

from hermes_trio.testing import direct_bot, run_world, verify_crashes


@pytest.mark.parametrize("name", STORIES)
def test_the_story_reaches_its_branch(name: str) -> None:
    """Without a kill it ends where its name says."""
    story = STORIES[name]
    world = run_world(story.tell, config={"delivery": story.delivery})
    assert BRANCHES[name](world), world.story()


@pytest.mark.parametrize("name", STORIES)
def test_killed_at_every_boundary(name: str) -> None:
    """No promise is broken, wherever the bot is killed."""
    story = STORIES[name]
    verify_crashes(noted(story.tell), bot=direct_bot, config={"delivery": story.delivery})
