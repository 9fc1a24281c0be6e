"""Statements that go to libpq without the driver's cursors: in turns, interrupted, refused by the encoder."""

import signal
import threading
from enum import IntEnum, StrEnum

import psycopg
import pytest
from msgspec.structs import replace

from duly.core.job import JobId, NewJob
from duly.core.lifecycle import Outcome, State
from duly.stores.faults import DataFault
from duly.stores.postgres.direct import text_of
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import claim, ended, put, states, worker
from tests.stores.postgres.test_races import waits_for_lock
from tests.waiting import wait_until

PLAIN = NewJob("default", "ok", b"{}")
UNSENDABLE = NewJob("default", "\ud800", b"{}")


def test_many_alike_jobs_are_stored_in_the_order_asked(store: PostgresStore) -> None:
    jobs = [NewJob("default", "ok", b'{"n":%d}' % number) for number in range(2500)]

    stored = store.jobs.enqueue(jobs)

    assert {one.outcome for one in stored} == {Outcome.created}
    arguments = store.jobs.arguments([one.id for one in stored])
    assert [arguments[one.id] for one in stored] == [job.args for job in jobs]


def test_a_text_with_a_nul_is_refused_and_not_cut(store: PostgresStore) -> None:
    with pytest.raises(DataFault, match="NUL"):
        store.jobs.enqueue([NewJob("default", "ok\0ay", b"{}")])


@pytest.mark.parametrize("before", [0, 999, 1000, 2500])
def test_a_job_that_cannot_be_sent_takes_back_the_parts_before_it(store: PostgresStore, before: int) -> None:
    with pytest.raises(DataFault, match="cannot be stored"):
        store.jobs.enqueue([*[PLAIN] * before, UNSENDABLE])

    assert claim(store, worker(store)) == ()
    assert len(put(store, 3)) == 3


def test_an_interrupted_statement_costs_its_connection_only(store: PostgresStore, url: str) -> None:
    put(store)
    with (
        psycopg.connect(url) as holder,
        psycopg.connect(url, autocommit=True) as watcher,
        pytest.raises(KeyboardInterrupt),
    ):
        holder.execute("lock table duly.ready in exclusive mode")
        main = threading.get_ident()

        def interrupt() -> None:
            wait_until(lambda: waits_for_lock(watcher, "enqueue_one_2"), what="the enqueue waits")
            signal.pthread_kill(main, signal.SIGINT)

        # Whoever runs the tests in the background may have left Ctrl-C ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            put(store)
        finally:
            thread.join()
            signal.signal(signal.SIGINT, before)

    assert len(put(store)) == 1


def test_a_job_claimed_before_the_migration_completes_like_any_other(store: PostgresStore, url: str) -> None:
    me = worker(store)
    old, new = put(store, 2)
    held = claim(store, me, 2)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "update duly.claimed set task_name = null, queue_name = null where id = %s", (old,)
        )
    ends = [ended(job) for job in (*held, replace(held[0], id=JobId(new + 1)))]

    acked = store.jobs.exchange(me, ends, None).acked

    assert acked == {(old, 1), (new, 1)}
    assert states(store, [old, new]) == [State.completed, State.completed]
    records = store.inspection.lookup([old, new])
    assert [record and (record.queue, record.task) for record in records] == [("default", "ok")] * 2


def test_statements_that_the_session_has_forgotten_are_prepared_again(store: PostgresStore) -> None:
    for _ in range(6):
        put(store)
    with store.transaction() as connection:
        connection.execute("deallocate all")

    assert len(put(store)) == 1
    with store.transaction() as connection:
        connection.execute("deallocate all")
    assert len(store.jobs.enqueue([PLAIN] * 2500)) == 2500
    assert len(store.jobs.enqueue([PLAIN] * 2500)) == 2500


def test_a_statement_that_the_session_knows_already_is_used(store: PostgresStore) -> None:
    for _ in range(6):
        put(store)
    with store.transaction() as connection:
        connection.execute("deallocate all")
        text = text_of("enqueue_one_job", "duly")
        connection.execute(b"prepare %s as %s" % (text.prepared, text.text))

    assert len(put(store)) == 1


class Urgency(IntEnum):
    high = 7


class Queue(StrEnum):
    mail = "default"


def test_values_of_a_users_enumeration_are_sent_as_what_they_stand_for(store: PostgresStore) -> None:
    store.jobs.enqueue([NewJob(Queue.mail, "ok", b"{}", priority=Urgency.high)])

    (job,) = claim(store, worker(store))

    assert (job.queue, job.priority) == ("default", 7)
