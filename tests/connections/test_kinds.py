"""Every kind of connection keeps the same promise: the job lives and dies with the caller's transaction."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest

from duly import App, ConnectionMismatch, Enqueued, KeyReused, Outcome, State
from duly.core.decide import completed
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Incarnation, JobId, QueueClaim, WorkerInfo
from duly.core.keys import once_digest
from tests.connections.callers import Caller
from tests.connections.conftest import KINDS, Open

pytestmark = pytest.mark.parametrize("kind", KINDS, indirect=True)

KEEP = timedelta(days=1)


def enqueue(jobs: App, caller: Caller, order: int) -> Enqueued[None]:
    return caller.hand_in(
        lambda connection: task_of(jobs).using(connection=connection).enqueue(order),
        lambda connection: task_of(jobs).using(connection=connection).aenqueue(order),
    )


def task_of(jobs: App) -> Any:
    """The one task, declared when first asked for."""
    if "send" not in jobs.tasks:

        @jobs.task
        def send(order: int) -> None: ...

    return jobs.tasks["send"]


def state(jobs: App, id: int) -> State | None:
    record = jobs.store.inspection.lookup([JobId(id)])[0]
    return None if record is None else record.state


_numbers = itertools.count(1)


def orders(open_caller: Open, number: int) -> int:
    """How many there are of this number, as another connection sees it."""
    return int(open_caller().execute(f"select count(*) from orders where id = {number}")[0])


def test_a_committed_job_runs_and_its_row_is_there(jobs: App, caller: Caller, open_caller: Open) -> None:
    number = next(_numbers)
    caller.begin()
    caller.execute(f"insert into orders values ({number})")
    stored = enqueue(jobs, caller, number)
    before = state(jobs, stored.id) if jobs.settings.url.startswith("postgres") else None

    caller.commit()

    assert (stored.pending, before, state(jobs, stored.id)) == (True, None, State.ready)
    assert orders(open_caller, number) == 1


def test_a_rolled_back_job_never_existed(jobs: App, caller: Caller, open_caller: Open) -> None:
    number = next(_numbers)
    caller.begin()
    stored = enqueue(jobs, caller, number)
    caller.execute(f"insert into orders values ({number})")

    caller.rollback()

    assert (state(jobs, stored.id), orders(open_caller, number)) == (None, 0)


def test_a_savepoint_takes_its_jobs_back(jobs: App, caller: Caller) -> None:
    caller.begin()
    kept = enqueue(jobs, caller, 3)

    gone = caller.back_to_savepoint(lambda: enqueue(jobs, caller, 4))
    caller.commit()

    # SQLite gives the number out again; PostgreSQL's sequence goes on.
    assert gone.id > kept.id
    assert (state(jobs, kept.id), state(jobs, gone.id)) == (State.ready, None)


def test_in_autocommit_a_job_is_stored_at_once_and_says_so(jobs: App, open_caller: Open) -> None:
    caller = open_caller(autocommit=True)

    stored = enqueue(jobs, caller, 5)

    assert (stored.pending, state(jobs, stored.id)) == (False, State.ready)


def test_without_begin_the_job_hangs_on_the_callers_commit(jobs: App, caller: Caller) -> None:
    if not caller.begins_by_itself:
        stored = enqueue(jobs, caller, 6)
        assert (stored.pending, state(jobs, stored.id)) == (False, State.ready)
        return

    gone = enqueue(jobs, caller, 6)
    caller.rollback()
    after = state(jobs, gone.id)
    kept = enqueue(jobs, caller, 7)
    caller.commit()

    assert (gone.pending, after) == (True, None)
    assert (kept.pending, state(jobs, kept.id)) == (True, State.ready)


def test_a_closed_connection_is_refused(jobs: App, caller: Caller) -> None:
    caller.begin()
    caller.close()

    with pytest.raises(ConnectionMismatch, match=r"closed|given back"):
        enqueue(jobs, caller, 8)


def test_another_database_is_refused_and_the_transaction_goes_on(
    jobs: App, open_caller: Open, other_url: str
) -> None:
    caller = open_caller(other_url)
    caller.begin()

    with pytest.raises(ConnectionMismatch, match=r"another database|and the store is"):
        enqueue(jobs, caller, 9)

    assert caller.execute("select 41 + 1")[0] == 42
    caller.rollback()


@pytest.mark.filterwarnings("ignore::duly.BlockingCallWarning")
def test_blocking_and_async_are_told_apart(jobs: App, caller: Caller, kind: str) -> None:
    import asyncio

    send = task_of(jobs).using(connection=caller.connection)
    if caller.is_async:
        with pytest.raises(ConnectionMismatch, match="aenqueue"):
            send.enqueue(1)
    elif kind == "sqlite-sqlite3":
        # Async code uses it in its own thread, as `atransaction()` does.
        assert asyncio.run(send.aenqueue(1)).pending
        caller.rollback()
    else:
        with pytest.raises(ConnectionMismatch, match=r"without an a|another thread"):
            asyncio.run(send.aenqueue(1))


def test_a_completion_belongs_to_the_transaction_and_is_fenced(jobs: App, caller: Caller) -> None:
    me = worker(jobs)
    claimed = claim(jobs, me)
    done = completed(claimed, b'"sent"', timedelta(seconds=1))

    caller.begin()
    first = complete(jobs, caller, me, done)
    caller.rollback()
    between = state(jobs, claimed.id)
    caller.begin()
    second = complete(jobs, caller, me, done)
    again = complete(jobs, caller, me, done)
    caller.commit()

    assert (first, between, second, again) == (True, State.running, True, False)
    assert state(jobs, claimed.id) is State.completed


def test_cancel_lookup_and_once_belong_to_the_transaction(jobs: App, caller: Caller) -> None:
    waiting = task_of(jobs).using(delay="1d").enqueue(1)
    key = once_digest(f"event {waiting.id}")
    store = jobs.store

    answers = []
    for end in (caller.rollback, caller.commit):
        caller.begin()
        first = caller.hand_in(
            lambda connection: store.once_on(connection, key, KEEP),
            lambda connection: store.aonce_on(connection, key, KEEP),
        )
        caller.hand_in(
            lambda connection: store.cancel_on(connection, [waiting.id], "ann", "no"),
            lambda connection: store.acancel_on(connection, [waiting.id], "ann", "no"),
        )
        (seen,) = caller.hand_in(
            lambda connection: store.lookup_on(connection, [waiting.id]),
            lambda connection: store.alookup_on(connection, [waiting.id]),
        )
        end()
        answers.append((first, seen and seen.state, state(jobs, waiting.id)))

    assert answers == [
        (True, State.cancelled, State.scheduled),
        (True, State.cancelled, State.cancelled),
    ]
    assert not store.keys.once(key, KEEP)


def test_keys_follow_ups_and_their_refusals_leave_the_transaction_usable(jobs: App, caller: Caller) -> None:
    key = f"order:{next(_numbers)}"
    after = task_of(jobs).using(delay="1h")
    said = task_of(jobs).using(
        idempotency_key=key,
        unique_key=key,
        version=3,
        then=[after.draft(7)],
        on_dead=[after.draft(8)],
        tags=["a"],
    )

    def put(order: int) -> Enqueued[None]:
        return caller.hand_in(
            lambda connection: said.using(connection=connection).enqueue(order),
            lambda connection: said.using(connection=connection).aenqueue(order),
        )

    caller.begin()
    first, again = put(1), put(1)
    with pytest.raises(KeyReused) as told:
        put(2)
    last = enqueue(jobs, caller, 3)
    caller.commit()

    assert (first.outcome, again.outcome, again.id) == (Outcome.created, Outcome.duplicate, first.id)
    assert told.value.job_id == first.id
    assert [state(jobs, one.id) for one in (first, last)] == [State.ready] * 2


def test_what_is_read_on_it_is_what_the_store_reads(jobs: App, caller: Caller) -> None:
    stored = task_of(jobs).using(delay="1d", tags=["a", "b"], tenant="acme", timeout="3m").enqueue(1)
    own = jobs.store.inspection.lookup([stored.id])

    caller.begin()
    read = caller.hand_in(
        lambda connection: jobs.store.lookup_on(connection, [stored.id]),
        lambda connection: jobs.store.alookup_on(connection, [stored.id]),
    )
    caller.rollback()

    assert read == own


def test_after_a_failed_statement_it_is_as_the_database_has_it(jobs: App, caller: Caller, kind: str) -> None:
    caller.begin()
    with pytest.raises(Exception, match=r"nothing_there"):
        caller.execute("select * from nothing_there")

    if kind.startswith("postgres"):
        with pytest.raises(ConnectionMismatch, match="failed already"):
            enqueue(jobs, caller, 10)
    else:
        stored = enqueue(jobs, caller, 10)
        caller.commit()
        assert state(jobs, stored.id) is State.ready


def test_a_connection_to_the_other_store_is_refused(
    kind: str, caller: Caller, tmp_path: Any, server_url: str
) -> None:
    other = App(f"sqlite:///{tmp_path}/else.db" if kind.startswith("postgres") else server_url)

    with pytest.raises(ConnectionMismatch, match=r"leads to (PostgreSQL|SQLite) and the App's store is"):
        enqueue(other, caller, 11)

    other.close()


@pytest.fixture
def other_url(kind: str, request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A database of the same kind that is not the App's."""
    if kind.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/other.db"
    return request.getfixturevalue("server_url").rpartition("/")[0] + "/postgres"


def complete(jobs: App, caller: Caller, me: Incarnation, done: Ended) -> bool:
    return caller.hand_in(
        lambda connection: jobs.store.complete_on(connection, me, done),
        lambda connection: jobs.store.acomplete_on(connection, me, done),
    )


def worker(jobs: App) -> Incarnation:
    task_of(jobs)
    return jobs.store.leases.register(
        WorkerInfo(
            host="here",
            pid=1,
            supervisor="here:1",
            queues=("alone",),
            tasks={"send": timedelta(minutes=15)},
            lease=timedelta(seconds=30),
            heartbeat=timedelta(seconds=5),
            slots=1,
            version="0",
        )
    )


def claim(jobs: App, me: Incarnation) -> ClaimedJob:
    jobs.queue("alone")
    task_of(jobs).using(queue="alone").enqueue(1)
    (claimed,) = jobs.store.jobs.exchange(me, [], ClaimRequest((QueueClaim("alone", 1),), 1)).claimed
    return claimed
