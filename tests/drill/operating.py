"""The person beside the drill: cancels, redrives, pauses and bounds now and then, and heals the handlers at the end.

Acts through the store, as the command line does. What the store refuses while it is restarted is tried again later.
"""

import random
import threading
from collections import Counter
from contextlib import suppress
from datetime import timedelta

from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from tests.drill import controls

BY = "the drill"
PAUSE = 0.4
MOMENT = timedelta(seconds=1)


class Operator:
    """A thread of its own until `end`; `heal` is the caller's to call again until nothing is dead."""

    def __init__(self, store: Store, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self._store = store
        self._dice = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="operator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Let nobody cancel any more; waits for an act that is under way."""
        self._ended.set()
        self._thread.join()

    def heal(self) -> None:
        """From now on nothing dies: what is dead runs again, keys that wait for a person go on."""
        controls.healing_file().touch()
        with suppress(Transient):
            self._redrive(most=1000)
            self._resume()

    def _run(self) -> None:
        acts = [
            self._cancel,
            self._cancel,
            self._redrive,
            self._resume,
            self._narrow,
            self._block,
            self._pause,
        ]
        while not self._ended.wait(PAUSE * self._dice.expovariate(1)):
            with suppress(Transient):
                self._dice.choice(acts)()

    def _cancel(self) -> None:
        """One of the newest jobs, wherever it stands."""
        page = self._store.inspection.page(
            Filter(queue=self._dice.choice(["waiting", "quick", "turns", "capped"]))
        )
        live = [job.id for job in page.jobs if job.state in (State.ready, State.scheduled, State.blocked)]
        if live:
            moved = self._store.operator.cancel([self._dice.choice(live)], BY, "no longer wanted")
            self.done["cancelled"] += len(moved)

    def _redrive(self, most: int = 3) -> None:
        page = self._store.inspection.page(Filter(state=State.dead), limit=most)
        if page.jobs:
            moved = self._store.operator.redrive([job.id for job in page.jobs], BY, "try again")
            self.done["redriven"] += len(moved)

    def _narrow(self) -> None:
        """A lower cap for a moment, or nothing at all."""
        if self._dice.random() < 0.5:
            self._store.control.hold("resource:api", MOMENT, BY, "slow down")
        else:
            target = self._dice.choice(["resource:api", "queue:capped", "tenant:turns"])
            made = self._store.control.override(target, "limit", {"max_running": 1}, MOMENT, BY, "slow down")
            if self._dice.random() < 0.5:
                self._store.control.lift(made.id, BY, "enough")
        self.done["narrowed"] += 1

    def _block(self) -> None:
        value = {"where": f"args.customer = {self._dice.randrange(controls.CUSTOMERS)}"}
        self._store.control.override("queue:capped", "block", value, MOMENT, BY, "not these")
        self.done["blocked"] += 1

    def _pause(self) -> None:
        target = self._dice.choice(["queue:turns", "queue:waiting", "queue:quick", "task:call", "task:keyed"])
        self._store.operator.pause(target, MOMENT, BY, "a moment")
        self.done["paused"] += 1

    def _resume(self) -> None:
        for key in self._store.control.keys("pausing", most=1000):
            # One whose head is dead waits for its redrive.
            if key.paused:
                resumed = self._store.control.resume_key(key.queue, key.tenant, key.key, BY, "go on")
                self.done["keys resumed"] += resumed
