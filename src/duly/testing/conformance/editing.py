"""Cases: what a redrive of dead letters would meet, and a job with edited arguments in the place of a dead one."""

from datetime import timedelta
from functools import partial
from typing import Unpack

from msgspec import json
from msgspec.structs import replace

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob
from duly.core.lifecycle import Event, Outcome, State
from duly.core.operating import RedriveOutlook, edited_note, successor_of
from duly.core.trace import edited_trigger

from .bench import BOOM, MINUTE, NO_SUCH_JOB, Bench, JobOptions, ended, new_job, together, unique


def _dead(bench: Bench, **options: Unpack[JobOptions]) -> JobId:
    id = bench.put(**options)
    worker = bench.worker()
    bench.end(worker, ended(bench.claim_one(worker), Event.bury, reason="broken", error=BOOM))
    assert bench.state(id) is State.dead
    return id


def _edited(bench: Bench, id: JobId, args: bytes = b'{"n":2}') -> NewJob:
    asked = bench.store.triage.asked(id)
    assert asked is not None
    return replace(asked, args=args, trigger=edited_trigger(id))


def a_redrive_is_foreseen(bench: Bench) -> None:
    assert bench.store.triage.outlook(Filter()) == RedriveOutlook(0)
    _dead(bench, priority=120, tenant="a", tags=("x",))
    died_at = bench.clock()
    bench.clock.advance(MINUTE)
    _dead(bench, priority=70, correlation_id="c")

    found = bench.store.triage.outlook(Filter(queue="default"))

    assert found == RedriveOutlook(2, died_at, 120)
    assert bench.store.triage.outlook(Filter(tenant="a", tag="x", task="ok")).count == 1
    assert bench.store.triage.outlook(Filter(correlation="c", fingerprint=BOOM.fingerprint[:4])).count == 1
    assert bench.store.triage.outlook(Filter(queue="elsewhere")) == RedriveOutlook(0)
    later = bench.clock() - timedelta(seconds=30)
    assert [bench.store.triage.outlook(one).count for one in (Filter(since=later), Filter(until=later))] == [
        1,
        1,
    ]


def live_twins_are_counted_before_a_redrive(bench: Bench) -> None:
    for key in "abc":
        _dead(bench, unique=unique(key, live=True))
    twin = bench.put(unique=unique("a", live=True))
    worker = bench.worker()
    bench.claim_one(worker)
    bench.put(unique=unique("b"))
    done = bench.put(unique=unique("c"))
    bench.store.operator.cancel([done], "ann", "not needed")

    found = bench.store.triage.outlook(Filter())

    assert bench.state(twin) is State.running
    assert (found.count, found.twins) == (3, 2)


def a_dead_letter_can_be_asked_for_with_all_that_it_carries(bench: Bench) -> None:
    follow = new_job("after", args=b'{"x":1}', queue="elsewhere")
    id = _dead(
        bench,
        args=b'{"n":1}',
        priority=7,
        tenant="a",
        tags=("x",),
        correlation_id="c",
        attempts=3,
        timeout=MINUTE,
        expires=10 * MINUTE,
        unique=unique("u", live=True, replacing=True),
        then=(follow,),
        on_dead=(replace(follow, task="other"),),
        ordering_key="k",
        blobs=("ref",),
        idempotency=b"0123456789abcdef",
    )

    asked = bench.store.triage.asked(id)

    assert asked is not None
    follows = [(one.task, one.args, one.queue) for one in (*asked.then, *asked.on_dead)]
    assert follows == [("after", b'{"x":1}', "elsewhere"), ("other", b'{"x":1}', "elsewhere")]
    assert replace(asked, then=(), on_dead=()) == new_job(
        args=b'{"n":1}',
        priority=7,
        tenant="a",
        tags=("x",),
        correlation_id="c",
        attempts=3,
        timeout=MINUTE,
        unique=unique("u", live=True),
        ordering_key="k",
        blobs=("ref",),
    )


def what_is_no_dead_letter_cannot_be_edited(bench: Bench) -> None:
    id = bench.put()

    assert bench.store.triage.asked(id) is None
    assert bench.store.triage.asked(NO_SUCH_JOB) is None
    assert bench.store.triage.edit(id, new_job(), "ann", "typo") is None
    assert bench.store.triage.edit(NO_SUCH_JOB, new_job(), "ann", "typo") is None
    assert [job.id for job in bench.store.inspection.page(Filter()).jobs] == [id]


def an_edited_job_runs_in_the_place_of_a_dead_letter(bench: Bench) -> None:
    id = _dead(bench, args=b'{"n":1}')
    other = _dead(bench)

    stored = bench.store.triage.edit(id, _edited(bench, id), "ann", "typo")

    assert stored is not None
    assert (stored.outcome, bench.state(stored.id)) == (Outcome.created, State.ready)
    new, old = bench.row(stored.id), bench.row(id)
    assert (new.args, new.trigger, new.correlation_id) == (b'{"n":2}', f"edited:{id}", str(id))
    assert (old.state, old.args, old.error) == (State.dead, b'{"n":1}', BOOM)
    assert (old.note, successor_of(old.note)) == (edited_note(stored.id), stored.id)
    (group,) = bench.store.inspection.dead_groups(Filter())
    assert (group.count, group.edited) == (2, 1)
    assert bench.store.triage.outlook(Filter()).count == 1
    entry = bench.store.audits.page(verb="edit")[0]
    assert (entry.target, entry.actor, entry.reason) == (f"job:{id}", "ann", "typo")
    assert json.decode(entry.detail) == {"successor": stored.id}
    assert bench.store.operator.redrive([id, other], "ann", "again") == [other]


def a_dead_letter_is_edited_once(bench: Bench) -> None:
    id = _dead(bench)
    job = _edited(bench, id)
    first = bench.store.triage.edit(id, job, "ann", "typo")

    assert first is not None
    assert bench.store.triage.edit(id, job, "bob", "typo, too") is None
    assert bench.store.triage.asked(id) is None
    assert bench.row(id).note == edited_note(first.id)


def many_who_edit_one_letter_make_one_job(bench: Bench) -> None:
    id = _dead(bench)
    job = _edited(bench, id)
    stores = [bench.another() for _ in range(4)]

    answers = together(*(partial(store.triage.edit, id, job, "ann", "typo") for store in stores))

    assert sum(answer is not None for answer in answers) == 1
    assert len(bench.store.inspection.page(Filter(state=State.ready)).jobs) == 1


def an_edit_or_a_redrive_runs_a_letter_again_but_not_both(bench: Bench) -> None:
    id = _dead(bench)
    job = _edited(bench, id)
    one, other = bench.another(), bench.another()

    answers = together(
        lambda: one.triage.edit(id, job, "ann", "typo") is not None,
        lambda: bool(other.operator.redrive([id], "bob", "again")),
    )

    assert sorted(answers) == [False, True]
    assert len(bench.store.inspection.page(Filter(state=State.ready)).jobs) == 1


def an_edit_whose_unique_key_is_taken_changes_nothing(bench: Bench) -> None:
    id = _dead(bench, unique=unique("u"))
    job = _edited(bench, id)
    twin = bench.put(unique=unique("u"))

    stored = bench.store.triage.edit(id, job, "ann", "typo")

    assert stored is not None
    assert (stored.outcome, stored.id) == (Outcome.duplicate, twin)
    assert bench.row(id).note is None
    assert bench.store.audits.page(verb="edit") == []
    assert bench.store.triage.asked(id) is not None


def an_edited_letter_can_be_purged(bench: Bench) -> None:
    id = _dead(bench)
    stored = bench.store.triage.edit(id, _edited(bench, id), "ann", "typo")

    assert bench.store.operator.purge([id], "ann", "seen") == [id]
    assert stored is not None
    assert bench.state(stored.id) is State.ready
