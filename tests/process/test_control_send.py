"""`hermes-trio send`, `deliveries` and `doctor` beside the real program, without it, and around its deaths."""

from __future__ import annotations

import json
import socket
import sqlite3
import stat
import sys
from typing import Any

import trio
from attrs import frozen

from hermes_fakes.faults import AckLost

from .answers import answer
from .harness import BotWorld, open_bot_world


@frozen
class Ran:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str


async def command(world: BotWorld, *arguments: str, stdin: bytes = b"") -> Ran:
    """Runs a command with the world's configuration to its end."""
    done = await trio.run_process(
        [sys.executable, "-m", "hermes_trio", *arguments, "--config", str(world.config)],
        stdin=stdin, capture_stdout=True, capture_stderr=True, check=False, cwd=world.directory,
    )  # fmt: skip
    assert "Traceback" not in done.stderr.decode(), done.stderr.decode()
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def address(world: BotWorld, user: str = "alice") -> str:
    """A person's private chat, which they have opened without a word."""
    person = world.telegram.user(user)
    if person.chat not in world.telegram.chats:
        person.unblocks()
    return f"telegram:{person.chat}"


def seen(world: BotWorld, user: str = "alice") -> list[str]:
    """The bot's messages on a person's screen."""
    return world.telegram.bot_texts(world.telegram.user(user))


def rows(world: BotWorld, statement: str) -> list[tuple[Any, ...]]:
    """What the database holds."""
    connection = sqlite3.connect(f"file:{world.directory / 'data' / 'state.db'}?mode=ro", uri=True)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


async def test_send_beside_a_running_bot() -> None:
    """A key is delivered once, by the bot that runs, however often it is sent, at once or one after the other."""
    async with open_bot_world() as world:
        await world.start()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(command, world, "send", address(world), "**build** 812", "--key", "build-812")
        again = await command(world, "send", address(world), "other words", "--key", "build-812")
        assert (again.code, again.out) == (0, f"delivered: send.{address(world)}.build-812\n")
        other = await command(world, "send", address(world), "-", "--key", "build-813", stdin=b"from a pipe\n")
        assert other.code == 0
        assert seen(world) == ["build 812", "from a pipe"]
        assert world.bot.alive
        mode = (world.directory / "data" / "control.sock").stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600


async def test_send_without_a_bot() -> None:
    """Without a bot the command delivers by itself, and a bot that starts later, or another send, adds nothing."""
    async with open_bot_world() as world:
        ran = await command(world, "send", address(world), "alone", "--key", "k1")
        assert (ran.code, ran.out) == (0, f"delivered: send.{address(world)}.k1\n")
        assert world.count("getUpdates") == 0
        await world.start()
        assert (await command(world, "send", address(world), "alone", "--key", "k1")).code == 0
        await world.bot.terminate()
        assert (await command(world, "send", address(world), "alone", "--key", "k1")).code == 0
        assert seen(world) == ["alone"]


async def test_send_survives_kill_9() -> None:
    """Killed after the send was stored and before it left, the next start delivers it once; so does the same key."""
    async with open_bot_world() as world:
        await world.start()
        point = world.kill_at("?", "sendMessage", contains="precious")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(command, world, "send", address(world), "precious", "--key", "p", "--wait", "0")
            await world.wait_death(point)
        assert rows(world, "SELECT id, state FROM delivery_obligations") == [(f"send.{address(world)}.p", "attempting")]
        await world.start()
        await world.wait_settled()
        assert (await command(world, "send", address(world), "precious", "--key", "p")).code == 0
        await world.wait_quiet()
        # The bot cannot know that the first copy never left, so the second one is marked, and it is the only one.
        assert seen(world) == ["[may be a duplicate] precious"]


async def test_the_command_itself_is_killed() -> None:
    """Killed while it delivers by itself, the same command again finishes it; a second copy would be marked."""
    for stage, expected in (("?", ["[may be a duplicate] x"]), ("~", ["x", "[may be a duplicate] x"]), ("!", ["x"])):
        async with open_bot_world() as world:
            place = address(world)
            point = world.kill_at(stage, "sendMessage")
            await world.launch("send", place, "x", "--key", "k", "--config", str(world.config))
            await world.wait_death(point)
            assert (await command(world, "send", place, "x", "--key", "k")).code == 0
            # After the answer it may or may not have been stored before the death.
            assert seen(world) in (expected, ["x", "[may be a duplicate] x"])


async def test_send_without_a_bot_leaves_the_rest_alone() -> None:
    """A turn that a kill interrupted is the bot's: the command touches nobody else's screen and asks no model."""
    async with open_bot_world() as world:
        await world.start()
        go_on = trio.Event()
        world.model.when("A-1").says(answer("A-1")[:200]).holds(go_on).says(answer("A-1")[200:])
        world.asks("please A-1")
        await world.wait_shown("Bold words")
        await world.kill()
        before, asked = seen(world), len(world.model.requests)
        ran = await command(world, "send", address(world, "bob"), "to bob", "--key", "k")
        assert (ran.code, seen(world, "bob")) == (0, ["to bob"])
        assert (seen(world), len(world.model.requests)) == (before, asked)
        go_on.set()
        await world.start()
        await world.wait_settled()
        assert seen(world, "bob") == ["to bob"]
        assert "<</A-1>>" in "".join(seen(world))


async def test_send_without_a_bot_delivers_at_its_address_only() -> None:
    """What is owed to others, new or of unknown outcome, waits for the bot; the send is no start of the bot."""
    async with open_bot_world() as world:
        await world.start()
        alice, bob, carol = (address(world, name) for name in ("alice", "bob", "carol"))
        lost = world.faults(AckLost(), "sendMessage", count=1)
        await command(world, "send", bob, "to bob", "--key", "b", "--wait", "0")
        await world.wait(world.telegram, lambda: lost.hits)
        await world.kill()
        world.telegram.refuse()
        await command(world, "send", carol, "to carol", "--key", "c", "--wait", "0")
        world.telegram.admit()
        starts, states = world.ledger.lives(), "SELECT id, state FROM delivery_obligations ORDER BY seq LIMIT 2"
        before = rows(world, states)
        await world.wait_quiet()  # by then others would be due
        ran = await command(world, "send", alice, "to alice", "--key", "a")
        assert (ran.code, seen(world)) == (0, ["to alice"])
        assert (seen(world, "bob"), seen(world, "carol")) == (["to bob"], [])
        assert (rows(world, states), world.ledger.lives()) == (before, starts)
        await world.start()
        await world.wait_settled()
        assert seen(world) == ["to alice"]
        assert (seen(world, "bob"), seen(world, "carol")) == (["to bob", "[may be a duplicate] to bob"], ["to carol"])


async def test_status_before_any_bot() -> None:
    """A send alone is no start of a bot, and status says so."""
    async with open_bot_world() as world:
        assert (await command(world, "send", address(world), "x", "--key", "k")).code == 0
        told = await command(world, "status")
        assert (told.code, "database: no bot has started on it yet\n" in told.out) == (0, True)


async def test_the_socket_of_a_dead_bot_is_replaced() -> None:
    """What a killed bot left behind hinders neither a send without a bot nor the next bot."""
    async with open_bot_world() as world:
        await world.start()
        await world.kill()
        assert (world.directory / "data" / "control.sock").exists()
        assert (await command(world, "send", address(world), "one", "--key", "1")).code == 0
        await world.start()
        assert (await command(world, "send", address(world), "two", "--key", "2")).code == 0
        assert seen(world) == ["one", "two"]
        await world.bot.terminate()
        assert not (world.directory / "data" / "control.sock").exists()


async def test_what_cannot_be_sent_is_said() -> None:
    """A wrong address, an unknown account, a blank text and a bad key end with 2 and a reason, bot or no bot."""
    async with open_bot_world() as world:
        cases = (
            ("alice", "x", "k", "'alice' is not an address; write account:chat"),
            ("telegarm:1", "x", "k", "there is no account 'telegarm'; there are: telegram"),
            ("telegram:1", " \n", "k", "the text is blank"),
            ("telegram:1", "x", "a b", "'a b' is not a key"),
        )
        for running in (False, True):
            if running:
                await world.start()
            for place, text, key, words in cases[running::2]:
                ran = await command(world, "send", place, text, "--key", key)
                assert (ran.code, ran.out) == (2, "")
                assert words in ran.err
        assert rows(world, "SELECT * FROM delivery_obligations") == []


async def test_held_deliveries_are_released_or_dropped() -> None:
    """What is held stands in the list, goes out once more when it is resent, and leaves the list when dropped."""
    async with open_bot_world(delivery={"on_uncertain": "hold"}) as world:
        await world.start()
        for number in (1, 2):
            lost = world.faults(AckLost(), "sendMessage", count=1)
            ran = await command(world, "send", address(world), f"text {number}", "--key", str(number))
            assert (ran.code, lost.hits) == (1, 1)
            assert ran.err.startswith("held: ")
        listing = await command(world, "deliveries", "list")
        assert [line.split()[0] for line in listing.out.splitlines()[::2]] == ["held", "held"]
        first, second = f"send.{address(world)}.1", f"send.{address(world)}.2"
        resent = await command(world, "deliveries", "resend", first)
        assert (resent.code, resent.out) == (0, f"delivered: {first}\n")
        dropped = await command(world, "deliveries", "drop", second)
        assert (dropped.code, dropped.out) == (0, f"dropped: {second}\n")
        assert (await command(world, "deliveries", "list")).out == "nothing waits for you\n"
        assert seen(world) == ["text 1", "text 2", "[may be a duplicate] text 1"]
        again = await command(world, "deliveries", "resend", first)
        assert (again.code, again.err) == (2, f"{first} is delivered; only what is held or abandoned can be resent\n")
        assert (await command(world, "deliveries", "drop", "nothing")).code == 2


async def test_an_abandoned_delivery_is_resent_without_a_bot() -> None:
    """What was refused for good is listed; when its chat takes messages again the operator sends it anew, once."""
    async with open_bot_world() as world:
        await world.start()
        alice = world.telegram.user("alice")
        alice.blocks()
        ran = await command(world, "send", address(world), "news", "--key", "n")
        assert (ran.code, ran.err) == (1, f"abandoned: send.{address(world)}.n: dead address\n")
        await world.bot.terminate()
        alice.unblocks()
        listing = await command(world, "deliveries", "list")
        assert listing.out.startswith("abandoned (dead address)")
        resent = await command(world, "deliveries", "resend", f"send.{address(world)}.n")
        assert (resent.code, resent.out) == (0, f"delivered: resend.send.{address(world)}.n.1\n")
        assert seen(world) == ["news"]
        assert (await command(world, "deliveries", "list")).out == "nothing waits for you\n"
        everything = (await command(world, "deliveries", "list", "--all")).out
        assert "resent as resend.send." in everything


async def test_a_send_that_cannot_leave_is_stored() -> None:
    """While the platform cannot be reached the command says that it is stored; the bot delivers it later."""
    async with open_bot_world() as world:
        place = address(world)
        world.telegram.refuse(5)
        ran = await command(world, "send", place, "later", "--key", "l", "--wait", "0.5")
        assert ran.code == 0
        assert ran.out.startswith(f"stored, not delivered yet: send.{address(world)}.l")
        await world.start()
        await world.wait_shown("later")
        assert seen(world) == ["later"]


async def test_nonsense_on_the_socket_changes_nothing() -> None:
    """Whatever is written to the socket is answered with a reason, and the bot goes on."""
    async with open_bot_world() as world:
        await world.start()
        stream = await trio.open_unix_socket(str(world.directory / "data" / "control.sock"))
        async with stream:
            for request, words in (
                ({"version": 1, "command": "explode"}, "there is no command 'explode'"),
                ({"version": 1, "command": "send", "text": "x"}, "address is missing"),
                ({"version": 1, "command": "send", "address": 5, "text": "x"}, "address must be of the type str"),
                ({"version": 1, "command": "send", "address": "telegram:1", "text": "x", "wait": -1}, "wait must be"),
                ({"version": 1}, "there is no command None"),
                ({"version": 2, "command": "status"}, "this speaks version 1, not 2"),
            ):
                await stream.send_all(json.dumps(request).encode() + b"\n")
                answer = json.loads(await stream.receive_some())
                assert not answer["ok"]
                assert words in answer["error"]
        for raw in (b"{\n", b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n"):
            async with await trio.open_unix_socket(str(world.directory / "data" / "control.sock")) as stream:
                await stream.send_all(raw)
                assert not json.loads(await stream.receive_some())["ok"]
        for _ in range(5):  # gone without a word, also in the middle of a line
            with socket.socket(socket.AF_UNIX) as rude:
                rude.connect(str(world.directory / "data" / "control.sock"))
                rude.send(b'{"version"')
        async with await trio.open_unix_socket(str(world.directory / "data" / "control.sock")) as stream:
            await stream.send_all(b'{"version": 1, "command": "status"}\n')
            status = json.loads(await stream.receive_some())
        assert status["result"]["pid"] == world.bot.process.pid
        assert status["result"]["accounts"] == {"telegram": {"guarantee": "editable", "up": True}}
        assert rows(world, "SELECT * FROM delivery_obligations") == []


async def test_doctor_names_what_is_wrong() -> None:
    """Everything in order: 0, with each account's guarantee. A wrong token or a dead model: 1, and which of them."""
    async with open_bot_world() as world:
        await world.start()
        world.model.says("hello")
        well = await command(world, "doctor")
        assert well.code == 0, well
        assert "; editable: an uncertain message costs at most one stray empty placeholder" in well.out
        assert "WRONG" not in well.out
        assert f"bot: process {world.bot.process.pid} runs" in well.out
        await world.bot.terminate()
        text = world.config.read_text()
        world.config.write_text(text.replace(world.telegram.token, "1:wrong").replace("sk-secret", "sk-wrong"))
        ill = await command(world, "doctor")
        assert ill.code == 1
        problems = [line for line in ill.out.splitlines() if line.startswith("WRONG")]
        assert [line.split()[1] for line in problems] == ["model", "account"]
        assert "sk-wrong" not in ill.out
        assert "1:wrong" not in ill.out


async def test_doctor_finds_a_damaged_database() -> None:
    """A database file that is none is a problem that is named, and is left as it is."""
    async with open_bot_world() as world:
        data = world.directory / "data"
        data.mkdir()
        (data / "state.db").write_bytes(b"this is no database" * 100)
        world.model.says("hello")
        ran = await command(world, "doctor")
        assert ran.code == 1
        assert "WRONG: database: " in ran.out
        assert (data / "state.db").read_bytes().startswith(b"this is no database")
