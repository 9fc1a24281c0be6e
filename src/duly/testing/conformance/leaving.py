"""Cases: who leaves the line of an ordering key, and what a dead head does to those behind it."""

from duly.core.lifecycle import Event, Outcome, State

from .bench import DAY, HOUR, MINUTE, Bench, ended, new_job, unique
from .lines import complete, first_dies, key_record, rest, three

# Who leaves the line


def a_cancelled_head_lets_its_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(ordering_key="a", delay=HOUR)
    second = bench.put(ordering_key="a")
    assert bench.start_ids(worker) == []
    bench.store.operator.cancel([first], "ann", "not needed")

    assert bench.start_ids(worker) == [second]


def a_head_cancelled_in_a_transaction_lets_its_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(ordering_key="a", delay=HOUR)
    second = bench.put(ordering_key="a")
    assert bench.start_ids(worker) == []
    with bench.store.transaction() as connection:
        bench.store.cancel_on(connection, [first], "ann", "not needed")

    assert bench.start_ids(worker) == [second]


def a_running_head_that_is_cancelled_lets_its_key_go_on_when_it_ends(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.store.operator.cancel(ids[:1], "ann", "not needed")

    assert bench.start_ids(worker) == []
    assert [one.id for one in bench.start(worker, 10, ends=[ended(job, Event.fail)])] == ids[1:2]
    assert bench.state(ids[0]) is State.cancelled


def a_cancelled_job_behind_the_head_leaves_the_line(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    (job,) = bench.start(worker, 10)
    bench.store.operator.cancel(ids[1:2], "ann", "not needed")

    assert bench.start_ids(worker) == []
    assert complete(bench, worker, job) == ids[2:]


def an_expired_head_lets_its_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(ordering_key="a", expires=MINUTE)
    second = bench.put(ordering_key="a")
    bench.clock.advance(2 * MINUTE)

    assert bench.start_ids(worker) == [second]
    assert bench.state(first) is State.skipped


def an_expired_job_behind_the_head_leaves_the_line(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(ordering_key="a", expires=expires) for expires in (None, MINUTE, None)])
    (job,) = bench.start(worker, 10)
    bench.sweep()
    assert bench.states(ids) == [State.running, State.skipped, State.blocked]

    assert complete(bench, worker, job) == ids[2:]


def a_stale_head_lets_its_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    newer = bench.put(unique=unique(), version=2)
    assert bench.work(worker) == newer
    stale = bench.put(unique=unique(), version=1, ordering_key="a")
    second = bench.put(ordering_key="a")

    assert bench.start_ids(worker) == [second]
    assert bench.state(stale) is State.skipped


def a_replaced_head_lets_its_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    key = unique(replacing=True)
    bench.put(unique=key, ordering_key="a")
    second = bench.put(ordering_key="a")
    last = bench.put(unique=key, ordering_key="a")

    assert rest(bench, worker) == [second, last]


def a_replaced_head_that_others_wait_behind_lets_them_go_on(bench: Bench) -> None:
    worker = bench.worker()
    key = unique(replacing=True)
    bench.put(unique=key, ordering_key="a", delay=HOUR)
    second = bench.put(ordering_key="a")
    assert bench.start_ids(worker) == []
    last = bench.put(unique=key, ordering_key="a", delay=HOUR)

    assert bench.start_ids(worker) == [second]
    assert bench.states([second, last]) == [State.running, State.scheduled]


def a_replaced_job_behind_the_head_leaves_the_line(bench: Bench) -> None:
    worker = bench.worker()
    key = unique(replacing=True)
    first = bench.put(ordering_key="a")
    bench.put(unique=key, ordering_key="a")
    third = bench.put(ordering_key="a")
    assert bench.start_ids(worker, 1) == [first]
    bench.start(worker, 10)
    last = bench.put(unique=key, ordering_key="a")
    bench.store.leases.retire(worker)

    assert rest(bench, bench.worker()) == [first, third, last]


def a_duplicate_takes_no_place_in_a_line(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=unique(), ordering_key="a")
    assert bench.ask(unique=unique(), ordering_key="a").outcome is Outcome.duplicate
    second = bench.put(ordering_key="a")

    assert rest(bench, worker) == [first, second]


# Dead heads


def a_dead_head_holds_its_key(bench: Bench) -> None:
    worker, ids = first_dies(bench, None)

    assert bench.start_ids(worker) == []
    bench.sweep()
    assert bench.start_ids(worker) == []
    assert bench.states(ids) == [State.dead, State.blocked, State.blocked]
    record = key_record(bench)
    assert record is not None
    assert (record.head, record.state, record.waiting, record.paused) == (ids[0], "dead", 2, False)


def a_purged_dead_head_lets_its_key_go_on(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    bench.store.operator.purge(ids[:1], "ann", "broken")

    assert rest(bench, worker) == ids[1:]


def a_dead_head_that_retention_deletes_lets_its_key_go_on(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    bench.store.upkeep.announce_dead({}, 30 * DAY, 40 * DAY)
    bench.clock.advance(60 * DAY)
    while bench.store.upkeep.retain({}, {}, 90 * DAY, 30 * DAY):
        pass

    assert bench.states(ids[:1]) == [None]
    assert rest(bench, worker) == ids[1:]


def a_redriven_dead_head_runs_first(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    bench.store.operator.redrive(ids[:1], "ann", "fixed")

    assert rest(bench, worker) == ids


def a_redriven_dead_head_may_die_again(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    bench.store.operator.redrive(ids[:1], "ann", "fixed")
    bench.work(worker, Event.bury)

    assert bench.start_ids(worker) == []
    bench.store.operator.redrive(ids[:1], "ann", "really")
    assert rest(bench, worker) == ids


def resuming_a_key_leaves_its_dead_head_behind(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")

    assert bench.store.control.resume_key("default", "", "a", "ann", "go on")

    assert rest(bench, worker) == ids[1:]
    assert bench.state(ids[0]) is State.dead


def a_key_that_does_not_wait_cannot_be_resumed(bench: Bench) -> None:
    worker, ids = bench.worker(), three(bench)
    control = bench.store.control

    assert not control.resume_key("default", "", "nobody", "ann", "go on")
    assert not control.resume_key("default", "", "a", "ann", "go on")
    bench.start(worker, 10)
    assert not control.resume_key("default", "", "a", "ann", "go on")
    assert bench.start_ids(worker) == []
    assert bench.states(ids[1:]) == [State.blocked] * 2


def a_key_may_leave_its_dead_behind(bench: Bench) -> None:
    worker, ids = first_dies(bench, "skip_dead")

    assert rest(bench, worker) == ids[1:]
    assert bench.state(ids[0]) is State.dead


def a_job_left_behind_takes_its_place_again_when_it_is_redriven(bench: Bench) -> None:
    worker, ids = first_dies(bench, "skip_dead")
    (second,) = bench.start(worker, 10)
    bench.store.operator.redrive(ids[:1], "ann", "fixed")

    assert bench.start_ids(worker) == []
    bench.end(worker, ended(second, Event.complete))
    assert rest(bench, worker) == [ids[0], ids[2]]


def dead_jobs_of_a_key_that_are_redriven_together_run_one_at_a_time(bench: Bench) -> None:
    worker, ids = first_dies(bench, "skip_dead")
    bench.work(worker, Event.bury)
    assert bench.store.operator.redrive(ids[:2], "ann", "fixed") == ids[:2]
    bench.store.operator.run_now(ids, "ann", "now")

    order = rest(bench, worker)

    assert sorted(order) == ids
    # The third may already have been let go on when the others came back.
    assert [id for id in order if id != ids[2]] == ids[:2]


def a_key_may_wait_for_a_person_after_a_death(bench: Bench) -> None:
    worker, ids = first_dies(bench, "pause_key")

    bench.sweep()
    assert bench.start_ids(worker) == []
    record = key_record(bench)
    assert record is not None
    assert record.paused
    assert bench.store.control.resume_key("default", "", "a", "ann", "go on")
    assert rest(bench, worker) == ids[1:]


def a_paused_key_waits_for_a_person_even_without_its_dead_head(bench: Bench) -> None:
    worker, ids = first_dies(bench, "pause_key")
    bench.store.operator.purge(ids[:1], "ann", "broken")

    assert bench.start_ids(worker) == []
    bench.sweep()
    assert bench.start_ids(worker) == []
    assert bench.store.control.resume_key("default", "", "a", "ann", "go on")
    assert not bench.store.control.resume_key("default", "", "a", "ann", "again")
    assert rest(bench, worker) == ids[1:]


def a_redriven_head_of_a_paused_key_runs_first_when_the_key_is_resumed(bench: Bench) -> None:
    worker, ids = first_dies(bench, "pause_key")
    bench.store.operator.redrive(ids[:1], "ann", "fixed")

    assert bench.start_ids(worker) == []
    assert bench.store.control.resume_key("default", "", "a", "ann", "go on")
    assert rest(bench, worker) == ids


def a_paused_key_stops_no_other(bench: Bench) -> None:
    worker, _ = first_dies(bench, "pause_key")
    other = bench.put(ordering_key="b")

    assert bench.start_ids(worker) == [other]


def a_job_enqueued_behind_a_dead_head_waits(bench: Bench) -> None:
    worker, ids = first_dies(bench, "wait")
    last = bench.put(ordering_key="a")

    assert bench.start_ids(worker) == []
    bench.store.operator.redrive(ids[:1], "ann", "fixed")
    assert rest(bench, worker) == [*ids, last]
