"""The fixture as a user has it: an App on a store of the test's own, drained without sleeping."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from duly import App, Backoff, Dead, Job, Retry, Skip, Snooze, UsageError
from duly.core.lifecycle import Event, State
from duly.testing import DulyTest, standing
from tests.testing.shop import Shop


def test_a_drain_runs_what_is_ready_and_counts(duly_test: DulyTest, shop: Shop) -> None:
    for number in range(3):
        shop.double.enqueue(number)

    drained = duly_test.drain()

    assert (drained.ran, drained.completed) == (3, 3)
    assert [ran.result for ran in duly_test.ran(shop.double)] == [0, 2, 4]
    assert duly_test.enqueued() == []


def test_a_drain_of_nothing_runs_nothing(duly_test: DulyTest) -> None:
    assert duly_test.drain().ran == 0


def test_an_async_drain_runs_async_handlers_on_the_loop_of_the_test(duly_test: DulyTest, shop: Shop) -> None:
    async def main() -> None:
        await shop.where.aenqueue()
        await shop.thread.aenqueue()
        loop = asyncio.get_running_loop()

        drained = await duly_test.adrain()

        assert drained.completed == 2
        assert shop.seen[0] is loop
        assert shop.seen[1] != threading.get_ident()

    asyncio.run(main())


def test_a_plain_drain_runs_def_handlers_in_this_thread_and_async_ones_too(
    duly_test: DulyTest, shop: Shop
) -> None:
    shop.where.enqueue()
    shop.thread.enqueue()

    assert duly_test.drain().completed == 2
    assert shop.seen[1] == threading.get_ident()


def test_a_plain_drain_inside_a_loop_says_what_to_write(duly_test: DulyTest) -> None:
    async def main() -> None:
        duly_test.drain()

    with pytest.raises(UsageError, match="await adrain"):
        asyncio.run(main())
    assert duly_test.drain().ran == 0


def test_what_is_due_later_waits_for_the_clock(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.using(delay="2d").enqueue(1)
    assert duly_test.drain().ran == 0

    duly_test.clock.advance("2d")

    assert duly_test.drain().completed == 1


def test_a_scheduled_drain_moves_the_clock_to_whatever_is_due(duly_test: DulyTest, shop: Shop) -> None:
    began = duly_test.clock()
    shop.double.using(delay="2d").enqueue(1)
    shop.double.using(delay="5d").enqueue(2)

    assert duly_test.drain(scheduled=True).completed == 2
    assert duly_test.clock() - began == timedelta(days=5)


def test_the_error_of_a_handler_is_raised_once_its_end_is_stored(duly_test: DulyTest, shop: Shop) -> None:
    job = shop.breaks.enqueue()
    shop.double.enqueue(1)

    with pytest.raises(ZeroDivisionError):
        duly_test.drain()

    record = duly_test.app.store.inspection.lookup([job.id])[0]
    assert record is not None
    assert (record.state, record.counters.failed) == (State.scheduled, 1)
    assert duly_test.drain().completed == 1


def test_errors_are_only_counted_when_asked(duly_test: DulyTest, shop: Shop) -> None:
    shop.breaks.enqueue()

    first = duly_test.drain(raising=False)
    duly_test.clock.advance("1h")
    second = duly_test.drain(raising=False)

    assert (first.failed, first.dead) == (1, 0)
    assert (second.failed, second.dead) == (1, 1)
    errors = [ran.error for ran in duly_test.ran(shop.breaks)]
    assert [type(error) for error in errors] == [ZeroDivisionError, ZeroDivisionError]
    assert [ran.attempt for ran in duly_test.ran(shop.breaks)] == [1, 2]


def test_retries_run_to_their_end_when_the_clock_may_move(duly_test: DulyTest, shop: Shop) -> None:
    shop.breaks.enqueue()

    drained = duly_test.drain(scheduled=True, raising=False)

    assert (drained.failed, drained.dead) == (2, 1)


@pytest.mark.parametrize(
    ("ending", "field", "event", "state"),
    [
        (Snooze("10s"), "snoozed", Event.snooze, State.scheduled),
        (Skip("no need"), "skipped", Event.skip, State.skipped),
        (Dead("never"), "dead", Event.bury, State.dead),
        (Retry("5s"), "failed", Event.fail, State.scheduled),
    ],
)
def test_endings_are_no_errors(
    duly_test: DulyTest, shop: Shop, ending: BaseException, field: str, event: Event, state: State
) -> None:
    shop.ending = ending
    shop.ends.enqueue()

    drained = duly_test.drain()

    assert getattr(drained, field) == 1
    (ran,) = duly_test.ran()
    assert (ran.ending, ran.state) == (event, state)


def test_what_a_handler_enqueues_is_drained_as_well(duly_test: DulyTest, shop: Shop) -> None:
    shop.mother.enqueue(3)

    assert duly_test.drain().completed == 4


def test_an_urgent_job_that_a_handler_enqueues_comes_next(duly_test: DulyTest, shop: Shop) -> None:
    shop.urgent_mother.enqueue()
    shop.double.enqueue(7)

    duly_test.drain()

    assert [ran.arguments for ran in duly_test.ran(shop.double)] == [{"number": 1}, {"number": 7}]


def test_only_the_queues_asked_for_are_drained(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)
    shop.mailed.enqueue()

    assert duly_test.drain(queues=["mail"]).completed == 1
    assert [job.task for job in duly_test.enqueued()] == ["double"]
    with pytest.raises(UsageError, match=r"queues=\['mail'\]"):
        duly_test.drain(queues="mail")


def test_arounds_and_lifespans_surround_the_handlers(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.around
    def around(job: Job) -> Any:
        shop.seen.append("before")
        yield
        shop.seen.append("after")

    @shop.jobs.lifespan
    async def lifespan() -> Any:
        shop.seen.append("enter")
        yield
        shop.seen.append("leave")

    shop.note.enqueue("x")

    duly_test.drain()

    assert shop.seen == ["enter", "before", "x", "after", "leave"]


def test_large_arguments_and_finished_steps_are_there(duly_test: DulyTest, shop: Shop) -> None:
    text = "x" * 20_000
    shop.steps.enqueue(text)

    with pytest.raises(ZeroDivisionError):
        duly_test.drain()
    drained = duly_test.drain(scheduled=True)

    assert drained.completed == 1
    assert shop.seen == ["step", len(text)]


def test_an_isolated_task_runs_in_this_process(duly_test: DulyTest, shop: Shop) -> None:
    shop.isolated.enqueue()

    assert duly_test.drain().completed == 1
    assert shop.seen == [threading.get_ident()]


def test_finished_jobs_go_when_their_time_is_over(duly_test: DulyTest, shop: Shop) -> None:
    job = shop.double.enqueue(1)
    duly_test.drain()
    assert duly_test.app.store.inspection.lookup([job.id])[0] is not None

    duly_test.clock.advance("25h")
    duly_test.drain()

    assert duly_test.app.store.inspection.lookup([job.id]) == [None]


def test_schedules_fire_by_the_clock(duly_test: DulyTest, shop: Shop) -> None:
    shop.jobs.every("1h")(shop.hourly)
    assert duly_test.drain().ran == 0

    duly_test.clock.advance("1h")

    assert duly_test.drain().completed == 1
    assert [ran.task for ran in duly_test.ran()] == ["hourly"]


def test_completion_in_a_transaction_counts_as_completed_when_it_committed(
    duly_test: DulyTest, shop: Shop
) -> None:
    shop.in_transaction.enqueue(commit=True)

    assert duly_test.drain().completed == 1

    shop.in_transaction.enqueue(commit=False)
    with pytest.raises(AssertionError, match="rolled back"):
        duly_test.drain()


def test_the_time_of_a_job_stands_still_with_the_clock(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)

    (waiting,) = duly_test.enqueued()

    assert waiting.record.enqueued_at == duly_test.clock()


def test_a_test_that_never_ends_is_ended(
    duly_test: DulyTest, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duly.testing import draining

    monkeypatch.setattr(draining, "MOST_ATTEMPTS", 20)
    shop.forever.enqueue()

    with pytest.raises(Exception, match="for ever"):
        duly_test.drain()


def test_a_drain_inside_a_handler_is_refused(duly_test: DulyTest, shop: Shop) -> None:
    shop.call = duly_test.drain
    shop.calls.enqueue()

    with pytest.raises(UsageError, match="the running drain takes"):
        duly_test.drain()


def test_the_store_of_the_app_itself_is_untouched(shop: Shop, tmp_path: Any) -> None:
    shop.jobs.configure(f"sqlite:///{tmp_path}/own.db")
    shop.double.enqueue(1)
    before = shop.jobs.store

    with standing(shop.jobs, f"sqlite:///{tmp_path}/test.db") as kit:
        assert kit.enqueued() == []
        shop.double.enqueue(2)
        kit.assert_enqueued(shop.double.draft(2), times=1)
        # Code under test may close the App, as the lifespan of a web framework does.
        shop.jobs.close()
        kit.assert_enqueued(shop.double.draft(2), times=1)

    assert shop.jobs.store is before
    assert shop.jobs.inspect.queue("default").counts.ready == 1
    shop.jobs.close()


def test_a_schedule_counts_from_the_start_of_the_test(tmp_path: Any) -> None:
    app = App()

    @app.every("1h")
    @app.task
    def tidy() -> None: ...

    with standing(app, f"sqlite:///{tmp_path}/test.db") as kit:
        kit.clock.advance("1h")

        assert kit.drain().completed == 1
        assert len(app.operate.run_schedule("tidy")) == 1
        kit.assert_enqueued(tidy, times=1)


def test_backoff_goes_by_the_clock(duly_test: DulyTest, shop: Shop) -> None:
    assert shop.breaks.backoff == Backoff("30s", factor=1, jitter=False)
    shop.breaks.enqueue()
    duly_test.drain(raising=False)

    duly_test.clock.advance("29s")
    early = duly_test.drain(raising=False)
    duly_test.clock.advance("1s")
    late = duly_test.drain(raising=False)

    assert (early.ran, late.ran) == (0, 1)


def test_a_paused_queue_ends_a_drain_too(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)
    duly_test.app.operate.pause("default", reason="incident")
    assert duly_test.drain().ran == 0

    duly_test.app.operate.resume("default", reason="over")

    assert duly_test.drain().completed == 1


def test_what_expired_by_the_clock_does_not_run(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.using(expires="1h").enqueue(1)

    duly_test.clock.advance("2h")

    assert duly_test.drain().ran == 0
    assert duly_test.enqueued() == []


def test_follow_ups_run_in_the_same_drain(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.using(then=[shop.double.draft(7)]).enqueue(1)

    assert duly_test.drain().completed == 2
    assert [ran.arguments for ran in duly_test.ran()] == [{"number": 1}, {"number": 7}]


def test_a_drain_that_is_cancelled_takes_its_handler_along_and_hands_the_job_back(
    duly_test: DulyTest, shop: Shop
) -> None:
    async def main() -> None:
        began = asyncio.Event()

        @shop.jobs.task
        async def hang() -> None:
            began.set()
            await asyncio.Event().wait()

        await hang.aenqueue()
        drain = asyncio.create_task(duly_test.adrain())
        await asyncio.wait_for(began.wait(), 30)
        drain.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drain

    asyncio.run(main())

    (job,) = duly_test.enqueued()
    assert (job.record.state, job.record.counters.failed) == (State.ready, 0)
