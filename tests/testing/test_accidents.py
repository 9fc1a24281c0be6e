"""Running at once, being delivered twice, and dying at every step."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from duly import App, Job, UsageError
from duly.client.task import Task
from duly.core.lifecycle import Event, State
from duly.testing import DulyTest, effect
from tests.testing.shop import Shop


@pytest.fixture
def own(duly_test: DulyTest) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(duly_test.url.removeprefix("sqlite:///"), isolation_level=None)) as made:
        yield made


def test_inline_runs_a_job_before_its_enqueue_returns(duly_test: DulyTest, shop: Shop) -> None:
    with duly_test.inline():
        job = shop.double.enqueue(21)
        assert job.result(timeout="1s") == 42

    assert [ran.ending for ran in duly_test.ran()] == [Event.complete]


def test_inline_raises_what_the_handler_raised(duly_test: DulyTest, shop: Shop) -> None:
    with pytest.raises(ZeroDivisionError), duly_test.inline():
        shop.breaks.enqueue()


def test_inline_still_encodes_and_decodes(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    def take(pair: list[int]) -> None:
        shop.seen.append(pair)

    given = [1, 2]
    with duly_test.inline():
        take.enqueue(given)

    assert shop.seen == [given]
    assert shop.seen[0] is not given


def test_inline_runs_what_handlers_enqueue_too_and_not_what_is_due_later(
    duly_test: DulyTest, shop: Shop
) -> None:
    with duly_test.inline():
        shop.mother.enqueue(2)
        shop.double.using(delay="1d").enqueue(9)

    assert [ran.task for ran in duly_test.ran()] == ["mother", "double", "double"]
    duly_test.assert_enqueued(shop.double.draft(9), times=1)


def test_inline_waits_for_the_commit_of_a_transaction(
    duly_test: DulyTest, shop: Shop, own: sqlite3.Connection
) -> None:
    with duly_test.inline():
        own.execute("begin")
        shop.double.using(connection=own).enqueue(1)
        assert duly_test.ran() == []
        own.execute("commit")

    assert len(duly_test.ran()) == 1


def test_inline_in_async_code_runs_async_handlers_on_its_loop(duly_test: DulyTest, shop: Shop) -> None:
    async def main() -> None:
        async with duly_test.inline():
            await shop.where.aenqueue()
            assert shop.seen == [asyncio.get_running_loop()]

    asyncio.run(main())


def test_inline_runs_what_several_tasks_enqueue_at_once(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    async def eager(number: int) -> int:
        await shop.double.aenqueue(number)
        return number

    async def put(number: int) -> None:
        job = await eager.aenqueue(number)
        assert await job.aresult(timeout="0s") == number

    async def main() -> None:
        async with duly_test.inline():
            await asyncio.gather(*(put(number) for number in range(10)))

    asyncio.run(main())

    assert len(duly_test.ran(shop.double)) == 10


def test_inline_refuses_a_blocking_enqueue_on_its_loop(duly_test: DulyTest, shop: Shop) -> None:
    async def main() -> None:
        async with duly_test.inline():
            shop.double.enqueue(1)

    with pytest.warns(RuntimeWarning, match="aenqueue"), pytest.raises(UsageError, match="await aenqueue"):
        asyncio.run(main())


def test_inline_ends_with_its_block(duly_test: DulyTest, shop: Shop) -> None:
    with duly_test.inline():
        pass

    shop.double.enqueue(1)

    assert duly_test.ran() == []


def test_deliver_twice_runs_each_completed_job_once_more(duly_test: DulyTest, shop: Shop) -> None:
    with duly_test.deliver_twice():
        shop.note.enqueue("a")
        shop.note.enqueue("b")
        drained = duly_test.drain()

    assert sorted(shop.seen) == ["a", "a", "b", "b"]
    assert (drained.completed, drained.lost) == (2, 2)
    duly_test.refute_enqueued(shop.note)
    shop.note.enqueue("c")
    duly_test.drain()
    assert shop.seen.count("c") == 1


def test_deliver_twice_leaves_a_completion_in_a_transaction_alone(duly_test: DulyTest, shop: Shop) -> None:
    with duly_test.deliver_twice():
        shop.in_transaction.enqueue(commit=True)

        assert duly_test.drain().completed == 1

    assert len(duly_test.ran()) == 1


def test_a_simple_job_survives_a_death_at_every_step(duly_test: DulyTest, shop: Shop) -> None:
    steps = duly_test.kill_at_every_step(shop.note.draft("x"), invariant=lambda: True)

    assert steps > 3
    # Once undisturbed, once with a death that came too late, and each death cost one run or none.
    assert len(shop.seen) >= steps
    duly_test.refute_enqueued(shop.note)


def test_a_broken_invariant_names_the_step(duly_test: DulyTest, shop: Shop) -> None:
    shop.seen.clear()

    with pytest.raises(AssertionError, match=r"does not hold .* a death before jobs\.exchange"):
        duly_test.kill_at_every_step(
            shop.note.draft("x"), invariant=lambda: len(shop.seen) <= 1, before=shop.seen.clear
        )


def test_an_effect_in_the_transaction_of_its_completion_happens_once(
    duly_test: DulyTest, shop: Shop, own: sqlite3.Connection
) -> None:
    own.execute("create table paid (id integer)")

    @shop.jobs.task
    def pay(job: Job) -> None:
        with shop.jobs.transaction() as connection:
            connection.execute("insert into paid values (1)")
            job.complete(connection=connection)

    def paid() -> int:
        return int(own.execute("select count(*) from paid").fetchone()[0])

    steps = duly_test.kill_at_every_step(
        pay.draft(), invariant=lambda: paid() <= 1, before=lambda: own.execute("delete from paid")
    )

    assert steps > 5
    assert paid() == 1


def test_a_kept_step_is_not_repeated_after_a_death(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    def two(job: Job) -> None:
        job.step("first", lambda: shop.seen.append("first"))
        job.step("second", lambda: shop.seen.append("second"))

    def once_more_at_most() -> bool:
        return shop.seen.count("first") <= 2 and shop.seen.count("first") + shop.seen.count("second") <= 3

    steps = duly_test.kill_at_every_step(two.draft(), once_more_at_most, before=shop.seen.clear)

    assert steps >= 8


def test_what_a_job_enqueued_before_its_death_may_be_there_twice(duly_test: DulyTest, shop: Shop) -> None:
    counts: set[int] = set()

    def count() -> None:
        counts.add(len([ran for ran in duly_test.ran(shop.double) if ran.state is State.completed]))

    duly_test.kill_at_every_step(shop.mother.draft(1), count)

    assert max(counts) > 2


def test_a_job_that_ends_otherwise_after_a_death_is_told(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task(attempts=1)
    def insert() -> None:
        if shop.seen:
            raise KeyError("it is there already")
        shop.seen.append("row")

    with pytest.raises(AssertionError, match="the job ended as dead instead of completed"):
        duly_test.kill_at_every_step(insert.draft(), lambda: True, before=shop.seen.clear)


def test_the_error_of_an_undisturbed_run_is_raised_as_it_is(duly_test: DulyTest, shop: Shop) -> None:
    with pytest.raises(ZeroDivisionError):
        duly_test.kill_at_every_step(shop.breaks.draft(), lambda: True)


def test_a_draft_with_a_key_is_refused_with_the_way_out(duly_test: DulyTest, shop: Shop) -> None:
    draft = shop.note.using(idempotency_key="once").draft("x")

    with pytest.raises(UsageError, match="leave the key out"):
        duly_test.kill_at_every_step(draft, lambda: True)


def test_async_jobs_die_on_the_loop_of_the_test(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    async def work(job: Job) -> None:
        await shop.double.aenqueue(1)
        await job.astep("one", lambda: shop.seen.append(1))

    async def main() -> int:
        return await duly_test.akill_at_every_step(work.draft(), lambda: None)

    assert asyncio.run(main()) >= 8


@pytest.mark.parametrize("at_start", [True, False])
def test_a_job_acked_at_its_start_is_run_at_most_once(duly_test: DulyTest, at_start: bool) -> None:
    app: App = duly_test.app
    seen: list[int] = []

    @app.task(ack="start" if at_start else "success")
    def once() -> None:
        seen.append(1)

    worst: list[int] = []
    duly_test.kill_at_every_step(once.draft(), lambda: worst.append(len(seen)), before=seen.clear)

    assert max(worst) == (1 if at_start else 2)


@pytest.fixture
def charging(shop: Shop) -> Task[..., Any]:
    @shop.jobs.task
    def charge(order_id: int) -> None:
        with effect("charge", order_id):
            shop.seen.append(order_id)

    return charge


def test_a_marked_effect_that_comes_twice_fails_the_block_with_its_line(
    duly_test: DulyTest, charging: Task[..., Any]
) -> None:
    with pytest.raises(AssertionError, match=r"effect charge happened twice in charge, line \d+"):  # noqa: SIM117
        with duly_test.deliver_twice():
            charging.enqueue(7)
            duly_test.drain()


def test_a_death_after_a_marked_effect_is_told_with_its_line(
    duly_test: DulyTest, charging: Task[..., Any]
) -> None:
    with pytest.raises(
        AssertionError, match=r"effect charge happened twice in charge, line \d+ .* after a death"
    ):
        duly_test.kill_at_every_step(charging.draft(7), invariant=lambda: True)


def test_an_effect_that_a_death_prevents_for_good_is_told(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    def once(job: Job) -> None:
        if "sent" in shop.seen:
            return
        shop.seen.append("sent")
        job.step("between", lambda: None)
        with effect("mail"):
            pass

    with pytest.raises(AssertionError, match=r"effect mail did not happen in once, line \d+ after a death"):
        duly_test.kill_at_every_step(once.draft(), invariant=lambda: True, before=shop.seen.clear)


def test_repetitions_under_one_idempotency_key_are_no_second_effect(duly_test: DulyTest, shop: Shop) -> None:
    @shop.jobs.task
    def charge(job: Job) -> None:
        with effect("charge", idempotency_key=job.effect_key("charge")):
            pass

    assert duly_test.kill_at_every_step(charge.draft(), invariant=lambda: True) > 3
