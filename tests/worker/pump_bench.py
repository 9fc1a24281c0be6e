"""A pump over a real store without its thread: rounds one at a time, hands instead of slots, a line that can be cut."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from duly.core.job import (
    ClaimRequest,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    WorkerInfo,
)
from duly.stores.faults import DataFault, Transient
from duly.stores.open import open_store
from duly.stores.protocol import JobStore, Store
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Why
from duly.worker.board import Board
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor, Slot
from duly.worker.heartbeat import Fence
from duly.worker.pump import Pump
from duly.worker.reports import Reports
from duly.worker.run import returned
from duly.worker.suspects import Mode, Suspects
from tests.worker.doubles import Clock, a_plan, an_app, cards


class Line:
    """The connection between pump and store: cuts it, or refuses rows, when a test says so."""

    def __init__(self, real: JobStore) -> None:
        self.real = real
        self.cut_before = 0
        self.cut_after = 0
        self.cut_report = 0
        self.refuses: frozenset[int] = frozenset()
        self.calls: list[tuple[int, ClaimRequest | None]] = []

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        self.calls.append((len(ended), request))
        if self.cut_before:
            self.cut_before -= 1
            raise Transient("connection refused")
        if any(end.id in self.refuses and end.result is not None for end in ended):
            raise DataFault("a value is out of range")
        answer = self.real.exchange(incarnation, ended, request)
        if self.cut_after:
            self.cut_after -= 1
            raise Transient("connection reset", outcome_unknown=True)
        return answer

    def report(self, *said: Any) -> Any:
        if self.cut_report:
            self.cut_report -= 1
            raise Transient("connection refused")
        return self.real.report(*said)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Cut:
    """The store as the pump sees it: everything real but for the line."""

    def __init__(self, real: Store) -> None:
        self.real = real
        self.jobs = Line(real.jobs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Bench:
    """A pump without its thread, and hands instead of slots."""

    def __init__(self, url: str, mode: Mode = "report", **said: Any) -> None:
        self.clock = Clock()
        self.app = an_app()
        self.store = open_store(url)
        self.line = Cut(self.store)
        plan = a_plan(**said)
        self.board = Board.create(100)
        fence = Fence(plan.lease, plan.heartbeat, self.board, self.clock.now)
        self.floor = Floor(self.board, fence, (), self.clock)
        known = cards(self.app)
        self.incarnation = self._register(known)
        store: Any = self.line
        self.reports = Reports(store, self.incarnation, fence, plan.heartbeat, self.clock)
        self.found = 0
        self.suspects = Suspects(mode, 5.0, self._note_suspect, lambda: False)
        fetch = Fetch(plan, known, 1.0)
        self.heard: list[Happening] = []
        hub = Hub()
        hub.listen(self.heard.append)
        self.pump = Pump(store, self.incarnation, self.floor, fetch, self.reports, self.suspects, hub)
        self.reports.cards = self.pump.cards = known
        self.reports.stop = self._stop
        self.delivered: list[Attempt] = []
        self.stopped: list[tuple[int, Why]] = []
        self.pump.deliver = self.delivered.extend
        self.slot = Slot(0)
        # The first claim looks for suspects.
        self.pump.round()

    def enqueue(self, many: int = 1) -> list[JobId]:
        return [stored.id for stored in self.store.jobs.enqueue([NewJob("default", "on_loop", b"{}")] * many)]

    def rounds(self, many: int = 3) -> None:
        for _ in range(many):
            self.clock.advance(0.001)
            self.pump.round()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.board.renew(self.clock.now)

    def run(self, attempt: Attempt, result: object = None) -> None:
        """Its handler runs and returns at once."""
        assert self.floor.begin(attempt, self.slot)
        self.floor.finish(attempt, returned(attempt, result, self.clock.now), self.slot)

    def claim(self, many: int = 1) -> list[Attempt]:
        self.enqueue(many)
        self.pump.ring()
        self.rounds()
        taken, self.delivered[:] = list(self.delivered), []
        assert len(taken) == many
        return taken

    def job(self, id: int) -> JobRecord:
        record = self.store.inspection.lookup([JobId(id)])[0]
        assert record is not None
        return record

    def close(self) -> None:
        self.store.close()
        self.board.close()

    def _register(self, known: dict[str, Any]) -> Incarnation:
        tasks = {name: timedelta(seconds=card.timeout) for name, card in known.items()}
        second = timedelta(seconds=1)
        return self.store.leases.register(
            WorkerInfo("h", 1, "h:1", ("default",), tasks, 30 * second, 5 * second, 10, "0")
        )

    def _stop(self, attempt: Attempt, why: Why, reason: str) -> None:
        attempt.ask(why, reason, self.clock.now)
        self.stopped.append((attempt.job.id, why))

    def _note_suspect(self) -> None:
        self.found += 1
