"""Cases with threads: two or more handles act at one moment, and every job still has exactly one story."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from duly.core.filters import Filter
from duly.core.job import ClaimedJob, Counters, JobId
from duly.core.leases import Beat
from duly.core.lifecycle import Event, State
from duly.stores.protocol import Store

from .bench import (
    BOOM,
    HOUR,
    MINUTE,
    POISON,
    SECOND,
    SWEEP_EVERY,
    Bench,
    beside,
    ended,
    together,
)

ROUNDS = 30
MOVES = 150
READS = 10_000
TOLD_TWICE = 50


def four_claimers_share_without_overlap(bench: Bench) -> None:
    workers = [bench.worker() for _ in range(4)]
    stores = [bench.another() for _ in workers]
    ids = bench.put_many(200)

    def drain(number: int) -> list[JobId]:
        taken: list[JobId] = []
        while claimed := bench.claim(workers[number], 7, store=stores[number]):
            taken += [job.id for job in claimed]
        return taken

    shares = together(*(partial(drain, number) for number in range(4)))

    # A claimer that meets only locked rows may see nothing for a moment: what is left is claimed now.
    taken = [id for share in shares for id in share] + [job.id for job in bench.claim(workers[0], 200)]
    assert sorted(taken) == ids


def eight_reapers_recover_each_job_once(bench: Bench) -> None:
    workers = [bench.worker() for _ in range(20)]
    ids = bench.put_many(200)
    for worker in workers:
        bench.claim(worker, 10)
    seen = bench.store.leases.beats()
    stores = [bench.another() for _ in range(8)]

    moved = together(*(partial(store.leases.reap, seen, POISON) for store in stores))

    # A reaper passes by what another one has locked; nothing may be left after one more round.
    assert sum(moved) + bench.store.leases.reap(seen, POISON) == 200
    assert [bench.row(id).counters for id in ids] == [Counters(lost=1)] * 200
    assert all([attempt.event for attempt in bench.history(id)] == [Event.lose] for id in ids)
    worker = bench.worker()
    again = [job.id for _ in range(250) for job in bench.claim(worker, 1, suspects=True)]
    assert sorted(again) == ids


def eight_promoters_move_each_job_once(bench: Bench) -> None:
    ids = bench.put_many(300, delay=MINUTE)
    bench.clock.advance(HOUR)
    stores = [bench.another() for _ in range(8)]

    moved = together(*(store.upkeep.promote for store in stores))

    assert sum(count for count, _ in moved) + bench.store.upkeep.promote()[0] == 300
    worker = bench.worker()
    assert sorted(job.id for job in bench.claim(worker, 500)) == ids


def eight_sweepers_take_each_job_back_once(bench: Bench) -> None:
    worker = bench.worker(timeout=SECOND)
    ids = bench.put_many(50)
    bench.claim(worker, 50)
    bench.clock.advance(SWEEP_EVERY)
    stores = [bench.another() for _ in range(8)]

    swept = together(*(partial(store.upkeep.sweep, HOUR, POISON, timedelta(0)) for store in stores))

    assert sum(one.overdue for one in swept) == 50
    assert [bench.row(id).counters for id in ids] == [Counters(lost=1)] * 50


def two_operators_who_redrive_at_once_move_each_job_once(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(50)
    bench.end(worker, *(ended(job, Event.bury, error=BOOM) for job in bench.claim(worker, 50)))
    stores = [bench.another() for _ in range(3)]

    moved = together(
        lambda: stores[0].operator.redrive(ids, "ann", "all"),
        lambda: stores[1].operator.redrive(ids[::-1], "bob", "all"),
        lambda: stores[2].operator.redrive([ids[7]], "eve", "that one"),
    )

    assert sorted(id for answer in moved for id in answer) == ids
    assert sorted(job.id for job in bench.claim(worker, 100)) == ids


def eight_workers_advance_an_operation_once(bench: Bench) -> None:
    bench.put_many(10)
    operation = bench.store.operator.start_operation("redrive", Filter(), None, None, 10, "ann", "fixed")
    stores = [bench.another() for _ in range(8)]

    won = together(
        *(partial(store.operator.advance_operation, operation.id, 7, 7, 0, False) for store in stores)
    )

    assert won.count(True) == 1
    assert bench.store.inspection.operations()[0].done == 7


def a_reap_beside_a_claim_strands_no_job(bench: Bench) -> None:
    reaper, claimer = bench.another(), bench.another()
    for _ in range(ROUNDS):
        _reap_beside_claim(bench, reaper, claimer)


def _reap_beside_claim(bench: Bench, reaper: Store, claimer: Store) -> None:
    worker = bench.worker()
    id = bench.put()
    seen = bench.beat_of(worker)

    claimed, _ = beside(
        lambda: bench.claim(worker, store=claimer), lambda: reaper.leases.reap([seen], POISON)
    )

    if bench.store.leases.beat([worker]):
        bench.reap(worker)
    state = bench.state(id)
    assert state is State.ready, f"claimed {claimed}, and now {state} without a worker"
    bench.store.operator.cancel([id], "suite", "next round")


def a_beat_beside_a_reap_has_one_winner(bench: Bench) -> None:
    reaper, beater = bench.another(), bench.another()
    for _ in range(ROUNDS):
        _held_beside_reap(bench, reaper, lambda _, seen: len(beater.leases.beat([seen.incarnation])))


def an_ack_beside_a_reap_has_one_winner(bench: Bench) -> None:
    reaper, acker = bench.another(), bench.another()

    def acknowledge(job: ClaimedJob, seen: Beat) -> int:
        return len(acker.jobs.exchange(seen.incarnation, [ended(job, Event.complete)], None).acked)

    for _ in range(ROUNDS):
        _held_beside_reap(bench, reaper, acknowledge)


def _held_beside_reap(bench: Bench, reaper: Store, act: Callable[[ClaimedJob, Beat], int]) -> None:
    worker = bench.worker()
    id = bench.put()
    job = bench.claim_one(worker)
    seen = bench.beat_of(worker)

    kept, moved = beside(lambda: act(job, seen), lambda: reaper.leases.reap([seen], POISON))

    assert kept + moved == 1, f"kept {kept}, reaped {moved}"
    assert (bench.state(id) is State.ready) == (moved == 1)
    bench.store.leases.retire(worker)
    bench.store.operator.cancel([id], "suite", "next round")


def a_cancel_beside_a_claim_leaves_no_doubt(bench: Bench) -> None:
    canceller, claimer = bench.another(), bench.another()
    for _ in range(ROUNDS):
        _cancel_beside_claim(bench, canceller, claimer)


def _cancel_beside_claim(bench: Bench, canceller: Store, claimer: Store) -> None:
    worker = bench.worker()
    id = bench.put()

    answer, claimed = beside(
        lambda: canceller.operator.cancel([id], "ann", "not needed"),
        lambda: bench.claim(worker, store=claimer),
    )

    if claimed:
        assert answer == {id: State.running}
        assert bench.row(id).cancel_wished
        bench.end(worker, ended(claimed[0], Event.complete))
    else:
        assert answer == {id: State.cancelled}
        assert bench.state(id) is State.cancelled


def a_cancel_beside_a_failing_end_never_lets_the_job_run_again(bench: Bench) -> None:
    canceller = bench.another()
    for _ in range(ROUNDS):
        _cancel_beside_failure(bench, canceller)


def _cancel_beside_failure(bench: Bench, canceller: Store) -> None:
    worker = bench.worker()
    id = bench.put()
    failing = ended(bench.claim_one(worker), Event.fail)

    answer, acked = beside(
        lambda: canceller.operator.cancel([id], "ann", "not needed"),
        lambda: bench.end(worker, failing),
    )

    assert acked == {(id, 1)}
    assert id in answer
    assert bench.state(id) is State.cancelled


def a_completion_that_is_sent_twice_at_once_is_acknowledged_twice(bench: Bench) -> None:
    """A reply was lost and the first call goes on, or a supervisor writes for a child whose call is in flight."""
    worker = bench.worker()
    others = [bench.another() for _ in range(2)]
    for _ in range(ROUNDS):
        # So many that each call is still at them when the other begins.
        ids = bench.put_many(TOLD_TWICE)
        ends = [ended(job, Event.complete, elapsed=SECOND) for job in bench.claim(worker, TOLD_TWICE)]

        answers = together(*(partial(other.jobs.exchange, worker, ends, None) for other in others))

        assert [answer.acked for answer in answers] == [{(id, 1) for id in ids}] * 2
        assert {bench.state(id) for id in ids} == {State.completed}


def no_lookup_sees_a_moving_job_nowhere_or_twice(bench: Bench) -> None:
    reader = bench.another()
    ids = bench.put_many(8)

    def read() -> list[State | None]:
        rows = reader.inspection.lookup(ids)
        assert [row.id for row in rows if row] == ids
        return [row.state if row else None for row in rows]

    seen = _while_moving(bench, read)

    assert {state for states in seen for state in states} <= {State.ready, State.running}
    assert len(seen) * len(ids) >= READS


def counts_never_see_a_moving_job_nowhere_or_twice(bench: Bench) -> None:
    reader = bench.another()
    bench.put_many(8)

    seen = _while_moving(bench, lambda: [count.ready + count.running for count in reader.inspection.counts()])

    assert [total for total in seen if total != [8]] == []


def _while_moving(bench: Bench, read: Callable[[], list[State | None] | list[int]]) -> list[list[object]]:
    """Read again and again while another handle moves the jobs from ready to running and back."""
    worker = bench.worker()
    mover = bench.another()
    over: list[bool] = []

    def move() -> None:
        try:
            for number in range(MOVES):
                claimed = bench.claim(worker, 1 + number % 8, store=mover)
                mover.jobs.exchange(worker, [ended(job, Event.interrupt) for job in claimed], None)
        finally:
            over.append(True)

    def watch() -> list[list[object]]:
        seen: list[list[object]] = [list(read())]
        while not over or len(seen) * 8 < READS:
            seen.append(list(read()))
        return seen

    _, seen = beside(move, watch)
    return seen
