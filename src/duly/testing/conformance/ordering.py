"""Cases: ordering keys. One job of a key at a time, in the order of their ids, whatever becomes of the first."""

from duly.core.lifecycle import Event, State

from .bench import DAY, HOUR, MINUTE, SECOND, Bench, ended, new_job
from .lines import complete, rest, three


def one_job_of_a_key_runs_at_a_time(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)

    assert bench.start_ids(worker) == ids[:1]
    assert bench.start_ids(worker) == []
    assert bench.start_ids(bench.worker()) == []
    assert bench.states(ids) == [State.running, State.blocked, State.blocked]


def jobs_of_a_key_run_in_the_order_of_their_ids(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(12, ordering_key="a")

    assert rest(bench, worker) == ids
    assert bench.states(ids) == [State.completed] * 12


def an_end_lets_the_next_of_its_key_go_in_the_same_exchange(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (first,) = bench.start(worker, 10)

    assert complete(bench, worker, first) == ids[1:2]


def an_end_of_one_worker_lets_the_next_go_to_another(bench: Bench) -> None:
    one, other = bench.worker(), bench.worker()
    ids = three(bench)
    (first,) = bench.start(one, 10)
    assert bench.start_ids(other) == []
    bench.end(one, ended(first, Event.complete))

    assert bench.start_ids(other) == ids[1:2]
    assert bench.start_ids(one) == []


def keys_run_beside_each_other(bench: Bench) -> None:
    worker = bench.worker()
    keys = "abcabcabc"
    ids = bench.put_all([new_job(ordering_key=key) for key in keys])

    first = bench.start(worker, 10)

    assert [job.id for job in first] == ids[:3]
    assert [job.ordering_key for job in first] == ["a", "b", "c"]
    assert complete(bench, worker, first[1]) == [ids[4]]


def jobs_without_a_key_are_held_up_by_none(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(ordering_key=key) for key in ("a", "a", None, "a", None)])

    assert bench.start_ids(worker) == [ids[0], ids[2], ids[4]]


def one_busy_key_stops_no_other(bench: Bench) -> None:
    worker = bench.worker()
    hot = bench.put_many(300, ordering_key="hot")
    assert bench.start_ids(worker, 1) == hot[:1]
    cool = bench.put_all([new_job(ordering_key=f"cool {number}") for number in range(20)])

    claimed = bench.start_ids(worker, 10) + bench.start_ids(worker, 10)

    assert claimed == cool


def a_key_counts_within_its_queue_and_tenant(bench: Bench) -> None:
    worker = bench.worker()
    scopes = [("default", ""), ("default", "acme"), ("default", "beta"), ("other", ""), ("default", "acme")]
    ids = bench.put_all([new_job(queue=queue, tenant=tenant, ordering_key="a") for queue, tenant in scopes])

    claimed = bench.start_ids(worker, queues=("default", "other"))

    assert sorted(claimed) == ids[:4]


def tasks_share_the_keys_of_their_queue(bench: Bench) -> None:
    worker = bench.worker("ok", "other")
    first = bench.put("ok", ordering_key="a")
    bench.put("other", ordering_key="a")

    assert bench.start_ids(worker) == [first]


def a_job_behind_its_key_costs_no_attempt(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (first,) = bench.start(worker, 10)
    bench.start(worker, 10)

    row = bench.row(ids[1])
    assert (row.state, row.waits_for, row.run, row.ordering_key) == (State.blocked, "key", 0, "a")
    assert bench.history(ids[1]) == []
    bench.end(worker, ended(first, Event.complete))
    assert bench.start(worker, 1)[0].run == 1
    assert bench.row(ids[1]).waits_for is None


def a_job_tells_its_key_wherever_it_is_read(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(ordering_key="customer 7")

    claimed = bench.start(worker)[0]

    assert (claimed.ordering_key, claimed.follows) == ("customer 7", False)
    assert bench.row(id).ordering_key == "customer 7"
    bench.end(worker, ended(claimed, Event.complete))
    assert bench.row(id).ordering_key == "customer 7"


# What may not choose among jobs of one key


def priority_does_not_choose_among_jobs_of_a_key(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(ordering_key="a", priority=priority) for priority in (100, 1, 50)])

    assert rest(bench, worker) == ids


def a_new_priority_does_not_choose_among_jobs_of_a_key(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.store.operator.reprioritise(ids[1:], 1, "ann", "urgent")

    assert rest(bench, worker) == ids


def priority_chooses_among_keys(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(ordering_key="a")
    urgent = bench.put(ordering_key="b", priority=1)

    assert bench.start_ids(worker, 1) == [urgent]


def a_delayed_head_delays_its_key(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(ordering_key="a", delay=HOUR)
    second = bench.put(ordering_key="a")
    other = bench.put(ordering_key="b")

    assert bench.start_ids(worker) == [other]
    assert bench.states([first, second]) == [State.scheduled, State.blocked]
    bench.pass_time(HOUR + SECOND)
    assert rest(bench, worker) == [first, second]


def a_delay_behind_the_head_delays_what_comes_after_it(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(ordering_key="a", delay=delay) for delay in (None, HOUR, None)])

    assert rest(bench, worker) == ids[:1]
    bench.pass_time(HOUR + SECOND)
    assert rest(bench, worker) == ids[1:]


def jobs_of_a_key_that_come_due_out_of_order_run_in_order(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(ordering_key="a", delay=delay) for delay in (HOUR, MINUTE, 2 * MINUTE)])

    bench.pass_time(10 * MINUTE)
    assert rest(bench, worker) == []
    bench.pass_time(HOUR)
    assert rest(bench, worker) == ids


def a_head_put_off_by_a_person_delays_its_key(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.store.operator.run_at(ids[:1], bench.clock() + DAY, "ann", "later")

    assert rest(bench, worker) == []
    bench.store.operator.run_now(ids[:1], "ann", "now")
    assert rest(bench, worker) == ids


# Through everything that can become of the head


def a_retry_of_the_head_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    order = []
    for _ in range(2):
        (job,) = bench.start(worker, 10)
        order.append(job.id)
        bench.end(worker, ended(job, Event.fail, delay=30 * SECOND))
        assert bench.start_ids(worker) == []
        bench.pass_time(31 * SECOND)

    assert order + rest(bench, worker) == [ids[0], ids[0], *ids]


def a_snooze_of_the_head_delays_its_key(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.end(worker, ended(job, Event.snooze, delay=HOUR))

    assert rest(bench, worker) == []
    bench.pass_time(HOUR + SECOND)
    assert rest(bench, worker) == ids


def an_interrupted_head_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)

    claimed = bench.start(worker, 10, ends=[ended(job, Event.interrupt)])

    assert [(one.id, one.run) for one in claimed] == [(ids[0], 2)]


def a_head_whose_worker_is_reaped_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.start(worker, 10)
    bench.reap(worker)
    other = bench.worker()

    assert bench.start_ids(other) == []
    (again,) = bench.start(other, 10, suspects=True)
    assert (again.id, again.run) == (ids[0], 2)
    bench.end(other, ended(again, Event.complete))
    assert rest(bench, other) == ids[1:]


def a_head_whose_child_has_died_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.store.leases.disown(worker, [(job.id, job.run)], "killed", 3)
    other = bench.worker()

    assert bench.start_ids(other) == []
    assert bench.start_ids(other, suspects=True) == ids[:1]


def a_head_of_a_worker_that_retires_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.start(worker, 10)
    bench.store.leases.retire(worker)

    assert rest(bench, bench.worker()) == ids


def a_head_whose_workers_row_is_gone_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    bench.start(worker, 10)
    bench.database.forget_worker(worker)
    other = bench.worker()

    assert bench.start_ids(other) == []
    bench.sweep()
    assert bench.start_ids(other) == []
    assert bench.start_ids(other, suspects=True) == ids[:1]


def a_head_past_its_deadline_goes_before_its_successors(bench: Bench) -> None:
    worker, ids = bench.worker(timeout=MINUTE), three(bench)
    bench.start(worker, 10)
    bench.sweep()

    assert bench.start_ids(bench.worker()) == []
    assert bench.start_ids(worker, suspects=True) == ids[:1]


def a_head_that_dies_as_poison_is_dead_like_any_other(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.store.leases.disown(worker, [(job.id, job.run)], "killed", 1)
    other = bench.worker()

    assert bench.state(ids[0]) is State.dead
    assert bench.start_ids(other) == []
    bench.store.operator.purge(ids[:1], "ann", "poison")
    assert rest(bench, other) == ids[1:]


def a_skipped_head_lets_its_key_go_on(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)

    claimed = bench.start(worker, 10, ends=[ended(job, Event.skip)])

    assert [one.id for one in claimed] == ids[1:2]


def a_head_of_a_task_that_nobody_knows_holds_its_key(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("ok", "mystery")
    first = bench.put("mystery", ordering_key="a")
    second = bench.put(ordering_key="a")

    assert bench.start_ids(ignorant) == []
    assert bench.start_ids(knowing, unparked=("mystery",)) == [first]
    assert bench.start_ids(ignorant) == []
    bench.store.leases.retire(knowing)
    assert bench.states([first, second]) == [State.ready, State.blocked]


def parked_jobs_of_one_key_are_taken_up_one_at_a_time(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("mystery")
    ids = bench.put_many(3, "mystery", ordering_key="a")
    bench.start(ignorant, 10)

    (job,) = bench.start(knowing, 10, unparked=("mystery",))
    assert job.id == ids[0]
    (job,) = bench.start(knowing, 10, ends=[ended(job, Event.complete)], unparked=("mystery",))
    assert job.id == ids[1]


def a_head_of_a_paused_task_holds_its_key(bench: Bench) -> None:
    worker = bench.worker("ok", "slow")
    first = bench.put("slow", ordering_key="a")
    second = bench.put(ordering_key="a")
    bench.store.operator.pause("task:slow", None, "ann", "incident")
    assert bench.start_ids(worker) == []
    bench.store.operator.resume("task:slow", "ann", "over")
    bench.sweep()

    assert rest(bench, worker) == [first, second]
