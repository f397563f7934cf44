"""What goes wrong at one address, or in our own code, and what the courier makes of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio

from hermes_trio.delivery import operating
from hermes_trio.delivery.courier import FAULT_PAUSE
from hermes_trio.delivery.lane import GRACE
from hermes_trio.ledger import LedgerClosed
from hermes_trio.platforms.outcomes import Outcome, Reason, Refused, Unknown
from hermes_trio.values import Address

from .pier import EXPIRED, MARKER, REFUSED, REQUEST_TIMEOUT, Pier, Request, open_pier

HERE = Address("tg", "1")
OUTAGE = Refused(Reason.NOTHING_LEFT)


def life(pier: Pier) -> None:
    """The account shows life, as receiving does."""
    pier.courier.alive(pier.account)


# --- faults of our own ------------------------------------------------------------------------------------------------


async def test_a_fault_in_a_decision_pauses_one_address(autojump_clock: None) -> None:
    """Rows that cannot be read hold up their own address only; after a pause they are tried again."""
    async with open_pier() as pier:
        broken = pier.owe("hello", wake=False)
        pier.con.execute("UPDATE delivery_obligations SET progress = 'no json'")
        pier.courier.wake(HERE)
        other = pier.owe("hello", "2")
        await trio.sleep(1)
        assert pier.state(other) == "delivered"
        pier.platform.behaves = lambda request: OUTAGE if request.address.chat == "3" else None
        pier.owe("hello", "3")  # is tried again every few seconds: each time the rows are asked who is due
        pier.con.execute("UPDATE delivery_obligations SET progress = '{\"reserve\": false}' WHERE id = ?", (broken,))
        await trio.sleep(FAULT_PAUSE - 2)
        assert pier.labels["_set_aside"] == 1, "it was tried before its pause was over"
        assert pier.platform.texts() == []
        await trio.sleep(3)
        assert pier.platform.texts() == ["hello"]


@pytest.mark.parametrize("edits", [True, False])
async def test_a_fault_behind_a_request_leaves_it_unknown(autojump_clock: None, edits: bool) -> None:
    """An outcome that cannot be recorded leaves a message that may be there: after a pause and a sign of life a marked
    copy is made, never a second one without the marker."""
    async with open_pier(edits=edits) as pier:
        pier.platform.behaves = nonsense_once(pier)
        key = pier.owe("hello")
        await trio.sleep(FAULT_PAUSE - 1)
        assert len(pier.platform.made("create")) == 1
        states = [row["state"] for row in pier.con.execute("SELECT state FROM posts")]
        assert states == ["unknown"]
        await trio.sleep(10 * FAULT_PAUSE)
        assert len(pier.platform.made("create")) == 1
        life(pier)
        await trio.sleep(1)
        assert pier.state(key) == "delivered"
        unmarked = [request for request in pier.platform.made("create") if request.text == "hello"]
        assert len(unmarked) == 1
        assert pier.platform.texts() == [f"{MARKER}hello"]


async def test_a_fault_does_not_hold_up_the_next_message(autojump_clock: None) -> None:
    """An address at which our code failed is looked at as soon as something arrives there."""
    async with open_pier() as pier:
        first = pier.owe("hello", wake=False)
        pier.con.execute("UPDATE delivery_obligations SET progress = 'no json'")
        pier.courier.wake(HERE)
        await trio.sleep(5)
        pier.con.execute("UPDATE delivery_obligations SET progress = '{\"reserve\": false}' WHERE id = ?", (first,))
        pier.owe("again")
        await trio.sleep(1)
        assert pier.platform.texts() == ["hello", "again"]


async def test_a_row_that_cannot_be_read_does_not_keep_others(autojump_clock: None) -> None:
    """Neither a restart nor a step of the clock fails because of one of them; the others are recovered."""
    async with open_pier(edits=False) as pier:
        pier.platform.takes = lambda request: 1.0
        pier.owe("hello", "1", key="broken")
        pier.owe("hello", "2", key="sound")
        await trio.sleep(0.5)
        con = pier.con
    con.execute("UPDATE delivery_obligations SET progress = 'no json' WHERE id = 'broken'")
    async with open_pier(con=con) as pier:
        await trio.sleep(0.1)
        life(pier)
        await trio.sleep(0.1)
        assert pier.platform.texts("2") == [f"{MARKER}hello"]
        pier.clock.offset -= 1000.0
        pier.owe("again", "2")
        await trio.sleep(1)
        assert pier.platform.texts("2") == [f"{MARKER}hello", "again"]
        assert pier.platform.texts("1") == []


async def test_an_adapter_that_raises_or_hangs_is_unknown(autojump_clock: None) -> None:
    """An adapter's own fault, or a request that it never ends, is an unknown outcome and no end of the lane."""

    def raises(request: Request) -> Outcome | None:
        if request.text == "raises":
            raise RuntimeError("a mistake")
        return None

    async with open_pier(edits=False) as pier:
        pier.platform.behaves = raises
        pier.platform.takes = lambda request: 10_000.0 if request.text == "hangs" else 0.0
        pier.owe("raises", "1")
        pier.owe("hangs", "2")
        await trio.sleep(REQUEST_TIMEOUT + GRACE + 1)
        life(pier)
        await pier.courier.wait_idle()
        assert pier.platform.texts("1") == [f"{MARKER}raises"]
        assert pier.platform.texts("2") == [f"{MARKER}hangs"]


def nonsense_once(pier: Pier):
    """The first create is done and answered with something that is no outcome."""

    def behaves(request: Request) -> Outcome | None:
        return "nonsense" if request is pier.platform.requests[0] else None  # type: ignore[return-value]  # the point

    return behaves


# --- accounts ---------------------------------------------------------------------------------------------------------


async def test_a_sign_of_life_ends_the_waiting(autojump_clock: None) -> None:
    """While nothing leaves an address is tried at most every five seconds; when the account lives, at once."""
    async with open_pier() as pier:
        pier.courier.trouble(pier.account)
        pier.platform.behaves = lambda request: OUTAGE
        key = pier.owe("hello")
        await trio.sleep(60)
        times = [request.time for request in pier.platform.requests]
        assert 12 <= len(times) <= 20
        await trio.sleep(max(0.0, times[-1] + 1 - trio.current_time()))
        pier.platform.behaves = lambda request: None
        life(pier)
        await trio.sleep(0.05)
        assert pier.state(key) == "delivered"


async def test_a_plain_wire_waits_for_life_before_it_doubts(autojump_clock: None) -> None:
    """An uncertain message is not said again before the account has shown life, however long that takes."""
    async with open_pier(edits=False) as pier:
        pier.platform.behaves = lambda request: Unknown("lost")
        pier.owe("hello")
        await trio.sleep(3600)
        assert len(pier.platform.requests) == 1
        pier.platform.behaves = lambda request: None
        life(pier)
        await trio.sleep(0.1)
        assert pier.platform.texts() == [f"{MARKER}hello"]


async def test_a_rate_limit_of_the_account_reaches_all_its_chats(autojump_clock: None) -> None:
    """A limit of the whole account is a row that holds for every chat of it, also for the next life, and for no other
    account; one of a chat holds for that chat."""
    async with open_pier(names=("tg", "other")) as pier:
        limit = Refused(Reason.RATE_LIMITED, retry_after=30.0, scope="account")
        pier.platform.behaves = lambda request: limit if request.address.chat == "1" else None
        pier.owe("hello", "1")
        await trio.sleep(0.1)
        pier.owe("hello", "2")
        pier.owe("hello", "2", account="other")
        await trio.sleep(20)
        assert [request.address.account for request in pier.platform.requests] == ["tg", "other"]
        con = pier.con
    async with open_pier(con=con) as pier:
        await trio.sleep(9)
        assert pier.platform.requests == []
        await trio.sleep(2)
        await pier.courier.wait_idle()
        assert pier.platform.texts("1") == pier.platform.texts("2") == ["hello"]


async def test_a_rate_limit_of_a_chat_is_its_own(autojump_clock: None) -> None:
    """Another chat of the same account is served meanwhile."""
    async with open_pier() as pier:
        limit = Refused(Reason.RATE_LIMITED, retry_after=30.0, scope="bucket")
        pier.platform.behaves = lambda request: limit if request.address.chat == "1" else None
        pier.owe("hello", "1")
        await trio.sleep(0.1)
        pier.owe("hello", "2")
        await trio.sleep(0.1)
        assert pier.platform.texts("2") == ["hello"]
        assert trio.current_time() + 25 < pier.account.quiet_until


async def test_the_typing_sign_stands_back(autojump_clock: None) -> None:
    """It is not shown while nothing comes through or a limit is in force; four hang at most; one that fails is
    nobody's trouble."""
    async with open_pier() as pier:
        await pier.account.show_typing(HERE)
        assert len(pier.platform.made("typing")) == 1
        pier.courier.trouble(pier.account)
        await pier.account.show_typing(HERE)
        life(pier)
        pier.account.quiet_until = trio.current_time() + 10
        await pier.account.show_typing(HERE)
        assert len(pier.platform.made("typing")) == 1
        await trio.sleep(10)
        pier.platform.types = trio.sleep_forever
        returned = []

        async def types() -> None:
            await pier.account.show_typing(HERE)
            returned.append(trio.current_time())

        for _ in range(10):
            pier.nursery.start_soon(types)
        await trio.sleep(1)
        assert len(pier.platform.made("typing")) == 5
        assert len(returned) == 6, "somebody waits for a sign that nobody needs"
        key = pier.owe("hello")
        await trio.sleep(0.1)
        assert pier.state(key) == "delivered"
    async with open_pier() as pier:

        async def fails() -> None:
            raise RuntimeError("a mistake")

        pier.platform.types = fails
        await pier.account.show_typing(HERE)
        await pier.account.show_typing(HERE)
        assert len(pier.platform.made("typing")) == 2


async def test_a_preview_that_is_told_to_wait_comes_less_often(autojump_clock: None) -> None:
    """Each rate limit of a preview doubles the distance to the next."""
    async with open_pier(edit_interval=1.0) as pier:
        limited: list[float] = []

        def behaves(request: Request) -> Outcome | None:
            if request.method == "edit" and len(limited) < 2:
                limited.append(request.time)
                return Refused(Reason.RATE_LIMITED, retry_after=0.1, scope="bucket")
            return None

        pier.platform.behaves = behaves
        reply = pier.stream()
        for number in range(400):
            pier.show(reply, f"text {number}")
            await trio.sleep(0.1)
        times = [request.time for request in pier.platform.made("edit")][3:]
        assert all(3.9 < later - one < 4.5 for one, later in pairwise(times)), times


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [-86_400.0, 86_400.0])
async def test_a_step_of_the_clock_is_recorded_once(autojump_clock: None, seconds: float) -> None:
    """Whoever looks first records it, for all; what waited goes on within the usual pauses, and nothing is doubled."""
    async with open_pier(expire=10 * 86_400.0) as pier:
        pier.platform.takes = lambda request: 1.0
        for chat in range(40):
            pier.owe("hello", str(chat))
            pier.owe("again", str(chat))
        await trio.sleep(0.5)
        pier.clock.offset += seconds
        await pier.courier.wait_idle()
        assert pier.labels["_step_clock"] == 1
        assert pier.states() == {"delivered": 80}
        assert len(pier.platform.requests) == 80
        assert trio.current_time() < 30


async def test_life_before_a_step_of_the_clock_says_nothing(autojump_clock: None) -> None:
    """A clock that is set back makes no sign of life out of an older one: an uncertain message waits for the next."""
    async with open_pier(edits=False) as pier:
        pier.platform.behaves = lambda request: Unknown("lost") if request.address.chat == "1" else None
        pier.owe("hello")
        await trio.sleep(1)
        pier.account.doubted = False
        pier.clock.offset -= 1000.0
        pier.platform.behaves = lambda request: Unknown("lost")
        pier.owe("hello", "2")
        await trio.sleep(60)
        assert len(pier.platform.requests) == 2
        pier.platform.behaves = lambda request: None
        life(pier)
        await trio.sleep(1)
        assert pier.platform.texts() == [f"{MARKER}hello"]


async def test_a_drifting_clock_is_no_step(autojump_clock: None) -> None:
    """A clock that is corrected by less than the tolerance at a time never counts as stepped."""
    async with open_pier() as pier:
        for number in range(10):
            pier.clock.offset += 1.5
            pier.owe(f"number {number}")
            await pier.courier.wait_idle()
        assert pier.labels["_step_clock"] == 0


async def test_an_outage_leaves_one_notice_in_a_chat(autojump_clock: None) -> None:
    """What was not delivered in time is given up with one notice for each chat, which does not expire itself, however
    long the outage lasts; what was given up is listed."""
    expire = 100.0
    async with open_pier(expire=expire) as pier:
        pier.courier.trouble(pier.account)
        pier.platform.behaves = lambda request: OUTAGE
        keys = [pier.owe(f"number {number}", chat) for number in range(3) for chat in ("1", "2")]
        await trio.sleep(5.5 * expire)
        pier.platform.behaves = lambda request: None
        life(pier)
        await pier.courier.wait_idle()
        for chat in ("1", "2"):
            assert pier.platform.texts(chat) == [EXPIRED]
        assert [pier.state(key) for key in keys] == ["abandoned"] * 6
        listed = {each.id: each for each in operating.listed(pier.con, False, 100)}
        assert set(keys) <= set(listed)
        assert all(listed[key].reason == "expired" for key in keys)


async def test_a_dead_address_gets_no_notice(autojump_clock: None) -> None:
    """Where nothing can be sent any more all is given up at once, without a word, and others are not concerned."""
    async with open_pier() as pier:
        dead = Refused(Reason.DEAD_ADDRESS, detail="blocked")
        pier.platform.behaves = lambda request: dead if request.address.chat == "1" else None
        keys = [pier.owe("hello"), pier.owe("again")]
        pier.owe("hello", "2")
        await pier.courier.wait_idle()
        assert [pier.state(key) for key in keys] == ["abandoned"] * 2
        assert len([request for request in pier.platform.requests if request.address.chat == "1"]) == 1
        assert pier.states() == {"abandoned": 2, "delivered": 1}


async def test_a_text_that_is_never_taken_leaves_a_word(autojump_clock: None) -> None:
    """A text that is refused in every form is given up with one notice."""
    async with open_pier() as pier:
        pier.platform.behaves = lambda request: None if request.text == REFUSED else Refused(Reason.CONTENT)
        key = pier.owe("hello")
        await pier.courier.wait_idle()
        assert pier.state(key) == "abandoned"
        assert pier.platform.texts() == [REFUSED]


async def test_a_notice_leaves_no_notice(autojump_clock: None) -> None:
    """Where even the notice is refused, that is the end of it."""
    async with open_pier() as pier:
        pier.platform.behaves = lambda request: Refused(Reason.CONTENT)
        pier.owe("hello")
        await pier.courier.wait_idle()
        assert pier.states() == {"abandoned": 2}


async def test_what_only_waits_to_be_said_again_hides_nothing(autojump_clock: None) -> None:
    """Many replies that are on screen and wait for an uncertain edit to settle: the next message is shown meanwhile."""
    async with open_pier(edit_interval=0.0, lateness=500.0) as pier:
        pier.platform.behaves = lambda request: Unknown("lost") if request.text == "preview" else None
        for number in range(60):
            reply = pier.stream()
            pier.show(reply, "preview")
            await trio.sleep(0.1)
            pier.answer(reply, f"answer {number}")
            await trio.sleep(2)
        key = pier.owe("hello")
        await trio.sleep(0.1)
        assert pier.states() == {"attempting": 60, "delivered": 1}
        assert pier.state(key) == "delivered"
        await trio.sleep(700)
        await pier.courier.wait_idle()
        assert pier.states() == {"delivered": 61}


async def test_what_stays_uncertain_is_held_and_listed(autojump_clock: None) -> None:
    """After two marked copies of unknown outcome a message on a plain wire is held for the operator, and holds up
    nothing behind it."""
    async with open_pier(edits=False) as pier:
        pier.platform.behaves = lambda request: Unknown("lost") if "hello" in request.text else None
        key = pier.owe("hello")
        for _ in range(10):
            await trio.sleep(30)
            life(pier)
        await pier.courier.wait_idle()
        assert [request.text for request in pier.platform.requests] == ["hello"] + [f"{MARKER}hello"] * 2
        assert pier.state(key) == "held"
        assert [each.id for each in operating.listed(pier.con, False, 100)] == [key]
        pier.owe("again")
        await pier.courier.wait_idle()
        assert pier.platform.texts() == ["again"]


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_idle_is_what_is_not_due_soon(autojump_clock: None) -> None:
    """`wait_idle` waits for what is at work or due in a moment, not for what waits long."""
    async with open_pier() as pier:
        await pier.courier.wait_idle()
        limit = {"1": 1.0, "2": 500.0}
        refused: set[str] = set()

        def behaves(request: Request) -> Outcome | None:
            if request.address.chat in refused:
                return None
            refused.add(request.address.chat)
            return Refused(Reason.RATE_LIMITED, retry_after=limit[request.address.chat], scope="bucket")

        pier.platform.behaves = behaves
        soon, late = pier.owe("hello", "1"), pier.owe("hello", "2")
        await pier.courier.wait_idle()
        assert trio.current_time() < 2
        assert (pier.state(soon), pier.state(late)) == ("delivered", "attempting")
        await trio.sleep(500)
        await pier.courier.wait_idle()
        assert pier.state(late) == "delivered"


async def test_closing_lets_requests_end(autojump_clock: None) -> None:
    """At the end the requests in flight are made and recorded, none is begun, and what waits stays in its rows."""
    async with open_pier() as pier:
        pier.platform.takes = lambda request: 1.5
        keys = [pier.owe(f"number {number}", chat) for number in range(2) for chat in ("1", "2")]
        await trio.sleep(0.5)
        await pier.courier.close()
        assert trio.current_time() == pytest.approx(1.5, abs=0.1)
        assert len(pier.platform.requests) == 2
        rows = [row["state"] for row in pier.con.execute("SELECT state FROM posts")]
        assert rows == ["live", "live"]
        pier.courier.wake(HERE)
        life(pier)
        await pier.courier.wait_idle()
        await trio.sleep(100)
        assert len(pier.platform.requests) == 2
        con = pier.con
    async with open_pier(con=con) as pier:
        await pier.courier.wait_idle()
        assert [request.text for request in pier.platform.requests] == ["number 1", "number 1"]
        assert [pier.state(key) for key in keys] == ["delivered"] * 4


async def test_closing_does_not_wait_for_what_is_due_soon(autojump_clock: None) -> None:
    """What would go on in a moment stays in its rows."""
    async with open_pier() as pier:
        pier.platform.behaves = lambda request: Refused(Reason.RATE_LIMITED, retry_after=1.5, scope="bucket")
        pier.owe("hello")
        await trio.sleep(0.5)
        await pier.courier.close()
        assert trio.current_time() < 0.6


async def test_what_arrives_at_any_moment_is_seen(autojump_clock: None) -> None:
    """A message that is owed at whatever moment of a lane's life, also while it looks for the last time."""
    async with open_pier() as pier:
        for step in range(60):
            pier.owe(f"first {step}")
            await trio.sleep(step * 0.0002)
            key = pier.owe(f"second {step}")
            await trio.sleep(0.5)
            assert pier.state(key) == "delivered", step


async def test_life_at_any_moment_is_seen(autojump_clock: None) -> None:
    """An account that comes back at whatever moment of a failing attempt is tried again within half a second."""
    async with open_pier() as pier:
        for step in range(60):
            pier.courier.trouble(pier.account)
            pier.platform.behaves = lambda request: OUTAGE
            keys = [pier.owe(f"{step}", str(chat)) for chat in range(3)]
            await trio.sleep(20.0)
            pier.owe("another", "1")
            await trio.sleep(step * 0.0002)
            pier.platform.behaves = lambda request: None
            life(pier)
            await trio.sleep(0.5)
            assert [pier.state(key) for key in keys] == ["delivered"] * 3, step


async def test_a_cancelled_courier_leaves_requests_unknown(autojump_clock: None) -> None:
    """Cancelled, as by a crash: what was in flight is uncertain to the next life, and said again with the marker."""
    async with open_pier(edits=False) as pier:
        pier.platform.takes = lambda request: 1.0
        pier.owe("hello")
        await trio.sleep(0.5)
        con = pier.con
    async with open_pier(con=con) as pier:
        await pier.courier.wait_idle()
        life(pier)
        await pier.courier.wait_idle()
        assert pier.platform.texts() == [f"{MARKER}hello"]


async def test_the_end_of_the_ledger_passes(autojump_clock: None) -> None:
    """LedgerClosed is no fault of an address: it ends the courier."""
    async with open_pier(start=False) as pier:
        pier.ledger._closed = True
        pier.courier.wake(HERE)
        with pytest.RaisesGroup(LedgerClosed, flatten_subgroups=True, allow_unwrapped=True):
            await pier.courier.run()
