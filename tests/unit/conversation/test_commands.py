"""Commands: what is one, who may use it, and when; the registry that everything else is made from."""

from __future__ import annotations

import pytest

from hermes_trio.conversation.commands import Command, Outcome, Parsed, Registry, parse
from hermes_trio.conversation.handlers import COMMANDS, REGISTRY

from .desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/queue second task", Parsed("queue", "second task")),
        ("/queue@my_bot second task", Parsed("queue", "second task")),
        ("/QUEUE@my_bot", Parsed("queue", "")),
        ("  /stop \n", Parsed("stop", "")),
        ("!stop", Parsed("stop", "")),
        ("!q later", Parsed("q", "later")),
        ("/queue\nover\ntwo lines", Parsed("queue", "over\ntwo lines")),
        ("/queue /queue twice", Parsed("queue", "/queue twice")),
        ("/nonsense", Parsed("nonsense", "")),
        ("!nonsense", None),
        ("!important: call me", None),
        ("/usr/bin is a directory", None),
        ("/usr/bin", None),
        ("/", None),
        ("//stop", None),
        ("/ stop", None),
        ("/2fast", None),
        ("/stop.", None),
        ("please /stop", None),
        ("stop", None),
        ("", None),
        ("/stop@", None),
        ("/stop@my-bot", None),
    ],
)
def test_what_is_a_command(text: str, parsed: Parsed | None) -> None:
    """Q-02: the sign and the bot's name are taken off once; what only looks like a command is text."""
    assert parse(text, REGISTRY.find) == parsed


@pytest.mark.parametrize(
    ("text", "nearest"), [("/stpo", "/stop"), ("/statu", "/status"), ("/sesions", "/sessions"), ("/canel", "/cancel")]
)
def test_an_unknown_command_names_the_nearest(desk: Desk, text: str, nearest: str) -> None:
    """A command that nobody knows is answered with the one that was meant, and never reaches the model."""
    assert f"Did you mean {nearest}?" in desk.asks(text)
    assert desk.begin() is None


def test_an_unknown_command_that_resembles_nothing(desk: Desk) -> None:
    """It is answered with the way to all of them."""
    said = desk.asks("/xyzzyplugh")
    assert "no command /xyzzyplugh" in said
    assert "Did you mean" not in said
    assert "/help" in said


def test_owners_only(desk: Desk) -> None:
    """What is for owners does nothing for others and says so."""
    assert "owners" in desk.asks("/model second", sender="alice")
    assert "now uses second" in desk.asks("/model second", sender="owner")


@pytest.mark.parametrize("command", [command for command in COMMANDS if not command.while_busy], ids=lambda c: c.name)
def test_what_may_not_be_used_under_a_turn(desk: Desk, command: Command) -> None:
    """Some commands say that they have to wait, and change nothing."""
    desk.answered("earlier")
    desk.says("work")
    begun = desk.turn()
    before = desk.transcript()
    assert "/stop first" in desk.asks(f"/{command.name} 1")
    assert desk.transcript() == before
    desk.answer(begun)
    assert desk.begin() is None


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
@pytest.mark.parametrize("arguments", ["", "1", "some text", "0", "²", "-1", "99999999999999999999"])
@pytest.mark.parametrize("busy", [False, True])
def test_every_command_has_an_answer(desk: Desk, command: Command, arguments: str, busy: bool) -> None:
    """Whatever is written behind a command, there is an answer or a turn: never silence, never a crash."""
    desk.answered("earlier")
    if busy:
        desk.says("work")
        desk.turn()
    row = desk.says(f"/{command.name} {arguments}", sender="owner")
    assert desk.told(row) or row.state == "queued"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_command_in_an_empty_chat(desk: Desk, command: Command) -> None:
    """A command may be the first thing that anybody says."""
    row = desk.says(f"/{command.name}", sender="owner")
    assert row.state == "answered"
    assert desk.told(row)


def test_help_lists_what_one_may_use(desk: Desk) -> None:
    """/help lists every command that its reader may use, with its arguments."""
    for_all, for_owners = desk.asks("/help"), desk.asks("/help", sender="owner")
    for command in COMMANDS:
        assert f"/{command.name}" in for_owners
        assert (f"/{command.name} " in for_all) == (command.who == "everyone"), command.name
    assert "/queue TEXT | list | drop N | clear" in for_all


def test_the_menu_is_for_everyone() -> None:
    """The platform's menu shows no command that most may not use."""
    menu = REGISTRY.menu()
    assert menu["stop"] == "ends what I am doing"
    assert "model" not in menu
    assert "q" not in menu


def test_two_commands_of_one_name() -> None:
    """A registry in which a name means two things cannot be made."""
    one = Command("a", "does", lambda call: Outcome("x"), aliases=("b",))
    other = Command("b", "does", lambda call: Outcome("y"))
    with pytest.raises(AssertionError, match="/b"):
        Registry((one, other))


def test_the_table_shows_aliases_and_escapes_bars() -> None:
    """The table of the documents is Markdown: a bar in a usage does not end its cell."""
    line = next(line for line in REGISTRY.as_markdown().splitlines() if line.startswith("| `/queue"))
    assert line.replace("\\|", "").count("|") == 5
    assert "(also `/q`)" in line
