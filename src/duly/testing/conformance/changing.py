"""Cases: what bounds jobs is declared anew, or set by a person, while jobs wait behind it."""

from duly.core.control import LimitPolicy, Ordering, TaskLimit
from duly.core.job import ClaimedJob, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy

from .bench import MINUTE, Bench, ended, new_job
from .lines import first_dies, key_record, rest

POISONOUS = {"where": "args.customer_id = 7"}
TAKES = tuple(TaskLimit("both", f"resource:{name}") for name in "ab")


def _declare_ordering(bench: Bench, ordering: Ordering) -> None:
    bench.declare(queues=[QueuePolicy("default", ordering=ordering)])


def _block(bench: Bench, **value: object) -> int:
    return bench.store.control.override("queue:default", "block", value, None, "ann", "poisonous").id


# Ordering keys


def a_dead_head_frees_its_key_once_its_queue_skips_the_dead(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    assert bench.start_ids(worker) == []

    _declare_ordering(bench, "skip_dead")
    bench.sweep()

    assert rest(bench, worker) == ids[1:]
    assert bench.state(ids[0]) is State.dead
    bench.store.operator.redrive(ids[:1], "ann", "fixed")
    assert rest(bench, worker) == ids[:1]


def a_key_that_was_paused_waits_for_a_person_though_its_queue_skips_the_dead(bench: Bench) -> None:
    worker, ids = first_dies(bench, "pause_key")

    _declare_ordering(bench, "skip_dead")
    bench.sweep()

    assert bench.start_ids(worker) == []
    record = key_record(bench)
    assert record is not None
    assert (record.head, record.state, record.waiting, record.paused) == (ids[0], "dead", 2, True)
    assert bench.store.control.resume_key("default", "", "a", "ann", "looked at")
    assert rest(bench, worker) == ids[1:]


def a_key_whose_queue_waits_for_the_dead_from_now_on_keeps_who_runs(bench: Bench) -> None:
    worker, ids = first_dies(bench, "skip_dead")
    (second,) = bench.start(worker, 10)

    _declare_ordering(bench, "wait")
    bench.sweep()
    bench.end(worker, ended(second, Event.bury))
    bench.sweep()

    assert bench.start_ids(worker) == []
    record = key_record(bench)
    assert record is not None
    assert (record.head, record.state) == (ids[1], "dead")


# Blocks


def a_job_behind_its_key_says_so_whatever_else_holds_it_back(bench: Bench) -> None:
    worker = bench.worker()
    args = b'{"customer_id":7}'
    ids = bench.put_all([new_job(ordering_key="a", args=args)] * 3)
    block = _block(bench, **POISONOUS)

    assert bench.start_ids(worker) == []
    bench.sweep()
    assert bench.start_ids(worker) == []
    assert [bench.row(id).waits_for for id in ids] == [f"block:{block}", "key", "key"]
    assert bench.store.control.lift(block, "ann", "fixed")
    assert rest(bench, worker) == ids


def a_blocked_job_stops_its_key_when_its_turn_has_come(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all(
        [new_job(ordering_key="a", args=b'{"customer_id":%d}' % customer) for customer in (8, 7, 8)]
    )
    block = _block(bench, **POISONOUS)

    (first,) = bench.start(worker, 10, chain=3)
    assert (first.id, bench.row(ids[1]).waits_for) == (ids[0], None if _ready(bench, ids[1]) else "key")
    assert bench.start_ids(worker, ends=[ended(first, Event.complete)]) == []
    assert [bench.row(id).waits_for for id in ids[1:]] == [f"block:{block}", "key"]
    assert bench.store.control.lift(block, "ann", "fixed")
    assert rest(bench, worker) == ids[1:]


def _ready(bench: Bench, id: JobId) -> bool:
    return bench.state(id) is State.ready


def a_block_names_a_task_a_tenant_and_a_tag_and_all_must_fit(bench: Bench) -> None:
    worker = bench.worker("ok", "other")
    ids = bench.put_all(
        [
            new_job("ok", tenant="acme", tags=("big", "late")),
            new_job("other", tenant="acme", tags=("big",)),
            new_job("ok", tenant="mini", tags=("big",)),
            new_job("ok", tenant="acme", tags=("late",)),
        ]
    )

    block = _block(bench, task="ok", tenant="acme", tag="big")

    assert bench.start_ids(worker) == ids[1:]
    assert bench.row(ids[0]).waits_for == f"block:{block}"


def a_block_is_told_before_a_limit(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", max_running=1), takes=[TaskLimit("ok", "task:ok")])
    worker = bench.worker()
    block = _block(bench, **POISONOUS)
    running, blocked = bench.put_all([new_job(args=b'{"customer_id":%d}' % customer) for customer in (8, 7)])

    assert bench.start_ids(worker) == [running]
    assert bench.row(blocked).waits_for == f"block:{block}"


# Limits


def an_override_bounds_a_task_for_which_nothing_is_declared(bench: Bench) -> None:
    worker = bench.worker("ok", "other")
    control = bench.store.control
    cap = control.override("task:ok", "limit", {"max_running": 1}, None, "ann", "slowly")
    ids = bench.put_many(3)
    other = bench.put("other")

    (first, free) = bench.start(worker, 10)
    assert [first.id, free.id] == [ids[0], other]
    assert bench.start_ids(worker) == []
    assert [bench.row(id).waits_for for id in ids[1:]] == ["task:ok"] * 2
    assert bench.running("task:ok") == 1
    (second,) = bench.start(worker, 10, ends=[ended(first, Event.complete)])
    assert second.id == ids[1]
    assert control.lift(cap.id, "ann", "enough")
    assert bench.start_ids(worker) == ids[2:]


def an_override_of_a_task_is_over_when_its_time_is(bench: Bench) -> None:
    worker = bench.worker()
    bench.store.control.override("task:ok", "limit", {"max_running": 0}, MINUTE, "ann", "not now")
    ids = bench.put_many(2)
    assert bench.start_ids(worker) == []

    bench.sweep()

    assert bench.start_ids(worker) == ids


def a_cap_that_is_removed_leaves_nothing_reserved(bench: Bench) -> None:
    worker, blocker, both = _waits_for_b_and_keeps_a(bench)

    # Nothing bounds how many may run with a any more.
    bench.declare(LimitPolicy("resource:a"), LimitPolicy("resource:b", max_running=1), takes=_takes())
    (job,) = bench.start(worker, 10, ends=[ended(blocker, Event.complete)])

    assert job.id == both
    assert (bench.running("resource:a"), bench.running("resource:b")) == (0, 1)


def a_cap_that_is_lowered_counts_what_is_reserved(bench: Bench) -> None:
    two_of_a = LimitPolicy("resource:a", max_running=2)
    bench.declare(two_of_a, *_policies()[1:], takes=_takes())
    worker = bench.worker("a", "b", "both")
    bench.put("a")
    bench.put("a")
    bench.put("b")
    first, second, of_b = sorted(bench.start(worker, 10), key=lambda job: job.task)
    both = bench.put("both")
    assert bench.start_ids(worker) == []
    bench.pass_time(2 * MINUTE)
    assert bench.start_ids(worker, ends=[ended(first, Event.complete)]) == []
    assert bench.running("resource:a") == 2

    bench.declare(*_policies(), takes=_takes())

    assert bench.start_ids(worker, ends=[ended(of_b, Event.complete)]) == []
    assert bench.start_ids(worker, ends=[ended(second, Event.complete)]) == [both]


def a_limit_that_a_task_takes_no_more_is_free_for_others(bench: Bench) -> None:
    worker, blocker, both = _waits_for_b_and_keeps_a(bench)
    waiting = bench.put("a")
    assert bench.start_ids(worker) == []

    bench.declare(*_policies(), takes=[one for one in _takes() if one != TaskLimit("both", "resource:a")])
    started = bench.start_ids(worker, ends=[ended(blocker, Event.complete)])

    assert sorted(started) == [both, waiting]
    assert (bench.running("resource:a"), bench.running("resource:b")) == (1, 1)


def _takes() -> list[TaskLimit]:
    return [*TAKES, TaskLimit("a", "resource:a"), TaskLimit("b", "resource:b")]


def _policies() -> list[LimitPolicy]:
    return [LimitPolicy(f"resource:{name}", max_running=1) for name in "ab"]


def _waits_for_b_and_keeps_a(bench: Bench) -> tuple[Incarnation, ClaimedJob, JobId]:
    """A job that has lost its patience: it has reserved a, and waits for b, which another one holds."""
    bench.declare(*_policies(), takes=_takes())
    worker = bench.worker("a", "b", "both")
    first, second = _both_taken(bench, worker)
    both = bench.put("both")
    assert bench.start_ids(worker) == []
    bench.pass_time(2 * MINUTE)
    assert bench.start_ids(worker, ends=[ended(first, Event.complete)]) == []
    assert bench.running("resource:a") == 1
    return worker, second, both


def _both_taken(bench: Bench, worker: Incarnation) -> tuple[ClaimedJob, ClaimedJob]:
    bench.put_all([new_job("a"), new_job("b")])
    by_task = {job.task: job for job in bench.start(worker, 10)}
    return by_task["a"], by_task["b"]
