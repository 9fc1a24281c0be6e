"""From a schema of the previous release to this one's: nothing is lost, and its workers go on beside ours."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier

from duly.core.errors import MigrationNeeded
from duly.core.job import Counters, Ended, Incarnation, JobId, NewJob, UniqueKey
from duly.core.keys import unique_digest
from duly.core.lifecycle import Event, State
from duly.core.names import key_of
from duly.stores.postgres import columns
from duly.stores.postgres.arrays import words
from duly.stores.postgres.statements import TOKEN, migrations, statement
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import MINUTE, claim, ended, put, request, states, worker
from tests.stores.postgres.conftest import Open
from tests.stores.postgres.test_owed import sweep_until

# The call of the previous release, as its file had it.
EXCHANGE_1 = b"""
select kind, place, id, run, priority, pos, failed, lost, interrupted, snoozed, attempts, timeout, enqueued_at,
       claimed_at, queue, task, tenant, tags, correlation_id, args
  from duly.exchange_1(
    p_incarnation => %(incarnation)s::bigint,
    p_ids => %(ids)s::bigint[], p_runs => %(runs)s::int[], p_events => %(events)s::text[],
    p_states => %(states)s::text[],
    p_failed => %(failed)s::int[], p_lost => %(lost)s::int[], p_interrupted => %(interrupted)s::int[],
    p_snoozed => %(snoozed)s::int[], p_delays => %(delays)s::float8[], p_results => %(results)s::bytea[],
    p_reasons => %(reasons)s::text[], p_notes => %(notes)s::text[], p_error_types => %(error_types)s::text[],
    p_error_messages => %(error_messages)s::text[], p_tracebacks => %(tracebacks)s::text[],
    p_fingerprints => %(fingerprints)s::text[], p_elapsed => %(elapsed)s::float8[],
    p_queues => %(queues)s::text[], p_lanes => %(lanes)s::bigint[], p_caps => %(caps)s::int[],
    p_sweeps => %(sweeps)s::boolean[],
    p_most => %(most)s::int, p_unparked => %(unparked)s::bigint[], p_jump_lanes => %(jump_lanes)s::bigint[],
    p_jump_from => %(jump_from)s::int[], p_jump_pos => %(jump_pos)s::bigint[], p_jump_to => %(jump_to)s::bigint[],
    p_own => %(own)s, p_now => %(now)s::timestamptz)
"""


class Previous:
    """A process of the previous release: only functions of its version."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, text: bytes, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        with psycopg.Cursor(self._connection, row_factory=tuple_row) as cursor:
            return cursor.execute(text, parameters, prepare=False, binary=True).fetchall()

    def enqueue(self, *jobs: NewJob) -> list[JobId]:
        parameters = columns.new_jobs(jobs, own=True, now=None)
        # Until the function of today it took no triggers.
        text = statement("enqueue_jobs", "duly").replace(b"enqueue_4", b"enqueue_1")
        text = text.replace(b"p_triggers => %(triggers)s::text[],", b"")
        return [JobId(row[0]) for row in self.run(text, parameters)]

    def exchange(self, me: Incarnation, ends: list[Ended], most: int = 0) -> list[tuple[Any, ...]]:
        lanes = {
            "queues": "{default}",
            "lanes": words([key_of("default")]),
            "caps": words([most]),
            "sweeps": "{t}",
        }
        wanted = {**columns.NO_CLAIM, **lanes, "most": most}
        parameters = {"incarnation": me, **columns.ends(ends), **wanted, "own": True, "now": None}
        return self.run(EXCHANGE_1, parameters)

    def claim(self, me: Incarnation, most: int = 1) -> list[tuple[JobId, int]]:
        return [(JobId(row[2]), row[3]) for row in self.exchange(me, [], most) if row[0] == "claimed"]


def end(id: JobId, run: int, event: Event, to: State, **more: Any) -> Ended:
    return Ended(id, run, event, to, Counters(), elapsed=timedelta(0), **more)


@pytest.fixture
def old_url(postgres: PostgresServer) -> Iterator[str]:
    """A database with the schema of the previous release."""
    with postgres.database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("create schema duly")
            connection.execute(statement("create_schema_version", "duly"))
            first = migrations()[0]
            connection.execute(first.text.replace(TOKEN, '"duly"').encode())
            connection.execute(
                statement("record_migration", "duly"),
                {"version": 1, "name": first.name, "checksum": first.checksum},
            )
        yield url


@pytest.fixture
def previous(old_url: str) -> Iterator[Previous]:
    with psycopg.connect(old_url, autocommit=True) as connection:
        yield Previous(connection)


@pytest.fixture
def beside(url: str) -> Iterator[Previous]:
    """The previous release against the new schema."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield Previous(connection)


def jobs_in_every_state(store: PostgresStore, previous: Previous) -> tuple[Incarnation, dict[State, JobId]]:
    me = worker(store)
    plain = NewJob("default", "ok", b'{"n":1}', tags=("a",))
    done, dead, skipped, parked, running = previous.enqueue(
        *[plain] * 3, NewJob("default", "unknown", b"{}"), NewJob("default", "ok", b"{}")
    )
    assert [id for id, _ in previous.claim(me, 4)] == [done, dead, skipped, running]
    (later,) = previous.enqueue(NewJob("default", "ok", b"{}", delay=MINUTE))
    previous.exchange(
        me,
        [
            end(done, 1, Event.complete, State.completed, result=b'{"total":3}'),
            end(dead, 1, Event.bury, State.dead, reason="no use"),
            end(skipped, 1, Event.skip, State.skipped, reason="guard"),
        ],
    )
    (cancelled,) = previous.enqueue(plain)
    previous.run(
        b"select * from duly.ask_cancel_1(array[%(id)s::bigint], 'ann', 'x', null)", {"id": cancelled}
    )
    (ready,) = previous.enqueue(plain)
    return me, {
        State.completed: done,
        State.dead: dead,
        State.skipped: skipped,
        State.blocked: parked,
        State.running: running,
        State.scheduled: later,
        State.cancelled: cancelled,
        State.ready: ready,
    }


@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_jobs_in_every_state_outlive_the_migration_and_go_on(
    open_store: Open, old_url: str, previous: Previous
) -> None:
    store = open_store(old_url)
    me, ids = jobs_in_every_state(store, previous)

    assert store.schema.migrate() == [
        "0002_keys",
        "0003_control",
        "0004_operating",
        "0005_chains",
        "0006_keyed",
        "0007_keyed_many",
        "0008_beside",
    ]

    records = {record.state: record for record in store.inspection.lookup(list(ids.values())) if record}
    assert {state: record.id for state, record in records.items()} == ids
    (told,) = store.audits.page()
    assert (told.verb, told.actor, told.reason, told.detail) == ("cancel", "ann", "x", '{"jobs":1}')
    assert records[State.completed].result == b'{"total":3}'
    assert records[State.ready].tags == ("a",)
    ours = worker(store, "ok", "unknown")
    assert [id for id, _ in previous.claim(me)] == [ids[State.ready]]
    assert store.operator.redrive([ids[State.dead]], "ann", "fixed") == [ids[State.dead]]
    assert store.operator.run_now([ids[State.scheduled]], "ann", "now") == [ids[State.scheduled]]
    (again, now) = claim(store, ours, 10)
    assert (again.id, now.id, again.trigger) == (ids[State.dead], ids[State.scheduled], None)
    previous.exchange(me, [end(ids[State.running], 1, Event.complete, State.completed)])
    assert states(store, [ids[State.running]]) == [State.completed]


def test_jobs_whose_names_had_other_keys_move_to_the_lanes_of_today(
    open_store: Open, old_url: str, previous: Previous
) -> None:
    store = open_store(old_url)
    worker(store)
    with psycopg.connect(old_url) as connection:
        usual, suspect, later = previous.enqueue(
            *[NewJob("default", "ok", b"{}")] * 2, NewJob("default", "ok", b"{}", delay=MINUTE)
        )
        connection.execute("update duly.job set queue_key = 11, suspect_key = 12, task_key = 13")
        connection.execute("update duly.ready set queue = 11, task = 13")
        connection.execute("update duly.ready set queue = 12, lost = 1 where id = %s", (suspect,))
        connection.execute("update duly.scheduled set queue = 11, task = 13")

    store.schema.migrate()

    me = worker(store)
    assert [job.id for job in claim(store, me, 10)] == [usual]
    store.operator.run_now([later], "ann", "now")
    assert [job.id for job in claim(store, me, 10)] == [later]
    with psycopg.connect(old_url) as connection:
        row = connection.execute(
            "select queue = duly.key_of_1(E'default\\x1fsuspect') from duly.ready"
        ).fetchone()
    assert row == (True,)


def test_a_worker_of_the_previous_release_sees_keys_and_follow_ups_through(
    store: PostgresStore, beside: Previous
) -> None:
    me = worker(store)
    key = UniqueKey(unique_digest("ok", "", "k"))
    then = NewJob("default", "ok", b'{"total":\x01}')
    (parent,) = store.jobs.enqueue(
        [NewJob("default", "ok", b"{}", unique=key, then=(then,), on_dead=(then,))]
    )

    assert beside.claim(me) == [(parent.id, 1)]
    assert (
        store.jobs.enqueue([NewJob("default", "ok", b"{}", unique=key, delay=MINUTE)])[0].outcome == "created"
    )
    beside.exchange(me, [end(parent.id, 1, Event.complete, State.completed, result=b"3")])

    (follow,) = claim(store, me, 10)
    assert (follow.args, follow.correlation_id) == (b'{"total":3}', str(parent.id))


def test_acts_of_the_previous_release_mind_keys(store: PostgresStore, beside: Previous) -> None:
    key = UniqueKey(unique_digest("ok", "", "k"), live=True)
    job = NewJob("default", "ok", b"{}", unique=key)
    (first,) = store.jobs.enqueue([job])
    cancel = b"select * from duly.ask_cancel_1(array[%(id)s::bigint], 'ann', 'x', null)"
    redrive = b"select * from duly.redrive_1(array[%(id)s::bigint], 'ann', 'x', null, null)"

    beside.run(cancel, {"id": first.id})
    (second,) = store.jobs.enqueue([job])
    refused = beside.run(redrive, {"id": first.id})
    beside.run(cancel, {"id": second.id})
    redriven = beside.run(redrive, {"id": first.id})

    assert second.outcome == "created"
    assert (refused, redriven) == ([], [(first.id,)])
    assert store.jobs.enqueue([job])[0].id == first.id


def test_a_cancel_of_the_previous_release_answers_for_a_job_that_runs(
    store: PostgresStore, beside: Previous
) -> None:
    ask = b"select wished from duly.ask_cancel_1(%(ids)s, 'ann', 'x', null)"
    settle = b"select * from duly.settle_cancel_1(%(ids)s, 'ann', 'x', null)"
    me = worker(store)
    ids = put(store, 3)
    done, running = claim(store, me, 2)

    ((wished,),) = beside.run(ask, {"ids": [int(id) for id in ids]})
    store.jobs.exchange(me, [ended(done)], None)
    settled = beside.run(settle, {"ids": wished})

    assert sorted(wished) == [done.id, running.id]
    assert settled == [(running.id, True)]
    assert states(store, ids) == [State.completed, State.running, State.cancelled]


def test_plain_jobs_of_both_releases_are_run_by_both(store: PostgresStore, beside: Previous) -> None:
    me, other = worker(store), worker(store)
    ids = [*put(store, 2), *beside.enqueue(*[NewJob("default", "ok", b"{}")] * 2)]

    ours = claim(store, me, 2)
    theirs = beside.claim(other, 2)
    store.jobs.exchange(me, [ended(job) for job in ours], None)
    beside.exchange(other, [end(id, run, Event.complete, State.completed) for id, run in theirs])

    assert [job.id for job in ours] + [id for id, _ in theirs] == ids
    assert states(store, ids) == [State.completed] * 4


def test_a_store_that_meets_the_previous_schema_says_what_to_run(open_store: Open, old_url: str) -> None:
    store = open_store(old_url)

    with pytest.raises(MigrationNeeded, match="has version 1, this release needs 8; run: duly migrate"):
        store.inspection.lookup([JobId(1)])


def test_what_the_previous_release_enqueues_after_the_migration_is_found(
    store: PostgresStore, beside: Previous, url: str
) -> None:
    job = NewJob("default", "ok", b"{}")
    parked, _ = beside.enqueue(replace(job, task="rare"), job)
    claim(store, worker(store), 10)
    first, second, later = beside.enqueue(job, job, replace(job, delay=MINUTE))
    # The keys that the previous release makes of the same names.
    with psycopg.connect(url) as connection:
        connection.execute("update duly.job set queue_key = 11, suspect_key = 12, task_key = 13")
        for table in ("ready", "scheduled", "blocked"):
            connection.execute(SQL("update duly.{} set queue = 11, task = 13").format(Identifier(table)))

    store.upkeep.sweep(MINUTE, 3, MINUTE)

    me = worker(store, "ok", "rare")
    assert [one.id for one in claim(store, me, 10)] == [first, second]
    assert store.upkeep.parked_tasks() == ("rare",)
    wanted = replace(request(10), unparked=("rare",))
    assert [one.id for one in store.jobs.exchange(me, (), wanted).claimed] == [parked]
    assert store.operator.run_now([later], "ann", "now") == [later]
    sweep_until(store, lambda: [one.id for one in claim(store, me, 10)] == [later])
