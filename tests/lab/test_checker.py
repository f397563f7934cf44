"""The checker on a database: it finds what the rows say against the promises, and only reads."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from rows import a2_tool_then_answer

from hermes_trio.commands.check_ledger import check_ledger
from hermes_trio.commands.faults import faults
from hermes_trio.config import Config
from hermes_trio.testing import World, check_database, direct_bot, run_world
from hermes_trio.testing.truth import essence
from hermes_trio.text.markdown import render

LIES = {
    "I1": "UPDATE inbox SET state = 'queued'",
    "I2": "UPDATE delivery_obligations SET state = 'withdrawn'",
    "I3": "UPDATE messages SET content = 'something else' WHERE role = 'assistant' AND tool_calls IS NULL",
    "I4": "UPDATE posts SET marked = 1",
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The disk of a world, as a file."""
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as target:
        run_world(a2_tool_then_answer).disk.connection.backup(target)
    target.close()
    return path


def test_a_good_database_is_good(database: Path) -> None:
    """A database that a whole story was written to breaks nothing."""
    assert check_database(database) == []
    assert "every promise is kept" in CliRunner().invoke(check_ledger, [str(database.parent)]).output


@pytest.mark.parametrize("invariant", LIES)
def test_a_lie_is_found(database: Path, invariant: str) -> None:
    """A row that contradicts the others is reported under its invariant, and the command exits 1."""
    with sqlite3.connect(database) as connection:
        connection.execute(LIES[invariant])
    connection.close()
    assert invariant in {violation.invariant for violation in check_database(database)}
    done = CliRunner().invoke(check_ledger, [str(database)])
    assert done.exit_code == 1
    assert f"{invariant}:" in done.output


def test_no_database_is_said(tmp_path: Path) -> None:
    """A path without a database is an error of its own."""
    assert CliRunner().invoke(check_ledger, [str(tmp_path)]).exit_code == 69


def test_the_matrix_shows_every_boundary() -> None:
    """`faults` kills the built-in conversation at each boundary, and all is delivered."""
    done = CliRunner().invoke(faults, [])
    assert done.exit_code == 0, done.output
    assert "0 broke a promise" in done.output
    assert "commit! answer" in done.output
    assert re.search(r"^in all +\d+ +0 +0 +0 +0$", done.output, re.MULTILINE), done.output


def test_the_matrix_of_a_configuration(tmp_path: Path) -> None:
    """The model is asked with the configured prompt and may call the configured tools, which touch nothing."""
    path = tmp_path / "config.toml"
    touched = tmp_path / "touched"
    path.write_text(
        f'[chat]\nsystem = "You are terse."\n[tools.terminal]\nenabled = true\ndirectory = "{touched}"\n'
        '[model]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nname = "m"\n'
    )
    done = CliRunner().invoke(faults, ["--config", str(path)])
    assert done.exit_code == 0, done.output
    assert "0 broke a promise" in done.output
    assert "commit! tool" in done.output or done.output.count("chat.completions") >= 3, done.output
    assert not touched.exists()


def test_a_wrong_configuration_is_told(tmp_path: Path) -> None:
    """It is an error of the configuration, as for every command."""
    path = tmp_path / "config.toml"
    path.write_text("[chat]\nsysten = 1\n")
    assert CliRunner().invoke(faults, ["--config", str(path)]).exit_code == 78


def test_the_prompt_of_a_configuration_is_asked() -> None:
    """A world takes chat and tools from somebody's own configuration, and stays a world."""

    async def story(world: World) -> None:
        world.model.says("Yes.")
        await world.telegram.user("alice").says("no?")
        await world.quiet()
        assert world.model.requests[0].messages[0] == {"role": "system", "content": "You are terse."}

    run_world(story, bot=direct_bot, config=Config.from_mapping({"chat": {"system": "You are terse."}}))


@pytest.mark.parametrize(
    "text",
    [
        "[x](/a/b)",
        "![x](~/y)",
        "[x](/ä/b?q=1)",
        "[x](#part)",
        '[x](/a/b "title")',
        "[](/a/b)",
        "[x](/a_(b))",
        "[x](http://a.b/c)",
        '[x](http://a.b/c "title")',
        "[x](http://a.b/c_(d)e)",
        "<http://a.b/c>",
        "[x](mailto:a@b.c)",
        "`[x](http://a.b)`",
    ],
)
def test_a_link_is_the_same_in_a_text_and_on_a_screen(text: str) -> None:
    """What stays of a link when markup is taken away is what the screen shows: a target without a scheme, too."""
    assert essence(text) == essence(render(text).text)


def test_an_answer_with_a_relative_target_is_no_broken_promise() -> None:
    """Such an answer is delivered as what it says."""

    async def story(world: World) -> None:
        alice = world.telegram.user("alice")
        world.model.says("See [the file](/home/me/y) and ![this](~/z).")
        await alice.says("where?")
        await world.quiet()
        assert alice.sees() == ["See the file (/home/me/y) and this (~/z)."]

    run_world(story, bot=direct_bot)
