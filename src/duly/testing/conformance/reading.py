"""Cases: what a person or a program may read, and that no reading is torn."""

from datetime import timedelta

from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import BOOM, DAY, HOUR, MINUTE, NO_SUCH_JOB, SECOND, Bench, ended, new_job

MOVES = 150


def a_lookup_answers_in_the_order_asked_and_none_for_the_unknown(bench: Bench) -> None:
    first, second = bench.put("a"), bench.put("b")

    found = bench.store.inspection.lookup([second, NO_SUCH_JOB, first, second])

    assert [row.task if row else None for row in found] == ["b", None, "a", "b"]
    assert bench.store.inspection.lookup([]) == []


def a_lookup_of_many_jobs_in_all_states_is_one_answer(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(4)
    done, running, dead, retried = bench.claim(worker, 4)
    bench.end(worker, ended(done, Event.complete), ended(dead, Event.bury), ended(retried, Event.fail))
    ready, scheduled = bench.put_all([new_job(), new_job(delay=HOUR)])
    cancelled = bench.put()
    bench.store.operator.cancel([cancelled], "ann", "no")

    states = bench.states([*ids, ready, scheduled, cancelled])

    assert running.id == ids[1]
    assert states == [
        State.completed,
        State.running,
        State.dead,
        State.scheduled,
        State.ready,
        State.scheduled,
        State.cancelled,
    ]


def counts_tell_each_state_of_each_queue(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(6)
    claimed = bench.claim(worker, 4)
    bench.end(
        worker,
        ended(claimed[0], Event.bury),
        ended(claimed[1], Event.fail),
        ended(claimed[2], Event.complete),
    )
    bench.put("mystery", priority=1)
    bench.claim(worker, 0 + 1, queues=("default",))
    bench.put(queue="mail", delay=HOUR)

    counts = {count.queue: count for count in bench.store.inspection.counts()}

    default, mail = counts["default"], counts["mail"]
    assert (default.scheduled, default.blocked, default.dead) == (1, 1, 1)
    assert default.ready + default.running == 3
    assert default.running in {1, 2}
    assert (mail.ready, mail.scheduled, mail.next_due) == (0, 1, NOON + HOUR)


def counts_tell_the_age_of_the_oldest_ready_job(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    bench.clock.advance(MINUTE)
    bench.put(priority=1)
    bench.clock.advance(MINUTE)

    assert bench.store.inspection.counts()[0].oldest_ready == 2 * MINUTE

    bench.claim(worker, 2)
    assert [count.oldest_ready for count in bench.store.inspection.counts()] == [None]


def counts_tell_of_a_pause(bench: Bench) -> None:
    bench.put(queue="mail")
    bench.put(queue="free")
    bench.store.operator.pause("queue:mail", HOUR, "ann", "incident")

    counts = {count.queue: count for count in bench.store.inspection.counts()}

    assert (counts["mail"].paused, counts["mail"].paused_until) == (True, NOON + HOUR)
    assert (counts["free"].paused, counts["free"].paused_until) == (False, None)


def an_empty_store_has_nothing_to_tell(bench: Bench) -> None:
    inspection = bench.store.inspection

    assert inspection.counts() == []
    assert inspection.workers() == []
    assert inspection.pauses() == []
    assert inspection.operations() == []
    assert inspection.dead_groups(Filter()) == []
    assert inspection.page(Filter()).jobs == ()
    assert bench.history(NO_SUCH_JOB) == []


def workers_are_told_with_what_they_hold(bench: Bench) -> None:
    worker = bench.worker(queues=("default", "mail"))
    bench.put_many(3)
    bench.claim(worker, 2)
    bench.clock.advance(20 * SECOND)

    (told,) = bench.store.inspection.workers()

    assert (told.incarnation, told.host, told.pid, told.supervisor) == (worker, "host-1", 4711, "host-1:4700")
    assert (told.queues, told.slots, told.version) == (("default", "mail"), 10, "1.0")
    assert (told.running, told.started_at, told.beat_age) == (2, NOON, 20 * SECOND)
    assert not told.draining


def a_pulse_without_progress_can_be_told(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    claimed = bench.claim_one(worker)
    bench.end(worker, ended(claimed, Event.complete))
    bench.put()
    bench.claim_one(worker)

    for _ in range(4):
        bench.clock.advance(MINUTE)
        bench.store.leases.beat([worker])

    (told,) = bench.store.inspection.workers()
    assert told.beat_age == timedelta(0)
    assert told.progress_age is not None
    assert told.progress_age >= 3 * MINUTE


def gone_workers_are_not_told(bench: Bench) -> None:
    first, second, third = bench.worker(), bench.worker(), bench.worker()
    bench.store.leases.retire(first)
    bench.reap(second)

    assert [told.incarnation for told in bench.store.inspection.workers()] == [third]


def _all_pages(bench: Bench, filter: Filter, limit: int) -> list[JobId]:
    ids: list[JobId] = []
    before: int | None = None
    for _ in range(100):
        page = bench.store.inspection.page(filter, before=before, limit=limit)
        ids += [job.id for job in page.jobs]
        before = page.next
        if before is None:
            return ids
    raise AssertionError("a list of jobs that has no end")


def pages_go_from_the_newest_to_the_oldest(bench: Bench) -> None:
    ids = bench.put_many(25)

    first = bench.store.inspection.page(Filter(), limit=10)

    assert [job.id for job in first.jobs] == ids[:-11:-1]
    assert _all_pages(bench, Filter(), 10) == ids[::-1]


def pages_go_from_the_oldest_when_asked(bench: Bench) -> None:
    ids = bench.put_many(25)
    seen: list[JobId] = []
    after: int | None = 0
    for _ in range(100):
        page = bench.store.inspection.page(Filter(), after=after, limit=10)
        seen += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            break

    assert seen == ids


def a_page_holds_jobs_of_all_states(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(4)
    claimed = bench.claim(worker, 3)
    bench.end(worker, ended(claimed[0], Event.complete), ended(claimed[1], Event.bury))

    page = bench.store.inspection.page(Filter())

    assert [(job.id, job.state) for job in page.jobs] == [
        (ids[3], State.ready),
        (ids[2], State.running),
        (ids[1], State.dead),
        (ids[0], State.completed),
    ]


def a_page_tells_the_same_of_a_job_as_a_lookup(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(6, tags=("t",), correlation_id="c", args=b'{"n":1}', expires=HOUR)
    claimed = bench.claim(worker, 4)
    bench.end(
        worker,
        ended(claimed[0], Event.complete, result=b"1"),
        ended(claimed[1], Event.bury, error=BOOM),
        ended(claimed[2], Event.snooze),
    )

    page = bench.store.inspection.page(Filter())

    assert list(page.jobs) == bench.store.inspection.lookup([job.id for job in page.jobs])


def lists_can_be_narrowed_by_each_field(bench: Bench) -> None:
    worker = bench.worker("a", "b")
    mail = bench.put("a", queue="mail", tenant="acme", tags=("x", "y"), correlation_id="c-1")
    bench.clock.advance(MINUTE)
    web = bench.put("b", queue="web", tenant="zeta", tags=("x",), correlation_id="c-2")
    bench.clock.advance(MINUTE)
    gone = bench.put("a", queue="web")
    bench.claim(worker, 1, queues=("web",))
    bench.store.operator.cancel([gone], "ann", "no")

    def found(filter: Filter) -> list[JobId]:
        return _all_pages(bench, filter, 10)

    assert found(Filter(queue="mail")) == [mail]
    assert found(Filter(task="a")) == [gone, mail]
    assert found(Filter(tenant="zeta")) == [web]
    assert found(Filter(tag="x")) == [web, mail]
    assert found(Filter(tag="y")) == [mail]
    assert found(Filter(correlation="c-1")) == [mail]
    assert found(Filter(state=State.running)) == [web]
    assert found(Filter(state=State.cancelled)) == [gone]
    assert found(Filter(state=State.ready)) == [mail]
    assert found(Filter(queue="web", task="a")) == [gone]
    assert found(Filter(queue="nowhere")) == []
    assert found(Filter(since=NOON + MINUTE)) == [gone, web]
    assert found(Filter(until=NOON + SECOND)) == [mail]


def a_correlation_id_that_is_a_jobs_number_finds_that_job_among_its_others(bench: Bench) -> None:
    bench.put()
    root = bench.put()
    stranger = bench.put(correlation_id="another")
    members = [root, *bench.put_many(5, correlation_id=str(root))]

    filter = Filter(correlation=str(root))
    oldest: list[JobId] = []
    after: int | None = 0
    while after is not None:
        page = bench.store.inspection.page(filter, after=after, limit=2)
        oldest += [job.id for job in page.jobs]
        after = page.next

    assert _all_pages(bench, filter, 2) == members[::-1]
    assert oldest == members
    assert _all_pages(bench, Filter(correlation=str(stranger)), 2) == []
    assert _all_pages(bench, Filter(correlation=f"0{root}"), 2) == []
    assert _all_pages(bench, Filter(correlation="9" * 30), 2) == []


def dead_letters_are_grouped_by_their_fingerprint(bench: Bench) -> None:
    worker = bench.worker()
    timeout = ErrorRecord("TimeoutError", "took 31 s", "Traceback", "11112222")
    later = ErrorRecord("TimeoutError", "took 35 s", "Traceback", "11112222")
    for error in (timeout, BOOM, later):
        bench.put()
        bench.end(worker, ended(bench.claim_one(worker), Event.bury, reason="gave up", error=error))
        bench.clock.advance(MINUTE)

    groups = {group.fingerprint: group for group in bench.store.inspection.dead_groups(Filter())}

    assert set(groups) == {"11112222", BOOM.fingerprint}
    slow = groups["11112222"]
    assert (slow.queue, slow.task, slow.count) == ("default", "ok", 2)
    assert (slow.first, slow.last) == (NOON, NOON + 2 * MINUTE)
    assert "TimeoutError" in slow.error
    assert "took 35 s" in slow.error
    assert len(_all_pages(bench, Filter(fingerprint="11112222"), 10)) == 2


def dead_groups_can_be_narrowed(bench: Bench) -> None:
    worker = bench.worker()
    for queue in ("a", "b"):
        bench.put(queue=queue)
        (claimed,) = bench.claim(worker, 1, queues=(queue,))
        bench.end(worker, ended(claimed, Event.bury, error=BOOM))

    groups = bench.store.inspection.dead_groups(Filter(queue="b"))

    assert [(group.queue, group.count) for group in groups] == [("b", 1)]


def the_stores_clock_is_the_clock_it_was_opened_with(bench: Bench) -> None:
    assert bench.store.inspection.now() == NOON

    bench.clock.advance(DAY)
    assert bench.store.inspection.now() == NOON + DAY


def a_store_describes_itself_in_words(bench: Bench) -> None:
    facts = bench.store.inspection.describe()

    assert facts
    assert all(key and value for key, value in facts.items())
    assert all(bench.store.inspection.warnings())


def all_times_read_are_aware_and_in_utc(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=HOUR)
    running = bench.claim_one(worker)
    row = bench.row(id)
    times = [
        row.enqueued_at,
        row.expires_at,
        row.started_at,
        row.deadline,
        running.claimed_at,
        running.enqueued_at,
    ]
    bench.end(worker, ended(running, Event.fail))
    times += [bench.row(id).run_at, bench.history(id)[0].ended_at, bench.store.inspection.now()]

    assert all(time is not None and time.utcoffset() == timedelta(0) for time in times)
