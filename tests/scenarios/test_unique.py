"""A unique key lives and dies with its job, whatever becomes of the worker, the transaction or the task's code."""

import os
import signal
from pathlib import Path

import pytest

from duly import App, Outcome, Unique
from duly.core.lifecycle import State
from tests.e2e.workers import Place
from tests.scenarios.inside import run_until_final


@pytest.mark.process
def test_a_killed_worker_leaves_no_key_behind(url: str, tmp_path: Path) -> None:
    place = Place(url, tmp_path)
    jobs = App(url)
    key = Unique("u1", scope="live")

    @jobs.task(name="hold")  # the worker's own code is in tests/e2e/chores_app.py
    def held() -> None: ...

    try:
        first = held.using(unique_key=key).enqueue()
        worker = place.start()
        place.wait_started(first.id)
        for row in place.workers():
            os.kill(row.pid, signal.SIGKILL)

        meanwhile = held.using(unique_key=key).enqueue()
        place.release()
        (record,) = place.wait_final([first.id])
        afterwards = held.using(unique_key=key).enqueue()

        assert (meanwhile.outcome, meanwhile.id) == (Outcome.duplicate, first.id)
        assert (record.state, record.counters.lost) == (State.completed, 1)
        assert (afterwards.outcome, afterwards.id != first.id) == (Outcome.created, True)
        assert worker.process.poll() is None
    finally:
        jobs.close()
        place.close()


def test_a_rollback_takes_the_key_back_with_the_job(jobs: App) -> None:
    @jobs.task(unique="k")
    def index() -> None: ...

    class Mind(Exception):
        """Changed."""

    jobs.open()
    with pytest.raises(Mind), jobs.transaction() as connection:
        index.using(connection=connection).enqueue()
        raise Mind

    with jobs.transaction() as connection:
        connection.execute("savepoint before")
        index.using(connection=connection).enqueue()
        connection.execute("rollback to savepoint before")
        kept = index.using(connection=connection).enqueue()

    assert kept.outcome is Outcome.created
    assert index.enqueue().id == kept.id
    assert len(jobs.inspect.jobs().jobs) == 1


def test_a_key_is_a_stored_text_and_free_when_the_job_cannot_even_be_loaded(jobs: App) -> None:
    old = App(str(jobs.settings.url))

    @old.task(name="send", unique=Unique("user:{user}", scope="live"))
    def send_to(user: str) -> None: ...

    @jobs.task(unique=Unique("user:{user}", scope="live"))
    async def send(user: int) -> None: ...

    broken = send_to.enqueue("Ada")
    (record,) = run_until_final(jobs, broken.id)

    assert record.state is State.dead
    assert send_to.enqueue("Ada").outcome is Outcome.created
    old.close()
