"""Jobs carry the trace and the correlation id of what enqueues them, through every state, on every store."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App, Job
from duly.client.job import LocalPort, current
from duly.core.job import ClaimedJob, JobRecord
from duly.core.trace import parent_of, traceparent_of
from duly.telemetry import context
from tests.client.conftest import Hands

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def request_under_way() -> Iterator[None]:
    traced, correlated = context.traceparent.set(TRACE), context.correlation.set("order-7")
    yield
    context.traceparent.reset(traced)
    context.correlation.reset(correlated)


def test_a_job_of_a_traced_request_carries_it_to_its_handler(both: App, request_under_way: None) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    send.enqueue()
    both.enqueue_many([send.draft(), send.using(correlation_id="mine").draft()])

    handles = [_handle(hands, job) for job in hands.claim()]

    assert [handle.traceparent for handle in handles] == [TRACE] * 3
    assert [handle.correlation_id for handle in handles] == ["order-7", "order-7", "mine"]
    assert [handle.trigger for handle in handles] == [None] * 3


def test_an_enqueue_outside_of_any_request_stays_plain(both: App) -> None:
    @both.task
    def send() -> None: ...

    enqueued = send.enqueue()

    record = both.inspect.job(enqueued.id).job
    assert (record.trigger, record.correlation_id) == (None, str(enqueued.id))


def test_what_a_handler_enqueues_names_its_job_and_stays_in_the_trace(
    both: App, request_under_way: None
) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    parent = send.enqueue()
    (claimed,) = hands.claim()
    context.traceparent.set(None)
    context.correlation.set("another request's")
    inside = current.set(_handle(hands, claimed))
    child = send.enqueue()
    current.reset(inside)

    record = both.inspect.job(child.id).job
    assert traceparent_of(record.trigger) == TRACE
    assert parent_of(record.trigger) == parent.id
    assert record.correlation_id == "order-7"


def test_follow_ups_are_in_the_trace_of_their_parent(both: App, request_under_way: None) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    send.using(then=[send.draft()]).enqueue()
    (claimed,) = hands.claim()
    hands.complete(claimed)

    (follower,) = hands.claim()

    assert _handle(hands, follower).traceparent == TRACE
    assert follower.correlation_id == "order-7"


def test_a_schedule_stored_by_a_request_is_not_of_its_trace(both: App, request_under_way: None) -> None:
    @both.task
    def send() -> None: ...

    both.schedule("digest", send.draft(), every=timedelta(hours=1))

    (fired,) = (_record(both, id) for id in both.operate.run_schedule("digest"))
    assert fired.trigger is not None
    assert fired.trigger.startswith("schedule:digest@")


def _record(app: App, id: int) -> JobRecord:
    return app.inspect.job(id).job


def _handle(hands: Hands, job: ClaimedJob) -> Job:
    return Job.claimed(
        job, hands.incarnation, LocalPort(job.task, timedelta(minutes=1)), lambda value: (None, None)
    )
