"""Cases: unique keys in transactions of a caller, and between many who ask at once."""

from contextlib import suppress
from functools import partial

from duly.core.job import JobId, UniqueKey
from duly.core.lifecycle import Event, Outcome, State
from duly.stores.protocol import Store

from .bench import (
    Bench,
    beside,
    ended,
    new_job,
    together,
    unique,
)
from .expect import raises

QUEUED, LIVE = unique(), unique(live=True)
REPLACING = unique(replacing=True)


def a_unique_key_of_a_rolled_back_transaction_is_free(bench: Bench) -> None:
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.enqueue_on(connection, [new_job(unique=LIVE)])
        raise ZeroDivisionError

    stored = bench.ask(unique=LIVE)

    assert stored.outcome is Outcome.created
    assert bench.states([stored.id]) == [State.ready]


def a_replacement_that_rolls_back_replaced_nothing(bench: Bench) -> None:
    first = bench.put(unique=QUEUED)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.enqueue_on(connection, [new_job(unique=REPLACING)])[0].outcome is Outcome.created
        raise ZeroDivisionError

    assert bench.state(first) is State.ready
    bench.must_hold(first, QUEUED)
    assert bench.claim_one(bench.worker()).id == first


def many_who_take_one_key_at_once_get_one_job(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    for number in range(5):
        jobs = [new_job(unique=unique(f"k{number}", live=bool(number % 2)))]

        answers = together(*(partial(store.jobs.enqueue, jobs) for store in stores))

        assert len({one.id for answer in answers for one in answer}) == 1
        outcomes = sorted(one.outcome for answer in answers for one in answer)
        assert outcomes == [Outcome.created] + [Outcome.duplicate] * 3
    assert bench.store.inspection.counts()[0].ready == 5


def many_who_replace_at_once_leave_one_waiting(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]

    answers = together(*(partial(_replace_often, store) for store in stores))

    ids = sorted(id for answer in answers for id in answer)
    states = bench.states(ids)
    assert states.count(State.ready) == 1
    assert states.count(State.skipped) == len(ids) - 1


def _replace_often(store: Store) -> list[JobId]:
    return [store.jobs.enqueue([new_job(unique=REPLACING)])[0].id for _ in range(5)]


def a_key_taken_while_its_job_is_claimed_never_stands_for_nothing(bench: Bench) -> None:
    claimer = bench.another()
    for number in range(15):
        key = unique(f"k{number}")
        worker = bench.worker()
        first = bench.put(unique=key)

        stored, claimed = beside(
            partial(bench.store.jobs.enqueue, [new_job(unique=key)]),
            partial(bench.claim, worker, 1, store=claimer),
        )

        assert [job.id for job in claimed] in ([first], [])
        if stored[0].outcome is Outcome.duplicate:
            assert stored[0].id == first
        else:
            assert bench.state(first) is State.running
            assert bench.state(stored[0].id) is State.ready
        bench.store.leases.retire(worker)
        bench.store.operator.cancel([first, stored[0].id], "suite", "next round")


def a_duplicate_in_a_transaction_keeps_its_job_from_running_before_the_commit(bench: Bench) -> None:
    worker, other = bench.worker(), bench.another()
    id = bench.put(unique=QUEUED)

    with bench.store.transaction() as connection:
        stored = bench.store.enqueue_on(connection, [new_job(unique=QUEUED)])[0]
        seen = bench.claim(worker, 1, store=other) if bench.store.capabilities.shared_by_machines else ()

    assert (stored.id, stored.outcome) == (id, Outcome.duplicate)
    assert seen == ()
    assert bench.claim_one(worker).id == id


def an_end_never_waits_for_a_transaction_that_looks_at_its_key(bench: Bench) -> None:
    if not bench.store.capabilities.shared_by_machines:
        return
    worker, other = bench.worker(), bench.another()
    id = bench.put(unique=LIVE)
    claimed = bench.claim_one(worker)

    with bench.store.transaction() as connection:
        assert bench.store.enqueue_on(connection, [new_job(unique=LIVE)])[0].id == id
        acked = other.jobs.exchange(worker, [ended(claimed, Event.complete)], None).acked
        assert bench.state(id) is State.completed

    assert acked == {(id, 1)}
    stored = bench.ask(unique=LIVE)
    assert stored.outcome is Outcome.created
    bench.sweep()
    bench.must_hold(stored.id, LIVE)


def a_claim_never_waits_for_a_transaction_that_replaces(bench: Bench) -> None:
    if not bench.store.capabilities.shared_by_machines:
        return
    worker, other = bench.worker(), bench.another()
    replaced, free = bench.put(unique=QUEUED), bench.put()

    with bench.store.transaction() as connection:
        new = bench.store.enqueue_on(connection, [new_job(unique=REPLACING)])[0]
        seen = bench.claim(worker, 10, store=other)

    assert [job.id for job in seen] == [free]
    assert bench.state(replaced) is State.skipped
    assert bench.claim_one(worker).id == new.id


def an_uncommitted_key_is_waited_for(bench: Bench) -> None:
    for commit in (True, False):
        _take_beside(bench, bench.another(), unique(f"commit {commit}", live=True), commit=commit)


def _take_beside(bench: Bench, other: Store, key: UniqueKey, *, commit: bool) -> None:
    def first() -> JobId | None:
        with suppress(ZeroDivisionError), bench.store.transaction() as connection:
            id = bench.store.enqueue_on(connection, [new_job(unique=key)])[0].id
            if not commit:
                raise ZeroDivisionError
            return id
        return None

    mine, theirs = together(first, lambda: other.jobs.enqueue([new_job(unique=key)])[0].id)

    assert bench.state(theirs or JobId(0)) is State.ready
    assert mine in (theirs, None)
    bench.must_hold(theirs or JobId(0), key)
