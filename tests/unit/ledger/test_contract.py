"""What every executor promises to the callers of the ledger: one durable result for each, whatever the others do."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import outcome
import pytest
import trio
import trio.testing

from hermes_trio.ledger.executors import StoreFailed
from hermes_trio.ledger.task import MAX_BATCH, Ledger, LedgerClosed, open_ledger

Clock = trio.testing.MockClock
Calls = dict[str, Callable[[], Awaitable[Any]]]


async def together(calls: Calls) -> dict[str, outcome.Value[Any] | outcome.Error]:
    """Hands all calls over before the ledger takes the first, and gathers what each caller got."""
    results: dict[str, outcome.Value[Any] | outcome.Error] = {}

    async def one(name: str, call: Callable[[], Awaitable[Any]]) -> None:
        results[name] = await outcome.acapture(call)

    async with trio.open_nursery() as nursery:
        for name, call in calls.items():
            nursery.start_soon(one, name, call)
    return results


def puts(ledger: Ledger, store: Any, *wanted: str) -> Calls:
    """A call for each name that puts it."""
    return {name: partial(ledger.commit, store.put, name) for name in wanted}


def values(results: dict[str, outcome.Value[Any] | outcome.Error]) -> dict[str, Any]:
    """The values of the calls that have one."""
    return {name: result.value for name, result in results.items() if isinstance(result, outcome.Value)}


def error_of(result: outcome.Value[Any] | outcome.Error) -> BaseException:
    """The error that a caller got."""
    assert isinstance(result, outcome.Error)
    return result.error


def page_limit(connection: sqlite3.Connection, spare: int | None) -> None:
    """Lets the database grow by so many pages only; None: as it likes."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    limit = 2**30 if spare is None else pages + spare
    connection.execute(f"PRAGMA max_page_count = {limit}")


def set_readonly(connection: sqlite3.Connection) -> None:
    """From now on this connection cannot write: SQLITE_READONLY."""
    connection.execute("PRAGMA query_only = ON")


async def test_the_value_is_durable_when_it_is_returned(store: Any, clock: Clock) -> None:
    """Whenever `commit` returns, another reader sees the row already, and the value is that of the function."""
    async with open_ledger(store.executor) as ledger:
        for number in range(40):
            assert await ledger.commit(store.put, f"n{number}", size=number) == f"n{number} is in"
            assert store.durable()[-1] == f"n{number}"


async def test_waiting_calls_share_a_transaction(store: Any, clock: Clock) -> None:
    """Twenty callers at a time cost two transactions at most, and each gets its own value."""
    wanted = [f"n{number}" for number in range(20)]
    async with open_ledger(store.executor) as ledger:
        results = await together(puts(ledger, store, *wanted))
    assert values(results) == {name: f"{name} is in" for name in wanted}
    assert sorted(store.durable()) == sorted(wanted) == sorted(store.ran)
    assert len(store.transactions) <= 2 and sum(store.transactions) == 20


async def test_calls_run_in_the_order_of_handing_over(store: Any, clock: Clock) -> None:
    """The order of the rows is the order in which the callers came, also across transactions."""
    handed: list[str] = []

    async def hand_over(ledger: Ledger, name: str) -> None:
        handed.append(name)
        await ledger.commit(store.put, name)

    async with open_ledger(store.executor) as ledger, trio.open_nursery() as nursery:
        for number in range(2 * MAX_BATCH + 10):
            nursery.start_soon(hand_over, ledger, f"n{number}")
    assert store.durable() == handed
    assert max(store.transactions) == MAX_BATCH


async def test_an_error_undoes_its_own_call_only(store: Any, clock: Clock) -> None:
    """A call that raises leaves nothing, its caller gets that very error, and its neighbours lose nothing."""
    mistake = ValueError("a mistake of the caller")
    async with open_ledger(store.executor) as ledger:
        results = await together(
            {
                **puts(ledger, store, "a", "b"),
                "wrong": partial(ledger.commit, store.put_and_raise, "wrong", mistake),
                **puts(ledger, store, "c"),
            }
        )
    assert error_of(results["wrong"]) is mistake
    assert sorted(store.durable()) == ["a", "b", "c"] == sorted(values(results))
    assert sorted(store.ran) == ["a", "b", "c", "wrong"], "an error of a call re-runs nobody"


async def test_a_constraint_undoes_its_own_call_only(store: Any, clock: Clock) -> None:
    """A violated constraint is an error of the call like any other: all that the call did is undone."""

    def twice(connection: sqlite3.Connection) -> None:
        store.put(connection, "x")
        store.put(connection, "x")

    async with open_ledger(store.executor) as ledger:
        results = await together({**puts(ledger, store, "a"), "x": partial(ledger.commit, twice)})
        assert ledger.healthy
    assert isinstance(error_of(results["x"]), sqlite3.IntegrityError)
    assert store.durable() == ["a"] and sorted(store.ran) == ["a", "x", "x"], "nobody runs again"


async def test_a_call_may_handle_a_constraint_itself(store: Any, clock: Clock) -> None:
    """An error of SQLite that a call catches is its own affair; the rest of what it did stays."""

    def known(connection: sqlite3.Connection) -> str:
        store.put(connection, "x")
        try:
            store.put(connection, "x")
        except sqlite3.IntegrityError:
            return "known"
        return "new"

    async with open_ledger(store.executor) as ledger:
        assert await ledger.commit(known) == "known"
    assert store.durable() == ["x"]


async def test_a_full_disk_fails_only_who_needs_the_room(store: Any, clock: Clock) -> None:
    """A full disk ends the transaction of all; each runs again alone, and only the large one gets StoreFailed."""
    async with open_ledger(store.executor) as ledger:
        await ledger.commit(page_limit, 0)
        results = await together(
            {
                **puts(ledger, store, "a"),
                "large": partial(ledger.commit, store.put, "large", 100_000),
                **puts(ledger, store, "b", "c"),
            }
        )
        assert isinstance(error_of(results["large"]), StoreFailed)
        assert "full" in str(error_of(results["large"]))
        assert sorted(values(results)) == ["a", "b", "c"] == sorted(store.durable())
        assert store.ran.count("large") == 2 and all(store.ran.count(name) <= 2 for name in "abc")
        assert not ledger.healthy
        await ledger.commit(page_limit, None)
        await ledger.commit(store.put, "large", 100_000)
        assert ledger.healthy and "large" in store.durable()


async def test_a_readonly_store_fails_each_write(store: Any, clock: Clock) -> None:
    """Where nothing can be written every caller gets a StoreFailed of its own, and the ledger lives on."""
    async with open_ledger(store.executor) as ledger:
        await ledger.commit(store.put, "before")
        await ledger.commit(set_readonly)
        results = await together(puts(ledger, store, "a", "b"))
        errors = [error_of(result) for result in results.values()]
        assert [type(error) for error in errors] == [StoreFailed, StoreFailed] and errors[0] is not errors[1]
        assert not ledger.healthy
        with pytest.raises(StoreFailed):
            await ledger.commit(store.put, "c")
    assert store.durable() == ["before"]


async def test_a_refused_commit_fails_only_its_cause(store: Any, clock: Clock) -> None:
    """A COMMIT that SQLite refuses for one call undoes all; each runs again alone, and that one gets the error."""

    def dangling(connection: sqlite3.Connection) -> None:
        store.ran.append("dangling")
        connection.execute("PRAGMA defer_foreign_keys = ON")
        connection.execute("INSERT INTO link VALUES ('nobody')")

    async with open_ledger(store.executor) as ledger:
        results = await together(
            {**puts(ledger, store, "a"), "dangling": partial(ledger.commit, dangling), **puts(ledger, store, "b")}
        )
        assert isinstance(error_of(results["dangling"]), sqlite3.IntegrityError)
        assert sorted(values(results)) == ["a", "b"] == sorted(store.durable())
        assert max(store.ran.count(name) for name in store.ran) == 2
        await ledger.commit(store.put, "c")
    assert store.durable()[-1] == "c"


async def test_a_call_that_ends_the_transaction_harms_nobody(store: Any, clock: Clock) -> None:
    """A conflict clause that rolls everything back is noticed: the neighbours run again and are durable."""

    def rolling_back(connection: sqlite3.Connection) -> None:
        store.put(connection, "x")
        connection.execute("INSERT OR ROLLBACK INTO note (name) VALUES ('x')")

    async with open_ledger(store.executor) as ledger:
        results = await together(
            {**puts(ledger, store, "a"), "x": partial(ledger.commit, rolling_back), **puts(ledger, store, "b")}
        )
    assert isinstance(error_of(results["x"]), sqlite3.IntegrityError)
    assert sorted(values(results)) == ["a", "b"] == sorted(store.durable())


async def test_a_cancelled_caller_hands_nothing_over(store: Any, clock: Clock) -> None:
    """Cancelled before the call was handed over: Cancelled is raised and the function never runs."""
    async with open_ledger(store.executor) as ledger:
        with trio.CancelScope() as scope:
            scope.cancel()
            await ledger.commit(store.put, "never")
        assert scope.cancelled_caught
        await ledger.commit(store.put, "next")
    assert store.ran == ["next"] == store.durable()


async def test_waiting_is_not_cancellable(store: Any, clock: Clock) -> None:
    """Cancelled while it waits, a caller still gets the value of what is durable, and is cancelled afterwards."""
    got: list[str] = []
    async with open_ledger(store.executor) as ledger:
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                got.append(await ledger.commit(store.slow, "a"))
                await trio.lowlevel.checkpoint()
                got.append("went on")

            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert got == [], "the call should be under way"
            nursery.cancel_scope.cancel()
            store.release()
        assert got == ["a is in"]
        assert store.durable() == ["a"]


async def test_a_crash_of_a_sibling_loses_no_commit(store: Any, clock: Clock) -> None:
    """The ledger outlives the nursery of its callers: a commit that waits while a sibling crashes is carried out."""
    got: list[str] = []
    async with open_ledger(store.executor) as ledger:
        with pytest.RaisesGroup(ZeroDivisionError):
            async with trio.open_nursery() as inner:

                async def wait() -> None:
                    got.append(await ledger.commit(store.slow, "a"))

                async def crash() -> None:
                    await trio.testing.wait_all_tasks_blocked()
                    store.release()
                    raise ZeroDivisionError

                inner.start_soon(wait)
                inner.start_soon(crash)
        assert got == ["a is in"]
        assert await ledger.commit(store.put, "b") == "b is in"
    assert store.durable() == ["a", "b"]


async def test_the_end_finishes_what_runs_and_closes_the_rest(store: Any, clock: Clock) -> None:
    """At the end a batch that is under way is finished and answered; who waits behind it gets LedgerClosed."""
    results: dict[str, outcome.Value[Any] | outcome.Error] = {}

    async def one(name: str, call: Callable[[], Awaitable[Any]]) -> None:
        results[name] = await outcome.acapture(call)

    async with trio.open_nursery() as nursery:
        async with open_ledger(store.executor) as ledger:
            nursery.start_soon(one, "runs", partial(ledger.commit, store.slow, "runs"))
            await trio.testing.wait_all_tasks_blocked()
            for name in ("waits", "waits too"):
                nursery.start_soon(one, name, partial(ledger.commit, store.put, name))
            await trio.testing.wait_all_tasks_blocked()
            store.release()
    assert values(results) == {"runs": "runs is in"}
    assert isinstance(error_of(results["waits"]), LedgerClosed)
    assert isinstance(error_of(results["waits too"]), LedgerClosed)
    assert store.durable() == ["runs"] == store.ran


async def test_a_closed_ledger_refuses(store: Any, clock: Clock) -> None:
    """After the block every call raises LedgerClosed at once, and its function never runs."""
    async with open_ledger(store.executor) as ledger:
        await ledger.commit(store.put, "a")
    for call in (ledger.commit, ledger.insist):
        with pytest.raises(LedgerClosed):
            await call(store.put, "late")
    assert store.ran == ["a"]


async def test_a_call_that_is_no_mere_error_ends_the_ledger(store: Any, clock: Clock) -> None:
    """What is no Exception (an exit, a crash) undoes the transaction, ends the ledger and reaches its owner."""
    results: dict[str, outcome.Value[Any] | outcome.Error] = {}
    with pytest.RaisesGroup(SystemExit):
        async with open_ledger(store.executor) as ledger:
            results = await together(
                {
                    **puts(ledger, store, "a"),
                    "exit": partial(ledger.commit, store.put_and_raise, "exit", SystemExit()),
                    **puts(ledger, store, "b"),
                }
            )
    assert {type(error_of(result)) for result in results.values()} <= {LedgerClosed}
    assert store.durable() == []


@pytest.mark.parametrize("kind", ["inline"])
async def test_insist_waits_for_room(store: Any, clock: Clock, kind: str) -> None:
    """`insist` tries again until the disk has room, then returns the value; the row is there once."""
    got: list[str] = []

    async def insist(ledger: Ledger) -> None:
        got.append(await ledger.insist(store.put, "large", 100_000))

    async with open_ledger(store.executor) as ledger:
        await ledger.commit(page_limit, 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(insist, ledger)
            await trio.sleep(0.25)
            assert got == [] and not ledger.healthy and store.ran.count("large") >= 2
            await ledger.commit(page_limit, None)
        assert got == ["large is in"] and ledger.healthy
    assert store.durable() == ["large"]


async def test_insist_passes_on_other_errors(store: Any, clock: Clock) -> None:
    """A mistake of the call is not repeated."""
    async with open_ledger(store.executor) as ledger:
        with pytest.raises(ValueError, match="mine"):
            await ledger.insist(store.put_and_raise, "a", ValueError("mine"))
    assert store.ran == ["a"] and store.durable() == []


@pytest.mark.parametrize("kind", ["inline"])
async def test_insist_can_be_cancelled_between_tries(store: Any, clock: Clock, kind: str) -> None:
    """Cancelled while the disk is full, nothing of the call is durable, also when there is room again."""
    async with open_ledger(store.executor) as ledger:
        await ledger.commit(page_limit, 0)
        started = trio.current_time()
        with trio.move_on_after(0.05) as scope:
            await ledger.insist(store.put, "large", 100_000)
        assert scope.cancelled_caught and trio.current_time() - started < 0.06, "at once"
        await ledger.commit(page_limit, None)
        await ledger.commit(store.put, "next")
    assert store.durable() == ["next"]


async def test_a_change_stamps_the_commit(store: Any, clock: Clock) -> None:
    """Every transaction that changed a row, and no other, leaves its wall-clock time in the database."""

    def stamp(connection: sqlite3.Connection) -> float:
        return float(connection.execute("SELECT last_commit FROM incarnations").fetchone()[0])

    async with open_ledger(store.executor) as ledger:
        assert await ledger.commit(stamp) == 1000
        assert await ledger.commit(stamp) == 1000, "reading is no change"
        await ledger.commit(store.put, "a")
        assert await ledger.commit(stamp) == 5000


async def test_the_stamp_never_runs_backwards(store: Any, clock: Clock) -> None:
    """A clock that was set back does not hide that later times were written before."""

    def set_stamp(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE incarnations SET last_commit = 9000")

    def stamp(connection: sqlite3.Connection) -> float:
        return float(connection.execute("SELECT last_commit FROM incarnations").fetchone()[0])

    async with open_ledger(store.executor) as ledger:
        await ledger.commit(set_stamp)
        await ledger.commit(store.put, "a")
        assert await ledger.commit(stamp) == 9000


async def test_any_callable_can_be_committed(store: Any, clock: Clock) -> None:
    """A call without a name of its own, such as a partial, is as good as a function."""
    async with open_ledger(store.executor) as ledger:
        assert await ledger.commit(partial(store.put, name="a")) == "a is in"


async def test_foreign_keys_hold(store: Any, clock: Clock) -> None:
    """A row that refers to nothing is refused on every store."""

    def dangling(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO link VALUES ('nobody')")

    async with open_ledger(store.executor) as ledger:
        with pytest.raises(sqlite3.IntegrityError):
            await ledger.commit(dangling)


@pytest.mark.parametrize("kind", ["thread"])
async def test_a_foreign_lock_is_waited_for_once(store: Any, clock: Clock, kind: str, tmp_path: Path) -> None:
    """While another program holds the lock every writer gets StoreFailed, after one wait or two and not one each."""
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with open_ledger(store.executor) as ledger:
        results = await together(puts(ledger, store, *(f"n{number}" for number in range(30))))
        assert all(isinstance(error_of(result), StoreFailed) for result in results.values())
        assert sum(statement.startswith("BEGIN") for statement in store.trace) <= 4
        other.execute("ROLLBACK")
        other.close()
        await ledger.commit(store.put, "after")
    assert store.durable() == ["after"] and store.ran == ["after"]
