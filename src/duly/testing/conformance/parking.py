"""Cases: jobs set aside because nobody here knows their task, or because a person paused something; and suspects."""

from duly.core.job import Counters
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import DAY, HOUR, MINUTE, SECOND, SWEEP_EVERY, Bench, ended, new_job


def a_job_of_an_unknown_task_is_set_aside_at_no_cost(bench: Bench) -> None:
    worker = bench.worker("ok")
    id = bench.put("mystery")

    claimed = bench.claim(worker, 10)

    assert claimed == ()
    row = bench.row(id)
    assert (row.state, row.run, row.counters) == (State.blocked, 0, Counters())
    assert bench.history(id) == []


def a_job_of_an_unknown_task_does_not_stop_those_behind_it(bench: Bench) -> None:
    worker = bench.worker("ok")
    bench.put_many(30, "mystery")
    known = bench.put_many(2)

    claimed = [job.id for _ in range(40) for job in bench.claim(worker, 1)]

    assert claimed == known


def parked_tasks_names_each_unknown_task_once(bench: Bench) -> None:
    worker = bench.worker("ok")
    assert bench.store.upkeep.parked_tasks() == ()
    bench.put_all([new_job("a"), new_job("b"), new_job("a"), new_job("ok")])
    bench.claim(worker, 10)

    assert sorted(bench.store.upkeep.parked_tasks()) == ["a", "b"]


def tasks_parked_by_a_pause_are_not_named_as_unknown(bench: Bench) -> None:
    bench.store.operator.pause("task:ok", None, "ann", "incident")
    bench.put()
    bench.claim(bench.worker(), 10)

    assert bench.store.upkeep.parked_tasks() == ()


def a_worker_that_knows_a_parked_task_takes_its_jobs_first(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("ok", "mystery")
    parked = bench.put_many(3, "mystery")
    bench.claim(ignorant, 10)
    fresh = bench.put()

    claimed = bench.claim(knowing, 10, unparked=("mystery",))

    assert [job.id for job in claimed] == [*parked, fresh]
    assert bench.states(parked) == [State.running] * 3
    assert bench.store.upkeep.parked_tasks() == ()


def parked_jobs_taken_count_in_what_was_asked(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("ok", "mystery")
    parked = bench.put_many(3, "mystery")
    bench.claim(ignorant, 10)
    bench.put_many(3)

    claimed = bench.claim(knowing, 2, unparked=("mystery",))

    assert [job.id for job in claimed] == parked[:2]
    assert bench.state(parked[2]) is State.blocked


def parked_jobs_are_taken_only_from_queues_the_worker_asks_for(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("ok", "mystery")
    id = bench.put("mystery", queue="other")
    bench.claim(ignorant, 10, queues=("other",))

    assert bench.claim(knowing, 10, unparked=("mystery",)) == ()
    assert bench.state(id) is State.blocked


def a_claim_that_names_no_parked_task_leaves_them_parked(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("ok", "mystery")
    id = bench.put("mystery")
    bench.claim(ignorant, 10)

    assert bench.claim(knowing, 10) == ()
    assert bench.state(id) is State.blocked


def a_task_known_again_is_parked_no_more(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("mystery")
    first = bench.put("mystery")
    bench.claim(ignorant, 10)
    second = bench.put("mystery")

    claimed = bench.claim(knowing, 1, unparked=("mystery",)) + bench.claim(knowing, 1)

    assert [job.id for job in claimed] == [first, second]


def a_paused_queue_gives_nothing_and_keeps_its_jobs_ready(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    assert bench.claim(worker, 10) == ()
    assert bench.state(id) is State.ready


def a_pause_of_one_queue_leaves_the_others(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    other = bench.put(queue="other")
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    claimed = bench.claim(worker, 10, queues=("default", "other"))

    assert [job.id for job in claimed] == [other]


def a_resumed_queue_gives_its_jobs_in_their_order(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(3)
    bench.store.operator.pause("queue:default", None, "ann", "incident")
    bench.claim(worker, 10)
    bench.store.operator.resume("queue:default", "ann", "over")

    assert [job.id for job in bench.claim(worker, 10)] == ids


def a_pause_for_a_time_ends_by_itself(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.store.operator.pause("queue:default", MINUTE, "ann", "incident")

    bench.clock.advance(59 * SECOND)
    assert bench.claim(worker, 10) == ()

    bench.clock.advance(2 * SECOND)
    assert bench.claim_one(worker).id == id


def a_paused_queue_lets_running_jobs_end(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}


def a_paused_queue_still_takes_jobs(bench: Bench) -> None:
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    assert bench.state(bench.put()) is State.ready


def jobs_of_a_paused_task_are_set_aside_at_no_cost(bench: Bench) -> None:
    worker = bench.worker("ok", "slow")
    slow = bench.put("slow")
    other = bench.put()
    bench.store.operator.pause("task:slow", None, "ann", "incident")

    claimed = [job.id for _ in range(3) for job in bench.claim(worker, 2)]

    assert claimed == [other]
    row = bench.row(slow)
    assert (row.state, row.run, row.counters) == (State.blocked, 0, Counters())


def a_job_of_a_task_both_paused_and_unknown_counts_as_paused(bench: Bench) -> None:
    worker = bench.worker("ok")
    id = bench.put("mystery")
    bench.store.operator.pause("task:mystery", None, "ann", "r")

    assert bench.claim(worker, 1) == ()

    assert bench.store.upkeep.parked_tasks() == ()
    bench.clock.advance(DAY)
    bench.sweep()
    assert bench.state(id) is State.blocked


def jobs_of_a_resumed_task_come_back_with_the_sweep(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(3)
    bench.store.operator.pause("task:ok", None, "ann", "incident")
    bench.claim(worker, 10)
    assert bench.states(ids) == [State.blocked] * 3
    bench.store.operator.resume("task:ok", "ann", "over")

    swept = bench.sweep()

    assert swept.unparked == 3
    assert [job.id for job in bench.claim(worker, 10)] == ids


def jobs_of_a_task_whose_pause_has_run_out_come_back_with_the_sweep(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.store.operator.pause("task:ok", SWEEP_EVERY + SECOND, "ann", "incident")
    bench.claim(worker, 10)
    assert bench.sweep().unparked == 0

    assert bench.sweep().unparked == 1
    assert bench.claim_one(worker).id == id


def jobs_of_a_paused_task_are_never_abandoned(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.store.operator.pause("task:ok", None, "ann", "incident")
    bench.claim(worker, 10)
    bench.store.leases.retire(worker)
    bench.clock.advance(30 * DAY)

    assert bench.sweep().abandoned == 0
    assert bench.state(id) is State.blocked


def a_parked_job_that_no_worker_knows_goes_dead_in_the_end(bench: Bench) -> None:
    worker = bench.worker("ok")
    id = bench.put("mystery", args=b'{"a":1}')
    bench.claim(worker, 10)
    bench.clock.advance(HOUR)

    assert bench.sweep(unknown_after=HOUR).abandoned == 1

    row = bench.row(id)
    assert (row.state, row.args, row.run) == (State.dead, b'{"a":1}', 0)
    assert row.reason is not None
    assert "mystery" in row.reason


def a_parked_job_waits_its_whole_time_first(bench: Bench) -> None:
    worker = bench.worker("ok")
    bench.clock.advance(DAY)
    id = bench.put("mystery")
    bench.clock.advance(DAY)
    bench.claim(worker, 10)
    bench.clock.advance(HOUR - SWEEP_EVERY - SECOND)

    assert bench.sweep(unknown_after=HOUR).abandoned == 0
    assert bench.state(id) is State.blocked


def a_parked_job_that_a_live_worker_knows_is_not_abandoned(bench: Bench) -> None:
    ignorant = bench.worker("ok")
    bench.worker("mystery")
    id = bench.put("mystery")
    bench.claim(ignorant, 10)
    bench.clock.advance(DAY)

    assert bench.sweep(unknown_after=HOUR).abandoned == 0
    assert bench.state(id) is State.blocked


def a_parked_job_past_its_expiry_is_skipped(bench: Bench) -> None:
    worker = bench.worker("ok")
    id = bench.put("mystery", expires=MINUTE)
    bench.claim(worker, 10)

    assert bench.sweep().expired == 1

    row = bench.row(id)
    assert (row.state, row.reason) == (State.skipped, "expired")


def an_expired_parked_job_is_not_handed_out(bench: Bench) -> None:
    ignorant, knowing = bench.worker("ok"), bench.worker("mystery")
    id = bench.put("mystery", expires=MINUTE)
    bench.claim(ignorant, 10)
    bench.clock.advance(HOUR)

    assert bench.claim(knowing, 10, unparked=("mystery",)) == ()

    bench.sweep()
    assert bench.state(id) is State.skipped


def a_parked_job_keeps_its_counters_and_its_run(bench: Bench) -> None:
    knowing, ignorant = bench.worker("ok"), bench.worker("other")
    id = bench.put()
    claimed = bench.claim_one(knowing)
    bench.end(knowing, ended(claimed, Event.snooze))
    bench.clock.advance(MINUTE)
    bench.store.upkeep.promote()
    bench.claim(ignorant, 1)
    assert bench.state(id) is State.blocked

    again = bench.claim(knowing, 1, unparked=("ok",))[0]

    assert (again.run, again.counters) == (2, Counters(snoozed=1))


def a_job_with_a_loss_is_a_suspect_and_claimed_only_as_such(bench: Bench) -> None:
    worker = bench.worker()
    suspect = bench.put()
    bench.lose_once(suspect)
    good = bench.put()

    assert [job.id for job in bench.claim(worker, 10)] == [good]
    assert [job.id for job in bench.claim(worker, 10, suspects=True)] == [suspect]


def a_claim_of_suspects_gives_no_other_jobs(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    assert bench.claim(worker, 10, suspects=True) == ()
    assert bench.state(id) is State.ready


def a_suspect_stays_one_through_a_retry(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.lose_once(id)
    claimed = bench.claim_one(worker, suspects=True)
    bench.end(worker, ended(claimed, Event.fail))
    bench.clock.advance(MINUTE)
    bench.store.upkeep.promote()

    assert bench.claim(worker, 10) == ()
    assert bench.claim_one(worker, suspects=True).counters == Counters(failed=1, lost=1)


def a_suspect_stays_one_through_an_interrupt_and_a_new_priority(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.lose_once(id)
    bench.end(worker, ended(bench.claim_one(worker, suspects=True), Event.interrupt))
    bench.store.operator.reprioritise([id], 1, "ann", "urgent")

    assert bench.claim(worker, 10) == ()
    assert bench.claim_one(worker, suspects=True).priority == 1


def a_suspect_stays_one_through_parking(bench: Bench) -> None:
    knowing, ignorant = bench.worker(), bench.worker("other")
    id = bench.put()
    bench.lose_once(id)
    bench.claim(ignorant, 10, suspects=True)
    assert bench.state(id) is State.blocked

    assert bench.claim(knowing, 10, unparked=("ok",)) == ()
    assert [job.id for job in bench.claim(knowing, 1, suspects=True, unparked=("ok",))] == [id]


def a_redriven_suspect_is_no_suspect_any_more(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.lose_once(id)
    bench.end(worker, ended(bench.claim_one(worker, suspects=True), Event.bury))
    bench.store.operator.redrive([id], "ann", "fixed")

    assert bench.claim_one(worker).counters == Counters()


def a_paused_queue_pauses_its_suspects_too(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.lose_once(id)
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    assert bench.claim(worker, 10, suspects=True) == ()
    assert bench.state(id) is State.ready


def a_suspect_counts_as_ready_in_its_own_queue(bench: Bench) -> None:
    id = bench.put()
    bench.lose_once(id)

    counts = bench.store.inspection.counts()

    assert [(count.queue, count.ready) for count in counts] == [("default", 1)]
    assert bench.row(id).queue == "default"
    assert bench.row(id).enqueued_at == NOON


def a_parked_job_is_claimed_in_a_lane_that_many_have_left(bench: Bench) -> None:
    worker = bench.worker()
    parked = bench.put("mystery")
    bench.claim(worker, 1)
    bench.put_many(1_200)
    for _ in range(3):
        bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 400)))
    waiting = bench.put()

    claimed = bench.claim(bench.worker("ok", "mystery"), 10, unparked=("mystery",))

    assert [job.id for job in claimed] == [parked, waiting]
