"""Several processes and the same keys: the race for one, and what a killed one leaves behind."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from duly.core.filters import Filter
from duly.core.lifecycle import Outcome
from duly.stores.sqlite.connecting import Journal
from tests.stores.sqlite.conftest import Connect, Open, Start
from tests.stores.sqlite.processes import keyed

KEYS = 25
RACERS = 3

# What is left of a job without the others, whatever was killed when.
HALVES = {
    "a unique key without a job that waits or runs": """
        select count(*) from duly_unique_key as k
        where not exists (
            select id from duly_ready where id = k.id
            union all select id from duly_blocked where id = k.id
            union all select id from duly_claimed where id = k.id
        )""",
    "a waiting job whose key is not its own": """
        select count(*) from duly_ready as r join duly_job as j using (id)
        where not exists (select 1 from duly_unique_key as k where k.key = j.unique_key and k.id = j.id)""",
    "an idempotency record without its job": """
        select count(*) from duly_idempotency as i where not exists (select 1 from duly_job as j where j.id = i.id)""",
    "a follow-up without its parent": """
        select count(*) from duly_follow as f where not exists (select 1 from duly_job as j where j.id = f.id)""",
    "a completed parent whose follow-up was not enqueued": """
        select (select count(*) from duly_finished as f join duly_follow using (id) where f.status = 'completed')
             - (select count(*) from duly_job where task = 'other')""",
}

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


@pytest.fixture(params=["truncate", "wal"])
def journal(request: pytest.FixtureRequest) -> Journal:
    wanted: Journal = request.param
    return wanted


def _begin(*processes: "subprocess.Popen[str]") -> None:
    """Let all of them go once all of them are there."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def test_of_the_processes_that_race_for_a_key_one_creates_the_job(
    open_store: Open, start: Start, journal: Journal
) -> None:
    open_store(journal).schema.migrate()
    racers = [start("race", journal, str(KEYS)) for _ in range(RACERS)]
    _begin(*racers)

    answers = [process.communicate()[0].split("\n")[:KEYS] for process in racers]

    assert [process.returncode for process in racers] == [0] * RACERS
    for key, told in enumerate(zip(*answers, strict=True)):
        outcomes, ids = zip(*(line.split() for line in told), strict=True)
        assert sorted(outcomes) == [Outcome.created, *[Outcome.duplicate] * (RACERS - 1)], key
        assert len(set(ids)) == 1, key


def test_a_key_is_free_when_the_process_that_took_it_is_killed_before_its_commit(
    open_store: Open, start: Start
) -> None:
    store = open_store("truncate")
    store.schema.migrate()
    holder = start("hold", "truncate")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "here\n"
    holder.kill()
    holder.communicate()

    (stored,) = store.jobs.enqueue([keyed("key-0")])

    assert stored.outcome is Outcome.created
    assert store.inspection.counts()[0].ready == 1


def test_a_key_waits_for_the_transaction_that_took_it(open_store: Open, start: Start) -> None:
    store = open_store("truncate")
    store.schema.migrate()
    holder, racer = start("hold", "truncate"), start("race", "truncate", "1")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "here\n"
    _begin(racer)
    # The racer runs into the holder's lock or comes after it: its answer is the same.
    holder.communicate("go\n")

    answer = racer.communicate()[0].split()

    (job,) = store.inspection.page(Filter()).jobs
    assert answer == [Outcome.duplicate, str(job.id)]


def test_killed_producers_and_workers_leave_no_key_or_follow_up_half_done(
    open_store: Open, start: Start, connect: Connect, sqlite_path: Path, journal: Journal
) -> None:
    open_store(journal).schema.migrate()
    for cycle in range(2):
        process = start("produce_keyed", journal)
        assert process.stdout is not None
        for _ in range(3 + 8 * cycle):
            process.stdout.readline()
        process.kill()
        process.communicate()

    connection = connect()
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert {name: _count(connection, text) for name, text in HALVES.items()} == dict.fromkeys(HALVES, 0)
    assert _count(connection, "select count(*) from duly_idempotency") >= 8


def _count(connection: sqlite3.Connection, text: str) -> int:
    (found,) = connection.execute(text).fetchone()
    return int(found)
