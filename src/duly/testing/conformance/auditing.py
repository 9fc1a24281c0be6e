"""Cases: every act leaves an entry that says who, what and why; seals show whether entries were touched since."""

from functools import partial

from msgspec import json

from duly.core.audit_chain import GENESIS
from duly.core.control import TenantPlan
from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.operating import AuditEntry

from .batches import cancel_batch, open_batch
from .bench import BOOM, HOUR, MINUTE, SECOND, Bench, ended, new_job, together
from .expect import raises


def _last(bench: Bench) -> AuditEntry:
    entries = bench.store.audits.page(limit=1)
    assert entries, "the act has left no entry"
    return entries[0]


def _said(bench: Bench) -> list[tuple[str, str]]:
    """The verb and the target of every entry, oldest first."""
    return [(entry.verb, entry.target) for entry in reversed(bench.store.audits.page())]


def _act(bench: Bench, count: int = 1) -> list[int]:
    return [
        bench.store.audits.append("export", f"queue:q{number}", "ann", "asked for") for number in range(count)
    ]


def _bury(bench: Bench, count: int) -> list[JobId]:
    worker = bench.worker()
    ids = bench.put_many(count)
    bench.end(worker, *(ended(job, Event.bury, error=BOOM) for job in bench.claim(worker, count)))
    return ids


def an_act_leaves_an_entry_that_says_who_what_and_why(bench: Bench) -> None:
    id = bench.put()

    bench.store.operator.cancel([id], "ann", "a wrong address")

    entry = _last(bench)
    assert (entry.actor, entry.verb, entry.target) == ("ann", "cancel", f"job:{id}")
    assert (entry.reason, entry.at) == ("a wrong address", bench.clock())
    assert json.decode(entry.detail) == {"jobs": 1, "ids": [id]}


def an_act_on_several_jobs_names_them(bench: Bench) -> None:
    ids = _bury(bench, 3)

    bench.store.operator.redrive(ids, "ann", "fixed")

    entry = _last(bench)
    detail = json.decode(entry.detail)
    assert (entry.verb, entry.target, detail["jobs"]) == ("redrive", "", 3)
    assert sorted(detail["ids"]) == sorted(ids)


def acts_that_moved_no_job_leave_no_entry(bench: Bench) -> None:
    id = bench.put()

    bench.store.operator.redrive([id], "ann", "again")
    bench.store.operator.purge([id], "ann", "away")
    bench.store.operator.resume("queue:default", "ann", "it was not paused")

    assert _said(bench) == []


def every_act_on_jobs_leaves_its_entry(bench: Bench) -> None:
    dead, other = _bury(bench, 2)
    later = bench.put(delay=HOUR)
    act, later_is = bench.store.operator, f"job:{later}"

    act.run_at([later], bench.clock() + MINUTE, "ann", "sooner")
    act.reprioritise([later], 5, "ann", "urgent")
    act.run_now([later], "ann", "now")
    act.purge([dead], "ann", "useless")
    act.redrive([other], "ann", "fixed")

    assert _said(bench) == [
        ("run_at", later_is),
        ("reprioritise", later_is),
        ("run_now", later_is),
        ("purge", f"job:{dead}"),
        ("redrive", f"job:{other}"),
    ]


def acts_on_queues_and_tenants_leave_their_entries(bench: Bench) -> None:
    store = bench.store
    store.operator.pause("queue:default", None, "ann", "an outage")
    store.operator.resume("queue:default", "ann", "over")
    store.control.set_plan(TenantPlan("acme", 3), "ann", "sold")
    override = store.control.override("queue:default", "limit", {"max_running": 1}, None, "ann", "slowly")
    store.control.lift(override.id, "ann", "over")
    store.control.hold("resource:api", MINUTE, "ann", "they asked")

    assert _said(bench) == [
        ("pause", "queue:default"),
        ("resume", "queue:default"),
        ("plan", "acme"),
        ("limit", "queue:default"),
        ("lift", "queue:default"),
        ("hold", "resource:api"),
    ]


def a_cancelled_batch_and_a_bulk_act_leave_theirs(bench: Bench) -> None:
    batch = open_batch(bench)
    cancel_batch(bench, batch)
    filter = Filter(queue="default")
    operation = bench.store.operator.start_operation("redrive", filter, 5.0, None, 40_000, "ann", "fixed")

    assert _said(bench) == [("cancel", f"batch:{batch}"), ("start", f"operation:{operation.id}")]
    detail = json.decode(_last(bench).detail)
    assert (detail["verb"], detail["total"]) == ("redrive", 40_000)
    assert detail["filter"] == json.decode(filter.to_json())


def acts_on_bulk_acts_and_workers_leave_theirs(bench: Bench) -> None:
    act = bench.store.operator
    operation = act.start_operation("redrive", Filter(), None, None, 3, "ann", "fixed").id
    for state in ("paused", "running", "cancelled", "running"):
        act.set_operation(operation, state, "bob", "too fast")
    worker = bench.worker()
    act.drain_worker(worker, "bob", "a new release")
    act.drain_worker(Incarnation(worker + 1000), "bob", "nobody")

    assert _said(bench)[1:] == [
        ("pause", f"operation:{operation}"),
        ("resume", f"operation:{operation}"),
        ("cancel", f"operation:{operation}"),
        ("drain", f"worker:{worker}"),
    ]
    entry = _last(bench)
    assert (entry.actor, entry.reason) == ("bob", "a new release")


def what_is_done_to_tokens_and_marks_leaves_its_entry(bench: Bench) -> None:
    token = bench.store.tokens.put("web", b"digest", ("read",), None, "ann", "new")
    bench.store.tokens.revoke(token.id, "ann", "leaked")
    bench.store.tokens.rotate("ticket", b"value", "ann", "leaked, too")
    bench.store.triage.mark("feed", "default", "ok", by="ann", reason="seen", owner="mail-team")

    assert _said(bench) == [
        ("create", "token:web"),
        ("revoke", "token:web"),
        ("rotate", "secret:ticket"),
        ("mark", "dead:feed"),
    ]
    assert json.decode(_last(bench).detail) == {"queue": "default", "task": "ok", "owner": "mail-team"}


def an_act_that_is_rolled_back_leaves_none(bench: Bench) -> None:
    id = bench.put()
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.cancel_on(connection, [id], "ann", "no")
        bench.store.audits.append("export", "job:1", "ann", "no", connection=connection)
        raise ZeroDivisionError

    assert _said(bench) == []
    assert bench.state(id) is State.ready


def an_entry_in_a_transaction_comes_with_its_commit(bench: Bench) -> None:
    with bench.store.transaction() as connection:
        (stored,) = bench.store.enqueue_on(connection, [new_job()])
        target = f"job:{stored.id}"
        id = bench.store.audits.append("enqueue", target, "web", "", {"queue": "default"}, connection)

    entry = _last(bench)
    assert (entry.id, entry.verb, entry.target) == (id, "enqueue", target)
    assert json.decode(entry.detail) == {"queue": "default"}


def entries_are_read_newest_first_and_page_by_page(bench: Bench) -> None:
    ids = _act(bench, 5)

    first = bench.store.audits.page(limit=2)
    second = bench.store.audits.page(before=first[-1].id, limit=10)

    assert [entry.id for entry in first] == [ids[4], ids[3]]
    assert [entry.id for entry in second] == [ids[2], ids[1], ids[0]]


def entries_are_found_by_what_they_say(bench: Bench) -> None:
    began = bench.clock()
    first = bench.store.audits.append("export", "queue:mail", "ann", "x")
    bench.clock.advance(MINUTE)
    second = bench.store.audits.append("export", "queue:web", "bob", "x")
    bench.clock.advance(MINUTE)
    third = bench.store.audits.append("login", "", "bob", "x")
    page = bench.store.audits.page

    assert [entry.id for entry in page(actor="bob")] == [third, second]
    assert [entry.id for entry in page(verb="export")] == [second, first]
    assert [entry.id for entry in page(target="queue:mail")] == [first]
    assert [entry.id for entry in page(since=began + MINUTE)] == [third, second]
    assert [entry.id for entry in page(until=began + MINUTE)] == [first]


def a_seal_covers_all_entries_and_the_next_one_follows_from_it(bench: Bench) -> None:
    ids = _act(bench, 3)
    first = bench.store.audits.seal()
    bench.clock.advance(SECOND)
    more = _act(bench, 2)

    second = bench.another().audits.seal()

    assert first is not None
    assert second is not None
    assert (first.id, first.first, first.last, first.count) == (1, ids[0], ids[-1], 3)
    assert (second.id, second.first, second.last, second.count) == (2, more[0], more[-1], 2)
    assert (first.previous, second.previous, second.at) == (GENESIS, first.digest, bench.clock())
    assert bench.store.audits.seal() is None
    assert bench.store.audits.seals() == [second, first]
    assert bench.store.audits.seals(before=2) == [first]


def a_seal_covers_no_more_than_asked(bench: Bench) -> None:
    ids = _act(bench, 3)

    sealed = [bench.store.audits.seal(2) for _ in range(3)]

    assert [None if seal is None else (seal.first, seal.count) for seal in sealed] == [
        (ids[0], 2),
        (ids[2], 1),
        None,
    ]


def an_untouched_audit_is_verified(bench: Bench) -> None:
    empty = bench.store.audits.verify()
    _act(bench, 3)
    seal = bench.store.audits.seal()
    _act(bench)

    found = bench.store.audits.verify()

    assert seal is not None
    assert (empty.entries, empty.seals, empty.unsealed, empty.head, empty.faults) == (0, 0, 0, GENESIS, ())
    assert (found.entries, found.seals, found.unsealed, found.head) == (3, 1, 1, seal.digest)
    assert found.faults == ()


def a_changed_entry_is_found(bench: Bench) -> None:
    ids = _act(bench, 3)
    bench.store.audits.seal()
    _act(bench)
    bench.store.audits.seal()

    bench.database.rewrite_entry(ids[1], "a better reason")

    found = bench.store.audits.verify()
    assert len(found.faults) == 1
    assert "seal 1 " in found.faults[0]
    assert found.entries == 1


def a_removed_entry_is_found(bench: Bench) -> None:
    ids = _act(bench, 3)
    bench.store.audits.seal()

    bench.database.remove_entry(ids[1])

    found = bench.store.audits.verify()
    assert found.faults
    assert found.entries == 0


def an_entry_removed_before_its_seal_is_found_where_it_can_be(bench: Bench) -> None:
    _act(bench, 2)
    bench.store.audits.seal()
    ids = _act(bench, 3)

    bench.database.remove_entry(ids[1])

    found = bench.store.audits.verify()
    # A store that seals ranges of ids learns of it no more than of an act that was rolled back.
    assert found.entries == 2
    assert bool(found.faults) == (found.unsealed == 3)


def _job_entries(bench: Bench, id: JobId) -> list[tuple[str, str, str | None]]:
    """(verb, actor, state) of every entry about a job, oldest first."""
    entries = reversed(bench.store.audits.page(target=f"job:{id}"))
    return [(one.verb, one.actor, json.decode(one.detail).get("state")) for one in entries]


def an_audited_job_leaves_who_enqueued_it_and_how_it_ended(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(tags=("money", "audit:ann"), tenant="acme")

    (entry,) = bench.store.audits.page(target=f"job:{id}")
    early = bench.store.audits.follow()
    bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 1)))
    written = bench.store.audits.follow()
    again = bench.store.audits.follow()

    assert (entry.verb, entry.actor) == ("enqueue", "ann")
    assert json.decode(entry.detail) == {"queue": "default", "task": "ok", "tenant": "acme"}
    assert (early, written, again) == (0, 1, 0)
    assert _job_entries(bench, id) == [("enqueue", "ann", None), ("end", "duly", "completed")]


def an_audited_job_that_is_rolled_back_leaves_nothing(bench: Bench) -> None:
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.enqueue_on(connection, [new_job(tags=("audit:ann",))])
        raise ZeroDivisionError

    bench.store.audits.follow()

    assert _said(bench) == []


def each_death_and_the_end_after_a_redrive_are_written(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(tags=("audit:ann",))
    bench.end(worker, *(ended(job, Event.bury, error=BOOM, reason="no") for job in bench.claim(worker, 1)))
    bench.store.audits.follow()
    bench.store.audits.follow()

    bench.store.operator.redrive([id], "bob", "fixed")
    bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 1)))
    bench.store.audits.follow()

    assert _job_entries(bench, id) == [
        ("enqueue", "ann", None),
        ("end", "duly", "dead"),
        ("redrive", "bob", None),
        ("end", "duly", "completed"),
    ]


def a_follow_up_is_audited_as_any_other_job(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(then=(new_job(tags=("audit:ann",)),))

    bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 1)))

    assert [(verb, target.startswith("job:")) for verb, target in _said(bench)] == [("enqueue", True)]


def audited_jobs_are_looked_at_in_rounds(bench: Bench) -> None:
    worker = bench.worker()
    for _ in range(5):
        bench.put(tags=("audit:ann",))
    bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 5)))

    written = [bench.store.audits.follow(2) for _ in range(4)]

    assert sum(written) == 5


def the_sweep_writes_the_ends_of_audited_jobs(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(tags=("audit",))
    bench.end(worker, *(ended(job, Event.complete) for job in bench.claim(worker, 1)))

    bench.sweep()

    assert [verb for verb, _, _ in _job_entries(bench, id)] == ["enqueue", "end"]


def the_sweep_seals(bench: Bench) -> None:
    _act(bench, 2)

    bench.sweep()

    assert [seal.count for seal in bench.store.audits.seals()] == [2]


def many_who_seal_at_once_make_one_chain(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    for _ in range(5):
        _act(bench, 3)

        together(*(partial(store.audits.seal, 2) for store in stores))

    while bench.store.audits.seal() is not None:
        pass
    found = bench.store.audits.verify()
    assert found.faults == ()
    assert (found.entries, found.unsealed) == (15, 0)


def an_entry_that_commits_late_is_sealed_late(bench: Bench) -> None:
    store = bench.another()
    with bench.store.transaction() as connection:
        late = bench.store.audits.append("export", "job:1", "ann", "x", connection=connection)
        if store.capabilities.shared_by_machines:
            early = store.audits.append("export", "job:2", "ann", "x")
            seal = store.audits.seal()
            assert seal is not None
            assert early > late
            assert (seal.first, seal.count) == (early, 1)

    assert bench.store.audits.seal() is not None
    found = bench.store.audits.verify()
    assert (found.faults, found.unsealed) == ((), 0)
