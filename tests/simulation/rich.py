"""Jobs with keys, versions and follow-ups, and schedules, in a world of the simulation; and what must be so of them.

At most one live job per key, one job per request, each due time once, and each end followed exactly once.
"""

import random
from collections import Counter
from datetime import timedelta
from typing import Final, Protocol

from msgspec.structs import replace

from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord, NewJob, UniqueKey
from duly.core.keys import idempotency_digest, unique_digest
from duly.core.lifecycle import FINAL, WAITING, State
from duly.core.registration import Schedule
from duly.core.schedule import due_from, trigger_of
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from tests.simulation.timeline import Timeline
from tests.simulation.wire import Books, Wire

SECOND: Final = timedelta(seconds=1)
EACH: Final = Schedule(
    "each", every=4 * SECOND, job=NewJob("default", "work", b"{}"), catch_up="all", overlap="allow"
)
ONE: Final = Schedule("one", every=3 * SECOND, job=NewJob("mail", "work", b"{}"))


class Surroundings(Protocol):
    """What this needs of the world."""

    timeline: Timeline
    books: Books
    store: Store


class Rich:
    """Everything of one world that jobs bring along."""

    def __init__(self, world: Surroundings, producer: Wire, seed: int) -> None:
        self._world = world
        self._producer = producer
        self._draw = random.Random(f"rich {seed}")
        self._version = 0
        self._late = 0
        self._rolled_back: list[str] = []
        self._causes: dict[str, NewJob] = {}
        self._followed: Counter[str] = Counter()
        self._deaths: Counter[JobId] = Counter()
        self.met: Counter[str] = Counter()
        """How often what this is for has happened."""
        self._first = world.timeline.date() + SECOND
        for schedule in (EACH, ONE):
            world.store.schedules.put(schedule, self._first)

    # What happens

    def enqueue(self) -> None:
        jobs = [self._job() for _ in range(self._draw.randint(1, 3))]
        try:
            self._producer.jobs.enqueue(jobs)
        except Transient as fault:
            self._world.timeline.note(f"producer: {fault}")

    def _job(self) -> NewJob:
        draw = self._draw
        unique, version = None, None
        match draw.choice(["live", "live", "queued", "queued", "none"]):
            case "live":
                key = unique_digest("work", "", draw.choice(["l1", "l2"]))
                unique = UniqueKey(key, live=True, replace=draw.random() < 0.3)
            case "queued":
                key = unique_digest("work", "", draw.choice(["q1", "q2"]))
                unique = UniqueKey(key, replace=draw.random() < 0.3)
                self._version += 1
                version = self._version - draw.choice([0, 5])
        request = draw.choice([None, None, "r1", "r2", "r3"])
        return NewJob(
            draw.choice(["default", "mail"]),
            "work",
            b"{}",
            delay=draw.choice([None, None, 2 * SECOND]),
            expires=draw.choice([None, None, 6 * SECOND]),
            unique=unique,
            version=version,
            idempotency=None if request is None else idempotency_digest("work", "", request),
            then=tuple(self._follow_up(draw.random() < 0.3) for _ in range(draw.choice([0, 1, 1, 2]))),
            on_dead=tuple(self._follow_up(False) for _ in range(draw.choice([0, 1]))),
        )

    def _follow_up(self, more: bool) -> NewJob:
        cause = f"cause {len(self._causes)}"
        self._causes[cause] = NewJob("default", "work", b"\x01", trigger=cause)
        if more:
            family = (self._follow_up(False),)
            self._causes[cause] = NewJob("default", "work", b"\x01", trigger=cause, then=family)
        return self._causes[cause]

    def late_job(self, plain: NewJob) -> tuple[NewJob, str]:
        """One for a transaction that stays open, and its key: nobody else waits for it, for this thread is alone."""
        self._late += 1
        key = self._rolled_back.pop() if self._rolled_back else f"late {self._late}"
        unique = UniqueKey(unique_digest("work", "", key), live=True)
        request = idempotency_digest("work", "", key)
        job = replace(plain, unique=unique, idempotency=request, then=(self._follow_up(False),))
        return job, key

    def roll_back(self, key: str) -> None:
        """The next one that is late takes this key: it must be free."""
        self._rolled_back.append(key)

    def operate(self) -> None:
        """Pause what is not paused, and resume it."""
        schedules = self._world.store.schedules
        record = next(record for record in schedules.all() if record.schedule.name == ONE.name)
        if record.paused:
            at = due_from(record, self._world.timeline.date())
            assert schedules.resume(ONE.name, at, "ann", "over")
        else:
            assert schedules.pause(ONE.name, "ann", "incident")

    def calm(self) -> None:
        """The schedules end, so that the world can; until then no due time was left out, and none came twice."""
        for record in self._world.store.schedules.all():
            name = record.schedule.name
            fired = {one for one in self._world.books.fired if one.startswith(f"schedule:{name}@")}
            if name == EACH.name:
                due, expected = self._first, set()
                while due < record.next_at:
                    expected.add(trigger_of(name, due))
                    due += 4 * SECOND
                assert fired == expected, f"fired {sorted(fired)}, due were {sorted(expected)}"
                assert record.missed == 0
            assert record.fired == len(fired)
            assert self._world.store.schedules.remove(name, "ann", "calm")

    # What must be so

    def meet_followers(self, rows: list[JobRecord], seen: dict[JobId, JobRecord]) -> bool:
        """Note what the store has enqueued for ends since the last look; True when there was something."""
        found = False
        for row in rows:
            new, before = self._world.books.new.get(row.id), seen.get(row.id)
            if new is None or (before is not None and before.state is row.state):
                continue
            self._deaths[row.id] += row.state is State.dead
            self._count(row, new)
            if row.state in {State.completed, State.dead} and (new.then or new.on_dead):
                found = self._meet(row.correlation_id) or found
                self._check_followers(row, new)
        return found

    def _count(self, row: JobRecord, new: NewJob) -> None:
        reason = (row.reason or "") if row.state is State.skipped else ""
        self.met["replaced"] += reason.startswith("replaced")
        self.met["stale"] += reason == "stale"
        self.met["died"] += row.state is State.dead and bool(new.on_dead)
        self.met["nested"] += row.state is State.completed and bool(new.then) and new.trigger is not None

    def _meet(self, correlation: str) -> bool:
        books = self._world.books
        page = self._world.store.inspection.page(Filter(correlation=correlation), after=0, limit=100)
        followers = [row for row in page.jobs if row.id not in books.jobs]
        for row in followers:
            assert row.trigger in self._causes, f"nobody asked for job {row.id}: {row.trigger}"
            books.jobs.add(row.id)
            books.new[row.id] = self._causes[row.trigger]
            self._followed[row.trigger] += 1
            self.met["followed"] += 1
        return bool(followers)

    def _check_followers(self, row: JobRecord, new: NewJob) -> None:
        done = row.state is State.completed
        for follow_up in new.then:
            times = self._followed[follow_up.trigger or ""]
            assert times == done, f"job {row.id} is {row.state} and was followed {times} times"
        for follow_up in new.on_dead:
            times = self._followed[follow_up.trigger or ""]
            assert times == self._deaths[row.id], (
                f"job {row.id} died {self._deaths[row.id]} times and was followed {times} times"
            )

    def check(self, rows: list[JobRecord]) -> None:
        """At most one job per key: live, or of scope queued and never claimed."""
        now = self._world.timeline.date()
        holders: dict[bytes, JobId] = {}
        for row in rows:
            new = self._world.books.new.get(row.id)
            if new is None or new.unique is None or row.state in FINAL:
                continue
            if not new.unique.live and (row.run or row.state is State.running):
                continue
            if row.state in WAITING and row.expires_at is not None and row.expires_at <= now:
                continue
            other = holders.setdefault(new.unique.digest, row.id)
            assert other == row.id, f"jobs {other} and {row.id} live under one key"

    def check_ends(self, rows: list[JobRecord]) -> None:
        for row in rows:
            new = self._world.books.new.get(row.id)
            if new is not None:
                self._check_followers(row, new)
        told: Counter[str] = Counter()
        after: int | None = 0
        while after is not None:
            page = self._world.store.inspection.page(Filter(), after=after, limit=200)
            told.update(row.trigger or "" for row in page.jobs)
            unknown = {row.id for row in page.jobs} - self._world.books.jobs
            assert not unknown, f"nobody asked for {unknown}"
            after = page.next
        twice = [trigger for trigger, times in told.items() if trigger.startswith("schedule:") and times > 1]
        assert not twice, f"these due times came twice: {twice}"
