"""What a dead process leaves is written in its name: its last words, then everything else goes back."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from duly.core.decide import completed
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    NewJob,
    QueueClaim,
    WorkerInfo,
)
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault, Transient
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.hub import Hub
from duly.worker.family import Estate
from duly.worker.settler import Settler
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)


class Shaky:
    """A store that is away for some calls and refuses results."""

    def __init__(self, real: Store) -> None:
        self.real = real
        self.away = 0
        self.refuses_results = False

    @property
    def jobs(self) -> Any:
        return self

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        if self.away:
            self.away -= 1
            raise Transient("connection refused")
        if self.refuses_results and any(end.result is not None for end in ended):
            raise DataFault("out of range")
        return self.real.jobs.exchange(incarnation, ended, request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Scene:
    def __init__(self, url: str) -> None:
        self.store = open_store(url)
        self.shaky = Shaky(self.store)
        info = WorkerInfo("h", 1, "h:1", ("default",), {"t": 60 * SECOND}, 30 * SECOND, 5 * SECOND, 4, "0")
        self.incarnation = self.store.leases.register(info)
        self.settled: list[tuple[Estate, bool]] = []
        store: Any = self.shaky
        self.settler = Settler(store, Hub(), lambda estate, done: self.settled.append((estate, done)))

    def claim(self, many: int) -> Sequence[ClaimedJob]:
        self.store.jobs.enqueue([NewJob("default", "t", b"{}")] * many)
        request = ClaimRequest((QueueClaim("default", many),), many)
        return self.store.jobs.exchange(self.incarnation, [], request).claimed

    def settle(self, ends: Sequence[Ended], started: Sequence[ClaimedJob]) -> None:
        pairs = tuple((job.id, job.run) for job in started)
        self.settler.settle(Estate(1, self.incarnation, tuple(ends), pairs, "it was killed by SIGKILL", 3))
        wait_until(lambda: self.settled, what="the settlement")

    def state(self, id: JobId) -> State:
        record = self.store.inspection.lookup([id])[0]
        assert record is not None
        return record.state

    def last(self, id: JobId) -> tuple[Event, str | None]:
        attempt = self.store.inspection.attempts(id)[-1]
        return attempt.event, attempt.reason


@pytest.fixture
def scene(sqlite_url: str) -> Iterator[Scene]:
    made = Scene(sqlite_url)
    yield made
    made.settler.stop(5)
    made.store.close()


def test_last_words_count_and_the_rest_is_lost_or_interrupted(scene: Scene) -> None:
    done, ran, waiting = scene.claim(3)

    scene.settle([completed(done, b"1", SECOND)], [ran])

    assert scene.state(done.id) is State.completed
    assert scene.last(ran.id) == (Event.lose, "it was killed by SIGKILL")
    assert scene.last(waiting.id)[0] is Event.interrupt
    assert scene.store.inspection.workers() == []
    assert scene.settled[0][1]


def test_it_goes_on_until_the_store_answers(scene: Scene) -> None:
    (job,) = scene.claim(1)
    scene.shaky.away = 3

    scene.settle([completed(job, b"1", SECOND)], [])

    assert scene.state(job.id) is State.completed


def test_last_words_that_cannot_be_stored_whole_are_stored_with_less(scene: Scene) -> None:
    jobs = scene.claim(3)
    scene.shaky.refuses_results = True

    scene.settle([completed(job, b"1" if job is jobs[1] else None, SECOND) for job in jobs], [])

    assert {scene.state(job.id) for job in jobs} == {State.completed}
    record = scene.store.inspection.lookup([jobs[1].id])[0]
    assert record is not None
    assert record.note == "result not storable: out of range"


def test_a_store_that_stays_away_does_not_keep_a_worker_from_ending(scene: Scene) -> None:
    (job,) = scene.claim(1)
    scene.shaky.away = 10**6
    ends = (completed(job, None, SECOND),)
    scene.settler.settle(Estate(1, scene.incarnation, ends, (), "it left", 3))

    scene.settler.stop(timeout=0.1)

    wait_until(lambda: scene.settled, what="its giving up")
    assert not scene.settled[0][1]
