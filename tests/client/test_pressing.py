"""What producers meet at a queue that is full, on both stores: nothing is refused by surprise, nothing silently."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from duly import App, Filter, Outcome, QueueFull, State, StoreUnreachable, UsageError
from duly.client import enqueue
from duly.core.bounds import Bound
from duly.stores.faults import Transient
from duly.worker.registration import declare
from tests.client.conftest import Hands
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)


def filled(app: App, when_full: Any = "reject", *, by: int = 3, **bounds: Any) -> Any:
    """A task of a queue that holds as much as it may."""
    queue = app.queue("mail", **(bounds or {"max_depth": by}), when_full=when_full)

    @app.task(queue=queue)
    def send(number: int = 0) -> None: ...

    app.enqueue_many(send.draft(number) for number in range(by))
    return send


def ready(app: App) -> int:
    return app.inspect.queue("mail").counts.ready


def test_a_full_queue_refuses_what_does_not_fit(both: App) -> None:
    send = filled(both)

    with pytest.raises(
        QueueFull, match="'mail' is full: 3 jobs wait, 1 more is above max_depth=3"
    ) as refused:
        send.enqueue(4)

    assert refused.value.queue == "mail"
    assert SECOND <= refused.value.retry_after <= 60 * SECOND
    assert ready(both) == 3


def test_a_full_queue_refuses_async_producers_too(both: App) -> None:
    send = filled(both)

    async def produce() -> None:
        with pytest.raises(QueueFull, match="'mail' is full"):
            await send.aenqueue(4)
        with pytest.raises(QueueFull, match="'mail' is full"):
            await both.aenqueue_many([send.draft(5)])

    asyncio.run(produce())

    assert ready(both) == 3


def test_there_is_room_again_once_jobs_have_been_claimed(both: App) -> None:
    send = filled(both)
    hands = Hands(both.store, "send", queues=("mail",))
    with pytest.raises(QueueFull):
        send.enqueue()

    hands.claim(2)

    def stored() -> bool:
        try:
            send.enqueue()
        except QueueFull:
            return False
        return True

    wait_until(stored, what="room for one more")
    assert ready(both) == 2


def test_many_jobs_go_in_together_or_not_at_all(both: App) -> None:
    send = filled(both, by=2, max_depth=4)

    @both.task
    def other() -> None: ...

    with pytest.raises(QueueFull, match="2 jobs wait, 3 more are above max_depth=4"):
        both.enqueue_many([other.draft(), *(send.draft(number) for number in range(3))])
    fits = both.enqueue_many([other.draft(), send.draft(), send.draft()])

    assert [one.over_limit for one in fits] == [False, False, False]
    assert both.inspect.queue("default").counts.ready == 1
    assert ready(both) == 4


def test_what_another_process_has_brought_counts(both: App) -> None:
    send = filled(both)
    other = App(both.settings.url)
    other_send = other.task(queue=other.queue("mail", max_depth=3), name="send")(send.fn)

    def refused() -> bool:
        try:
            other_send.enqueue()
        except QueueFull:
            return True
        return False

    with other:
        # A server counts once a second for all producers together.
        wait_until(refused, what="what the first process has brought")


def test_in_a_callers_transaction_the_job_is_stored_and_says_that_it_is_one_too_many(both: App) -> None:
    send = filled(both)

    with both.transaction() as connection:
        one = send.using(connection=connection).enqueue(4)
        many = both.enqueue_many([send.draft(5)], connection=connection)

    assert (one.over_limit, many[0].over_limit) == (True, True)
    assert ready(both) == 5


def test_an_async_transaction_is_not_broken_either(both: App) -> None:
    send = filled(both)

    async def produce() -> bool:
        async with both.atransaction() as connection:
            return bool((await send.using(connection=connection).aenqueue(4)).over_limit)

    assert asyncio.run(produce())
    assert ready(both) == 4


def test_a_strict_enqueue_is_refused_in_a_transaction_and_leaves_it_usable(both: App) -> None:
    send = filled(both)

    @both.task
    def other() -> None: ...

    with both.transaction() as connection:
        with pytest.raises(QueueFull):
            send.using(connection=connection, strict=True).enqueue(4)
        other.using(connection=connection).enqueue()

    assert both.inspect.queue("default").counts.ready == 1
    assert ready(both) == 3


@pytest.mark.parametrize("when_full", ["shed", "slow"])
def test_a_strict_enqueue_is_refused_by_any_full_queue(jobs: App, when_full: str) -> None:
    send = filled(jobs, when_full)

    with pytest.raises(QueueFull):
        send.using(strict=True).using(priority=1).enqueue(4)

    assert ready(jobs) == 3


def test_a_writing_transaction_that_readers_wait_for_is_not_waited_for(jobs: App) -> None:
    send = filled(jobs)
    jobs.close()

    with jobs.transaction() as connection:
        connection.execute("pragma cache_spill = on")
        connection.execute("pragma cache_size = 1")
        connection.execute("create table orders (text text)")
        # More than the cache holds: from here on the file is locked for readers, where the journal is no WAL.
        connection.executemany("insert into orders values (?)", [("x" * 3000,)] * 50)
        began = time.monotonic()
        enqueued = send.using(connection=connection).enqueue(4)
        took = time.monotonic() - began

    assert enqueued.outcome is Outcome.created
    # A reader gives up after the five seconds in which a lock is waited for.
    assert took < 4


def test_a_queue_that_sheds_takes_the_job_and_lets_the_least_urgent_go(both: App) -> None:
    send = filled(both, "shed")
    declare(both)
    urgent = send.using(priority=1).enqueue(4)
    swept = both.store.upkeep.sweep(timedelta(hours=1), 3, 10 * SECOND)

    assert (urgent.outcome, urgent.over_limit) == (Outcome.created, True)
    assert swept.shed == 1
    assert both.inspect.job(urgent.id).job.state is State.ready
    assert ready(both) == 3


def test_a_queue_that_slows_lets_its_producer_wait_and_stores(both: App) -> None:
    send = filled(both, "slow")

    began = time.monotonic()
    slowed = send.enqueue(4)
    took = time.monotonic() - began

    assert slowed.over_limit
    # Nobody works here: nothing is known of how fast the queue drains, and the wait is the longest.
    assert took > 0.9
    assert ready(both) == 4


def test_the_loop_turns_while_a_queue_slows(jobs: App) -> None:
    send = filled(jobs, "slow")
    turns: list[int] = []

    async def produce() -> bool:
        loop = asyncio.get_running_loop()

        def turn() -> None:
            turns.append(1)
            loop.call_later(0.05, turn)

        turn()
        return bool((await send.aenqueue(4)).over_limit)

    assert asyncio.run(produce())
    assert len(turns) > 5


def test_a_transaction_is_not_slowed(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    send = filled(jobs, "slow")
    slept: list[float] = []
    monkeypatch.setattr(enqueue, "time", SimpleNamespace(sleep=slept.append))

    with jobs.transaction() as connection:
        slowed = send.using(connection=connection).enqueue(4)
    own = send.enqueue(5)

    assert (slowed.over_limit, own.over_limit) == (True, True)
    assert len(slept) == 1


def test_a_queue_whose_oldest_job_has_waited_too_long_is_full(both: App) -> None:
    send = filled(both, by=1, max_age=timedelta(milliseconds=1))

    def refused() -> QueueFull | None:
        try:
            send.enqueue()
        except QueueFull as full:
            return full
        return None

    full = wait_until(refused, what="a job that is too old")

    assert full is not None
    assert "above max_age=" in str(full)


def test_jobs_that_are_due_later_neither_count_nor_are_refused(both: App) -> None:
    send = filled(both, by=2, max_depth=3)

    later = [send.using(delay="1h").enqueue(number) for number in range(3)]
    send.enqueue()
    with pytest.raises(QueueFull):
        send.enqueue()
    also = send.using(delay="1h").enqueue()

    assert [one.over_limit for one in [*later, also]] == [False] * 4
    assert ready(both) == 3


def test_follow_ups_are_never_refused(both: App) -> None:
    send = filled(both)

    @both.task
    def first() -> None: ...

    first.using(then=[send.draft(4)]).enqueue()
    hands = Hands(both.store, "first")
    hands.complete(hands.claim()[0])

    assert ready(both) == 4


def test_the_acts_of_a_person_are_never_refused(both: App) -> None:
    send = filled(both)
    cancelled = send.using(delay="1h").enqueue()

    both.operate.pause("mail", reason="INC-311")
    both.operate.resume("mail", reason="INC-311")
    both.operate.cancel([cancelled.id], reason="INC-311")
    redriven = both.operate.redrive([cancelled.id], reason="INC-311")

    assert len(redriven.moved) == 1
    assert both.inspect.job(cancelled.id).job.state is State.ready
    assert ready(both) == 4


def test_a_batch_that_does_not_fit_is_refused_and_cancelled(both: App) -> None:
    send = filled(both)

    with pytest.raises(QueueFull), both.batch("nightly") as batch:
        batch.add(send.draft(4))

    assert both.inspect.batch(batch.id).state == "cancelled"
    assert ready(both) == 3


def test_a_duplicate_is_not_one_too_many(both: App) -> None:
    send = filled(both, "shed", by=2)
    first = send.using(unique_key="order:7").enqueue()

    again = send.using(unique_key="order:7").enqueue()

    assert (first.over_limit, again.outcome, again.over_limit) == (True, Outcome.duplicate, False)


def test_refusals_are_told_in_the_log_once(jobs: App, caplog: pytest.LogCaptureFixture) -> None:
    send = filled(jobs)

    with caplog.at_level(logging.WARNING, logger="duly.client"):
        for _ in range(3):
            with pytest.raises(QueueFull):
                send.enqueue()

    assert [record.message for record in caplog.records] == [
        "queue mail is full, 1 job was refused: 3 jobs wait, 1 more is above max_depth=3"
    ]


def test_the_store_counts_what_was_refused(both: App) -> None:
    send = filled(both)

    async def produce() -> None:
        with pytest.raises(QueueFull):
            await send.aenqueue(4)

    asyncio.run(produce())

    assert both.store.pressing.pressures(["mail"])["mail"].refused == 1


def test_the_read_model_tells_the_bound_the_fill_and_what_was_refused(both: App) -> None:
    send = filled(both)
    with pytest.raises(QueueFull):
        send.enqueue(4)

    found = both.inspect.queue("mail")
    reasons = {reason.kind: reason.text for reason in both.inspect.why("mail").reasons}

    assert found.pressure.bound == Bound(3)
    assert found.pressure.refused == 1
    assert found.pressed is not None
    assert found.pressed.startswith(
        "full: 3 jobs wait, 1 more is above max_depth=3; producers are refused; 1 job was refused lately, the last "
    )
    assert reasons["full"].startswith("full: 3 jobs wait")
    assert both.inspect.queue("default").pressed is None


def test_the_read_model_of_another_app_reads_the_bound_that_was_declared(both: App) -> None:
    filled(both, "slow")
    declare(both)
    other = App(both.settings.url)

    with other:
        found = other.inspect.queue("mail")

    assert found.pressure.bound == Bound(3, None, "slow")
    assert found.pressed == "full: 3 jobs wait, 1 more is above max_depth=3; producers are slowed"


def test_a_store_that_does_not_answer_says_so_as_ever(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    send = filled(jobs)

    def away(queues: object) -> None:
        raise Transient("gone")

    jobs.close()
    monkeypatch.setattr(jobs.store.pressing, "fills", away)

    with pytest.raises(StoreUnreachable):
        send.enqueue()


def test_the_other_stores_queues_are_asked_there(jobs: App, sqlite_path: Any) -> None:
    send = filled(jobs)
    beside = jobs.at(f"sqlite:///{sqlite_path}.other")

    there = send.using(app=beside).enqueue(4)

    assert there.over_limit is False
    assert len(beside.inspect.jobs(Filter()).jobs) == 1


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"max_depth": 0}, "from 1"),
        ({"max_depth": True}, "from 1"),
        ({"max_depth": "9"}, "whole number"),
        ({"max_age": 30}, "'30s'"),
        ({"when_full": "drop", "max_depth": 1}, '"reject", "shed" or "slow"'),
        ({"when_full": "slow"}, "needs a bound"),
        ({"when_full": "shed", "max_age": "1h"}, "sheds the latest"),
        ({"importance": -1}, "lower is more important"),
    ],
)
def test_a_bound_that_bounds_nothing_is_refused(jobs: App, said: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        jobs.queue("mail", **said)


def test_strict_is_yes_or_no(jobs: App) -> None:
    send = filled(jobs)
    wrong: Any = "yes"

    with pytest.raises(UsageError, match="True or False"):
        send.using(strict=wrong)
