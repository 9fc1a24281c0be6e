"""Cases: idempotent requests, whose first answer is kept for whoever asks again."""

from functools import partial

from duly.core.operating import AnswerAsk, FilledReply, KeptReply
from duly.stores.protocol import Store

from .bench import DAY, MINUTE, SECOND, Bench, new_job, together
from .expect import raises


def _ask(key: bytes = b"k1", body: bytes = b"body", token: int = 7) -> AnswerAsk:
    return AnswerAsk(key, token, body, MINUTE)


def _fill(key: bytes = b"k1", body: bytes = b'{"job_id":"1"}') -> FilledReply:
    return FilledReply(key, 202, body, DAY)


def _kept(bench: Bench, key: bytes = b"k1", store: Store | None = None) -> KeptReply:
    found = (store or bench.store).answers.look(key)
    assert found is not None, "nothing is kept under this key"
    return found


def the_first_request_of_a_key_takes_it(bench: Bench) -> None:
    assert bench.store.answers.take([_ask()]) == [None]

    kept = _kept(bench)
    assert (kept.key, kept.token, kept.body_hash, kept.at) == (b"k1", 7, b"body", bench.clock())
    assert (kept.status, kept.body, kept.expires_at) == (0, None, bench.clock() + MINUTE)
    assert bench.store.answers.look(b"k2") is None


def a_second_request_finds_the_first_in_flight(bench: Bench) -> None:
    bench.store.answers.take([_ask()])

    (found,) = bench.another().answers.take([_ask(body=b"another", token=8)])

    assert found == _kept(bench)
    assert (found.token, found.body_hash, found.body) == (7, b"body", None)


def a_second_request_finds_the_answer_to_the_first(bench: Bench) -> None:
    bench.store.answers.take([_ask()])
    bench.store.answers.fill([_fill()])

    (found,) = bench.store.answers.take([_ask()])

    assert found is not None
    assert (found.status, found.body) == (202, b'{"job_id":"1"}')
    assert found.expires_at == bench.clock() + DAY


def an_answer_is_never_replaced(bench: Bench) -> None:
    bench.store.answers.take([_ask()])
    bench.store.answers.fill([_fill(body=b"first")])

    bench.store.answers.fill([_fill(body=b"second")])

    assert _kept(bench).body == b"first"


def nothing_is_answered_under_a_key_that_was_not_taken(bench: Bench) -> None:
    bench.store.answers.fill([_fill()])

    assert bench.store.answers.look(b"k1") is None


def each_of_several_asks_is_answered_in_its_place(bench: Bench) -> None:
    bench.store.answers.take([_ask(b"k2")])
    bench.store.answers.fill([_fill(b"k2", b"two")])

    found = bench.store.answers.take([_ask(b"k3"), _ask(b"k2"), _ask(b"k1")])

    assert [None if one is None else one.body for one in found] == [None, b"two", None]


def a_key_asked_for_twice_in_one_call_is_taken_once(bench: Bench) -> None:
    first, second = bench.store.answers.take([_ask(body=b"one"), _ask(body=b"two")])

    assert first is None
    assert second is not None
    assert (second.body_hash, second.body) == (b"one", None)


def a_key_is_free_again_when_its_answer_has_expired(bench: Bench) -> None:
    bench.store.answers.take([_ask()])
    bench.store.answers.fill([_fill()])
    bench.clock.advance(DAY - SECOND)
    before = bench.store.answers.take([_ask()])
    bench.clock.advance(SECOND)

    after = bench.store.answers.take([_ask(body=b"new")])

    assert before != [None]
    assert after == [None]
    assert (_kept(bench).body_hash, _kept(bench).body) == (b"new", None)


def a_key_in_flight_is_free_again_after_its_hold(bench: Bench) -> None:
    bench.store.answers.take([_ask()])

    bench.clock.advance(MINUTE)

    assert bench.store.answers.look(b"k1") is None
    assert bench.store.answers.take([_ask()]) == [None]


def a_key_in_flight_can_be_given_back_and_an_answered_one_cannot(bench: Bench) -> None:
    bench.store.answers.take([_ask(b"k1"), _ask(b"k2")])
    bench.store.answers.fill([_fill(b"k2")])

    bench.store.answers.release([b"k1", b"k2", b"k3"])

    assert bench.store.answers.look(b"k1") is None
    assert _kept(bench, b"k2").status == 202


def a_key_and_its_job_come_with_one_commit(bench: Bench) -> None:
    with bench.store.transaction() as connection:
        assert bench.store.answers.take([_ask()], connection) == [None]
        (stored,) = bench.store.enqueue_on(connection, [new_job()])
        bench.store.answers.fill([_fill(body=str(stored.id).encode())], connection)

    assert _kept(bench).body == str(stored.id).encode()
    assert bench.row(stored.id).id == stored.id


def a_key_goes_with_the_job_that_was_rolled_back(bench: Bench) -> None:
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.answers.take([_ask()], connection)
        bench.store.enqueue_on(connection, [new_job()])
        bench.store.answers.fill([_fill()], connection)
        raise ZeroDivisionError

    assert bench.store.answers.look(b"k1") is None
    assert bench.store.inspection.counts() == []
    assert bench.store.answers.take([_ask()]) == [None]


def many_who_ask_at_once_take_a_key_once(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    for number in range(5):
        asks = [_ask(f"{number}-{which}".encode()) for which in range(3)]

        # In several orders, so that locks taken in the order asked would be a deadlock.
        answers = together(
            *(
                partial(store.answers.take, asks[turn % 3 :] + asks[: turn % 3])
                for turn, store in enumerate(stores)
            )
        )

        assert sum(one is None for answer in answers for one in answer) == 3


def expired_answers_are_forgotten_the_oldest_first(bench: Bench) -> None:
    for number in range(3):
        bench.store.answers.take([_ask(f"k{number}".encode())])
        bench.clock.advance(SECOND)
    bench.store.answers.take([_ask(b"later")])
    bench.clock.advance(MINUTE - SECOND)

    gone = [bench.store.answers.forget(2), bench.store.answers.forget(2), bench.store.answers.forget(2)]

    assert gone == [2, 1, 0]
    assert _kept(bench, b"later").token == 7


def the_sweep_forgets_expired_answers(bench: Bench) -> None:
    bench.store.answers.take([_ask()])
    bench.clock.advance(MINUTE)

    bench.sweep()

    assert bench.store.answers.forget() == 0
