"""Many addresses at once: a window of lanes, in which nobody's previews keep anybody's place."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
import trio

from hermes_trio.delivery.courier import REMEMBERED, WINDOW
from hermes_trio.delivery.previews import PREVIEW_COST, PREVIEW_SHARE
from hermes_trio.platforms.outcomes import Reason, Refused
from hermes_trio.values import Address

from .pier import open_pier


async def test_more_addresses_than_lanes(autojump_clock: None) -> None:
    """No more requests than the window holds are made at a time, all of it is used, and everybody has their turn."""
    async with open_pier() as pier:
        pier.platform.takes = lambda request: 1.0
        for chat in range(2 * WINDOW + 1):
            pier.owe("hello", str(chat))
        await pier.courier.wait_idle()
        assert pier.platform.busiest == WINDOW
        assert pier.states() == {"delivered": 2 * WINDOW + 1}
        assert 3 < trio.current_time() < 5
        assert len(pier.platform.requests) == 2 * WINDOW + 1


async def test_what_is_in_rows_finds_its_lane_when_one_is_free(autojump_clock: None) -> None:
    """A full window, and more due rows of which nobody told: they are seen when a lane ends."""
    async with open_pier() as pier:
        pier.platform.takes = lambda request: 1.0
        for chat in range(WINDOW):
            pier.owe("hello", str(chat))
        await trio.sleep(0.5)
        for chat in range(WINDOW, WINDOW + 10):
            pier.owe("hello", str(chat), wake=False)
        await pier.courier.wait_idle()
        assert pier.states() == {"delivered": WINDOW + 10}


async def test_streaming_replies_keep_no_place(autojump_clock: None) -> None:
    """300 chats stream, more than the window holds; the answer of a command elsewhere is there at once, and each of
    them goes on showing previews."""
    async with open_pier() as pier:
        pier.platform.takes = lambda request: 0.05
        replies = {str(chat): pier.stream(str(chat)) for chat in range(300)}
        delays = []
        for second in range(10):
            for chat, reply in replies.items():
                pier.show(reply, f"{'word ' * (second + 1)}", chat)
            asked = trio.current_time()
            key = pier.owe("status", "elsewhere")
            while pier.state(key) != "delivered":  # noqa: ASYNC110 -- rows tell nobody
                await trio.sleep(0.01)
            delays.append(trio.current_time() - asked)
            await trio.sleep(1.5)
        assert max(delays) < 0.5, delays
        edits = pier.platform.made("edit")
        assert all(sum(edit.address.chat == chat for edit in edits) >= 4 for chat in replies)


async def test_a_reply_that_ends_does_not_wait_for_its_next_preview(autojump_clock: None) -> None:
    """The final text is shown at once, however far away the next preview is."""
    async with open_pier(edit_interval=20.0) as pier:
        reply = pier.stream()
        pier.show(reply, "one")
        await trio.sleep(1)
        pier.show(reply, "one two")
        await trio.sleep(1)
        assert pier.platform.texts() == ["one"]
        pier.answer(reply, "one two three")
        await trio.sleep(0.1)
        assert pier.platform.texts() == ["one two three"]
        assert pier.state(reply) == "delivered"


async def test_previews_keep_their_distance(autojump_clock: None) -> None:
    """A chat's previews come at most as often as its wire allows, and each shows the latest text of its moment."""
    async with open_pier(edit_interval=1.0) as pier:
        reply = pier.stream()
        for number in range(100):
            pier.show(reply, f"text {number}")
            await trio.sleep(0.1)
        edits = pier.platform.made("edit")
        assert 9 <= len(edits) <= 11
        gaps = [later.time - one.time for one, later in pairwise(edits)]
        assert min(gaps) >= 1.0, gaps
        assert all(int(edit.text.split()[1]) >= 10 * edit.time - 2 for edit in edits)
        assert pier.labels["decide"] < 5 * len(edits), "the ledger is asked for each word of the model"


@pytest.mark.parametrize("trouble", [Refused(Reason.NOTHING_LEFT), Refused(Reason.RATE_LIMITED, retry_after=30.0)])
async def test_what_cannot_be_shown_is_not_rendered(autojump_clock: None, trouble: Refused) -> None:
    """While nothing can be shown a text that streams is made into previews within the budget, not at each word."""
    made = []
    async with open_pier() as pier:
        reply = pier.stream()
        pier.platform.behaves = lambda request: trouble
        for number in range(2000):
            text = f"{number}".ljust(50_000, "x")
            pier.courier.show(Address("tg", "1"), reply, lambda text=text: made.append(text) or text)
            await trio.sleep(0.002)
        assert PREVIEW_COST * 50_000 * len(made) < PREVIEW_SHARE * trio.current_time() + PREVIEW_COST * 50_000
        assert made


async def test_long_previews_share_a_budget(autojump_clock: None) -> None:
    """Previews cost processor time: with 50 chats that stream 8,000 characters each comes as often as the share of a
    core that all of them may take allows, and a short one alone as often as its wire does."""
    size, streams = 8000, 50
    async with open_pier(edit_interval=0.5) as pier:
        replies = {str(chat): pier.stream(str(chat)) for chat in range(streams)}
        for second in range(12):
            for chat, reply in replies.items():
                pier.show(reply, f"{second}".ljust(size, "x"), chat)
            await trio.sleep(0.5)
        shown = PREVIEW_COST * size * len(pier.platform.made("edit"))
        assert shown <= PREVIEW_SHARE * trio.current_time() + PREVIEW_COST * size * streams
        least = PREVIEW_COST * size * streams / PREVIEW_SHARE
        for chat in replies:
            times = [edit.time for edit in pier.platform.made("edit") if edit.address.chat == chat]
            assert len(times) >= 3
            assert min(later - one for one, later in pairwise(times)) >= least > 0.5


async def wait_in_rows(many: int) -> None:
    """So many chats with an open message each while nothing leaves, and then the account lives."""
    async with open_pier(start=False) as pier:
        pier.con.execute("BEGIN")
        for chat in range(many):
            pier.owe("hello", str(chat), wake=False)
        pier.con.execute("COMMIT")
        pier.platform.behaves = lambda request: Refused(Reason.NOTHING_LEFT)
        pier.courier.trouble(pier.account)
        await pier.run_again()
        while len(pier.platform.requests) < 1.2 * many:
            await trio.sleep(0.1)
            assert len(pier.courier._later) <= REMEMBERED
            assert not pier.courier._wanted
        assert len({request.address for request in pier.platform.requests}) == many
        pier.platform.requests.clear()
        pier.platform.behaves = lambda request: None
        pier.courier.alive(pier.account)
        await pier.courier.wait_idle()
        assert pier.states() == {"delivered": many}
        assert len(pier.platform.requests) == many
        assert not pier.courier._later


async def test_open_messages_wait_in_rows(autojump_clock: None) -> None:
    """Thousands of chats with an open message each, and nothing leaves: the courier remembers a bounded number of them,
    tries all; when the account lives they are delivered, each by one request."""
    began = time.perf_counter()
    await wait_in_rows(1500)
    assert time.perf_counter() - began < 60


@pytest.mark.soak
async def test_ten_thousand_open_messages(autojump_clock: None) -> None:
    """10,000 of them, in a bounded time and memory."""
    began = time.perf_counter()
    tracemalloc.start()
    await wait_in_rows(10_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000, peak
    assert time.perf_counter() - began < 600


async def test_thousands_at_one_address(autojump_clock: None) -> None:
    """A chat that is owed 400 messages gets them in order, one request each, in a time that grows with their number
    and not with its square; a message elsewhere waits for none of them."""
    many = 400
    async with open_pier(start=False) as pier:
        pier.con.execute("BEGIN")
        for number in range(many):
            pier.owe(f"number {number}", wake=False)
        pier.con.execute("COMMIT")
        pier.platform.takes = lambda request: 0.05
        began = time.perf_counter()
        await pier.run_again()
        await trio.sleep(5)
        key = pier.owe("status", "2")
        await trio.sleep(0.2)
        assert pier.state(key) == "delivered"
        await pier.courier.wait_idle()
        assert pier.platform.texts() == [f"number {number}" for number in range(many)]
        assert time.perf_counter() - began < 60


async def test_equal_times_are_no_trouble(autojump_clock: None) -> None:
    """Many addresses that wait for the very same moment all go on then."""
    async with open_pier() as pier:
        pier.platform.behaves = lambda request: (
            Refused(Reason.RATE_LIMITED, retry_after=1.5, scope="account") if trio.current_time() < 1 else None
        )
        for chat in range(20):
            pier.owe("hello", str(chat))
        await pier.courier.wait_idle()
        assert pier.states() == {"delivered": 20}
        assert pier.courier._later == []
        assert not pier.courier._lanes


async def test_the_order_of_rights(autojump_clock: None) -> None:
    """At one address a command's answer goes before previews and placeholders of a reply that streams."""
    async with open_pier(edit_interval=0.1) as pier:
        pier.platform.takes = lambda request: 1.0
        reply = pier.stream()
        pier.show(reply, "one")
        pier.owe("status")
        await trio.sleep(1.5)
        pier.show(reply, "one two")
        pier.owe("again")
        await trio.sleep(10)
        assert [request.text for request in pier.platform.requests] == ["status", "…", "again", "one two"]


async def test_an_unknown_account_is_left_alone(autojump_clock: None) -> None:
    """Rows of an account that is not configured now stay as they are, and nobody waits for them."""
    async with open_pier(names=("tg", "old")) as first:
        first.platform.behaves = lambda request: Refused(Reason.NOTHING_LEFT)
        first.owe("hello", account="old", key="kept")
        await trio.sleep(1)
        con = first.con
    async with open_pier(con=con) as pier:
        pier.courier.wake(Address("old", "1"))
        pier.owe("hello")
        await pier.courier.wait_idle()
        assert pier.platform.texts() == ["hello"]
        assert pier.state("kept") == "attempting"
