"""Batches that travel as one text: bytes come out as they went in, and who is unlike the others is treated as such."""

import random
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from duly.core.job import ClaimedJob, ClaimRequest, Counters, Ended, NewJob, QueueClaim, UniqueKey
from duly.core.lifecycle import Event, State
from duly.stores.sqlite.statements import by_position
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import claim, put, worker

MANY = 20
AWKWARD = [
    b'{"text": "plain"}',
    rb'{"text": "quote \" backslash \\ slash \/ newline \n nul \u0000 surrogate \ud83d"}',
    '{"text": "ä \u2028 \u2029 \x7f \ufeff \U0001f600"}'.encode(),
    b'{"text": "control \x01 \x1f \t"}',
    b" [1,  2.0, 1e5,\r\n{}] ",
    b"",
    b"{}",
]
NOT_TEXT = [b'"\xff\xfe"', b'{"a": "\x00"}', b"\x00", '"\ud800"'.encode("utf-8", "surrogatepass")]
EASY = timedelta(milliseconds=1)


def completed(job: ClaimedJob, result: bytes | None = None, note: str | None = None) -> Ended:
    return Ended(
        job.id, job.run, Event.complete, State.completed, job.counters, result=result, note=note, elapsed=EASY
    )


@pytest.mark.parametrize("odd", [[], *([one] for one in NOT_TEXT)])
def test_arguments_come_back_byte_for_byte(store: SQLiteStore, odd: list[bytes]) -> None:
    arguments = [*AWKWARD, *odd, *AWKWARD, b"x" * 20_000]

    ids = [stored.id for stored in store.jobs.enqueue([NewJob("default", "ok", one) for one in arguments])]

    found = store.jobs.arguments(ids)
    assert [found[id] for id in ids] == arguments


def test_a_users_file_in_utf_16_keeps_arguments_and_results_as_they_are(sqlite_path: Path) -> None:
    with closing(sqlite3.connect(sqlite_path)) as users:
        users.execute("pragma encoding = 'UTF-16le'")
        users.execute("create table mine (text)")
    store = SQLiteStore(sqlite_path)
    store.schema.migrate()

    ids = [stored.id for stored in store.jobs.enqueue([NewJob("default", "ok", one) for one in AWKWARD])]
    me = worker(store)
    ends = [completed(job, b'"\xc3\xa4"') for job in claim(store, me, MANY)]

    assert [store.jobs.arguments(ids)[id] for id in ids] == AWKWARD
    assert len(store.jobs.exchange(me, ends, None).acked) == len(ids)
    assert [row and row.result for row in store.inspection.lookup(ids)] == [b'"\xc3\xa4"'] * len(ids)
    store.close()


def test_random_bytes_come_back_as_they_are(store: SQLiteStore) -> None:
    dice = random.Random(7)
    letters = ["a", '"', "\\", "\n", "\x00", "\x1f", "é", "€", "\U0001f680", "\u2028"]
    arguments = ["".join(dice.choices(letters, k=dice.randrange(30))).encode() for _ in range(300)]
    batches = [arguments[start : start + 6] for start in range(0, 300, 6)]

    ids = [
        stored.id for batch in batches for stored in store.jobs.enqueue([NewJob("q", "t", b) for b in batch])
    ]

    found = store.jobs.arguments(ids)
    assert [found[id] for id in ids] == arguments


@pytest.mark.parametrize("size", [1, MANY])
def test_results_come_back_byte_for_byte(store: SQLiteStore, size: int) -> None:
    results = [*AWKWARD, *NOT_TEXT, b"7", b"17 4", b" ", b"-1", b"x" * 8192, b"x" * 8193, None]
    ids, me = put(store, len(results)), worker(store)

    for start in range(0, len(results), size):
        jobs = claim(store, me, size)
        ends = [completed(job, result) for job, result in zip(jobs, results[start:], strict=False)]
        assert store.jobs.exchange(me, ends, None).acked == {(job.id, 1) for job in jobs}

    assert [record and record.result for record in store.inspection.lookup(ids)] == results


def test_jobs_alike_and_unlike_in_one_call_keep_their_order_and_what_they_are(store: SQLiteStore) -> None:
    kinds = [
        NewJob("default", "ok", b"{}"),
        NewJob("default", "ok", b"{}", priority=7, tags=("a", "b"), tenant="t", correlation_id="c"),
        NewJob("default", "ok", b"{}", delay=timedelta(hours=1), expires=timedelta(hours=1)),
        NewJob("other", "ok", b"{}", attempts=3, timeout=timedelta(seconds=9)),
        NewJob("other", "ok", b"{}", then=(NewJob("other", "ok", b"{}"),)),
    ]
    jobs = [kind for count in (1, 5, 2) for kind in kinds for _ in range(count)]

    stored = store.jobs.enqueue(jobs)

    assert [one.id for one in stored] == list(range(stored[0].id, stored[0].id + len(jobs)))
    assert [one.run_at is None for one in stored] == [job.delay is None for job in jobs]
    for one, job, record in zip(
        stored, jobs, store.inspection.lookup([one.id for one in stored]), strict=True
    ):
        assert record is not None
        assert (record.queue, record.priority, record.tags) == (job.queue, job.priority, job.tags)
        assert (record.tenant, record.attempts, record.timeout) == (job.tenant, job.attempts, job.timeout)
        assert record.correlation_id == (job.correlation_id or str(one.id))
        assert record.state is (State.ready if job.delay is None else State.scheduled)
        assert record.run_at == one.run_at
        assert (record.expires_at is None) == (job.expires is None)
        if record.expires_at is not None and record.run_at is not None:
            assert record.expires_at == record.run_at + timedelta(hours=1)


def test_each_alike_job_is_found_by_each_of_its_tags(store: SQLiteStore, sqlite_path: Path) -> None:
    ids = [one.id for one in store.jobs.enqueue([NewJob("default", "ok", b"{}", tags=("a", "b"))] * MANY)]

    with closing(sqlite3.connect(sqlite_path)) as connection:
        rows = connection.execute("select tag, id from duly_job_tag order by tag, id").fetchall()

    assert rows == [(tag, id) for tag in "ab" for id in ids]


def test_one_end_too_many_in_a_batch_spoils_no_other(store: SQLiteStore) -> None:
    unique = UniqueKey(b"k" * 16, live=True)
    put(store, MANY)
    store.jobs.enqueue([NewJob("default", "ok", b"{}", unique=unique)])
    me, other = worker(store), worker(store)
    jobs = claim(store, me, MANY + 1)
    store.jobs.exchange(me, [completed(jobs[0])], None)
    stranger = store.jobs.enqueue([NewJob("default", "ok", b"{}")])[0].id
    (theirs,) = claim(store, other)
    missing = Ended(stranger, 7, Event.complete, State.completed, Counters(), elapsed=EASY)

    acked = store.jobs.exchange(me, [missing, completed(theirs), *map(completed, jobs)], None).acked

    # The first was completed by this incarnation before: a repeat after a lost reply.
    assert acked == {(job.id, 1) for job in jobs}
    (count,) = store.inspection.counts()
    assert (count.ready, count.running) == (0, 1)
    (again,) = store.jobs.enqueue([NewJob("default", "ok", b"{}", unique=unique)])
    assert again.outcome == "created"


def test_a_completion_at_the_first_try_leaves_no_key_behind(store: SQLiteStore, sqlite_path: Path) -> None:
    unique = [UniqueKey(b"%016d" % number, live=True) for number in range(MANY)]
    store.jobs.enqueue([NewJob("default", "ok", b"{}", unique=key) for key in unique])
    me = worker(store)

    store.jobs.exchange(me, [completed(job) for job in claim(store, me, MANY - 1)], None)

    with closing(sqlite3.connect(sqlite_path)) as connection:
        assert connection.execute("select key from duly_unique_key").fetchall() == [(unique[-1].digest,)]


def test_a_note_and_a_wish_find_their_job_in_a_batch(store: SQLiteStore) -> None:
    ids, me = put(store, MANY), worker(store)
    jobs = claim(store, me, MANY)
    store.operator.cancel(ids[:2], "me", "because")

    store.jobs.exchange(me, [completed(job, note="look" if job.id == ids[3] else None) for job in jobs], None)

    records = store.inspection.lookup(ids)
    assert [record and record.note for record in records] == [None] * 3 + ["look"] + [None] * (MANY - 4)
    assert {record and record.state for record in records} == {State.completed}
    assert store.jobs.report(me, []) == ([], [])


def test_what_goes_back_together_stands_in_the_order_in_which_it_was_ended(store: SQLiteStore) -> None:
    ids, me = put(store, MANY), worker(store)
    jobs = claim(store, me, MANY)
    order = random.Random(7).sample(range(MANY), MANY)
    back = Counters(interrupted=1)

    ends = [Ended(jobs[at].id, 1, Event.interrupt, State.ready, back, reason="shutdown") for at in order]
    store.jobs.exchange(me, ends, None)

    assert [job.id for job in claim(store, me, MANY)] == [ids[at] for at in order]


def test_tasks_with_times_to_run_of_their_own_share_a_batch(store: SQLiteStore) -> None:
    me = worker(store)
    own = timedelta(seconds=9)
    store.jobs.enqueue(
        [NewJob("default", "ok", b"{}", timeout=own if number % 2 else None) for number in range(10)]
    )

    claimed = store.jobs.exchange(me, [], ClaimRequest((QueueClaim("default", 10),), 10)).claimed

    for record, job in zip(store.inspection.lookup([job.id for job in claimed]), claimed, strict=True):
        assert record is not None
        assert record.deadline is not None
        assert record.deadline - job.claimed_at == (job.timeout or timedelta(minutes=5))


def test_a_statement_by_position_names_each_value_once() -> None:
    assert by_position("insert into t (a, b) values (:a, :b)") == "insert into t (a, b) values (?, ?)"
    with pytest.raises(ValueError, match="twice"):
        by_position("select :a, :a")
