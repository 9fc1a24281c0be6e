"""The read model: counts, jobs by filter, dead groups, and what is said of a name that is not there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duly import App, Filter, NotFound, State, UsageError
from duly.client import selection
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import describe
from duly.core.job import AttemptRecord, JobId
from tests.client.conftest import Hands

ONCE = Policy(1, Backoff(), 10)


def fail(hands: Hands, error: Exception) -> None:
    for job in hands.claim():
        hands.end(failed(job, Verdict("transient"), ONCE, 0.5, describe(error), timedelta(seconds=1)))


def test_status_shows_every_declared_queue_with_its_owner_and_health(both: App) -> None:
    both.queue("mail", owner="growth@shop")

    @both.task(queue="mail")
    def send() -> None: ...

    for _ in range(3):
        send.enqueue()
    send.using(delay="1h").enqueue()

    status = both.inspect.status()

    rows = {row.counts.queue: row for row in status.queues}
    assert set(rows) == {"default", "mail"}
    assert rows["mail"].owner == "growth@shop"
    assert (rows["mail"].counts.ready, rows["mail"].counts.scheduled, rows["mail"].workers) == (3, 1, 0)
    assert "no worker serves it" in rows["mail"].health
    assert rows["default"].health == "idle"
    assert status.workers == 0
    assert status.now.utcoffset() == timedelta(0)


def test_a_worker_counts_for_the_queues_it_serves(both: App) -> None:
    both.queue("mail")
    Hands(both.store, "send", queues=("mail",))

    rows = {row.counts.queue: row.workers for row in both.inspect.queues()}

    assert rows == {"default": 0, "mail": 1}
    (worker,) = both.inspect.workers()
    assert worker.queues == ("mail",)


def test_one_job_comes_with_its_attempts(both: App) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    hands = Hands(both.store, "send")
    enqueued = send.enqueue(7)
    fail(hands, ConnectionError("no route"))

    detail = both.inspect.job(enqueued.id)

    assert both.inspect.job(enqueued) == both.inspect.job(detail.job) == detail
    assert detail.job.state is State.dead
    assert [attempt.error.message for attempt in detail.attempts if attempt.error] == ["no route"]


def test_a_job_is_never_shown_running_with_the_end_of_that_run(
    both: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    hands = Hands(both.store, "send")
    enqueued = send.enqueue(7)
    (claimed,) = hands.claim()
    ends = both.store.inspection.attempts

    def ends_meanwhile(id: JobId) -> list[AttemptRecord]:
        error = describe(ConnectionError("no route"))
        hands.end(failed(claimed, Verdict("transient"), ONCE, 0.5, error, timedelta(seconds=1)))
        return ends(id)

    with monkeypatch.context() as patched:
        patched.setattr(both.store.inspection, "attempts", ends_meanwhile)
        before = both.inspect.job(enqueued)
    after = both.inspect.job(enqueued)

    assert (before.job.state, before.attempts) == (State.running, ())
    assert (after.job.state, len(after.attempts)) == (State.dead, 1)


@pytest.mark.parametrize("id", [0, -1, 2**63, True, "7"])
def test_what_is_no_job_id_is_refused(jobs: App, id: Any) -> None:
    with pytest.raises(UsageError, match="no job id"):
        jobs.inspect.job(id)


def test_names_that_are_not_there_are_not_found(jobs: App) -> None:
    jobs.queue("reports")

    with pytest.raises(NotFound, match="no job 99"):
        jobs.inspect.job(99)
    with pytest.raises(NotFound, match=r"did you mean 'reports'\?"):
        jobs.inspect.queue("report")
    with pytest.raises(NotFound, match="no operation 3"):
        jobs.inspect.operation(3)


def test_jobs_are_listed_newest_first_in_pages(both: App) -> None:
    @both.task
    def send(number: int) -> None: ...

    ids = [answer.id for answer in both.enqueue_many(send.draft(number) for number in range(7))]

    first = both.inspect.jobs(limit=3)
    second = both.inspect.jobs(limit=3, before=first.next)
    third = both.inspect.jobs(limit=3, before=second.next)

    assert [job.id for page in (first, second, third) for job in page.jobs] == ids[::-1]
    assert third.next is None


def test_a_condition_on_arguments_filters_the_list(both: App) -> None:
    @both.task
    def send(customer_id: int, note: str) -> None: ...

    both.enqueue_many(send.draft(number % 50, "x" * 100) for number in range(1_000))

    page = both.inspect.jobs(Filter(where="args.customer_id = 7"), limit=30)

    assert len(page.jobs) == 20
    assert (page.next, page.searched_back_to) == (None, None)


def test_a_long_search_stops_and_says_how_far_it_went(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @jobs.task
    def send(customer_id: int) -> None: ...

    first = send.enqueue(7)
    jobs.enqueue_many(send.draft(number) for number in range(100, 1_300))
    monkeypatch.setattr(selection, "SEARCH_BUDGET", 0.0)

    pages = [jobs.inspect.jobs(Filter(where="args.customer_id = 7"), limit=1)]
    while pages[-1].next is not None:
        pages.append(jobs.inspect.jobs(Filter(where="args.customer_id = 7"), limit=1, before=pages[-1].next))

    assert pages[0].jobs == ()
    assert pages[0].searched_back_to is not None
    assert [job.id for page in pages for job in page.jobs] == [first.id]


def test_dead_letters_are_grouped_by_what_went_wrong(both: App) -> None:
    @both.task
    def send(number: int) -> None: ...

    hands = Hands(both.store, "send")
    for number in range(3):
        send.enqueue(number)
    fail(hands, ConnectionError("no route to 10.0.0.1"))
    send.enqueue(9)
    fail(hands, ValueError("bad address"))

    groups = both.inspect.dead_groups()

    assert [group.count for group in groups] == [3, 1]
    assert "no route" in groups[0].error
    assert [
        group.count for group in both.inspect.dead_groups(Filter(fingerprint=groups[1].fingerprint[:4]))
    ] == [1]
    with pytest.raises(UsageError, match="list the jobs"):
        both.inspect.dead_groups(Filter(where="args.number = 1"))


@pytest.mark.asyncio
async def test_the_twins_answer_the_same(both: App) -> None:
    @both.task
    def send() -> None: ...

    enqueued = await send.aenqueue()

    assert (await both.inspect.ajob(enqueued.id)).job.task == "send"
    assert [job.id for job in (await both.inspect.ajobs()).jobs] == [enqueued.id]
    assert len((await both.inspect.astatus()).queues) == len(await both.inspect.aqueues()) == 1
