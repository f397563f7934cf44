"""The disk is full: nothing is shown that was not recorded, and nothing is lost, from whichever commit on.

The limit is that of file sizes of the child (Linux: prlimit(2), RLIMIT_FSIZE), which a test may raise again.
"""

from __future__ import annotations

import resource

from .harness import Bot, BotWorld, open_bot_world

FRAME = 4096 + 24
"""Bytes that one changed page takes in the write-ahead log (SQLite, "WAL file format")."""
STEPS = 10


def limit_files(bot: Bot, size: int | None) -> None:
    """No file of the program can grow beyond this size; None: any."""
    _, hard = resource.prlimit(bot.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(bot.process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def wal_size(world: BotWorld) -> int:
    """Bytes of the write-ahead log."""
    return (world.directory / "data" / "state.db-wal").stat().st_size


async def test_a_full_disk() -> None:
    """I6: while the database cannot be written nothing is shown; when it can again, each message is answered once."""
    async with open_bot_world() as world:
        bot = await world.start()
        world.answers("A-1")
        world.answers("A-2")
        world.asks("please A-1")
        await world.wait_settled()
        before = world.trace()
        limit_files(bot, 64 * 1024)
        world.asks("please A-2")
        await world.wait_logged("the database cannot write")
        assert world.trace() == before
        assert world.telegram.unconfirmed, "acknowledged what could not be stored"
        limit_files(bot, None)
        await world.wait_settled()
        world.verdict()


async def test_the_disk_is_full_from_any_commit_on() -> None:
    """I2, I6: at whichever commit of a turn the disk is full, and the program is killed then: one reply, never none."""
    async with open_bot_world() as world:
        bot = await world.start()
        before = wal_size(world)
        world.answers("A-0x")
        world.asks("please A-0x", "user0")
        await world.wait_settled()
        growth = (wal_size(world) - before) // FRAME
        full = 0
        for step in range(1, STEPS):
            world.answers(f"A-{step}x")
            limit_files(bot, wal_size(world) + growth * step // STEPS * FRAME)
            world.asks(f"please A-{step}x", f"user{step}")
            await world.wait_rows(lambda ledger: "cannot write" in world.bot.output or _done(world))
            full += "cannot write" in bot.output
            await world.kill()
            bot = await world.start()
            await world.wait_settled()
        assert full > STEPS // 2
        world.verdict()


def _done(world: BotWorld) -> bool:
    return not world.telegram.unconfirmed and not world.ledger.open_work()
