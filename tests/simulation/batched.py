"""Batches in one seed's world: opened, filled, closed at some time; what must be so of their counts and follow-ups."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Final, Protocol

from duly.core.batch import BatchRecord, BatchState, CloseBatch, OpenBatch
from duly.core.filters import Filter
from duly.core.job import JobRecord, NewJob
from duly.core.lifecycle import State
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from tests.simulation.timeline import Timeline
from tests.simulation.wire import Books, Wire

FOLLOWING: Final = "follows a batch"
THEN: Final = NewJob("default", "work", b"{}", priority=1, tags=(FOLLOWING, "then"))
ON_DEAD: Final = NewJob("mail", "work", b"{}", priority=1, tags=(FOLLOWING, "on dead"))
LONGEST: Final = 6.0


class Surroundings(Protocol):
    """What this needs of the world."""

    timeline: Timeline
    books: Books
    store: Store


class Batched:
    """Everything of one world that is counted together."""

    def __init__(self, world: Surroundings, producer: Wire, seed: int) -> None:
        self._world = world
        self._producer = producer
        self._draw = random.Random(f"batched {seed}")
        self._open: set[int] = set()
        self._all: list[int] = []
        self._mourned: set[int] = set()
        self._followed: Counter[tuple[str | None, str]] = Counter()
        self.met: Counter[str] = Counter()
        """How often what this is for has happened."""

    # What happens

    def begin(self) -> None:
        """Open a batch, maybe inside another one, and fill it; it closes a little later."""
        parent = self._draw.choice([None, None, *sorted(self._open)[-1:]])
        id = self._world.store.batches.apply(OpenBatch("all", (THEN,), (ON_DEAD,), parent))
        self._world.timeline.note(f"batch {id} in {parent}")
        self._open.add(id)
        self._all.append(id)
        self.met["nested"] += parent is not None
        for _ in range(self._draw.randint(0, 3)):
            self._fill(id)
        self._world.timeline.after(
            self._draw.uniform(0, LONGEST), f"close batch {id}", lambda: self._close(id)
        )

    def _fill(self, id: int) -> None:
        expires = self._draw.choice([None, None, timedelta(seconds=6)])
        task = self._draw.choice(["work", "slow"])
        jobs = [NewJob("default", task, b"{}", expires=expires, batch=id)] * self._draw.randint(1, 2)
        try:
            self._producer.jobs.enqueue(jobs)
        except Transient as fault:
            self._world.timeline.note(f"producer: {fault}")

    def _close(self, id: int) -> None:
        if self._draw.random() < 0.5:
            self._fill(id)
        self._world.store.batches.apply(CloseBatch(id))
        # Whoever is told twice does nothing the second time.
        self._world.store.batches.apply(CloseBatch(id))
        self._open.discard(id)
        self._world.books.changes += 1

    # What must be so

    def meet_followers(self) -> bool:
        """Note what the store has enqueued since the last look; True when there was something."""
        page = self._world.store.inspection.page(Filter(tag=FOLLOWING), after=0, limit=1_000)
        books = self._world.books
        found = [row for row in page.jobs if row.id not in books.jobs]
        for row in found:
            books.jobs.add(row.id)
            books.new[row.id] = THEN if "then" in row.tags else ON_DEAD
            self._followed[(row.trigger, row.tags[-1])] += 1
        self._world.books.changes += bool(found)
        return bool(found)

    def check(self, rows: Iterable[JobRecord | None]) -> None:
        """Each batch counts what its jobs say; nothing follows it twice, or too early."""
        members: dict[int, Counter[State]] = {id: Counter() for id in self._all}
        for row in rows:
            new = None if row is None else self._world.books.new.get(row.id)
            if row is not None and new is not None and new.batch is not None:
                members[new.batch][row.state] += 1
        records = self._records()
        for record in records.values():
            for inside in records.values():
                if inside.parent == record.id:
                    members[record.id][_as_member(inside)] += 1
        for id, record in records.items():
            self._check_one(record, members[id])

    def _check_one(self, record: BatchRecord, members: Counter[State]) -> None:
        told = f"batch {record.id}, {record.state}, of {dict(members)}, counts {record.counts}"
        counts = record.counts
        assert counts.total == members.total(), told
        assert counts.completed == members[State.completed], told
        assert counts.dead == members[State.dead], told
        assert counts.skipped == members[State.skipped], told
        assert counts.cancelled == members[State.cancelled], told
        if members[State.dead]:
            self._mourned.add(record.id)
        trigger = f"batch:{record.id}"
        then, on_dead = self._followed[trigger, "then"], self._followed[trigger, "on dead"]
        assert then == (record.state is BatchState.completed), f"{told}: followed {then} times"
        assert on_dead <= (record.id in self._mourned), f"{told}: mourned {on_dead} times"

    def over(self) -> bool:
        """Whether nothing follows any more."""
        self._world.store.batches.finish()
        return not self._open and not self.meet_followers()

    def check_ends(self) -> None:
        for id, record in self._records().items():
            assert record.state is not BatchState.open
            assert not record.counts.left, f"batch {id} waits for {record.counts} when all has ended"
            on_dead = self._followed[f"batch:{id}", "on dead"]
            assert on_dead == (id in self._mourned), f"batch {id} was mourned {on_dead} times"
            self.met[record.state.value] += 1
            self.met["mourned"] += on_dead

    def _records(self) -> dict[int, BatchRecord]:
        found = self._world.store.batches.lookup(self._all)
        assert None not in found, "a batch is lost"
        return {record.id: record for record in found if record is not None}


def _as_member(inside: BatchRecord) -> State:
    """What a batch is to the one around it."""
    if inside.state is BatchState.completed:
        return State.completed
    return State.dead if inside.state is BatchState.dead else State.running
