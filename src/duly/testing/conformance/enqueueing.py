"""Cases: jobs on their way in. Nothing here ends an attempt."""

import threading
from datetime import timedelta, timezone

from duly.core.errors import ConnectionMismatch, LeaseLost
from duly.core.job import Counters, Incarnation, NewJob, Token
from duly.core.lifecycle import Event, Outcome, State
from duly.core.names import LENGTHS
from duly.testing.clock import NOON

from .bench import DAY, HOUR, MINUTE, NO_SUCH_JOB, PATIENCE, SECOND, Bench, ended, new_job
from .expect import raises


def an_enqueued_job_is_ready(bench: Bench) -> None:
    stored = bench.store.jobs.enqueue([new_job()])

    assert bench.state(stored[0].id) is State.ready
    assert stored[0].outcome is Outcome.created
    assert stored[0].run_at is None


def every_attribute_of_a_job_is_kept_as_given(bench: Bench) -> None:
    id = bench.put(
        "send_receipt",
        queue="mail",
        args=b'{"order_id": 7}',
        priority=-5,
        expires=HOUR,
        timeout=90 * SECOND,
        attempts=4,
        tenant="acme",
        tags=("vip", "eu"),
        correlation_id="order-7",
    )

    row = bench.row(id)
    assert (row.queue, row.task, row.args, row.priority) == ("mail", "send_receipt", b'{"order_id": 7}', -5)
    assert (row.timeout, row.attempts, row.tenant) == (90 * SECOND, 4, "acme")
    assert (row.tags, row.correlation_id) == (("vip", "eu"), "order-7")
    assert (row.enqueued_at, row.expires_at) == (NOON, NOON + HOUR)
    assert (row.counters, row.run) == (Counters(), 0)


def a_job_that_never_ran_has_nothing_of_an_attempt(bench: Bench) -> None:
    id = bench.put()

    row = bench.row(id)
    assert (row.started_at, row.deadline, row.finished_at, row.incarnation) == (None, None, None, None)
    assert (row.result, row.error, row.reason, row.note, row.progress) == (None, None, None, None, None)
    assert not row.cancel_wished
    assert bench.history(id) == []


def the_limits_of_a_job_without_its_own_are_left_to_the_task(bench: Bench) -> None:
    id = bench.put()

    row = bench.row(id)
    assert (row.timeout, row.attempts, row.expires_at) == (None, None, None)


def an_unset_correlation_id_is_the_jobs_own_id(bench: Bench) -> None:
    id = bench.put()

    assert bench.row(id).correlation_id == str(id)


def the_answers_come_in_the_order_asked(bench: Bench) -> None:
    asked = [new_job(f"task_{number}") for number in range(20)]

    ids = bench.put_all(asked)

    assert [bench.row(id).task for id in ids] == [job.task for job in asked]
    assert len(set(ids)) == 20


def later_jobs_have_higher_ids(bench: Bench) -> None:
    first = bench.put_many(3)
    second = bench.put_many(3)

    assert first + second == sorted(first + second)


def enqueueing_nothing_answers_nothing(bench: Bench) -> None:
    assert bench.store.jobs.enqueue([]) == []


def more_than_a_thousand_jobs_go_in_with_one_call(bench: Bench) -> None:
    asked = [new_job(priority=number % 7) for number in range(2_345)]

    stored = bench.store.jobs.enqueue(asked)

    rows = bench.store.inspection.lookup([answer.id for answer in stored])
    assert [row.priority for row in rows if row] == [job.priority for job in asked]


def a_delay_counts_from_the_moment_the_store_writes(bench: Bench) -> None:
    bench.clock.advance(3 * SECOND)

    stored = bench.store.jobs.enqueue([new_job(delay=MINUTE)])[0]

    assert stored.run_at == NOON + 63 * SECOND
    row = bench.row(stored.id)
    assert (row.state, row.run_at) == (State.scheduled, NOON + 63 * SECOND)


def a_due_time_ahead_schedules_the_job(bench: Bench) -> None:
    due = NOON + timedelta(days=60, microseconds=1)

    stored = bench.store.jobs.enqueue([new_job(run_at=due)])[0]

    assert stored.run_at == due
    row = bench.row(stored.id)
    assert (row.state, row.run_at) == (State.scheduled, due)


def a_due_time_in_the_past_means_ready_at_once(bench: Bench) -> None:
    stored = bench.store.jobs.enqueue([new_job(run_at=NOON - DAY), new_job(run_at=NOON)])

    assert [answer.run_at for answer in stored] == [None, None]
    assert bench.states([answer.id for answer in stored]) == [State.ready, State.ready]


def no_delay_at_all_means_ready_at_once(bench: Bench) -> None:
    id = bench.put(delay=timedelta(0))

    assert bench.state(id) is State.ready


def a_due_time_may_be_given_in_any_time_zone(bench: Bench) -> None:
    due = (NOON + HOUR).astimezone(timezone(timedelta(hours=5, minutes=30)))

    stored = bench.store.jobs.enqueue([new_job(run_at=due)])[0]

    assert stored.run_at == NOON + HOUR
    row = bench.row(stored.id)
    assert row.run_at is not None
    assert row.run_at.utcoffset() == timedelta(0)


def ready_and_scheduled_jobs_may_share_a_batch(bench: Bench) -> None:
    ids = bench.put_all([new_job(), new_job(delay=HOUR), new_job(), new_job(run_at=NOON + HOUR)])

    assert bench.states(ids) == [State.ready, State.scheduled, State.ready, State.scheduled]


def an_expiry_counts_from_the_due_time(bench: Bench) -> None:
    ids = bench.put_all(
        [
            new_job(expires=MINUTE),
            new_job(expires=MINUTE, delay=HOUR),
            new_job(expires=MINUTE, run_at=NOON + DAY),
        ]
    )

    assert [bench.row(id).expires_at for id in ids] == [
        NOON + MINUTE,
        NOON + HOUR + MINUTE,
        NOON + DAY + MINUTE,
    ]


def arguments_come_back_byte_for_byte(bench: Bench) -> None:
    odd = [
        b"{}",
        b'{ "a" :  1.0 , "b":1e400, "a": 2 }',
        '{"name":"Zoë 😀 \u2028 ﷽"}'.encode(),
        b'{"n":123456789012345678901234567890,"t":"\\u0000"}',
        b'{"x":"' + b"y" * 200_000 + b'"}',
    ]

    ids = bench.put_all([new_job(args=args) for args in odd])

    assert [bench.row(id).args for id in ids] == odd
    assert bench.store.jobs.arguments(ids) == dict(zip(ids, odd, strict=True))


def arguments_of_unknown_jobs_are_left_out(bench: Bench) -> None:
    id = bench.put(args=b'{"a":1}')

    assert bench.store.jobs.arguments([NO_SUCH_JOB, id]) == {id: b'{"a":1}'}
    assert bench.store.jobs.arguments([]) == {}


def names_may_have_their_full_length_and_any_script(bench: Bench) -> None:
    job = NewJob(
        queue="ü" * LENGTHS["queue"],
        task="名" * LENGTHS["task"],
        args=b"{}",
        tenant="😀" * LENGTHS["tenant"],
        tags=("é" * LENGTHS["tag"],),
        correlation_id="🦊" * LENGTHS["correlation id"],
    )

    id = bench.put_all([job])[0]

    row = bench.row(id)
    assert (row.queue, row.task, row.tenant) == (job.queue, job.task, job.tenant)
    assert (row.tags, row.correlation_id) == (job.tags, job.correlation_id)


def composed_and_decomposed_letters_are_two_queues(bench: Bench) -> None:
    composed = bench.put(queue="caf\u00e9")
    decomposed = bench.put(queue="cafe\u0301")
    worker = bench.worker()

    claimed = bench.claim(worker, 10, queues=("cafe\u0301",))

    assert [job.id for job in claimed] == [decomposed]
    assert bench.state(composed) is State.ready


def an_enqueue_from_a_live_attempt_is_stored(bench: Bench) -> None:
    worker = bench.worker()
    parent = bench.put()
    bench.claim(worker)

    id = bench.put(holder=Token(worker, parent, 1))

    assert bench.state(id) is State.ready


def an_enqueue_from_an_ended_attempt_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    claimed = bench.claim_one(worker)
    bench.end(worker, ended(claimed, Event.complete))

    with raises(LeaseLost):
        bench.put(holder=Token(worker, claimed.id, 1))

    assert bench.store.inspection.counts() == [] or bench.store.inspection.counts()[0].ready == 0


def an_enqueue_from_a_reaped_worker_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    parent = bench.put(queue="other")
    bench.claim(worker, queues=("other",))
    bench.reap(worker)

    with raises(LeaseLost):
        bench.put(holder=Token(worker, parent, 1))

    assert bench.claim(bench.worker(), 10) == ()


def an_enqueue_with_another_run_or_worker_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    stranger = bench.worker()
    parent = bench.put()
    bench.claim(worker)

    for token in (
        Token(worker, parent, 2),
        Token(worker, parent, 0),
        Token(stranger, parent, 1),
        Token(worker, NO_SUCH_JOB, 1),
        Token(Incarnation(999_999), parent, 1),
    ):
        with raises(LeaseLost):
            bench.put(holder=token)

    assert bench.claim(stranger, 10) == ()


def one_dead_holder_refuses_the_whole_batch(bench: Bench) -> None:
    worker = bench.worker()
    parent = bench.put()
    bench.claim(worker)
    live, dead = Token(worker, parent, 1), Token(worker, parent, 7)

    with raises(LeaseLost):
        bench.put_all([new_job(holder=live)] * 3 + [new_job(holder=dead), new_job()])

    assert bench.claim(worker, 10) == ()


def a_scheduled_child_of_a_former_holder_is_refused_too(bench: Bench) -> None:
    worker = bench.worker()
    parent = bench.put()
    bench.claim(worker)
    bench.reap(worker)

    with raises(LeaseLost):
        bench.put(holder=Token(worker, parent, 1), delay=HOUR)

    assert sum(count.scheduled for count in bench.store.inspection.counts()) == 0


def an_enqueue_in_a_transaction_exists_only_after_the_commit(bench: Bench) -> None:
    with bench.store.transaction() as connection:
        stored = bench.store.enqueue_on(connection, [new_job(), new_job(delay=HOUR)])

    assert bench.states([answer.id for answer in stored]) == [State.ready, State.scheduled]
    assert stored[1].run_at == NOON + HOUR
    assert [job.id for job in bench.claim(bench.worker(), 10)] == [stored[0].id]


def an_enqueue_in_a_transaction_that_rolls_back_never_existed(bench: Bench) -> None:
    before = bench.put()

    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        stored = bench.store.enqueue_on(connection, [new_job(), new_job(delay=HOUR)])
        raise ZeroDivisionError

    assert bench.states([answer.id for answer in stored]) == [None, None]
    assert [job.id for job in bench.claim(bench.worker(), 10)] == [before]
    assert sum(count.scheduled for count in bench.store.inspection.counts()) == 0


def a_lookup_in_a_transaction_sees_what_it_has_enqueued(bench: Bench) -> None:
    known = bench.put()
    with bench.store.transaction() as connection:
        stored = bench.store.enqueue_on(connection, [new_job(), new_job(delay=HOUR)])
        ids = [known, *(answer.id for answer in stored)]
        seen = bench.store.lookup_on(connection, [*ids, NO_SUCH_JOB])

    assert [row and row.state for row in seen] == [State.ready, State.ready, State.scheduled, None]
    assert seen[:3] == bench.store.inspection.lookup(ids)


def a_former_holder_is_refused_in_a_transaction_too(bench: Bench) -> None:
    worker = bench.worker()
    parent = bench.put()
    bench.claim(worker)
    bench.reap(worker)
    bench.claim(bench.worker(), suspects=True)

    with raises(LeaseLost), bench.store.transaction() as connection:
        bench.store.enqueue_on(connection, [new_job(holder=Token(worker, parent, 1))])

    assert bench.claim(bench.worker(), 10) == ()


def an_object_that_is_no_connection_is_refused(bench: Bench) -> None:
    with raises(ConnectionMismatch):
        bench.store.enqueue_on(object(), [new_job()])

    assert bench.claim(bench.worker(), 10) == ()


def a_listener_is_called_after_an_enqueue(bench: Bench) -> None:
    if not bench.store.capabilities.rings:
        return
    rung = threading.Event()
    listener = bench.another().listen(rung.set)
    try:
        listener.idle(True)
        for _ in range(20):
            bench.put()
            if rung.wait(PATIENCE / 20):
                break
    finally:
        listener.close()

    assert rung.is_set()


def ids_beyond_31_and_53_bits_work_everywhere(bench: Bench) -> None:
    worker = bench.worker()
    for start in (2**31 + 5, 2**53 + 5):
        bench.database.next_id(start)

        id = bench.put()
        claimed = bench.claim_one(worker)
        acked = bench.end(worker, ended(claimed, Event.complete))

        assert id >= start
        assert claimed.id == id
        assert acked == {(id, 1)}
        assert bench.row(id).correlation_id == str(id)
        assert bench.state(id) is State.completed
