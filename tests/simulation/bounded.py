"""What bounds jobs in one seed's world: ordering keys and a limit, and what must be so of them after every event."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import JobRecord, NewJob
from duly.core.lifecycle import State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.protocol import Store

SLOW: Final = "task:slow"
MOST: Final = 2
KEYS: Final = "ab"


class Bounded:
    """Every other job has an ordering key, and of the slow ones two run at a time."""

    def __init__(self, store: Store, draw: random.Random, queues: Sequence[str]) -> None:
        self._store = store
        self._draw = draw
        self.met: Counter[str] = Counter()
        store.schema.declare(
            Registration(
                "simulation",
                "1",
                tuple(QueuePolicy(queue, ordering="skip_dead") for queue in queues),
                limits=(LimitPolicy(SLOW, max_running=MOST),),
                task_limits=(TaskLimit("slow", SLOW),),
            )
        )

    def bind(self, job: NewJob) -> NewJob:
        return replace(job, ordering_key=self._draw.choice([None, *KEYS]))

    def check(self, rows: Iterable[JobRecord | None]) -> None:
        """One of a key runs, and no more than may."""
        running = [row for row in rows if row is not None and row.state is State.running]
        keys = Counter((row.queue, row.ordering_key) for row in running if row.ordering_key is not None)
        assert all(count == 1 for count in keys.values()), f"two of one key run: {keys}"
        slow = [row.id for row in running if row.task == "slow"]
        assert len(slow) <= MOST, f"{slow} run at once, and {MOST} may"
        held = sum(one.running for one in self._store.control.limits([SLOW]))
        assert held == len(slow), f"{held} hold what {len(slow)} run with"
        self.met["at the limit"] += len(slow) == MOST

    def check_ends(self, rows: Sequence[JobRecord]) -> None:
        """Nothing is held by what has ended."""
        assert sum(one.running for one in self._store.control.limits([SLOW])) == 0
        left = [one for one in self._store.control.keys(most=100) if one.waiting or one.state is not None]
        assert not left, f"keys belong to jobs that have ended: {left}"
        self.met["keyed"] += sum(row.ordering_key is not None for row in rows)
