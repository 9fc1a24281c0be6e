"""Walks at random over bounded jobs: no order broken, no cap exceeded, and without a sweep nothing sticks or leaks."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from duly.core.control import LimitPolicy, Ordering, Rate, TaskLimit, TenantPlan
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Incarnation, JobId, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import worker

SEEDS: Final = range(24)
STEPS: Final = 120
QUEUES: Final = ("plain", "capped", "fair")
TASKS: Final = ("free", "one", "several", "each")
SECOND: Final = timedelta(seconds=1)
LIVE: Final = {State.ready, State.scheduled, State.blocked, State.running}


class Walk:
    """Two workers, and what they hold as this test counts it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = FakeClock()
        self.store = SQLiteStore(path, clock=self.clock, durable=False)
        self.ordering: Ordering = self.random.choice(["wait", "skip_dead"])
        self.caps = {
            "resource:a": self.random.choice([1, 2, 3]),
            "resource:b": self.random.choice([1, 2]),
            "queue:capped": self.random.choice([2, 5]),
            "tenant:fair": self.random.choice([1, 2]),
            "task:several": 2,
            "task:each#x": 1,
        }
        self._declare(Rate(1.0, 2) if seed % 2 else None)
        self.workers = [worker(self.store, *TASKS), worker(self.store, *TASKS)]
        self.jobs: dict[JobId, NewJob] = {}
        self.held: dict[JobId, tuple[Incarnation, ClaimedJob]] = {}

    def _declare(self, rate: Rate | None) -> None:
        takes = {
            "one": ["resource:a"],
            "several": ["resource:a", "resource:b", "task:several"],
            "each": ["task:each#x", "resource:b"],
        }
        self.store.schema.declare(
            Registration(
                "app",
                "1",
                queues=tuple(
                    QueuePolicy(name, fair=name == "fair", ordering=self.ordering) for name in QUEUES
                ),
                limits=tuple(
                    LimitPolicy(name, cap, rate if name == "resource:b" else None)
                    for name, cap in self.caps.items()
                ),
                task_limits=tuple(
                    TaskLimit(task, name, "x" if "#" in name else None)
                    for task, names in takes.items()
                    for name in names
                ),
            )
        )

    def enqueue(self) -> None:
        choose = self.random.choice
        jobs = []
        for _ in range(self.random.randint(1, 6)):
            queue = choose(QUEUES)
            jobs.append(
                NewJob(
                    queue,
                    choose(TASKS),
                    b'{"x": %d}' % self.random.randint(0, 2),
                    priority=choose([1, 100, 100]),
                    tenant=choose(["", "u", "v", "w"]),
                    fair=queue == "fair",
                    ordering_key=choose([None, None, "k", "l"]),
                    delay=choose([None, None, None, 5 * SECOND]),
                    expires=choose([None] * 6 + [20 * SECOND]),
                )
            )
        self.jobs |= {stored.id: job for stored, job in zip(self.store.jobs.enqueue(jobs), jobs, strict=True)}

    def exchange(self, holder: Incarnation, ends: list[Ended], most: int) -> bool:
        """Whether the worker is to come again at once, or has got something."""
        queues = [QueueClaim(name, most, name == "fair") for name in QUEUES]
        self.random.shuffle(queues)
        request = ClaimRequest(tuple(queues), most, chain=self.random.choice([1, 1, 4]))
        answer = self.store.jobs.exchange(holder, ends, request)
        assert len(answer.acked) == len(ends)
        for end in ends:
            del self.held[end.id]
        for job in answer.claimed:
            assert job.id not in self.held
            self.held[job.id] = (holder, job)
        self.check()
        return bool(answer.claimed) or answer.again == timedelta(0)

    def check(self) -> None:
        """What runs now breaks no order and exceeds no cap."""
        running = [(job, self.jobs[job.id]) for _, job in self.held.values()]
        for name, count in Counter(name for _, new in running for name in _limits(new)).items():
            assert count <= self.caps.get(name, self.caps.get(name.partition("=")[0], 0)), name
        owners = Counter(
            (new.queue, new.tenant, new.ordering_key)
            for job, new in running
            if new.ordering_key is not None and not job.follows
        )
        assert set(owners.values()) <= {1}

    def some_ends(self, holder: Incarnation) -> list[Ended]:
        mine = [job for whose, job in self.held.values() if whose == holder]
        self.random.shuffle(mine)
        ways = [Event.complete] * 5 + [Event.snooze, Event.interrupt]
        if self.ordering == "skip_dead":
            ways.append(Event.bury)
        return [
            # One that follows starts only after all before it; here it is handed back.
            ended(job, Event.interrupt if job.follows else self.random.choice(ways))
            for job in mine[: self.random.randint(0, 4)]
        ]

    def step(self) -> None:
        store, any_job = self.store, [self.random.choice([*self.jobs])] if self.jobs else []
        dice = self.random.random()
        if dice < 0.3:
            self.enqueue()
        elif dice < 0.75:
            holder = self.random.choice(self.workers)
            self.exchange(holder, self.some_ends(holder), self.random.randint(1, 8))
        elif dice < 0.8:
            self.pass_time(self.random.randint(1, 4))
        elif dice < 0.85:
            store.operator.cancel(any_job, "ann", "walk")
        elif dice < 0.88:
            store.operator.redrive(any_job, "ann", "walk")
        elif dice < 0.9:
            self.retire(self.random.randrange(2))
        elif dice < 0.93:
            store.operator.reprioritise(any_job, self.random.choice([1, 50, 200]), "ann", "walk")
        elif dice < 0.95:
            store.operator.run_at(any_job, self.clock() + 4 * SECOND, "ann", "walk")
        elif dice < 0.97:
            store.control.set_plan(
                TenantPlan("u", self.random.randint(1, 3), self.caps["tenant:fair"]), "ann", ""
            )
        else:
            self.pass_time(35)

    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds * SECOND)
        self.store.upkeep.promote()

    def retire(self, at: int) -> None:
        self.store.leases.retire(self.workers[at])
        self.held = {id: one for id, one in self.held.items() if one[0] != self.workers[at]}
        self.workers[at] = worker(self.store, *TASKS)

    def work_off(self) -> list[JobId]:
        """One worker, and no sweep; who is left over."""
        self.retire(1)
        idle = 0
        while idle < 8:
            held = sorted((job for _, job in self.held.values()), key=lambda job: (job.follows, job.id))
            if self.exchange(self.workers[0], [ended(job, Event.complete) for job in held], 8):
                idle = 0
            else:
                idle += 1
                self.pass_time(6)
        records = self.store.inspection.lookup([*self.jobs])
        return [record.id for record in records if record is not None and record.state in LIVE]


def _limits(job: NewJob) -> Iterator[str]:
    if job.task in {"one", "several"}:
        yield "resource:a"
    if job.task in {"several", "each"}:
        yield "resource:b"
    if job.task == "several":
        yield "task:several"
    if job.task == "each":
        yield f"task:each#x={json.loads(job.args)['x']}"
    if job.queue == "capped":
        yield "queue:capped"
    if job.queue == "fair" and job.tenant:
        yield f"tenant:fair={job.tenant}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_breaks_no_bound_and_nothing_sticks_or_leaks(sqlite_path: Path, seed: int) -> None:
    walk = Walk(sqlite_path, seed)

    for _ in range(STEPS):
        walk.step()
    left = walk.work_off()

    assert left == []
    assert [limit.running for limit in walk.store.control.limits() if limit.running] == []
    assert [key for key in walk.store.control.keys(most=10) if key.waiting] == []
    walk.store.close()
