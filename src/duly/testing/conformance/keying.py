"""Cases: idempotency keys and `once`. A repeated request answers the first job, whatever has become of it."""

from contextlib import suppress
from functools import partial

from duly.core.defaults import KEEP_KEYS, KEPT_RESULT
from duly.core.errors import KeyReused
from duly.core.job import JobId, KeptAnswer
from duly.core.keys import once_digest
from duly.core.lifecycle import Event, Outcome, State
from duly.stores.protocol import Store
from duly.testing.clock import NOON

from .bench import BOOM, DAY, HOUR, NO_SUCH_JOB, SECOND, Bench, ended, new_job, request_key, together, unique
from .expect import raises


def _live(bench: Bench) -> int:
    return sum(
        count.ready + count.scheduled + count.blocked + count.running
        for count in bench.store.inspection.counts()
    )


def a_repeated_request_answers_the_first_job(bench: Bench) -> None:
    first = bench.ask(args=b'{"a":1}', idempotency=request_key())

    again = bench.ask(args=b'{"a":1}', idempotency=request_key())

    assert (first.outcome, again.outcome) == (Outcome.created, Outcome.duplicate)
    assert again.id == first.id
    assert _live(bench) == 1


def another_key_is_another_request(bench: Bench) -> None:
    first = bench.ask(idempotency=request_key("a"))
    second = bench.ask(idempotency=request_key("b"))
    third = bench.ask()

    assert {one.outcome for one in (first, second, third)} == {Outcome.created}
    assert len({first.id, second.id, third.id}) == 3


def only_the_arguments_tell_a_repeat_from_another_request(bench: Bench) -> None:
    first = bench.ask(args=b'{"a":1}', idempotency=request_key())

    again = bench.ask(args=b'{"a":1}', idempotency=request_key(), priority=7, delay=HOUR, tags=("t",))

    assert (again.id, again.outcome) == (first.id, Outcome.duplicate)
    assert (bench.row(first.id).priority, bench.state(first.id)) == (100, State.ready)


def a_repeat_is_answered_in_every_state_of_the_job(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(idempotency=request_key())
    answers = [bench.ask(idempotency=request_key())]
    claimed = bench.claim_one(worker)
    answers.append(bench.ask(idempotency=request_key()))
    bench.end(worker, ended(claimed, Event.fail))
    answers.append(bench.ask(idempotency=request_key()))
    bench.store.operator.run_now([id], "ann", "now")
    bench.work(worker, result=b"1")

    answers.append(bench.ask(idempotency=request_key()))

    assert [(one.id, one.outcome) for one in answers] == [(id, Outcome.duplicate)] * 4
    assert bench.state(id) is State.completed


def other_arguments_under_the_same_key_are_refused(bench: Bench) -> None:
    first = bench.put(args=b'{"a":1}', idempotency=request_key())

    with raises(KeyReused) as caught:
        bench.put(args=b'{"a":2}', idempotency=request_key())

    assert isinstance(caught[0], KeyReused)
    assert (caught[0].job_id, caught[0].position) == (first, 0)
    assert _live(bench) == 1


def a_reused_key_stores_nothing_of_its_whole_call(bench: Bench) -> None:
    first = bench.put(args=b'{"a":1}', idempotency=request_key("a"))
    waiting = bench.put(unique=unique("u"))

    with raises(KeyReused) as caught:
        bench.put_all(
            [
                new_job(),
                new_job(idempotency=request_key("b")),
                new_job(unique=unique("u", replacing=True)),
                new_job(args=b'{"a":2}', idempotency=request_key("a")),
                new_job(delay=HOUR),
            ]
        )

    assert isinstance(caught[0], KeyReused)
    assert (caught[0].job_id, caught[0].position) == (first, 3)
    assert _live(bench) == 2
    assert bench.states([first, waiting]) == [State.ready, State.ready]
    assert bench.ask(idempotency=request_key("b")).outcome is Outcome.created


def two_requests_under_one_key_in_one_call_must_be_equal(bench: Bench) -> None:
    with raises(KeyReused) as caught:
        bench.put_all(
            [
                new_job(args=b'{"a":1}', idempotency=request_key()),
                new_job(args=b'{"a":2}', idempotency=request_key()),
            ]
        )

    assert isinstance(caught[0], KeyReused)
    assert (caught[0].job_id, caught[0].position) == (None, 1)
    assert _live(bench) == 0
    assert bench.ask(idempotency=request_key()).outcome is Outcome.created


def repeats_within_one_call_are_answered_in_the_order_asked(bench: Bench) -> None:
    known = bench.put(idempotency=request_key("c"))
    keys = ["b", "a", "c", "b", None, "a", "c", "b"]

    stored = bench.store.jobs.enqueue(
        [new_job(idempotency=None if key is None else request_key(key)) for key in keys]
    )

    created, duplicate = Outcome.created, Outcome.duplicate
    assert [one.outcome for one in stored] == [
        created,
        created,
        duplicate,
        duplicate,
        created,
        duplicate,
        duplicate,
        duplicate,
    ]
    b, a, c, again, _, other, last, third = (one.id for one in stored)
    assert (again, other, c, last, third) == (b, a, known, known, b)
    assert _live(bench) == 4


def repeats_far_apart_in_one_call_are_repeats(bench: Bench) -> None:
    asked = [new_job(idempotency=request_key(f"r{number % 1_100}")) for number in range(1_150)]

    stored = bench.store.jobs.enqueue(asked)

    assert [one.id for one in stored[1_100:]] == [one.id for one in stored[:50]]
    assert {one.outcome for one in stored[1_100:]} == {Outcome.duplicate}
    assert _live(bench) == 1_100


def a_reused_key_far_behind_in_a_call_stores_nothing_of_it(bench: Bench) -> None:
    known = bench.put(args=b'{"a":1}', idempotency=request_key())
    late = new_job(args=b'{"a":2}', idempotency=request_key())

    with raises(KeyReused) as caught:
        bench.put_all([new_job(idempotency=request_key("b")), *[new_job()] * 1_100, late])

    assert isinstance(caught[0], KeyReused)
    assert (caught[0].job_id, caught[0].position) == (known, 1_101)
    assert _live(bench) == 1
    assert bench.ask(idempotency=request_key("b")).outcome is Outcome.created


def a_repeat_after_retention_is_answered_from_what_was_kept(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(args=b'{"a":1}', idempotency=request_key())
    bench.work(worker, result=b'{"paid":true}')
    assert bench.store.keys.answer(id) is None
    bench.clock.advance(2 * DAY)
    bench.retain()
    assert bench.states([id]) == [None]

    again = bench.ask(args=b'{"a":1}', idempotency=request_key())

    assert (again.id, again.outcome) == (id, Outcome.duplicate)
    assert bench.store.keys.answer(id) == KeptAnswer(id, State.completed, NOON, b'{"paid":true}')
    with raises(KeyReused):
        bench.put(args=b'{"a":2}', idempotency=request_key())
    assert bench.claim(worker, 10) == ()


def a_purged_dead_letter_leaves_its_reason(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(idempotency=request_key())
    bench.work(worker, Event.bury, reason="no such account", error=BOOM)
    bench.clock.advance(HOUR)
    bench.store.operator.purge([id], "ann", "spam")

    answer = bench.store.keys.answer(id)

    assert answer == KeptAnswer(id, State.dead, NOON, None, "no such account")
    assert bench.ask(idempotency=request_key()).id == id


def cancelled_and_skipped_jobs_leave_their_answers_too(bench: Bench) -> None:
    worker = bench.worker()
    cancelled = bench.put(idempotency=request_key("c"))
    bench.store.operator.cancel([cancelled], "ann", "not needed")
    skipped = bench.put(idempotency=request_key("s"))
    bench.work(worker, Event.skip, reason="refunded")
    bench.clock.advance(2 * DAY)

    bench.retain()

    assert bench.store.keys.answer(cancelled) == KeptAnswer(
        cancelled, State.cancelled, NOON, None, "not needed"
    )
    assert bench.store.keys.answer(skipped) == KeptAnswer(skipped, State.skipped, NOON, None, "refunded")


def only_a_small_result_outlives_its_job(bench: Bench) -> None:
    worker = bench.worker()
    largest = b'"' + b"r" * (KEPT_RESULT - 2) + b'"'
    small, large = bench.put_all([new_job(idempotency=request_key(key)) for key in "sl"])
    bench.work(worker, result=largest)
    bench.work(worker, result=largest + b" ")
    bench.clock.advance(2 * DAY)
    bench.retain()

    answers = [bench.store.keys.answer(id) for id in (small, large)]

    assert [answer and (answer.state, answer.result) for answer in answers] == [
        (State.completed, largest),
        (State.completed, None),
    ]


def a_job_without_a_key_leaves_no_answer(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.work(worker, result=b"1")
    bench.clock.advance(2 * DAY)
    bench.retain()

    assert bench.store.keys.answer(id) is None
    assert bench.store.keys.answer(NO_SUCH_JOB) is None


def a_key_is_free_again_when_its_time_is_over(bench: Bench) -> None:
    first = bench.put(args=b'{"a":1}', idempotency=request_key())
    bench.clock.advance(KEEP_KEYS - SECOND)
    assert bench.ask(args=b'{"a":1}', idempotency=request_key()).id == first
    bench.clock.advance(2 * SECOND)

    second = bench.ask(args=b'{"a":2}', idempotency=request_key())

    assert second.outcome is Outcome.created
    assert second.id != first
    assert bench.ask(args=b'{"a":2}', idempotency=request_key()).id == second.id
    assert _live(bench) == 2


def a_kept_answer_goes_when_its_key_does(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(idempotency=request_key())
    bench.work(worker, result=b"1")
    bench.clock.advance(2 * DAY)
    bench.retain()
    bench.clock.advance(KEEP_KEYS)
    bench.retain()

    assert bench.store.keys.answer(id) is None
    assert bench.ask(idempotency=request_key()).outcome is Outcome.created


def a_redriven_job_still_stands_under_its_key(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(idempotency=request_key())
    bench.work(worker, Event.bury)
    bench.store.operator.redrive([id], "ann", "fixed")

    assert bench.ask(idempotency=request_key()).id == id
    bench.work(worker, result=b"2")
    bench.clock.advance(2 * DAY)
    bench.retain()
    answer = bench.store.keys.answer(id)
    assert answer is not None
    assert (answer.state, answer.result) == (State.completed, b"2")


def a_key_of_a_rolled_back_transaction_is_free(bench: Bench) -> None:
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.enqueue_on(connection, [new_job(args=b'{"a":1}', idempotency=request_key())])
        raise ZeroDivisionError

    assert bench.ask(args=b'{"a":2}', idempotency=request_key()).outcome is Outcome.created


def a_callers_transaction_goes_on_after_a_reused_key(bench: Bench) -> None:
    first = bench.put(args=b'{"a":1}', idempotency=request_key())

    with bench.store.transaction() as connection:
        before = bench.store.enqueue_on(connection, [new_job()])[0].id
        with raises(KeyReused) as caught:
            bench.store.enqueue_on(
                connection, [new_job(), new_job(args=b'{"a":2}', idempotency=request_key())]
            )
        again = bench.store.enqueue_on(connection, [new_job(args=b'{"a":1}', idempotency=request_key())])[0]
        after = bench.store.enqueue_on(connection, [new_job()])[0].id

    assert isinstance(caught[0], KeyReused)
    assert (caught[0].job_id, caught[0].position) == (first, 1)
    assert (again.id, again.outcome) == (first, Outcome.duplicate)
    assert bench.states([first, before, after]) == [State.ready] * 3
    assert _live(bench) == 3


def a_repeat_that_comes_while_the_first_is_uncommitted_waits_for_it(bench: Bench) -> None:
    for commit in (True, False):
        _repeat_beside(bench, bench.another(), request_key(f"commit {commit}"), commit=commit)


def _repeat_beside(bench: Bench, other: Store, key: bytes, *, commit: bool) -> None:
    def first() -> JobId:
        id = NO_SUCH_JOB
        with suppress(ZeroDivisionError), bench.store.transaction() as connection:
            id = bench.store.enqueue_on(connection, [new_job(idempotency=key)])[0].id
            if not commit:
                raise ZeroDivisionError
        return id

    mine, theirs = together(first, lambda: other.jobs.enqueue([new_job(idempotency=key)])[0].id)

    found = bench.ask(idempotency=key)
    assert (found.outcome, found.id) == (Outcome.duplicate, theirs)
    assert not commit or mine == theirs


def many_who_send_one_request_at_once_get_one_job(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]

    for number in range(5):
        job = new_job(idempotency=request_key(f"r{number}"))
        stored = together(*(partial(store.jobs.enqueue, [job]) for store in stores))
        answers = [one for answer in stored for one in answer]

        assert len({one.id for one in answers}) == 1
        assert sorted(one.outcome for one in answers) == [Outcome.created] + [Outcome.duplicate] * 3
    assert _live(bench) == 5


def calls_with_the_same_keys_in_other_orders_never_block_each_other_for_ever(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    names = [f"k{number}" for number in range(12)]

    for round_number in range(3):
        jobs = [new_job(idempotency=request_key(f"{round_number}{name}")) for name in names]
        orders = [jobs, jobs[::-1], jobs[6:] + jobs[:6], jobs[::2] + jobs[1::2]]
        answers = together(
            *(partial(store.jobs.enqueue, order) for store, order in zip(stores, orders, strict=True))
        )

        for job in jobs:
            found = [answer[order.index(job)] for answer, order in zip(answers, orders, strict=True)]
            assert len({one.id for one in found}) == 1
            assert sum(one.outcome is Outcome.created for one in found) == 1


def once_is_true_the_first_time_only(bench: Bench) -> None:
    keys = bench.store.keys
    first, other = once_digest("event 7"), once_digest("event 8")

    assert keys.once(first, DAY)

    assert not keys.once(first, DAY)
    assert not bench.another().keys.once(first, 9 * DAY)
    assert keys.once(other, DAY)


def once_is_true_again_when_its_time_is_over(bench: Bench) -> None:
    keys, key = bench.store.keys, once_digest("event 7")
    keys.once(key, DAY)
    bench.clock.advance(DAY - SECOND)
    assert not keys.once(key, 9 * DAY)
    bench.clock.advance(2 * SECOND)

    assert keys.once(key, DAY)

    assert not keys.once(key, DAY)
    bench.clock.advance(DAY - SECOND)
    bench.retain()
    assert not keys.once(key, DAY)


def once_in_a_transaction_that_rolls_back_never_was(bench: Bench) -> None:
    key = once_digest("event 7")
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.once_on(connection, key, DAY)
        assert not bench.store.once_on(connection, key, DAY)
        raise ZeroDivisionError

    with bench.store.transaction() as connection:
        assert bench.store.once_on(connection, key, DAY)

    assert not bench.store.keys.once(key, DAY)


def once_waits_for_a_transaction_that_asked_before(bench: Bench) -> None:
    for commit in (True, False):
        _once_beside(bench, bench.another(), once_digest(f"commit {commit}"), commit=commit)


def _once_beside(bench: Bench, other: Store, key: bytes, *, commit: bool) -> None:
    def first() -> bool:
        with suppress(ZeroDivisionError), bench.store.transaction() as connection:
            answer = bench.store.once_on(connection, key, DAY)
            if not commit:
                raise ZeroDivisionError
            return answer
        return False

    mine, theirs = together(first, lambda: other.keys.once(key, DAY))

    assert mine + theirs == 1
    assert not bench.store.keys.once(key, DAY)


def of_many_who_ask_once_at_the_same_time_one_is_first(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]

    for number in range(5):
        key = once_digest(f"event {number}")
        answers = together(*(partial(store.keys.once, key, DAY) for store in stores))
        assert sorted(answers) == [False, False, False, True]


def a_blob_is_in_use_as_long_as_its_job_is_kept(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(blobs=("b1", "b2"))
    keys = bench.store.keys
    assert keys.unused_blobs(["b1", "b2", "b3"]) == ["b3"]
    assert keys.unused_blobs([]) == []
    bench.work(worker)
    assert keys.unused_blobs(["b1", "b2"]) == []
    bench.clock.advance(2 * DAY)

    bench.retain()

    assert sorted(keys.unused_blobs(["b1", "b2"])) == ["b1", "b2"]


def a_blob_of_two_jobs_is_in_use_until_both_are_gone(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(blobs=("b1",))
    bench.put(blobs=("b1",))
    bench.work(worker)
    bench.clock.advance(2 * DAY)
    bench.retain()
    assert bench.store.keys.unused_blobs(["b1"]) == []
    letter = bench.work(worker, Event.bury)

    bench.store.operator.purge([letter], "ann", "spam")

    assert bench.store.keys.unused_blobs(["b1"]) == ["b1"]


def a_blob_of_what_is_yet_to_follow_is_in_use(bench: Bench) -> None:
    later = new_job(blobs=("b2",), then=(new_job(blobs=("b3",)),))
    bench.put(then=(later,), on_dead=(new_job(blobs=("b4",)),))

    assert bench.store.keys.unused_blobs(["b1", "b2", "b3", "b4"]) == ["b1"]
