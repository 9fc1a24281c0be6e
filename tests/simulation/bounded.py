"""What bounds jobs in one world: ordering keys, a limit and maybe a queue that sheds; and what must be so of them."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import JobRecord, NewJob
from duly.core.lifecycle import State
from duly.core.pressure import QUEUE_FULL
from duly.core.registration import QueuePolicy, Registration
from duly.stores.protocol import Store

SLOW: Final = "task:slow"
MOST: Final = 2
KEYS: Final = "ab"
DEPTH: Final = 1
SHEDDING: Final = QueuePolicy("mail", max_depth=DEPTH, when_full="shed")


class Bounded:
    """Every other job has an ordering key, and of the slow ones two run at a time. `sheds`: mail has little room."""

    def __init__(self, store: Store, draw: random.Random, queues: Sequence[str], *, sheds: bool) -> None:
        self._store = store
        self._draw = draw
        self._sheds = sheds
        self.met: Counter[str] = Counter()
        policies = {queue: QueuePolicy(queue) for queue in queues} | ({"mail": SHEDDING} if sheds else {})
        store.schema.declare(
            Registration(
                "simulation",
                "1",
                tuple(replace(policy, ordering="skip_dead") for policy in policies.values()),
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
        shed = [row for row in rows if row.state is State.shed]
        odd = [row.id for row in shed if not self._sheds or row.queue != "mail" or row.reason != QUEUE_FULL]
        assert not odd, f"{odd} were shed, and their queue has room for all"
        self.met["shed"] += len(shed)
        self.met["shed with a key"] += sum(row.ordering_key is not None for row in shed)
        self.met["keyed"] += sum(row.ordering_key is not None for row in rows)
