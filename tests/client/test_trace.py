"""The whole tree of a correlation id: who enqueued whom, what happened when, on every store."""

import pytest

from duly import App, Job, NotFound
from duly.client.job import LocalPort, current
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.durations import parse_duration
from duly.core.filters import Filter
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob
from duly.telemetry import context
from duly.testing import FakeClock
from tests.client.conftest import Hands

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECOND = parse_duration("1s", "second")


@pytest.fixture
def clock(both: App) -> FakeClock:
    both.close()
    both.client.clock = clock = FakeClock()
    return clock


def inside(hands: Hands, job: ClaimedJob) -> Job:
    return Job.claimed(job, hands.incarnation, LocalPort(job.task, SECOND), lambda value: (None, None))


def test_children_stand_below_the_job_whose_handler_enqueued_them(both: App, clock: FakeClock) -> None:
    @both.task
    def photo() -> None: ...

    hands = Hands(both.store, "photo")
    token = context.traceparent.set(TRACE)
    root = photo.enqueue()
    other = photo.using(correlation_id=str(root.id)).enqueue()
    context.traceparent.reset(token)
    clock.advance("1s")
    claimed = hands.claim()[0]
    clock.advance("1s")
    within = current.set(inside(hands, claimed))
    child = photo.enqueue()
    current.reset(within)
    clock.advance("500ms")
    hands.complete(claimed)

    found = both.inspect.trace(str(child.id))

    assert found.correlation_id == str(root.id)
    assert [(each.job.id, each.parent, each.depth) for each in found.jobs] == [
        (root.id, None, 0),
        (child.id, root.id, 1),
        (other.id, None, 0),
    ]
    assert [(moment.job, moment.text) for moment in found.moments] == [
        (root.id, "enqueued on default"),
        (other.id, "enqueued on default"),
        (other.id, "run 1 started"),
        (root.id, "run 1 started"),
        (child.id, f"enqueued on default by job {root.id}"),
        (root.id, "completed"),
    ]
    assert [moment.at for moment in found.moments] == sorted(moment.at for moment in found.moments)
    assert (found.unfinished, found.more) == (2, False)


def test_a_run_began_before_what_it_enqueued_however_late_its_end_was_heard_of(
    both: App, clock: FakeClock
) -> None:
    @both.task
    def photo() -> None: ...

    hands = Hands(both.store, "photo")
    token = context.traceparent.set(TRACE)
    root = photo.enqueue()
    context.traceparent.reset(token)
    (claimed,) = hands.claim()
    clock.advance("1s")
    within = current.set(inside(hands, claimed))
    photo.enqueue()
    current.reset(within)
    clock.advance("1m")
    hands.complete(claimed)

    texts = [moment.text for moment in both.inspect.trace(root.id).moments]

    assert texts == [
        "enqueued on default",
        "run 1 started",
        f"enqueued on default by job {root.id}",
        "completed",
    ]


def test_every_run_of_a_job_is_told_and_when_the_next_is_due(both: App, clock: FakeClock) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    send.using(correlation_id="order-7").enqueue()
    policy = Policy(attempts=3, backoff=both.client.backoff, max_interrupts=10)
    (claimed,) = hands.claim()
    clock.advance("3s")
    error = describe(ValueError("no route"))
    hands.end(failed(claimed, Verdict("transient"), policy, 0.5, error, 3 * SECOND))

    found = both.inspect.trace("order-7")

    assert [moment.text for moment in found.moments] == [
        "enqueued on default",
        "run 1 started",
        "run 1: fail, ValueError: no route",
        "due",
    ]
    assert found.moments[-1].what == "due"


def test_a_trigger_that_somebody_made_up_makes_nobody_his_own_ancestor(both: App) -> None:
    @both.task
    def send() -> None: ...

    made_up = send.using(correlation_id="c")
    first, second = both.enqueue_many([made_up.draft(), made_up.draft()])
    assert second.id == first.id + 1
    records = [both.inspect.job(one.id).job for one in (first, second)]

    found = both.inspect.trace("c")

    assert [each.job.id for each in found.jobs] == [record.id for record in records]


def test_a_number_that_is_no_job_may_still_be_a_correlation_id(both: App) -> None:
    @both.task
    def send() -> None: ...

    enqueued = send.using(correlation_id="999999").enqueue()

    assert [each.job.id for each in both.inspect.trace("999999").jobs] == [enqueued.id]
    for nothing in ("nobody", "123456789", "9" * 30, "٣"):
        with pytest.raises(NotFound, match="nothing is kept"):
            both.inspect.trace(nothing)


def test_a_jobs_own_number_finds_it_among_those_that_carry_it(both: App) -> None:
    @both.task
    def send() -> None: ...

    root = send.enqueue()
    for _ in range(5):
        send.enqueue()
    members = [send.using(correlation_id=str(root.id)).enqueue().id for _ in range(5)]
    wanted = [root.id, *members]

    filter = Filter(correlation=str(root.id))
    oldest: list[int] = []
    after: int | None = 0
    while after is not None:
        page = both.store.inspection.page(filter, after=after, limit=2)
        oldest += [job.id for job in page.jobs]
        after = page.next
    newest = [job.id for job in both.inspect.jobs(filter, limit=100).jobs]

    assert oldest == wanted
    assert newest == wanted[::-1]
