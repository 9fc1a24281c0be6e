"""PostgreSQL goes away under a working worker and comes back; a store that was never there; recycling a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duly.core.lifecycle import Event, State
from duly.stores.open import open_store
from tests.e2e import steps_app
from tests.e2e.chores_app import grows, hold, quick
from tests.e2e.workers import Place, a_place, runs
from tests.services import PostgresServer
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@pytest.fixture
def remote(postgres: PostgresServer, postgres_url: str, tmp_path: Path) -> Iterator[Place]:
    store = open_store(postgres_url)
    store.schema.migrate()
    store.close()
    with a_place(postgres_url, tmp_path) as place:
        yield place


def test_a_worker_survives_a_restart_of_its_server_and_runs_nothing_twice(
    postgres: PostgresServer, remote: Place
) -> None:
    ids = remote.enqueue(hold, 3)
    worker = remote.start(lease=30.0, heartbeat=1.0)
    remote.wait_started(*ids)
    before = {row.pid for row in remote.workers()}

    postgres.restart()
    wait_until(lambda: "does not answer" in worker.log or "answers again" in worker.log, what="its word")
    remote.release()

    records = remote.wait_final(ids, timeout=90)
    assert {(record.state, record.run) for record in records} == {(State.completed, 1)}
    assert {record.state for record in remote.wait_final(remote.enqueue(quick, 20))} == {State.completed}
    assert {row.pid for row in remote.workers()} == before
    assert worker.stop() == 0


def test_a_step_that_ends_while_the_server_is_away_is_written_when_it_is_back(
    postgres: PostgresServer, remote: Place
) -> None:
    ids = [remote.enqueue_one(task) for task in steps_app.LONG_STEPS]
    worker = remote.start("tests.e2e.steps_app:jobs", lease=60.0, heartbeat=1.0)
    remote.wait_started(*ids)

    postgres.halt()
    remote.release()
    remote.wait_lines("left", 3)
    worker.wait_said("does not answer")
    postgres.resume()

    records = remote.wait_final(ids, timeout=90)
    assert {(record.state, record.run) for record in records} == {(State.completed, 1)}
    assert [remote.store.steps.steps(id).finished for id in ids] == [{"long": b'"done"'}] * 3
    assert worker.stop() == 0


def test_cut_connections_are_made_anew(postgres: PostgresServer, remote: Place) -> None:
    worker = remote.start(lease=30.0, heartbeat=1.0)
    remote.wait_workers()

    for _ in range(5):
        ids = remote.enqueue(quick, 50)
        postgres.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            f"and datname = '{remote.url.rpartition('/')[2]}'"
        )
        records = remote.wait_final(ids, timeout=90)
        assert {record.state for record in records} == {State.completed}

    assert len(remote.ledger("ran")) == len({line.id for line in remote.ledger("ran")})
    assert worker.stop() == 0


def test_a_worker_cut_off_for_longer_than_its_lease_ends_its_handlers_and_comes_back(
    postgres: PostgresServer, remote: Place
) -> None:
    id = remote.enqueue_one(hold)
    worker = remote.start(lease=3.0, heartbeat=0.5)
    (line,) = remote.wait_started(id)

    postgres.halt()
    worker.wait_said("stops its handlers")
    wait_until(lambda: not runs(line.pid), what="the end of the cut-off process")
    postgres.resume()
    wait_until(lambda: remote.job(id).run > 1, timeout=90, what="the second run")
    remote.release()

    (record,) = remote.wait_final([id], timeout=90)
    assert (record.state, record.counters.failed) == (State.completed, 0)
    # It said goodbye: its last words were written once the server was back.
    assert remote.store.inspection.attempts(id)[0].event is Event.interrupt
    assert worker.stop() == 0


def test_a_store_that_is_not_there_is_one_line_and_no_worker(place: Place, tmp_path: Path) -> None:
    absent = Place("postgresql://nobody@127.0.0.1:1/nothing", tmp_path)

    worker = absent.start()

    assert worker.wait() == 1
    assert "the store does not answer" in worker.log.splitlines()[-1]


def test_a_process_is_replaced_after_its_number_of_jobs_and_loses_none(place: Place) -> None:
    ids = place.enqueue(quick, 300)
    worker = place.start(max_jobs=50, concurrency=5)

    records = place.wait_final(ids, timeout=120)

    assert {record.state for record in records} == {State.completed}
    assert {record.counters.lost for record in records} == {0}
    wait_until(lambda: "ended: it ran" in worker.log, what="a replaced process")
    assert worker.stop() == 0


def test_a_process_is_replaced_when_it_has_grown_too_large(place: Place) -> None:
    ids = place.enqueue(grows, 6)
    worker = place.start(max_memory=200 * 2**20, concurrency=1)

    records = place.wait_final(ids, timeout=120)

    assert {record.state for record in records} == {State.completed}
    wait_until(lambda: "ended: it uses" in worker.log, what="a replaced process")
    assert worker.stop() == 0
