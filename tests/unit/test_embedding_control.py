"""The control socket: where it lies, who may open it, and how it behaves to its clients, in one process."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path

import pytest
import trio
from attrs import evolve
from embedded import MemoryChat, ScriptedModel, config_in

from hermes_trio import Accepted, Delivery, Outcome, Reason, Refused, RequestRefused, open_runtime
from hermes_trio.control.client import ConnectionLost, NoBot, ask_bot
from hermes_trio.control.protocol import LONGEST_LINE, SOCKET_NAME, bind, short_path, to_objects


async def test_what_a_client_asks_is_what_the_program_sees(tmp_path: Path) -> None:
    """A send over the socket and one by the program itself share their keys."""
    chat = MemoryChat()
    async with open_runtime(config_in(tmp_path), model=ScriptedModel(), platforms={"memory": chat}) as runtime:
        result = await ask_bot(tmp_path, "send", address="memory:room", text="x", key="k", wait=5)
        assert (result["state"], result["id"]) == ("delivered", "send.memory:room.k")
        assert (await runtime.send("memory:room", "x", key="k", wait=True)).state == "delivered"
        with pytest.raises(RequestRefused, match="there is no account 'nobody'"):
            await ask_bot(tmp_path, "send", address="nobody:room", text="x")
        assert await ask_bot(tmp_path, "deliveries") == []
    assert chat.shown == [("room", "x")]
    assert not (tmp_path / SOCKET_NAME).exists()
    with pytest.raises(NoBot):
        await ask_bot(tmp_path, "status")


async def test_a_long_directory_is_no_hindrance(tmp_path: Path) -> None:
    """The socket works in a directory whose path does not fit into a socket's address."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    async with open_runtime(config_in(deep), model=ScriptedModel(), platforms={}):
        assert stat.S_IMODE((deep / SOCKET_NAME).stat().st_mode) == 0o600
        assert (await ask_bot(deep, "status"))["pid"] == os.getpid()
    assert not (deep / SOCKET_NAME).exists()


async def test_a_stale_socket_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    """What a dead bot left is replaced; a file of somebody's is left as it is, and the bot works without a socket."""
    with socket.socket(socket.AF_UNIX) as dead, short_path(tmp_path / SOCKET_NAME) as name:
        dead.bind(name)
    async with open_runtime(config_in(tmp_path), model=ScriptedModel()):
        assert (await ask_bot(tmp_path, "status"))["life"] == 1
    (tmp_path / SOCKET_NAME).write_text("mine")
    async with open_runtime(config_in(tmp_path), model=ScriptedModel()) as runtime:
        assert await runtime.ask("q") == "answer to q"
        with pytest.raises(NoBot):
            await ask_bot(tmp_path, "status")
    assert (tmp_path / SOCKET_NAME).read_text() == "mine"


async def test_a_wait_ends_after_its_seconds(tmp_path: Path) -> None:
    """A delivery that cannot leave is told as it is when the time is over, and is delivered later."""
    chat = MemoryChat()
    answers: list[Outcome] = [Refused(Reason.RATE_LIMITED, retry_after=0.5)]
    chat.outcome = lambda text: answers.pop() if answers else Accepted("1")
    async with open_runtime(config_in(tmp_path), model=ScriptedModel(), platforms={"memory": chat}):
        early = await ask_bot(tmp_path, "send", address="memory:room", text="x", key="k", wait=0.1)
        assert early["state"] == "attempting"
        late = await ask_bot(tmp_path, "send", address="memory:room", text="x", key="k", wait=5)
        assert late["state"] == "delivered"


async def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    """Somebody who never ends a line is told so and cut off; others are answered meanwhile."""
    async with open_runtime(config_in(tmp_path), model=ScriptedModel()), trio.open_nursery() as nursery:
        stream = await trio.open_unix_socket(str(tmp_path / SOCKET_NAME))

        async def pour() -> None:
            try:
                while True:
                    await stream.send_all(b"x" * 65536)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

        async with stream:
            nursery.start_soon(pour)
            assert (await ask_bot(tmp_path, "status"))["life"] == 1
            answer = json.loads(await stream.receive_some())
        assert answer["error"] == f"a line is longer than {LONGEST_LINE} bytes"
        nursery.cancel_scope.cancel()


async def test_many_clients_are_served(tmp_path: Path) -> None:
    """Requests of one connection are answered in order; thirty connections at once are all answered."""
    chat = MemoryChat()
    async with open_runtime(config_in(tmp_path), model=ScriptedModel(), platforms={"memory": chat}):
        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(_send, tmp_path, number)
    assert sorted(chat.shown) == sorted(("room", f"text {number}") for number in range(30))


async def _send(data_dir: Path, number: int) -> None:
    result = await ask_bot(data_dir, "send", address="memory:room", text=f"text {number}", key=str(number), wait=9)
    assert result["state"] == "delivered"


async def test_a_long_answer_can_be_read(tmp_path: Path) -> None:
    """Texts of 100,000 characters outside ASCII are sent and listed over the socket; of each its beginning is told."""
    chat = MemoryChat()
    chat.capabilities = evolve(chat.capabilities, limit=200_000)
    chat.outcome = lambda text: Refused(Reason.DEAD_ADDRESS)
    text = "\N{GRINNING FACE}" * 100_000
    async with open_runtime(config_in(tmp_path), model=ScriptedModel(), platforms={"memory": chat}) as runtime:
        for number in range(3):
            sent = await ask_bot(tmp_path, "send", address=f"memory:room{number}", text=text, key="k", wait=9)
            assert (sent["state"], len(sent["text"])) == ("abandoned", 200)
        assert [each["address"] for each in await ask_bot(tmp_path, "deliveries")] == [
            "memory:room2", "memory:room1", "memory:room0",
        ]  # fmt: skip
        assert [each.text for each in await runtime.deliveries()] == [text] * 3
        with pytest.raises(RequestRefused, match="bytes, the most is 1048576"):
            await ask_bot(tmp_path, "send", address="memory:room", text=text * 4)
        with pytest.raises(RequestRefused, match="an address has at most 500 characters"):
            await ask_bot(tmp_path, "send", address=f"memory:{'r' * 500}", text="x")
        assert (await ask_bot(tmp_path, "send", address="memory:x", text="half: \ud83d"))["text"] == "half: \ufffd"


def test_a_list_fits_into_an_answer() -> None:
    """Whatever ids, texts and reasons deliveries have, as many as fit are told, the first ones."""
    wide = "\N{GRINNING FACE}" * 2000
    listed = [Delivery(f"{n}.{wide}", "control", wide, "held", 0, wide, wide, 0.0) for n in range(200)]
    told = to_objects(listed)
    assert 0 < len(json.dumps(told, ensure_ascii=False).encode()) < LONGEST_LINE
    assert [each["id"] for each in told] == [each.id for each in listed[: len(told)]]
    assert (
        len(
            to_objects(
                [
                    Delivery(f"send.memory:room.{n}", "control", "memory:room", "held", 0, "x" * 900, "y" * 900, 0.0)
                    for n in range(200)
                ]
            )
        )
        == 200
    )


async def test_a_torn_answer_is_no_refusal(tmp_path: Path) -> None:
    """A bot that dies while it answers may have done what it was asked: the client does not say the opposite."""

    async def die(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b'{"version": 1, "ok": tr')
        await stream.aclose()

    listener = trio.SocketListener(trio.socket.from_stdlib_socket(bind(tmp_path / SOCKET_NAME)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, die, [listener])
        with pytest.raises(ConnectionLost):
            await ask_bot(tmp_path, "send", address="memory:room", text="x", key="k")
        nursery.cancel_scope.cancel()
