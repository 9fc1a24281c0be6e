"""Waiting for a result: what comes back, and what is raised instead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from duly import (
    App,
    JobCancelled,
    JobDead,
    JobSkipped,
    NotFound,
    PayloadError,
    ResultTimeout,
    UsageError,
)
from duly.client.job import Job, LocalPort, current
from duly.core.backoff import Backoff
from duly.core.decide import Policy, raised
from duly.core.endings import Dead, Skip
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob, Token
from tests.client.conftest import Hands

POLICY = Policy(10, Backoff(), 10)


@dataclass
class Receipt:
    number: int


def end_with(hands: Hands, job: ClaimedJob, ending: Skip | Dead) -> None:
    hands.end(raised(job, ending, POLICY, 0.5, describe(ending), timedelta(seconds=1)))


def meanwhile(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_result_comes_back_as_its_annotation_says(both: App) -> None:
    @both.task
    def send(order_id: int) -> Receipt:
        return Receipt(order_id)

    hands = Hands(both.store, "send")
    enqueued = send.enqueue(7)

    def work() -> None:
        (job,) = hands.claim()
        data, note = send.handler.encode_result(Receipt(7))
        assert note is None
        hands.complete(job, data)

    worker = meanwhile(work)
    result = enqueued.result(timeout="10s")
    worker.join()

    assert result == Receipt(7)


@pytest.mark.asyncio
async def test_an_async_tasks_result_is_what_the_coroutine_returned(jobs: App) -> None:
    @jobs.task
    async def send(order_id: int) -> str:
        return "sent"

    hands = Hands(jobs.store, "send")
    enqueued = await send.aenqueue(7)
    (job,) = hands.claim()
    hands.complete(job, b'"sent"')

    assert await enqueued.aresult(timeout="10s") == "sent"


def test_nothing_returned_is_none(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    hands = Hands(jobs.store, "send")
    enqueued = send.enqueue()
    hands.complete(hands.claim()[0])

    assert enqueued.result(timeout="1s") is None


@pytest.mark.parametrize(
    ("ending", "error"),
    [(Dead("unknown account"), JobDead), (Skip("paid already"), JobSkipped)],
    ids=["dead", "skipped"],
)
def test_a_job_without_a_result_raises_which_state_and_why(
    both: App, ending: Any, error: type[Exception]
) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    enqueued = send.enqueue()
    end_with(hands, hands.claim()[0], ending)

    with pytest.raises(error, match=rf"job {enqueued.id} \(send\) is .*{ending.reason}") as caught:
        enqueued.result(timeout="1s")

    assert vars(caught.value)["reason"] == ending.reason


def test_a_cancelled_job_raises_that(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    enqueued = send.enqueue()
    jobs.operate.cancel(enqueued, reason="wrong order")

    with pytest.raises(JobCancelled, match="wrong order"):
        enqueued.result(timeout="1s")


def test_a_wait_that_is_over_says_where_the_job_stands(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    enqueued = send.enqueue()

    with pytest.raises(ResultTimeout, match=r"has not ended within 20ms: it is ready") as caught:
        enqueued.result(timeout="20ms")
    with pytest.raises(TimeoutError):
        enqueued.result(timeout="0s")

    assert caught.value.id == enqueued.id


@pytest.mark.parametrize("timeout", [5, None, "5"])
def test_the_time_to_wait_needs_a_unit(jobs: App, timeout: Any) -> None:
    @jobs.task
    def send() -> None: ...

    with pytest.raises(UsageError, match="timeout"):
        send.enqueue().result(timeout=timeout)


def test_a_job_that_is_no_longer_kept_is_not_found(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    hands = Hands(jobs.store, "send")
    enqueued = send.enqueue()
    end_with(hands, hands.claim()[0], Dead("no use"))
    jobs.operate.purge(enqueued, reason="old")

    with pytest.raises(NotFound, match="no longer kept"):
        enqueued.result(timeout="10s")


def test_a_job_of_a_transaction_that_was_rolled_back_is_not_found(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    with pytest.raises(ZeroDivisionError), jobs.transaction() as connection:
        enqueued = send.using(connection=connection).enqueue()
        raise ZeroDivisionError

    with pytest.raises(NotFound, match="rolled back"):
        enqueued.result(timeout="20ms")


def test_a_job_whose_transaction_commits_while_one_waits_is_found(jobs: App) -> None:
    @jobs.task
    def send() -> int:
        return 1

    hands = Hands(jobs.store, "send")

    with jobs.transaction() as connection:
        enqueued = send.using(connection=connection).enqueue()
    hands.complete(hands.claim()[0], b"1")

    assert enqueued.result(timeout="5s") == 1


def test_waiting_inside_a_handler_for_the_same_queue_is_refused(jobs: App) -> None:
    jobs.queue("mail")

    @jobs.task
    def send() -> int:
        return 1

    hands = Hands(jobs.store, "send")
    send.enqueue()
    (claimed,) = hands.claim()
    inside = Job(
        id=claimed.id,
        task="send",
        queue="default",
        port=LocalPort("test", timedelta(minutes=1)),
        encode=lambda _: (None, None),
        token=Token(hands.incarnation, claimed.id, claimed.run),
    )
    same, other = send.enqueue(), send.using(queue="mail").enqueue()
    reset = current.set(inside)

    with pytest.raises(UsageError, match="own queue 'default'"):
        same.result(timeout="10s")
    with pytest.raises(ResultTimeout):
        other.result(timeout="0s")

    current.reset(reset)


def test_a_result_that_does_not_fit_the_annotation_names_it(jobs: App) -> None:
    @jobs.task
    def send() -> int:
        return 1

    hands = Hands(jobs.store, "send")
    enqueued = send.enqueue()
    hands.complete(hands.claim()[0], b'"text"')

    with pytest.raises(PayloadError, match="result"):
        enqueued.result(timeout="1s")
