"""Cases: ordering keys in transactions, chains of jobs of one key, and what is told and repaired of keys."""

from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.stores.protocol import Store

from .bench import HOUR, MINUTE, Bench, ended, new_job
from .expect import raises
from .lines import complete, rest, three

# Commits that come late


def a_job_whose_enqueue_commits_late_goes_before_what_was_enqueued_after_the_commit(bench: Bench) -> None:
    worker = bench.worker()
    late = _late_commit(bench, worker)
    after = bench.put(ordering_key="a")

    first = bench.start(worker, 10)
    order = [first[0].id, *complete(bench, worker, first[0])] if first else []

    assert order[:2] == [late, after]


def _late_commit(bench: Bench, worker: Incarnation) -> JobId:
    """Job 1 of a key becomes visible after job 2 has run; where one writer excludes all others, both in their turn."""
    alone = not bench.store.capabilities.shared_by_machines
    first, second = bench.another(), bench.another()
    block = first.transaction()
    connection = block.__enter__()
    (late,) = first.enqueue_on(connection, [new_job(ordering_key="a")])
    if alone:
        block.__exit__(None, None, None)
        return late.id
    early = _put(second, "a")
    (job,) = bench.start(worker, 10)
    assert job.id == early > late.id
    bench.end(worker, ended(job, Event.complete))
    block.__exit__(None, None, None)
    return late.id


def _put(store: Store, key: str) -> JobId:
    return store.jobs.enqueue([new_job(ordering_key=key)])[0].id


def a_job_of_a_rolled_back_enqueue_holds_no_key(bench: Bench) -> None:
    worker = bench.worker()
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.enqueue_on(connection, [new_job(ordering_key="a")])
        raise ZeroDivisionError
    id = bench.put(ordering_key="a")

    assert bench.start_ids(worker) == [id]


def serialised_enqueues_run_in_the_order_of_their_ids(bench: Bench) -> None:
    worker = bench.worker()
    with bench.store.transaction() as connection:
        first = bench.store.enqueue_on(connection, [new_job(ordering_key="a", serialise=True)])[0].id
    second = bench.put(ordering_key="a", serialise=True)

    assert rest(bench, worker) == [first, second]


# Completion in a caller's transaction


def a_completion_in_a_transaction_lets_its_key_go_on_with_the_commit(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(job, Event.complete))

    assert bench.start_ids(worker) == ids[1:2]


def a_completion_that_rolls_back_holds_its_key(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(job, Event.complete))
        raise ZeroDivisionError

    assert bench.start_ids(worker) == []
    assert complete(bench, worker, job) == ids[1:2]


def a_failure_in_a_transaction_holds_its_key(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(job, Event.fail, delay=MINUTE))

    assert bench.start_ids(worker) == []
    bench.pass_time(2 * MINUTE)
    assert rest(bench, worker) == ids


def a_successor_enqueued_with_the_completion_of_its_head_runs(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(ordering_key="a", then=(new_job(ordering_key="a", trigger="next"),))
    (job,) = bench.start(worker, 10)
    bench.end(worker, ended(job, Event.complete))
    (following,) = bench.followers("next")

    assert bench.start_ids(worker) == [following.id]


# Chains


def a_chain_takes_the_next_ones_of_a_key_in_order(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")

    claimed = bench.start(worker, 10, chain=3)

    assert [(job.id, job.follows) for job in claimed] == [(ids[0], False), (ids[1], True), (ids[2], True)]
    assert bench.start_ids(bench.worker(), chain=3) == []


def a_chain_takes_jobs_that_already_wait_behind_their_key(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    assert bench.states(ids[1:]) == [State.blocked] * 4

    claimed = bench.start(worker, 10, ends=[ended(job, Event.complete)], chain=3)

    assert [(job.id, job.follows) for job in claimed] == [(ids[1], False), (ids[2], True), (ids[3], True)]


def chained_jobs_count_in_what_was_asked(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")
    other = bench.put(ordering_key="b")

    claimed = bench.start_ids(worker, 2, chain=4)

    assert claimed == ids[:2]
    assert bench.start_ids(worker, 1) == [other]


def each_key_has_a_chain_of_its_own(bench: Bench) -> None:
    worker = bench.worker()
    a = bench.put_many(3, ordering_key="a")
    b = bench.put_many(3, ordering_key="b")

    claimed = bench.start(worker, 10, chain=2)

    by_key = {key: [(job.id, job.follows) for job in claimed if job.ordering_key == key] for key in "ab"}
    assert by_key == {"a": [(a[0], False), (a[1], True)], "b": [(b[0], False), (b[1], True)]}


def a_chain_that_has_run_lets_its_key_go_on(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")
    first, second = bench.start(worker, 10, chain=2)
    bench.end(worker, ended(first, Event.complete))
    assert bench.start_ids(worker) == []

    assert complete(bench, worker, second) == ids[2:3]
    bench.store.leases.retire(worker)
    assert rest(bench, bench.worker()) == ids[2:]


def a_chain_that_has_run_at_once_lets_its_key_go_on(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")
    claimed = bench.start(worker, 10, chain=3)
    ends = [ended(job, Event.complete) for job in claimed]

    again = bench.start(worker, 10, ends=ends, chain=3)

    assert [(job.id, job.follows) for job in again] == [(ids[3], False), (ids[4], True)]


def what_follows_a_failed_job_goes_back_behind_it(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(3, ordering_key="a")
    first, *others = bench.start(worker, 10, chain=3)
    bench.end(
        worker, ended(first, Event.fail, delay=MINUTE), *(ended(job, Event.interrupt) for job in others)
    )

    assert bench.start_ids(worker, chain=3) == []
    bench.pass_time(2 * MINUTE)
    assert bench.start_ids(worker, chain=3) == ids


def what_follows_a_dead_job_goes_back_behind_it(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(3, ordering_key="a")
    first, *others = bench.start(worker, 10, chain=3)
    bench.end(worker, ended(first, Event.bury), *(ended(job, Event.interrupt) for job in others))

    assert bench.start_ids(worker) == []
    bench.store.operator.purge(ids[:1], "ann", "broken")
    assert rest(bench, worker) == ids[1:]


def what_follows_a_dead_job_is_paused_with_its_key_and_no_longer(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", ordering="pause_key")])
    worker, ids = bench.worker(), three(bench)
    first, *others = bench.start(worker, 10, chain=3)
    back = [ended(job, Event.interrupt) for job in others]
    assert bench.start_ids(worker, ends=[ended(first, Event.bury), *back]) == []

    assert bench.store.control.resume_key("default", "", "a", "ann", "looked at")

    assert rest(bench, worker) == ids[1:]


def a_chain_stops_before_a_job_that_may_not_run_yet(bench: Bench) -> None:
    worker = bench.worker("ok")
    ids = bench.put_all([new_job(ordering_key="a", delay=delay) for delay in (None, HOUR, None)])
    more = bench.put_all([new_job(task, ordering_key="b") for task in ("ok", "mystery", "ok")])

    claimed = bench.start_ids(worker, chain=3)

    assert claimed == [ids[0], more[0]]


def a_chain_of_a_lost_worker_comes_back_in_order(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(3, ordering_key="a")
    bench.start(worker, 10, chain=2)
    bench.reap(worker)
    other = bench.worker()
    order: list[JobId] = []
    for _ in ids:
        started = bench.start(other, 10) + bench.start(other, 10, suspects=True)
        assert len(started) == 1
        order.append(started[0].id)
        bench.end(other, ended(started[0], Event.complete))

    assert order == ids


def a_chain_stops_before_a_task_that_its_worker_does_not_know(bench: Bench) -> None:
    knowing, ignorant = bench.worker("ok", "mystery"), bench.worker("ok")
    ids = bench.put_all([new_job(task, ordering_key="a") for task in ("ok", "mystery", "ok")])
    (job,) = bench.start(knowing, 10)
    bench.start(knowing, 10)
    assert bench.states(ids[1:]) == [State.blocked] * 2
    bench.end(knowing, ended(job, Event.interrupt))

    assert bench.start_ids(ignorant, chain=3) == ids[:1]


def a_chain_jumps_over_nobody(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.store.operator.cancel(ids[:1], "ann", "not needed")
    (second,) = bench.start(worker, 10)
    bench.end(worker, ended(second, Event.fail, delay=MINUTE))
    bench.store.operator.redrive(ids[:1], "ann", "needed")
    bench.pass_time(2 * MINUTE)

    (again,) = bench.start(worker, 10, chain=3)

    assert again.id == ids[1]
    bench.end(worker, ended(again, Event.complete))
    assert rest(bench, worker) == [ids[0], ids[2]]


# What is told of keys, and what is repaired


def keys_with_work_are_told_with_their_head(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(3, ordering_key="a", tenant="acme")
    bench.put(ordering_key="b")
    started = bench.start(worker, 10)

    first, second = bench.store.control.keys()

    assert (first.queue, first.tenant, first.key, first.waiting) == ("default", "acme", "a", 2)
    assert (first.head, first.state, first.paused) == (started[0].id, "running", False)
    assert (second.key, second.head, second.waiting) == ("b", started[1].id, 0)
    assert bench.store.control.keys("other") == []
    assert [record.key for record in bench.store.control.keys(most=1)] == ["a"]


def the_keys_of_a_queue_with_the_most_waiting_are_told_first(bench: Bench) -> None:
    for number in range(1, 7):
        bench.put_many(number, ordering_key=f"k{number}", queue="mail" if number % 2 else "sync")

    told = [(record.key, record.waiting) for record in bench.store.control.keys(None)]
    of_mail = [record.key for record in bench.store.control.keys("mail", most=2)]

    assert [key for key, _ in told] == ["k6", "k5", "k4", "k3", "k2", "k1"]
    assert [waiting - told[-1][1] for _, waiting in told] == [5, 4, 3, 2, 1, 0]
    assert of_mail == ["k5", "k3"]


def a_key_without_work_is_told_no_more(bench: Bench) -> None:
    worker, _ = bench.worker(), three(bench)
    rest(bench, worker)
    bench.sweep()

    assert bench.store.control.keys() == []


def a_key_whose_head_is_forgotten_goes_on_after_a_sweep(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.database.forget_heads()
    bench.end(worker, ended(job, Event.complete))
    bench.sweep()

    assert rest(bench, worker) == ids[1:]


def a_running_job_keeps_its_key_when_its_place_is_forgotten(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.database.forget_heads()
    bench.sweep()

    assert bench.start_ids(worker) == []
    assert complete(bench, worker, job) == ids[1:2]


def a_key_that_belongs_to_nobody_goes_on_after_a_sweep(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.database.mislead_heads()
    bench.end(worker, ended(job, Event.complete))
    bench.sweep()

    assert rest(bench, worker) == ids[1:]
