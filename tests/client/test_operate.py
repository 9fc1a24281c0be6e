"""The verbs of a person: who and why, one or many, and bulk acts that workers carry out at their rate."""

from __future__ import annotations

import socket
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import App, Filter, NotFound, State, UsageError
from duly.client.operations import Pace, advance
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import describe
from duly.core.job import JobId
from duly.stores.protocol import OperationRecord
from tests.client.conftest import Hands

ONCE = Policy(1, Backoff(), 10)


def state(jobs: App, id: JobId) -> State:
    return jobs.inspect.job(id).job.state


def make_dead(jobs: App, task: Any, hands: Hands, count: int) -> list[JobId]:
    ids = [answer.id for answer in jobs.enqueue_many(task.draft() for _ in range(count))]
    error = describe(ConnectionError("no route"))
    while claimed := hands.claim(500):
        hands.end(
            *(failed(job, Verdict("transient"), ONCE, 0.5, error, timedelta(seconds=1)) for job in claimed)
        )
    return ids


@pytest.fixture
def send(both: App) -> Any:
    @both.task
    def send() -> None: ...

    return send


@pytest.fixture
def hands(both: App) -> Hands:
    return Hands(both.store, "send")


def test_cancel_ends_a_waiting_job_with_author_and_reason(
    both: App, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ACTOR", "ada")
    enqueued = send.using(delay="1h").enqueue()

    act = both.operate.cancel(enqueued, reason="INC-311")

    job = both.inspect.job(enqueued.id).job
    assert (act.matched, act.moved, act.asked) == (1, (enqueued.id,), ())
    assert job.state is State.cancelled
    assert "INC-311" in (job.reason or "")


@pytest.mark.parametrize("verb", ["cancel", "redrive", "purge", "run_now", "reprioritise"])
def test_an_id_that_no_job_has_is_not_counted_whatever_the_verb(both: App, send: Any, verb: str) -> None:
    done = send.enqueue()
    both.operate.cancel(done)
    more = {"priority": 3} if verb == "reprioritise" else {}

    (nothing, one) = (
        getattr(both.operate, verb)(ids, reason="INC-311", **more) for ids in ([987_654], [done.id, 987_654])
    )

    assert (nothing.matched, nothing.moved) == (0, ())
    assert one.matched == 1
    if verb in {"cancel", "redrive", "purge"}:
        assert getattr(both.operate, verb)([987_654], dry_run=True).matched == 0


def test_an_id_that_no_job_has_is_not_counted_in_a_transaction_of_the_caller(both: App, send: Any) -> None:
    done, waiting = send.enqueue(), send.enqueue()
    both.operate.cancel(done)

    with both.transaction() as connection:
        act = both.operate.cancel([done, waiting, 987_654], reason="INC-311", connection=connection)

    assert (act.matched, act.moved) == (2, (waiting.id,))


def test_cancel_asks_a_running_job_to_stop(both: App, send: Any, hands: Hands) -> None:
    enqueued = send.enqueue()
    hands.claim()

    act = both.operate.cancel(enqueued.id)

    assert act.asked == (enqueued.id,)
    job = both.inspect.job(enqueued.id).job
    assert (job.state, job.cancel_wished) == (State.running, True)


def test_cancel_by_filter_meets_every_live_state_and_no_other(both: App, send: Any, hands: Hands) -> None:
    dead = make_dead(both, send, hands, 1)
    running = send.enqueue()
    hands.claim()
    ready, scheduled = send.enqueue(), send.using(delay="1h").enqueue()

    act = both.operate.cancel(Filter(task="send"), reason="flood")

    assert set(act.moved) == {running.id, ready.id, scheduled.id}
    assert act.asked == (running.id,)
    assert state(both, dead[0]) is State.dead


def test_the_actor_is_the_user_at_this_host_unless_said(jobs: App) -> None:
    assert jobs.operate.actor().endswith(f"@{socket.gethostname()}")


def test_an_act_on_more_than_one_job_needs_a_reason(both: App, send: Any) -> None:
    ids = [send.enqueue().id for _ in range(2)]

    for jobs in (ids, Filter(task="send")):
        with pytest.raises(UsageError, match="needs a reason"):
            both.operate.cancel(jobs)

    assert [state(both, id) for id in ids] == [State.ready, State.ready]


def test_a_dry_run_counts_and_changes_nothing(both: App, send: Any, hands: Hands) -> None:
    make_dead(both, send, hands, 3)
    waiting = [send.enqueue().id, send.using(delay="1h").enqueue().id]

    counted = [
        both.operate.redrive(Filter(), dry_run=True).matched,
        both.operate.redrive(Filter(), dry_run=True, first=2).matched,
        both.operate.cancel(Filter(), dry_run=True).matched,
        both.operate.cancel(waiting, dry_run=True).matched,
    ]

    assert counted == [3, 2, 2, 2]
    assert both.inspect.queue("default").counts.dead == 3
    assert state(both, waiting[0]) is State.ready


def test_a_redrive_runs_a_job_again_once_even_if_asked_twice(both: App, send: Any, hands: Hands) -> None:
    (id,) = make_dead(both, send, hands, 1)

    first, second = both.operate.redrive(id), both.operate.redrive(id)

    assert (first.moved, second.moved) == ((id,), ())
    job = both.inspect.job(id).job
    assert (job.state, job.counters.failed, job.run) == (State.ready, 0, 1)


def test_the_first_few_are_the_oldest(both: App, send: Any, hands: Hands) -> None:
    ids = make_dead(both, send, hands, 5)

    act = both.operate.redrive(Filter(task="send"), first=2, reason="try")

    assert act.moved == tuple(ids[:2])
    with pytest.raises(UsageError, match="bulk act"):
        both.operate.redrive(Filter(), first=1_000, reason="try")


def test_purge_deletes_dead_letters_only(both: App, send: Any, hands: Hands) -> None:
    (dead,) = make_dead(both, send, hands, 1)
    ready = send.enqueue().id

    act = both.operate.purge([dead, ready], reason="old")

    assert act.moved == (dead,)
    with pytest.raises(NotFound):
        both.inspect.job(dead)
    assert state(both, ready) is State.ready


def test_a_filter_for_jobs_the_verb_cannot_move_is_refused(jobs: App) -> None:
    with pytest.raises(UsageError, match="purge moves jobs that are dead"):
        jobs.operate.purge(Filter(state=State.ready), reason="x")
    with pytest.raises(UsageError, match="cancel moves"):
        jobs.operate.cancel(Filter(state=State.completed), reason="x")


def test_more_than_a_hundred_jobs_need_a_rate_and_become_an_operation(
    both: App, send: Any, hands: Hands
) -> None:
    ids = make_dead(both, send, hands, 130)

    with pytest.raises(UsageError, match=r"130 jobs: say how fast.*rate='max'"):
        both.operate.redrive(Filter(queue="default"), reason="INC-311")
    act = both.operate.redrive(Filter(queue="default"), rate="max", reason="INC-311")

    assert act.operation is not None
    assert (act.matched, act.moved, act.operation.total, act.operation.priority) == (130, (), 130, 200)
    assert both.inspect.queue("default").counts.dead == 130

    while both.inspect.operation(act.operation.id).state == "running":
        advance(both.store, 50)

    ended = both.inspect.operation(act.operation.id)
    assert (ended.state, ended.done, ended.skipped) == ("done", 130, 0)
    assert both.inspect.queue("default").counts.ready == 130
    assert both.inspect.job(ids[0]).job.priority == 200


def test_an_operation_leaves_out_jobs_that_came_later_or_moved_meanwhile(
    both: App, send: Any, hands: Hands
) -> None:
    ids = make_dead(both, send, hands, 120)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None
    both.operate.purge(ids[5], reason="gone")
    (later,) = make_dead(both, send, hands, 1)

    while both.inspect.operation(operation.id).state == "running":
        advance(both.store)

    ended = both.inspect.operation(operation.id)
    assert (ended.done, ended.skipped) == (119, 1)
    assert state(both, later) is State.dead


def test_an_operation_pauses_goes_on_and_is_cancelled(both: App, send: Any, hands: Hands) -> None:
    make_dead(both, send, hands, 120)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None

    paused = both.operate.pause_operation(operation.id)
    moved_while_paused = advance(both.store, 50)
    running = both.operate.resume_operation(operation.id)
    moved_after = advance(both.store, 50)
    cancelled = both.operate.cancel_operation(operation.id)
    moved_at_last = advance(both.store, 50)

    assert [paused.state, running.state, cancelled.state] == ["paused", "running", "cancelled"]
    assert [moved_while_paused, moved_after, moved_at_last] == [0, 50, 0]
    with pytest.raises(NotFound, match="under way"):
        both.operate.resume_operation(operation.id)


def test_workers_at_the_same_moment_move_each_job_once_and_count_it_once(
    both: App, send: Any, hands: Hands
) -> None:
    make_dead(both, send, hands, 300)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None
    moved: list[int] = []

    def work() -> None:
        while both.store.inspection.operations()[0].state == "running":
            moved.append(advance(both.store, 7))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    ended = both.inspect.operation(operation.id)
    assert sum(moved) == 300
    assert (ended.done, ended.skipped) == (300, 0)
    assert both.inspect.queue("default").counts.ready == 300


def test_what_a_dead_worker_reserved_is_moved_at_the_end(both: App, send: Any, hands: Hands) -> None:
    ids = make_dead(both, send, hands, 120)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None
    both.store.operator.advance_operation(operation.id, ids[89], 90, 0, False)

    while both.inspect.operation(operation.id).state == "running":
        advance(both.store, 50)

    ended = both.inspect.operation(operation.id)
    assert (ended.done, ended.skipped) == (120, 0)
    assert both.inspect.queue("default").counts.ready == 120


def test_a_job_that_dies_again_meanwhile_is_not_redriven_twice(both: App, send: Any, hands: Hands) -> None:
    make_dead(both, send, hands, 110)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None
    advance(both.store, 60)
    make_dead(both, send, hands, 0)

    while both.inspect.operation(operation.id).state == "running":
        advance(both.store, 60)

    counts = both.inspect.queue("default").counts
    assert (counts.ready, counts.dead) == (50, 60)


def test_an_operation_ends_though_a_letter_cannot_run_again(both: App, send: Any, hands: Hands) -> None:
    ids = make_dead(both, send, hands, 120)
    operation = both.operate.redrive(Filter(), rate="max", reason="INC-311").operation
    assert operation is not None
    asked = both.store.triage.asked(ids[3])
    assert asked is not None
    # Another job runs in its place: no redrive moves it any more.
    both.store.triage.edit(ids[3], asked, "ann", "typo")

    for _ in range(10):
        advance(both.store, 50)

    ended = both.inspect.operation(operation.id)
    assert (ended.state, ended.done, ended.skipped) == ("done", 119, 1)
    assert state(both, ids[3]) is State.dead


def operation(rate: float | None, done: int = 0) -> OperationRecord:
    return OperationRecord(
        id=1,
        verb="redrive",
        filter=Filter(),
        state="running",
        rate=rate,
        priority=None,
        done=done,
        skipped=0,
        total=1_000,
        by="ada",
        reason="x",
        created_at=datetime(2030, 1, 1, tzinfo=UTC),
    )


def test_a_rate_holds_for_all_workers_together() -> None:
    mine, others = Pace(), Pace()

    first = mine.allowed(operation(20), 1_000, 100.0)
    others.allowed(operation(20), 1_000, 100.0)
    after_a_second = mine.allowed(operation(20, done=1), 1_000, 101.0)
    # The other worker sees what this one has moved.
    for_the_other = others.allowed(operation(20, done=21), 1_000, 101.0)

    assert (first, after_a_second, for_the_other) == (1, 20, 0)


def test_a_pause_is_not_made_up_in_one_burst() -> None:
    pace = Pace()
    pace.allowed(operation(20), 1_000, 100.0)

    pace.forget_others(set())

    assert pace.allowed(operation(20, done=1), 1_000, 700.0) == 1
    assert pace.allowed(operation(20, done=2), 1_000, 900.0) == 1


def test_a_slow_rate_still_moves() -> None:
    pace = Pace()

    moved = []
    done = 0
    for second in range(25):
        allowed = pace.allowed(operation(0.1, done), 1_000, float(second))
        done += allowed
        moved.append(allowed)

    assert sum(moved) == 3


def test_without_a_rate_only_the_limit_counts() -> None:
    assert Pace().allowed(operation(None), 500, 0.0) == 500


def test_pause_and_resume_a_queue_and_a_task(both: App, send: Any, hands: Hands) -> None:
    send.enqueue()

    pause = both.operate.pause("default", lasting="30m", reason="INC-311")
    claimed_while_paused = hands.claim()
    (listed,) = both.inspect.pauses()
    resumed = [both.operate.resume("queue:default"), both.operate.resume("default")]

    assert (pause.target, pause.reason) == ("queue:default", "INC-311")
    assert listed == pause
    assert pause.until is not None
    assert claimed_while_paused == ()
    assert resumed == [True, False]
    assert len(hands.claim()) == 1
    assert both.operate.pause("task:send").target == "task:send"


@pytest.mark.parametrize(
    ("target", "told"),
    [("defualt", "did you mean 'default'"), ("task:sned", "did you mean 'send'"), ("job:1", "neither")],
)
def test_a_pause_of_what_nobody_knows_is_refused(jobs: App, target: str, told: str) -> None:
    @jobs.task
    def send() -> None: ...

    with pytest.raises((NotFound, UsageError), match=told):
        jobs.operate.pause(target)


def test_run_now_run_at_and_reprioritise(both: App, send: Any) -> None:
    later = send.using(delay="1h").enqueue()
    moment = datetime(2040, 1, 1, tzinfo=UTC)

    now = both.operate.run_now(later)
    after_now = state(both, later.id)
    at = both.operate.run_at([later.id], moment)
    urgent = both.operate.reprioritise(later.id, 1)

    job = both.inspect.job(later.id).job
    assert now.moved == at.moved == urgent.moved == (later.id,)
    assert after_now is State.ready
    assert (job.state, job.run_at, job.priority) == (State.scheduled, moment, 1)
    with pytest.raises(UsageError, match="tzinfo"):
        both.operate.run_at(later, datetime(2040, 1, 1))  # noqa: DTZ001 - the mistake itself
    with pytest.raises(UsageError, match="takes job ids"):
        both.operate.run_now(Filter())  # type: ignore[arg-type]


def test_a_worker_is_asked_to_drain(both: App, hands: Hands) -> None:
    both.operate.drain_worker(hands.incarnation)

    assert both.store.operator.draining([hands.incarnation]) == {hands.incarnation}
    with pytest.raises(NotFound, match="no worker 99"):
        both.operate.drain_worker(99)


@pytest.mark.asyncio
async def test_the_twins_do_the_same(both: App, send: Any) -> None:
    enqueued = await send.aenqueue()

    act = await both.operate.acancel(enqueued, reason="x")
    pause = await both.operate.apause("default", lasting="1m")

    assert act.moved == (enqueued.id,)
    assert pause.target == "queue:default"
