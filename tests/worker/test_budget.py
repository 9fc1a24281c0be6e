"""What a worker does for the budget of its store: records go early, then jobs of queues that shed. On both stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import App, State
from duly.core.budget import STORE_FULL, Budget
from duly.core.job import JobId, NewJob
from duly.core.registration import QueuePolicy, Registration
from duly.stores.faults import Full
from duly.stores.protocol import PressingStore
from duly.telemetry.events import Happening, JobsShed, RecordsDropped, StoreFilling
from duly.telemetry.hub import Hub
from duly.worker.budget import LEAST_KEPT, StoreBudget
from duly.worker.sweep import Sweep

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
QUEUES = (
    QueuePolicy("payments", importance=1),
    QueuePolicy("mail", importance=100),
    QueuePolicy("analytics", importance=200, max_depth=1_000_000, when_full="shed"),
)


class Scene:
    """A store with three queues, and the worker's part, all by one clock."""

    def __init__(self, url: str) -> None:
        self.now = datetime(2030, 5, 1, 12, tzinfo=UTC)
        self.app = App(url)
        self.app.client.clock = lambda: self.now
        self.store = self.app.store
        self.store.schema.migrate()
        self.store.schema.declare(Registration("shop", "1", queues=QUEUES))
        self.told: list[Happening] = []
        self._hub = Hub()
        self._hub.listen(self.told.append)

    def clock(self) -> float:
        return self.now.timestamp()

    def put(self, queue: str, count: int) -> list[JobId]:
        jobs = [NewJob(queue, "send", b'"' + b"x" * 300 + b'"')] * count
        return [stored.id for stored in self.store.jobs.enqueue(jobs)]

    def used(self) -> int:
        self.now += MINUTE
        use = self.store.pressing.use()
        assert use is not None
        return use.bytes

    def budget(self, max_bytes: int) -> StoreBudget:
        return StoreBudget(self.store, Budget(max_bytes), {}, DAY, 30 * DAY, self._hub, self.clock)

    def look(self, budget: StoreBudget) -> None:
        self.now += timedelta(seconds=1.5)
        budget.look()

    def states(self, ids: Sequence[JobId]) -> set[State | None]:
        """None: one is no longer kept."""
        return {None if record is None else record.state for record in self.store.inspection.lookup(ids)}

    def ready(self) -> dict[str, int]:
        return {count.queue: count.ready for count in self.store.inspection.counts() if count.ready}


class Tight:
    """A store's back pressure that has space for so many moves in a transaction."""

    def __init__(self, pressing: PressingStore, most: int) -> None:
        self._pressing = pressing
        self._most = most
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pressing, name)

    def shed(self, queues: Sequence[str], most: int, reason: str) -> int:
        if most > self._most:
            self.refused += 1
            raise Full("no space is left")
        return self._pressing.shed(queues, most, reason)


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.getfixturevalue(f"{request.param}_url"))
    yield scene
    scene.app.close()


def test_within_the_budget_nothing_goes(scene: Scene) -> None:
    scene.put("analytics", 1000)
    budget = scene.budget(scene.used() * 2)

    scene.look(budget)

    assert scene.ready() == {"analytics": 1000}
    assert scene.told == []


def test_near_the_budget_it_is_told_who_is_refused_and_later_that_nobody_is(scene: Scene) -> None:
    ids = scene.put("analytics", 1000)
    budget = scene.budget(int(scene.used() / 0.9))

    scene.look(budget)
    scene.look(budget)

    assert [event.refused for event in scene.told if isinstance(event, StoreFilling)] == [("analytics",)]
    assert scene.ready() == {"analytics": 1000}
    scene.store.operator.cancel(ids, "alice", "by mistake")
    scene.now += 2 * DAY
    while scene.store.upkeep.retain({}, {}, DAY, 30 * DAY):
        pass
    scene.look(budget)
    told = scene.told[-1]
    assert isinstance(told, StoreFilling)
    assert told.refused == ()
    assert told.sentence().startswith("the store has room again for every queue")


def test_records_of_queues_that_are_refused_go_before_any_job(scene: Scene) -> None:
    ended = scene.put("analytics", 3000)
    paid = scene.put("payments", 10)
    scene.store.operator.cancel([*ended, *paid], "alice", "by mistake")
    waiting = scene.put("analytics", 1000)
    scene.now += LEAST_KEPT
    budget = scene.budget(int(scene.used() / 1.05))

    scene.look(budget)

    assert scene.states(ended) == {None}
    assert scene.states(paid) == {State.cancelled}
    assert scene.states(waiting) == {State.ready}
    assert [event.jobs for event in scene.told if isinstance(event, RecordsDropped)] == [3000]


def test_near_the_budget_records_go_early_and_no_job_is_shed(scene: Scene) -> None:
    ended = scene.put("analytics", 1000)
    waiting = scene.put("analytics", 1000)
    scene.store.operator.cancel(ended, "alice", "by mistake")
    scene.now += LEAST_KEPT
    budget = scene.budget(int(scene.used() / 0.9))

    scene.look(budget)

    assert scene.states(ended) == {None}
    assert scene.states(waiting) == {State.ready}


def test_a_record_is_kept_for_a_moment_whatever_the_store_needs(scene: Scene) -> None:
    ended = scene.put("analytics", 1000)
    budget = scene.budget(scene.used() // 2)
    scene.store.operator.cancel(ended, "alice", "by mistake")

    scene.look(budget)

    assert scene.states(ended) == {State.cancelled}
    scene.now += LEAST_KEPT
    scene.look(budget)
    assert scene.states(ended) == {None}


def test_without_records_the_jobs_of_a_queue_that_sheds_go_and_say_why(scene: Scene) -> None:
    analytics = scene.put("analytics", 1200)
    mail = scene.put("mail", 100)
    payments = scene.put("payments", 100)
    budget = scene.budget(int(scene.used() / 1.2))

    scene.look(budget)

    assert scene.ready() == {"analytics": 200, "mail": 100, "payments": 100}
    assert [event.jobs for event in scene.told if isinstance(event, JobsShed)] == [1000]
    shed = scene.store.inspection.lookup([analytics[-1]])[0]
    assert shed is not None
    assert (shed.state, shed.reason) == (State.shed, STORE_FULL)
    assert scene.states([*mail, *payments]) == {State.ready}


def test_a_queue_that_does_not_shed_keeps_its_jobs_though_it_is_less_important(scene: Scene) -> None:
    scene.put("mail", 1000)
    scene.put("payments", 10)
    budget = scene.budget(scene.used() // 2)

    scene.look(budget)

    assert scene.ready() == {"mail": 1000, "payments": 10}


def test_it_goes_on_until_there_is_room_and_no_further(scene: Scene) -> None:
    scene.put("analytics", 4000)
    scene.put("payments", 100)
    limit = int(scene.used() / 1.1)
    budget = scene.budget(limit)

    for _ in range(40):
        scene.now += LEAST_KEPT
        scene.look(budget)

    assert scene.used() < limit
    assert scene.ready()["payments"] == 100
    assert scene.ready()["analytics"] > 1000


def test_no_more_is_shed_before_what_was_shed_can_make_room(scene: Scene) -> None:
    scene.put("analytics", 2500)
    budget = scene.budget(scene.used() // 2)

    scene.look(budget)
    budget.look()

    assert scene.ready() == {"analytics": 1500}


def test_queues_of_one_importance_lose_nothing(scene: Scene) -> None:
    scene.store.schema.declare(
        Registration(
            "shop",
            "2",
            queues=tuple(
                QueuePolicy(queue.name, max_depth=queue.max_depth, when_full=queue.when_full)
                for queue in QUEUES
            ),
        )
    )
    scene.put("analytics", 1000)
    budget = scene.budget(scene.used() // 2)

    scene.look(budget)

    assert scene.ready() == {"analytics": 1000}
    told = scene.told[-1]
    assert isinstance(told, StoreFilling)
    assert set(told.refused) == {"payments", "mail", "analytics"}


def test_a_sweep_looks_after_the_budget_once_a_second_for_the_whole_fleet(scene: Scene) -> None:
    scene.put("analytics", 1200)
    limit = int(scene.used() / 1.2)
    sweeps = [
        Sweep(scene.store.upkeep, 3, 60.0, 1.0, lambda: None, Hub(), scene.budget(limit)) for _ in range(3)
    ]

    for sweep in sweeps:
        sweep.run(0.0)

    assert scene.ready() == {"analytics": 200}


def test_on_a_disk_without_space_it_goes_on_with_fewer_at_a_time(scene: Scene) -> None:
    scene.put("analytics", 300)
    budget = scene.budget(scene.used() // 2)
    tight: Any = Tight(scene.store.pressing, most=10)
    scene.store.pressing = tight

    for _ in range(20):
        scene.look(budget)

    assert tight.refused > 0
    assert scene.ready()["analytics"] < 280


def test_a_sweep_that_finds_no_space_on_the_disk_makes_room_and_says_so(scene: Scene) -> None:
    scene.put("analytics", 1200)
    budget = scene.budget(int(scene.used() / 1.2))

    class NoSpace:
        def sweep(self, *said: object) -> None:
            raise Full("no space is left")

    upkeep: Any = NoSpace()

    with pytest.raises(Full):
        Sweep(upkeep, 3, 60.0, 1.0, lambda: None, Hub(), budget).run(0.0)

    assert scene.ready() == {"analytics": 200}
