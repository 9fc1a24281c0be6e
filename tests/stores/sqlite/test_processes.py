"""Several processes on one file: durability under SIGKILL, forks, the race to make the tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.job import JobId
from duly.core.lifecycle import State
from duly.stores.sqlite.connecting import Journal
from tests.stores.sqlite.conftest import Open, Start, exists, worker
from tests.stores.sqlite.processes import complete
from tests.waiting import wait_until

CYCLES = 6

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def _sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("pragma integrity_check").fetchall() == [("ok",)]


def _numbers(text: str) -> list[JobId]:
    # A line that SIGKILL cut short has no end.
    return [JobId(int(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_every_job_whose_id_was_printed_survives_the_kill_of_its_producer(
    open_store: Open, start: Start, sqlite_path: Path, journal: Journal
) -> None:
    printed: list[JobId] = []
    for cycle in range(CYCLES):
        producer = start("produce", journal)
        assert producer.stdout is not None
        # Killed at another point of the loop each time: after 0, 1, 2 … lines, the first before the file exists.
        head = [producer.stdout.readline() for _ in range(cycle)]
        producer.kill()
        rest, _ = producer.communicate()
        printed += _numbers("".join(head) + rest)

        store = open_store(journal)
        assert all(exists(store, printed)), cycle
        store.close()

    assert len(printed) == len(set(printed)) >= CYCLES * (CYCLES - 1) // 2
    assert _sound(sqlite_path)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_nothing_is_lost_or_done_twice_when_workers_are_killed(
    open_store: Open, start: Start, sqlite_path: Path, journal: Journal
) -> None:
    store = open_store(journal)
    producer = start("enqueue", journal, "80")
    acked: list[JobId] = []
    for _ in range(3):
        consumer = start("consume", journal)
        assert consumer.stdout is not None
        head = [consumer.stdout.readline() for _ in range(7)]
        consumer.kill()
        rest, _ = consumer.communicate()
        acked += _numbers("".join(head) + rest)
    enqueued = _numbers(producer.communicate()[0])

    assert producer.returncode == 0
    assert len(enqueued) == 80
    assert len(acked) == len(set(acked)) >= 21
    for beat in store.leases.beats():
        store.leases.reap([beat], 99)
    assert all(record is not None for record in store.inspection.lookup(enqueued))
    assert {record.state for record in store.inspection.lookup(acked) if record} == {State.completed}
    (count,) = store.inspection.counts()
    assert count.running == 0
    assert _sound(sqlite_path)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_eight_processes_may_make_the_file_at_once(
    open_store: Open, start: Start, sqlite_path: Path, journal: Journal
) -> None:
    starters = [start("begin", journal) for _ in range(8)]
    for process in starters:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
    for process in starters:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    ids = [number for process in starters for number in _numbers(process.communicate()[0])]

    assert [process.returncode for process in starters] == [0] * 8
    assert sorted(ids) == list(range(1, 9))
    store = open_store(journal)
    assert store.schema.version() == store.schema.wanted()
    assert _sound(sqlite_path)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_a_forked_child_opens_anew_and_the_parent_goes_on(
    open_store: Open, start: Start, sqlite_path: Path, journal: Journal
) -> None:
    output, _ = start("fork", journal).communicate()

    assert output.split() == ["0"] * 8
    store = open_store(journal)
    (count,) = store.inspection.counts()
    done = 8 * 5 + 5
    # The parent enqueued three times ten, each child ten.
    assert (count.ready, count.running) == (30 + 80 - done, 0)
    assert _sound(sqlite_path)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_the_end_of_a_forked_child_does_not_end_its_parents_transaction(
    start: Start, sqlite_path: Path, journal: Journal
) -> None:
    output, _ = start("exit_after_fork", journal).communicate()

    refusal, *rows = output.splitlines()
    assert "fork outside of transaction()" in refusal
    assert rows == ["1", "2"]
    assert _sound(sqlite_path)


def test_two_processes_take_each_job_once(open_store: Open, start: Start, sqlite_path: Path) -> None:
    store = open_store("truncate")
    incarnation = worker(store)
    producer = start("enqueue", "truncate", "60")
    consumer = start("consume", "truncate")

    mine: list[JobId] = []

    def all_done() -> bool:
        mine.extend(complete(store, incarnation, 3))
        done = [count for count in store.inspection.counts() if count.ready or count.running]
        return producer.poll() is not None and not done

    wait_until(all_done, timeout=180, what="60 jobs are done")
    consumer.kill()
    theirs = _numbers(consumer.communicate()[0])
    enqueued = _numbers(producer.communicate()[0])

    # The kill may come between its last commit and the line about it: the store knows those, too.
    taken = mine + theirs
    assert len(set(taken)) == len(taken)
    assert set(taken) <= set(enqueued)
    done = store.inspection.lookup([JobId(id) for id in enqueued])
    assert [(row.state, row.run) for row in done if row] == [(State.completed, 1)] * 60
    assert _sound(sqlite_path)
