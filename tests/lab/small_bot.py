"""A bot small enough to be wrong in one place: it receives, asks the model, and delivers by one of several ways.

It writes the ledger's tables by its own statements, so that the checker can judge it. `right` keeps every promise on
a Telegram-like wire; each of the other ways breaks one, as real bots do.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio
from attrs import frozen

from hermes_trio.config import TelegramConfig
from hermes_trio.http import open_http_client
from hermes_trio.ledger import Connection, Ledger, open_ledger
from hermes_trio.model.base import Completion, Message, ModelError
from hermes_trio.model.openai import OpenAIModel
from hermes_trio.platforms.base import Disconnected, Inbound
from hermes_trio.platforms.outcomes import Accepted, Outcome
from hermes_trio.platforms.telegram import TelegramPlatform
from hermes_trio.testing import Life
from hermes_trio.testing.life import Bot
from hermes_trio.text.body import Body
from hermes_trio.values import Address

PLACEHOLDER = "…"
SENT: set[str] = set()
"""What `module_global` has sent, in its opinion."""


@frozen
class Debt:
    """An open obligation."""

    id: str
    chat: str
    content: str
    key: str | None
    message_id: str | None


class SmallBot:
    """One life of it."""

    def __init__(self, life: Life, ledger: Ledger, platform: TelegramPlatform, model: OpenAIModel, way: str) -> None:
        self.life = life
        self.ledger = ledger
        self.platform = platform
        self.model = model
        self.way = way
        self.work = trio.Event()
        self.running: tuple[str, trio.CancelScope] | None = None
        """The turn that runs, as far as memory knows."""

    def now(self) -> float:
        """Wall-clock seconds."""
        return self.life.ports.clock.now()

    async def serve(self) -> None:
        """Receives, answers and delivers until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.poll)
            while True:
                self.work = trio.Event()
                while await self.step():
                    pass
                await self.work.wait()

    # -- receiving --------------------------------------------------------------------------------------------------

    async def poll(self) -> None:
        """Receives; starts again when the wire breaks."""
        while True:
            try:
                await self.platform.run(self)
            except Disconnected:
                await trio.sleep(1)

    async def receive(self, batch: tuple[Inbound, ...], cursor: str | None) -> None:
        """A Receiver's: stores the batch and its cursor; one way of doing it wrong is in two transactions."""
        if self.way == "ack_first":
            await self.ledger.commit(store, (), cursor, self.now())
            await self.ledger.commit(store, batch, None, self.now())
        else:
            await self.ledger.commit(store, batch, cursor, self.now())
        if self.way == "interrupt" and self.running is not None:
            turn, scope = self.running
            scope.cancel()
            await self.ledger.commit(interrupt, turn, self.now())
        self.work.set()

    async def cursor(self) -> str | None:
        """A Receiver's."""
        return await self.ledger.commit(read_cursor)

    def alive(self) -> None:
        """A Receiver's."""

    # -- answering --------------------------------------------------------------------------------------------------

    async def step(self) -> bool:
        """Does what is due; False when nothing is."""
        debt = await self.ledger.commit(next_debt)
        if debt is not None:
            await WAYS[self.way](self, debt)
            return True
        self.running = None
        begun = await self.ledger.commit(begin, self.life.ports.ids(), self.now())
        if begun is None:
            return False
        turn, text = begun
        with trio.CancelScope() as scope:
            self.running = (turn, scope)
            answer = await self.ask(text)
            await self.ledger.commit(commit_answer, turn, answer, self.now())
        return True

    async def ask(self, text: str) -> str:
        """The model's answer; asks until there is one."""
        while True:
            try:
                async with self.model.stream((Message("user", text),), ()) as events:
                    async for event in events:
                        if isinstance(event, Completion):
                            return event.text
            except ModelError:
                await trio.sleep(1)

    # -- delivering -------------------------------------------------------------------------------------------------

    async def create(self, debt: Debt, text: str) -> Outcome:
        """One create."""
        address = Address("telegram", debt.chat)
        return await self.platform.create(address, Body(text), key=debt.key or "", reply_to=None)

    async def edit(self, debt: Debt, message_id: str) -> Outcome:
        """One edit to the whole text."""
        return await self.platform.edit(Address("telegram", debt.chat), message_id, Body(debt.content))


async def right(bot: SmallBot, debt: Debt) -> None:
    """Reserve, then edit: an id is durable before any content leaves."""
    if debt.message_id is None:
        key = await bot.ledger.commit(intend, debt, PLACEHOLDER, bot.life.ports.ids(), bot.now())
        outcome = await bot.create(debt, PLACEHOLDER)
        if isinstance(outcome, Accepted):
            await bot.ledger.commit(note_id, key, outcome.message_id)
        else:
            await trio.sleep(1)
        return
    await bot.ledger.commit(note_edit, debt)
    if isinstance(await bot.edit(debt, debt.message_id), Accepted):
        await bot.ledger.commit(settle, debt, debt.message_id, bot.now())
    else:
        await trio.sleep(1)


async def send_then_mark(bot: SmallBot, debt: Debt) -> None:
    """The row is written when the message is out."""
    outcome = await bot.create(debt, debt.content)
    if isinstance(outcome, Accepted):
        await bot.ledger.commit(settle, debt, outcome.message_id, bot.now())
    else:
        await trio.sleep(1)


async def mark_then_send(bot: SmallBot, debt: Debt) -> None:
    """The row says delivered before the message is out."""
    await bot.ledger.commit(intend, debt, debt.content, bot.life.ports.ids(), bot.now())
    await bot.ledger.commit(settle, debt, None, bot.now())
    await bot.create(debt, debt.content)


async def blind_retry(bot: SmallBot, debt: Debt) -> None:
    """What was not acknowledged is sent again."""
    await bot.ledger.commit(intend, debt, debt.content, bot.life.ports.ids(), bot.now())
    outcome = await bot.create(debt, debt.content)
    if isinstance(outcome, Accepted):
        await bot.ledger.commit(settle, debt, outcome.message_id, bot.now())
    else:
        await trio.sleep(1)


async def forget_preview(bot: SmallBot, debt: Debt) -> None:
    """The id of the preview is kept in memory only."""
    await bot.ledger.commit(intend, debt, debt.content[:9], bot.life.ports.ids(), bot.now())
    outcome = await bot.create(debt, debt.content[:9])
    if isinstance(outcome, Accepted) and outcome.message_id is not None:
        await bot.ledger.commit(note_edit, debt, outcome.message_id)
        if isinstance(await bot.edit(debt, outcome.message_id), Accepted):
            await bot.ledger.commit(settle, debt, outcome.message_id, bot.now())
            return
    await trio.sleep(1)


async def new_key(bot: SmallBot, debt: Debt) -> None:
    """Where the platform knows a repeated key, each attempt has another one."""
    key = await bot.ledger.commit(intend, debt, debt.content, bot.life.ports.ids(), bot.now())
    outcome = await bot.platform.create(Address("telegram", debt.chat), Body(debt.content), key=key, reply_to=None)
    if isinstance(outcome, Accepted):
        await bot.ledger.commit(settle, debt, outcome.message_id, bot.now())
    else:
        await trio.sleep(1)


async def module_global(bot: SmallBot, debt: Debt) -> None:
    """A set in the module knows what was sent."""
    if debt.id not in SENT:
        await bot.ledger.commit(intend, debt, debt.content, bot.life.ports.ids(), bot.now())
        SENT.add(debt.id)
        outcome = await bot.create(debt, debt.content)
        await bot.ledger.commit(settle, debt, getattr(outcome, "message_id", None), bot.now())
    else:
        await bot.ledger.commit(settle, debt, None, bot.now())


Way = Callable[[SmallBot, Debt], Awaitable[None]]
WAYS: dict[str, Way] = {
    "right": right,
    "send_then_mark": send_then_mark,
    "mark_then_send": mark_then_send,
    "blind_retry": blind_retry,
    "forget_preview": forget_preview,
    "new_key": new_key,
    "module_global": module_global,
    "ack_first": right,
    "interrupt": right,
}


def small_bot(way: str) -> Bot:
    """What makes a bot that delivers in this way."""

    @asynccontextmanager
    async def opened(life: Life) -> AsyncIterator[None]:
        table = life.config.platforms["telegram"]
        assert isinstance(table, TelegramConfig)
        async with (
            open_http_client(life.ports.network) as client,
            life.ports.open_executor(life.config.data_dir, life.ports.clock) as executor,
            open_ledger(executor) as ledger,
            trio.open_nursery() as nursery,
        ):
            platform = TelegramPlatform(client, "telegram", table.token.reveal(), base_url=table.base_url)
            model = OpenAIModel(client, life.config.model.base_url, "fake-model", None)
            nursery.start_soon(SmallBot(life, ledger, platform, model, way).serve)
            yield
            nursery.cancel_scope.cancel()

    def make(life: Life) -> AbstractAsyncContextManager[None]:
        return opened(life)

    return make


# -- the statements ---------------------------------------------------------------------------------------------------


def store(con: Connection, batch: tuple[Inbound, ...], cursor: str | None, now: float) -> None:
    """The messages that are new, and the cursor."""
    for inbound in batch:
        con.execute(
            "INSERT INTO inbox (account, chat, thread, native_id, sender, sender_name, text, kind, state, received_at)"
            " VALUES ('telegram', ?, '', ?, ?, ?, ?, 'message', 'queued', ?) ON CONFLICT DO NOTHING",
            (inbound.address.chat, inbound.native_id, inbound.sender, inbound.sender_name, inbound.text, now),
        )
    if cursor is not None:
        con.execute(
            "INSERT OR REPLACE INTO cursors (account, value, updated_at) VALUES ('telegram', ?, ?)", (cursor, now)
        )


def read_cursor(con: Connection) -> str | None:
    """Where receiving goes on."""
    row = con.execute("SELECT value FROM cursors").fetchone()
    return None if row is None else str(row[0])


def begin(con: Connection, turn: str, now: float) -> tuple[str, str] | None:
    """The running turn, or a new one for the oldest message; with its text."""
    row = con.execute(
        "SELECT t.id, i.text FROM turns t JOIN inbox i ON i.id = t.inbox WHERE t.state = 'running'"
    ).fetchone()
    if row is not None:
        return row[0], row[1]
    row = con.execute("SELECT * FROM inbox WHERE state = 'queued' ORDER BY id").fetchone()
    if row is None:
        return None
    session = f"s{row['chat']}"
    con.execute(
        "INSERT OR IGNORE INTO sessions (id, key, source, started_at) VALUES (?, ?, 'telegram', ?)",
        (session, session, now),
    )
    con.execute(
        "INSERT INTO turns (id, inbox, session, account, chat, thread, state, started_at)"
        " VALUES (?, ?, ?, 'telegram', ?, '', 'running', ?)",
        (turn, row["id"], session, row["chat"], now),
    )
    con.execute("UPDATE inbox SET state = 'running', turn = ? WHERE id = ?", (turn, row["id"]))
    con.execute(
        "INSERT INTO messages (session, turn, role, content, created_at) VALUES (?, ?, 'user', ?, ?)",
        (session, turn, row["text"], now),
    )
    con.execute(
        "INSERT INTO delivery_obligations (id, kind, turn, platform, chat_id, thread_id, state, created_at, updated_at)"
        " VALUES (?, 'reply', ?, 'telegram', ?, '', 'streaming', ?, ?)",
        (f"{turn}.reply", turn, row["chat"], now, now),
    )
    return turn, row["text"]


def commit_answer(con: Connection, turn: str, text: str, now: float) -> None:
    """The answer and the debt to show it."""
    changed = con.execute(
        "UPDATE turns SET state = 'answered', ended_at = ? WHERE id = ? AND state = 'running'", (now, turn)
    )
    if changed.rowcount != 1:
        return
    con.execute("UPDATE inbox SET state = 'answered', ended_at = ? WHERE turn = ?", (now, turn))
    con.execute(
        "INSERT INTO messages (session, turn, role, content, created_at) SELECT session, id, 'assistant', ?, ?"
        " FROM turns WHERE id = ?",
        (text, now, turn),
    )
    con.execute(
        "UPDATE delivery_obligations SET state = 'pending', content = ?, parts = ? WHERE turn = ?",
        (text, json.dumps([{"text": text}]), turn),
    )


def interrupt(con: Connection, turn: str, now: float) -> None:
    """Ends a turn that memory believes to be running, whatever the row says."""
    con.execute("UPDATE turns SET state = 'interrupted', ended_at = ? WHERE id = ?", (now, turn))
    con.execute("UPDATE inbox SET state = 'interrupted', ended_at = ? WHERE turn = ?", (now, turn))
    con.execute("UPDATE delivery_obligations SET state = 'withdrawn' WHERE turn = ?", (turn,))


def next_debt(con: Connection) -> Debt | None:
    """The oldest answer that is not delivered."""
    row = con.execute("SELECT * FROM delivery_obligations WHERE state = 'pending' ORDER BY seq").fetchone()
    if row is None:
        return None
    post = con.execute("SELECT * FROM posts WHERE obligation = ? AND state = 'live'", (row["id"],)).fetchone()
    return Debt(row["id"], row["chat_id"], row["content"], post and post["key"], post and post["message_id"])


def intend(con: Connection, debt: Debt, text: str, key: str, now: float) -> str:
    """One post, intended; earlier ones of unknown outcome are forgotten."""
    con.execute("DELETE FROM posts WHERE obligation = ?", (debt.id,))
    con.execute(
        "INSERT INTO posts (key, obligation, serial, ordinal, state, body, created_at, ended_at)"
        " VALUES (?, ?, 0, 0, 'intended', ?, ?, ?)",
        (key, debt.id, json.dumps({"text": text}), now, now),
    )
    return key


def note_id(con: Connection, key: str, message_id: str | None) -> None:
    """The platform's receipt."""
    con.execute("UPDATE posts SET state = 'live', message_id = ?, body = NULL WHERE key = ?", (message_id, key))


def note_edit(con: Connection, debt: Debt, message_id: str | None = None) -> None:
    """An edit is intended."""
    con.execute(
        "UPDATE posts SET progress = ?, message_id = coalesce(?, message_id) WHERE obligation = ?",
        (json.dumps({"editing": debt.content}), message_id, debt.id),
    )


def settle(con: Connection, debt: Debt, message_id: str | None, now: float) -> None:
    """It is delivered."""
    con.execute("UPDATE delivery_obligations SET state = 'delivered', updated_at = ? WHERE id = ?", (now, debt.id))
    if message_id is not None:
        intend(con, debt, debt.content, partial_key(debt), now)
        note_id(con, partial_key(debt), message_id)


def partial_key(debt: Debt) -> str:
    """The key of the post that shows it."""
    return f"{debt.id}.0"
