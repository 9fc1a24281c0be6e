"""Real worker processes that come while jobs wait too long, and go again when nothing does."""

from datetime import timedelta

import pytest

from duly.core.job import NewJob
from duly.core.lifecycle import State
from duly.core.plan import Tempo
from tests.e2e.workers import Place
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_processes_come_while_jobs_are_late_and_go_when_nothing_waits(place: Place) -> None:
    second = timedelta(seconds=1)
    worker = place.start(
        "tests.e2e.scaled_app:jobs",
        processes=1,
        processes_most=3,
        threads=1,
        tempo=Tempo(every=second / 4, settle=second, calm=3 * second),
    )
    stored = place.store.jobs.enqueue([NewJob(queue="slow", task="nap", args=b"{}")] * 60)

    wait_until(lambda: len(place.workers()) == 3, timeout=60, what=f"three processes: {worker.log}")
    place.wait_state([one.id for one in stored], State.completed)
    wait_until(lambda: len(place.workers()) == 1, timeout=60, what=f"one process: {worker.log}")

    assert "stopping 1 process, 1 in all: nothing has waited long for a while" in worker.log
    assert "died" not in worker.log
    assert worker.stop() == 0
