"""Cases: follow-ups. Whatever makes a job completed or dead enqueues what follows it, in the same transaction."""

from functools import partial

from duly.core.job import RESULT_MARK, JobId, NewJob
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import (
    BOOM,
    DAY,
    HOUR,
    MINUTE,
    POISON,
    SECOND,
    Bench,
    beside,
    ended,
    new_job,
    request_key,
    unique,
)
from .expect import raises

MARKED = b'{"of":' + RESULT_MARK + b',"n":1}'
THEN = new_job("after", queue="after", trigger="then", args=MARKED)
ON_DEAD = new_job("alarm", queue="after", trigger="on_dead", args=MARKED)


def _parent(bench: Bench) -> JobId:
    return bench.put(then=(THEN,), on_dead=(ON_DEAD,))


def _followed(bench: Bench) -> tuple[int, int]:
    """How many jobs have followed a completion and a death."""
    return len(bench.followers("then")), len(bench.followers("on_dead"))


def a_completion_enqueues_what_follows_it_with_its_result(bench: Bench) -> None:
    worker = bench.worker()
    id = _parent(bench)
    assert _followed(bench) == (0, 0)
    bench.clock.advance(MINUTE)

    bench.work(worker, result=b'{"paid":true}')

    (follower,) = bench.followers("then")
    assert (follower.state, follower.task, follower.queue) == (State.ready, "after", "after")
    assert follower.args == b'{"of":{"paid":true},"n":1}'
    assert (follower.correlation_id, follower.enqueued_at) == (str(id), NOON + MINUTE)
    assert _followed(bench) == (1, 0)


def a_completion_without_a_result_hands_on_null(bench: Bench) -> None:
    _parent(bench)
    bench.work(bench.worker())

    assert [row.args for row in bench.followers("then")] == [b'{"of":null,"n":1}']


def the_mark_may_stand_at_several_places_or_nowhere(bench: Bench) -> None:
    twice = new_job(trigger="t", queue="after", args=b"[" + RESULT_MARK + b"," + RESULT_MARK + b"]")
    never = new_job(trigger="t", queue="after", args=b'{"a":"\\u0001"}')
    bench.put(then=(twice, never))
    bench.work(bench.worker(), result='"Zoë \\\\ 😀"'.encode())

    assert [row.args for row in bench.followers("t")] == [
        '["Zoë \\\\ 😀","Zoë \\\\ 😀"]'.encode(),
        b'{"a":"\\u0001"}',
    ]


def a_dead_job_enqueues_what_follows_its_death(bench: Bench) -> None:
    worker = bench.worker()
    for event in (Event.bury, Event.fail):
        _parent(bench)
        bench.work(worker, event, to=State.dead, error=BOOM)

    assert [row.args for row in bench.followers("on_dead")] == [b'{"of":null,"n":1}'] * 2
    assert _followed(bench) == (0, 2)


def no_other_end_enqueues_anything(bench: Bench) -> None:
    worker = bench.worker()
    for event in (Event.skip, Event.cancel, Event.snooze, Event.fail, Event.interrupt):
        _parent(bench)
        bench.work(worker, event)
    cancelled, _ = bench.put_all(
        [new_job(then=(THEN,), on_dead=(ON_DEAD,), expires=at) for at in (None, MINUTE)]
    )
    bench.store.operator.cancel([cancelled], "ann", "no")
    bench.sweep()

    assert _followed(bench) == (0, 0)


def everything_that_follows_is_enqueued_in_order(bench: Bench) -> None:
    follow_ups = tuple(new_job(f"step_{number}", trigger="then", queue="after") for number in range(5))
    bench.put(then=follow_ups)
    bench.work(bench.worker())
    worker = bench.worker(*(job.task for job in follow_ups))

    claimed = bench.claim(worker, 10, queues=("after",))

    assert [job.task for job in claimed] == [job.task for job in follow_ups]
    assert [job.trigger for job in claimed] == ["then"] * 5


def every_attribute_of_a_follow_up_is_kept_as_given(bench: Bench) -> None:
    follow_up = NewJob(
        "mail",
        "thank",
        b'{"order_id": 7}',
        priority=-5,
        delay=MINUTE,
        expires=HOUR,
        timeout=90 * SECOND,
        attempts=4,
        tenant="acme",
        tags=("vip", "eu"),
        correlation_id="order-7",
        trigger="t",
    )
    bench.put(then=(follow_up,), correlation_id="parent")
    bench.clock.advance(MINUTE)
    bench.work(bench.worker())

    (row,) = bench.followers("t")
    assert (row.queue, row.task, row.args, row.priority) == ("mail", "thank", b'{"order_id": 7}', -5)
    assert (row.timeout, row.attempts, row.tenant) == (90 * SECOND, 4, "acme")
    assert (row.tags, row.correlation_id) == (("vip", "eu"), "order-7")
    assert (row.state, row.run_at) == (State.scheduled, NOON + 2 * MINUTE)
    assert row.expires_at == NOON + 2 * MINUTE + HOUR


def a_follow_up_due_at_a_time_that_has_passed_is_ready(bench: Bench) -> None:
    past, ahead = (new_job(trigger="t", queue="after", run_at=NOON + at) for at in (MINUTE, DAY))
    bench.put(then=(past, ahead))
    bench.clock.advance(HOUR)
    bench.work(bench.worker())

    assert [(row.state, row.run_at) for row in bench.followers("t")] == [
        (State.ready, None),
        (State.scheduled, NOON + DAY),
    ]


def a_follow_up_inherits_the_correlation_of_its_parent(bench: Bench) -> None:
    grandchild = new_job(trigger="t", queue="after")
    child = new_job(trigger="t", then=(grandchild,))
    bench.put(then=(child,), correlation_id="order-7")
    worker = bench.worker()
    bench.work(worker)
    bench.work(worker)

    assert [row.correlation_id for row in bench.followers("t")] == ["order-7", "order-7"]


def what_follows_a_follow_up_gets_the_result_of_that(bench: Bench) -> None:
    grandchild = new_job("ok", trigger="t", args=MARKED, queue="after")
    child = new_job("ok", trigger="t", args=b"[" + RESULT_MARK + b"]", then=(grandchild,), on_dead=(ON_DEAD,))
    root = bench.put(then=(child,))
    worker = bench.worker()
    bench.work(worker, result=b"1")
    assert [row.args for row in bench.followers("t")] == [b"[1]"]

    bench.work(worker, result=b"2")

    rows = bench.followers("t")
    assert [row.args for row in rows] == [b"[1]", b'{"of":2,"n":1}']
    assert [row.correlation_id for row in rows] == [str(root)] * 2
    assert _followed(bench) == (0, 0)


def a_stale_or_repeated_completion_enqueues_nothing_more(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    _parent(bench)
    claimed = bench.claim_one(worker)
    done = ended(claimed, Event.complete, result=b"1")
    bench.end(stranger, done)
    assert _followed(bench) == (0, 0)

    acked = [bench.end(worker, done) for _ in range(3)]

    assert acked == [{(claimed.id, 1)}] * 3
    assert _followed(bench) == (1, 0)


def a_batch_of_ends_enqueues_what_follows_each(bench: Bench) -> None:
    worker = bench.worker()
    for number in range(6):
        follow_up = new_job(trigger=f"t{number}", queue="after", args=MARKED)
        bench.put(then=(follow_up,), on_dead=(ON_DEAD,))
    bench.put_many(2)
    claimed = bench.claim(worker, 10)
    ends = [ended(job, Event.complete, result=str(job.id).encode()) for job in claimed[:5]]
    ends += [ended(claimed[5], Event.bury), ended(claimed[6], Event.complete), ended(claimed[7], Event.fail)]

    bench.end(worker, *ends)

    for number, job in enumerate(claimed[:5]):
        (row,) = bench.followers(f"t{number}")
        assert (row.args, row.correlation_id) == (b'{"of":%d,"n":1}' % job.id, str(job.id))
    assert bench.followers("t5") == []
    assert _followed(bench) == (0, 1)


def a_completion_in_a_transaction_enqueues_what_follows_with_its_commit(bench: Bench) -> None:
    worker = bench.worker()
    _parent(bench)
    claimed = bench.claim_one(worker)
    done = ended(claimed, Event.complete, result=b"1")
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.complete_on(connection, worker, done)
        raise ZeroDivisionError
    assert _followed(bench) == (0, 0)

    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, done)
        assert not bench.store.complete_on(connection, worker, done)

    assert [row.args for row in bench.followers("then")] == [b'{"of":1,"n":1}']


def a_job_dead_as_poison_enqueues_what_follows_its_death(bench: Bench) -> None:
    for number, way in enumerate(("reap", "disown", "overdue", "orphan")):
        id = bench.put(on_dead=(ON_DEAD,), timeout=SECOND)
        bench.lose_once(id)
        worker = bench.worker()
        run = bench.claim_one(worker, suspects=True).run
        match way:
            case "reap":
                bench.reap(worker, 2)
            case "disown":
                bench.store.leases.disown(worker, [(id, run)], "killed", 2)
            case "overdue":
                bench.sweep(poison=2)
            case _:
                bench.database.forget_worker(worker)
                bench.sweep(poison=2, grace=DAY)

        assert bench.state(id) is State.dead, way
        assert _followed(bench) == (0, number + 1), way


def an_abandoned_job_enqueues_what_follows_its_death(bench: Bench) -> None:
    id = bench.put("mystery", on_dead=(ON_DEAD,), then=(THEN,))
    bench.claim(bench.worker(), 1)
    bench.clock.advance(2 * HOUR)
    bench.sweep(unknown_after=HOUR)

    assert bench.state(id) is State.dead
    assert _followed(bench) == (0, 1)


def a_job_that_dies_again_is_followed_again(bench: Bench) -> None:
    worker = bench.worker()
    id = _parent(bench)
    for _ in range(2):
        bench.work(worker, Event.bury)
        bench.store.operator.redrive([id], "ann", "fixed")

    bench.work(worker, result=b"5")

    assert _followed(bench) == (1, 2)
    assert bench.followers("then")[0].args == b'{"of":5,"n":1}'


def a_follow_up_whose_key_is_taken_is_not_created(bench: Bench) -> None:
    worker = bench.worker()
    holder = bench.put(unique=unique(), queue="elsewhere")
    repeated = bench.put(idempotency=request_key(), queue="elsewhere")
    id = bench.put(
        then=(
            new_job(trigger="t", unique=unique(), queue="after"),
            new_job(trigger="t", idempotency=request_key(), queue="after"),
            new_job(trigger="t", queue="after"),
        )
    )

    bench.work(worker)

    assert bench.states([id, holder, repeated]) == [State.completed, State.ready, State.ready]
    assert len(bench.followers("t")) == 1


def a_follow_up_may_take_the_key_that_its_parent_gives_back(bench: Bench) -> None:
    worker = bench.worker()
    key = unique(live=True)
    bench.put(unique=key, then=(new_job(trigger="t", unique=key),))
    bench.work(worker)

    (follower,) = bench.followers("t")

    bench.must_hold(follower.id, key)


def a_follow_up_may_replace_what_waits_under_its_key(bench: Bench) -> None:
    waiting = bench.put(unique=unique(), delay=HOUR)
    bench.put(then=(new_job(trigger="t", unique=unique(replacing=True)),))
    bench.work(bench.worker())

    (follower,) = bench.followers("t")

    row = bench.row(waiting)
    assert (row.state, row.reason) == (State.skipped, f"replaced by job {follower.id}")


def a_follow_up_that_reuses_a_key_is_left_out_and_its_parent_says_so(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(args=b'{"a":1}', idempotency=request_key(), queue="elsewhere")
    wrong = new_job(trigger="t", args=b'{"a":2}', idempotency=request_key(), queue="after")
    done = bench.put(then=(wrong, new_job(trigger="t", queue="after")))
    bench.work(worker, result=b"1")
    died = bench.put(on_dead=(wrong,))
    bench.work(worker, Event.bury, reason="broken")

    assert len(bench.followers("t")) == 1
    first, second = bench.row(done), bench.row(died)
    assert (first.state, first.result) == (State.completed, b"1")
    assert second.state is State.dead
    for row in (first, second):
        assert "key" in f"{row.note} {row.reason}".lower()


def what_follows_goes_with_the_record_of_its_parent(bench: Bench) -> None:
    worker = bench.worker()
    _parent(bench)
    bench.work(worker, Event.bury)
    letter = bench.put(on_dead=(ON_DEAD,), args=b'{"big":1}')
    bench.work(worker, Event.bury)

    bench.store.operator.purge([letter], "ann", "spam")
    bench.clock.advance(2 * DAY)
    bench.retain()

    assert bench.picture(letter) == (None, [])
    assert _followed(bench) == (0, 2)


def a_large_result_reaches_what_follows_whole(bench: Bench) -> None:
    result = b'"' + "é".encode() * 50_000 + b'"'
    _parent(bench)
    bench.work(bench.worker(), result=result)

    (row,) = bench.followers("then")

    assert row.args == b'{"of":' + result + b',"n":1}'


def a_completion_beside_a_reap_is_followed_once(bench: Bench) -> None:
    reaper, acker = bench.another(), bench.another()
    for number in range(10):
        worker = bench.worker()
        follow_up = new_job(trigger=f"t{number}", queue="after")
        id = bench.put(then=(follow_up,), on_dead=(follow_up,))
        done = ended(bench.claim_one(worker), Event.complete)
        seen = bench.beat_of(worker)

        beside(
            partial(acker.jobs.exchange, worker, [done], None), partial(reaper.leases.reap, [seen], POISON)
        )

        completed = bench.state(id) is State.completed
        assert len(bench.followers(f"t{number}")) == completed
        bench.store.leases.retire(worker)
        bench.store.operator.cancel([id], "suite", "next round")
