"""A queue that uses nothing of all this, in a database where other queues use everything: does it pay for them?

Two databases take turns, one with declarations, jobs and keys of others and one without.
"""

import statistics
from collections.abc import Callable

from bench.controlling.place import ARGS, QUEUE, Make, Place, ended
from bench.controlling.report import Report, number
from duly.core.control import LimitPolicy, Rate, TaskLimit
from duly.core.job import ClaimedJob, ClaimRequest, NewJob, QueueClaim
from duly.core.registration import QueuePolicy
from tests.services import PostgresServer

MOST = 1.05
"""What two databases with nothing in them differ by on a busy machine."""
_OTHERS = 1_000
Call = Callable[[], object]


def _bound_others(place: Place) -> None:
    """Everything there is, for other queues and tasks, with jobs of theirs."""
    per_customer = LimitPolicy("task:limited#customer", max_running=1)
    place.declare(
        per_customer,
        LimitPolicy("resource:api", rate=Rate(0.01, 10)),
        LimitPolicy("queue:small", max_running=5),
        LimitPolicy("tenant:shared", max_running=3),
        takes=[
            TaskLimit("limited", per_customer.name, "customer"),
            TaskLimit("limited", "resource:api"),
        ],
        queues=[QueuePolicy("shared", fair=True, reserve=0.1), QueuePolicy("keys", ordering="skip_dead")],
    )
    place.put(lambda n: NewJob("keys", "plain", ARGS, ordering_key=f"key {n}"), _OTHERS)
    place.put(lambda n: NewJob("shared", "plain", ARGS, tenant=f"tenant {n % 100}", fair=True), _OTHERS)
    place.put(lambda _: NewJob("small", "limited", ARGS), _OTHERS)
    me = place.register()
    request = ClaimRequest(
        (QueueClaim("keys", 20), QueueClaim("shared", 20, fair=True), QueueClaim("small", 20)), 60
    )
    for _ in range(3):
        place.store.jobs.exchange(me, (), request)
    place.store.upkeep.promote()


class _Side:
    """One of the two databases, with one job in each of the exchange's hands."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.me = place.register()
        self._held: list[ClaimedJob] = []

    def exchange(self, size: int, calls: int) -> float:
        """Processor microseconds a job."""
        self._settle()
        self.place.put(lambda _: NewJob(QUEUE, "plain", ARGS), size * (calls + 1))
        self._once(size)

        def exchanges() -> None:
            for _ in range(calls):
                self._once(size)

        cost = self.place.cost(exchanges)
        return cost.cpu / size / calls * 1e6

    def _once(self, size: int) -> None:
        request = ClaimRequest((QueueClaim(QUEUE, size),), size)
        answer = self.place.store.jobs.exchange(self.me, ended(self._held), request)
        assert len(answer.claimed) == size
        self._held = list(answer.claimed)

    def _settle(self) -> None:
        while True:
            self.place.complete(self.me, self._held)
            self._held = list(self.place.claim(self.me, 1_000))
            if not self._held:
                return

    def drain(self, jobs: int) -> float:
        """Processor microseconds a job, of a worker and its server, without the first tenth."""
        self._settle()
        place = self.place
        place.store.operator.pause("queue:default", None, "bench", "measuring")
        place.put(lambda _: NewJob(QUEUE, "noop", b'{"x":1}'), jobs)
        with place.worker() as worker:
            place.store.operator.resume("queue:default", "bench", "measuring")
            worker.until(jobs // 10)
            first, before = worker.counter.value, place.used_with(worker)
            worker.until(jobs)
            after = place.used_with(worker)
        return (after.cpu - before.cpu) / max(1, jobs - first) * 1e6


def run(
    store: str, make: Make, server: PostgresServer | None, report: Report, scale: float, turns: int
) -> None:
    small, big = max(10, int(300 * scale)), max(3, int(60 * scale))
    with make() as bare, make() as bound:
        _bound_others(bound)
        sides = _Side(bare), _Side(bound)
        for what, act in (
            ("exchange of 1", lambda side: side.exchange(1, small)),
            ("exchange of 50", lambda side: side.exchange(50, big)),
            ("drain by a worker", lambda side: side.drain(max(1_000, int(20_000 * scale)))),
        ):
            _compare(store, server, report, what, sides, act, turns if "exchange" in what else min(turns, 5))


def _compare(
    store: str,
    server: PostgresServer | None,
    report: Report,
    what: str,
    sides: tuple[_Side, _Side],
    act: Callable[[_Side], float],
    turns: int,
) -> None:
    for side in sides if turns > 1 else ():
        act(side)
    watched = report.watch(server)
    pairs = []
    for turn in range(turns):
        # Whoever comes second finds warmer caches, or more of the others' noise.
        first, second = sides if turn % 2 == 0 else sides[::-1]
        costs = {first: act(first), second: act(second)}
        pairs.append((costs[sides[0]], costs[sides[1]]))
    report.saw(watched)
    without, with_it = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    report.row(
        store,
        f"{what} in a plain queue, controls declared elsewhere",
        (f"{number(without)} µs", f"{number(with_it)} µs"),
        statistics.median(bound / bare for bare, bound in pairs),
        MOST,
    )
