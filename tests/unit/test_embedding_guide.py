"""docs/embedding.md: every Python snippet runs as it stands, prints what stands below it, and is typed."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from source_tree import ROOT

from hermes_fakes.loopback import listen
from hermes_fakes.telegram import TelegramFake, open_telegram_fake
from hermes_fakes.telegram.values import Chat

GUIDE = ROOT / "docs" / "embedding.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(GUIDE.read_text())
PROGRAMS = [
    (code, BLOCKS[number + 1][1] if BLOCKS[number + 1 : number + 2] and BLOCKS[number + 1][0] == "text" else None)
    for number, (language, code) in enumerate(BLOCKS)
    if language == "python"
]


@contextlib.contextmanager
def telegram() -> Iterator[tuple[TelegramFake, int]]:
    """A fake Telegram with the chat 12345, in a thread of its own because each snippet has its own trio.run."""
    started: list[tuple[TelegramFake, int]] = []
    ready = threading.Event()
    tokens: list[tuple[trio.lowlevel.TrioToken, trio.CancelScope]] = []

    async def serve() -> None:
        with trio.CancelScope() as scope:
            async with open_telegram_fake() as fake, trio.open_nursery() as nursery:
                fake.chats[12345] = Chat(12345, "private", "ann")
                started.append((fake, await listen(fake, nursery)))
                tokens.append((trio.lowlevel.current_trio_token(), scope))
                ready.set()
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    assert ready.wait(10)
    try:
        yield started[0]
    finally:
        token, scope = tokens[0]
        token.run_sync_soon(scope.cancel)
        thread.join(10)


@pytest.mark.parametrize(("code", "prints"), PROGRAMS, ids=[f"{number + 1}" for number in range(len(PROGRAMS))])
def test_a_snippet_runs(code: str, prints: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty directory, beside a bot.toml for a fake Telegram, it prints exactly what the guide says."""
    assert prints is not None, "what a program prints stands below it"
    monkeypatch.chdir(tmp_path)
    with telegram() as (fake, port):
        Path("bot.toml").write_text(
            f'data_dir = "data"\n[model]\nkind = "demo"\n[platforms.telegram]\nkind = "telegram"\n'
            f'token = "{fake.token}"\nbase_url = "http://127.0.0.1:{port}"\npoll_timeout = 1\n'
        )
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "docs/embedding.md", "exec"), {"__name__": "__main__"})
        texts = [message.text for message in fake.chats[12345].messages.values()]
    assert said.getvalue() == prints
    assert texts == (["Build 812 is green."] if "telegram:12345" in code else [])


def test_the_guide_has_programs() -> None:
    """The guide is not found empty because its fences are written in another way."""
    assert len(PROGRAMS) >= 6


def test_the_snippets_are_typed(tmp_path: Path) -> None:
    """Whoever copies a snippet into a strictly typed program gets no complaint."""
    for number, (code, _) in enumerate(PROGRAMS):
        (tmp_path / f"snippet{number}.py").write_text(code)
    cache = str(ROOT / ".mypy_cache" / "guide")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", cache, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
