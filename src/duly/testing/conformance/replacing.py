"""Cases: a job that takes the place of one which waits under its key, and versions of one key."""

from msgspec.structs import replace

from duly.core.defaults import KEEP_VERSIONS
from duly.core.job import Counters, JobId
from duly.core.lifecycle import Event, Outcome, State

from .bench import (
    DAY,
    MINUTE,
    SECOND,
    Bench,
    ended,
    new_job,
    unique,
)

QUEUED, LIVE = unique(), unique(live=True)
REPLACING = unique(replacing=True)


def a_replacing_job_takes_the_place_of_a_waiting_one(bench: Bench) -> None:
    worker = bench.worker()
    for key in (unique("q", replacing=True), unique("l", live=True, replacing=True)):
        first = bench.ask(args=b'{"a":1}', unique=key)

        second = bench.ask(args=b'{"a":2}', unique=key, delay=None)

        assert (first.outcome, second.outcome) == (Outcome.created, Outcome.created)
        row = bench.row(first.id)
        assert (row.state, row.reason) == (State.skipped, f"replaced by job {second.id}")
        bench.must_hold(second.id, replace(key, replace=False))
        assert [job.args for job in bench.claim(worker, 10)] == [b'{"a":2}']
        bench.store.leases.retire(worker)
        worker = bench.worker()
        bench.store.operator.cancel([second.id], "suite", "next")


def a_debounced_job_runs_once_after_the_last_request(bench: Bench) -> None:
    worker = bench.worker()
    ids = []
    for _ in range(4):
        ids.append(bench.put(unique=REPLACING, delay=MINUTE))
        bench.clock.advance(30 * SECOND)
        bench.store.upkeep.promote()
        assert bench.claim(worker, 10) == ()
    bench.clock.advance(MINUTE)
    bench.store.upkeep.promote()

    assert [job.id for job in bench.claim(worker, 10)] == [ids[-1]]
    assert bench.states(ids[:-1]) == [State.skipped] * 3


def a_blocked_job_and_one_that_waits_for_its_retry_are_replaced_too(bench: Bench) -> None:
    worker = bench.worker()
    blocked = bench.put("mystery", unique=unique("b"))
    bench.claim(worker, 1)
    retried = bench.put(unique=unique("r", live=True))
    bench.work(worker, Event.fail)

    new = bench.put_all(
        [
            new_job("mystery", unique=unique("b", replacing=True)),
            new_job(unique=unique("r", live=True, replacing=True)),
        ]
    )

    assert bench.states([blocked, retried]) == [State.skipped, State.skipped]
    assert [bench.row(id).reason for id in (blocked, retried)] == [f"replaced by job {id}" for id in new]
    assert [at.event for at in bench.history(retried)] == [Event.fail]


def a_running_job_is_not_replaced(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    bench.claim_one(worker)

    stored = bench.ask(unique=unique(live=True, replacing=True))

    assert (stored.id, stored.outcome) == (id, Outcome.duplicate)
    assert bench.state(id) is State.running


def a_replaced_job_can_be_redriven_when_the_key_is_free(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=REPLACING)
    bench.put(unique=REPLACING)
    assert bench.store.operator.redrive([first], "ann", "again") == []
    assert bench.state(first) is State.skipped
    bench.work(worker)

    assert bench.store.operator.redrive([first], "ann", "again") == [first]

    bench.must_hold(first, QUEUED)


def the_last_of_several_replacing_jobs_in_one_call_remains(bench: Bench) -> None:
    stored = bench.store.jobs.enqueue([new_job(unique=REPLACING) for _ in range(3)])

    ids = [one.id for one in stored]
    assert {one.outcome for one in stored} == {Outcome.created}
    assert bench.states(ids) == [State.skipped, State.skipped, State.ready]
    assert [bench.row(id).reason for id in ids[:2]] == [f"replaced by job {id}" for id in ids[1:]]


def a_newer_version_takes_the_place_of_an_older_one_that_waits(bench: Bench) -> None:
    older = bench.ask(unique=QUEUED, version=5, delay=MINUTE)

    newer = bench.ask(unique=QUEUED, version=6)
    within = bench.store.jobs.enqueue([new_job(unique=unique("w"), version=version) for version in (1, 3, 2)])

    assert newer.outcome is Outcome.created
    assert (bench.row(older.id).state, bench.row(older.id).reason) == (
        State.skipped,
        f"replaced by job {newer.id}",
    )
    bench.must_hold(newer.id, QUEUED)
    first, second, third = within
    assert [one.outcome for one in within] == [Outcome.created, Outcome.created, Outcome.duplicate]
    assert third.id == second.id
    assert bench.states([first.id, second.id]) == [State.skipped, State.ready]


def an_older_version_never_takes_the_place_of_a_newer_one_that_waits(bench: Bench) -> None:
    newer = bench.ask(unique=REPLACING, version=6)

    older = bench.ask(unique=REPLACING, version=5)
    same = bench.ask(unique=QUEUED, version=6)
    without = bench.ask(unique=QUEUED)

    assert {one.id for one in (older, same, without)} == {newer.id}
    assert {one.outcome for one in (older, same, without)} == {Outcome.duplicate}
    assert bench.state(newer.id) is State.ready
    again = bench.ask(unique=REPLACING, version=6)
    assert (again.outcome, bench.state(newer.id)) == (Outcome.created, State.skipped)


def a_running_job_of_an_older_version_is_not_replaced(bench: Bench) -> None:
    worker = bench.worker()
    older = bench.put(unique=LIVE, version=5)
    bench.claim_one(worker)

    newer = bench.ask(unique=LIVE, version=6)

    assert (newer.outcome, newer.id) == (Outcome.duplicate, older)


def _versioned(bench: Bench, version: int) -> JobId:
    return bench.put(unique=QUEUED, version=version)


def a_job_older_than_the_newest_completed_is_skipped_as_stale(bench: Bench) -> None:
    worker = bench.worker()
    older = _versioned(bench, 6)
    running = bench.claim_one(worker)
    newer = _versioned(bench, 7)
    bench.work(worker)
    bench.end(worker, ended(running, Event.fail))
    bench.store.operator.run_now([older], "ann", "now")
    plain = bench.put()

    claimed = bench.claim(worker, 1)

    assert [job.id for job in claimed] == [plain]
    row = bench.row(older)
    assert (row.state, row.reason, row.run) == (State.skipped, "stale", 1)
    assert row.counters == Counters(failed=1)
    assert bench.state(newer) is State.completed
    assert [at.event for at in bench.history(older)] == [Event.fail]


def a_stale_job_gives_its_key_back(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 7)
    bench.work(worker)
    stale = _versioned(bench, 6)
    assert bench.claim(worker, 10) == ()

    assert bench.row(stale).reason == "stale"
    bench.must_be_free(QUEUED)


def a_stale_job_that_may_not_run_yet_is_set_aside_like_any_other(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 7)
    bench.work(worker)
    stale = _versioned(bench, 6)
    bench.store.operator.pause("task:ok", None, "ann", "incident")
    assert bench.claim(worker, 10) == ()
    assert bench.state(stale) is State.blocked
    bench.store.operator.resume("task:ok", "ann", "over")
    bench.sweep()

    assert bench.claim(worker, 10) == ()
    assert bench.row(stale).reason == "stale"


def equal_and_newer_versions_run(bench: Bench) -> None:
    worker = bench.worker()
    for version in (7, 7, 8, 100):
        id = _versioned(bench, version)

        assert bench.work(worker) == id


def only_a_completion_makes_others_stale(bench: Bench) -> None:
    worker = bench.worker()
    for number, event in enumerate((Event.bury, Event.skip, Event.cancel)):
        _versioned(bench, 10 + number)
        bench.work(worker, event)

    id = _versioned(bench, 1)

    assert bench.work(worker) == id


def an_older_completion_does_not_bring_the_newest_version_back(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 5)
    older = bench.claim_one(worker)
    _versioned(bench, 9)
    bench.work(worker)
    bench.end(worker, ended(older, Event.complete))

    stale = _versioned(bench, 8)

    assert bench.claim(worker, 1) == ()
    assert bench.row(stale).reason == "stale"


def a_completion_in_a_transaction_counts_for_versions(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 9)
    claimed = bench.claim_one(worker)
    with bench.store.transaction() as connection:
        bench.store.complete_on(connection, worker, ended(claimed, Event.complete))
    stale = _versioned(bench, 8)

    assert bench.claim(worker, 1) == ()
    assert bench.row(stale).reason == "stale"


def versions_of_other_keys_and_none_are_never_stale(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 9)
    bench.work(worker)
    other = bench.put(unique=unique("other"), version=1)
    bench.work(worker)
    unversioned = bench.put(unique=QUEUED)

    assert bench.claim_one(worker).id == unversioned
    assert bench.state(other) is State.completed


def the_newest_version_is_remembered_after_its_job_is_gone(bench: Bench) -> None:
    worker = bench.worker()
    _versioned(bench, 9)
    bench.work(worker)
    bench.clock.advance(KEEP_VERSIONS - DAY)
    bench.retain()
    stale = _versioned(bench, 8)
    assert bench.claim(worker, 1) == ()
    assert bench.row(stale).reason == "stale"
    bench.clock.advance(2 * DAY)

    late = _versioned(bench, 8)

    assert bench.claim_one(worker).id == late
