"""A million jobs that may not run, or that are one tenant's: what does it cost to claim the others?

Two databases take turns, one with the backlog and one without, with the same declarations.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.controlling.place import ARGS, QUEUE, Make, Place
from bench.controlling.report import Report, milliseconds
from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, NewJob
from duly.core.registration import QueuePolicy
from tests.services import PostgresServer

MOST = 2.0
CLAIMED = 100
_CUSTOMERS = LimitPolicy("task:limited#customer", max_running=1)
_OF_CUSTOMER = TaskLimit("limited", "task:limited#customer", "customer")
Jobs = Callable[[int], NewJob]


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits, and who should not notice."""

    name: str
    job: Jobs
    others: Mapping[str, Jobs]
    limits: tuple[LimitPolicy, ...] = ()
    takes: tuple[TaskLimit, ...] = ()
    fair: bool = False
    capped: tuple[LimitPolicy, ...] = field(default=())
    """Declared for a second round on the same backlog."""


def _plain(_: int) -> NewJob:
    return NewJob(QUEUE, "plain", ARGS)


def _customer(number: int) -> bytes:
    return b'{"customer":%d}' % (number + 1000)


BACKLOGS = (
    Backlog(
        "one ordering key",
        lambda _: NewJob(QUEUE, "plain", ARGS, ordering_key="key"),
        {
            "without a key": _plain,
            "of a key each": lambda number: NewJob(QUEUE, "plain", ARGS, ordering_key=f"key {number}"),
        },
    ),
    Backlog(
        "one limit",
        lambda _: NewJob(QUEUE, "limited", ARGS),
        {
            "without a limit": _plain,
            "at other limits": lambda number: NewJob(QUEUE, "limited", _customer(number)),
        },
        limits=(_CUSTOMERS,),
        takes=(_OF_CUSTOMER,),
    ),
    Backlog(
        "one tenant",
        lambda _: NewJob(QUEUE, "plain", ARGS, tenant="big", fair=True),
        {
            "of other tenants": lambda number: NewJob(
                QUEUE, "plain", ARGS, tenant=f"tenant {number}", fair=True
            ),
        },
        fair=True,
        capped=(LimitPolicy(f"tenant:{QUEUE}", max_running=2),),
    ),
)


class _Side:
    """One of the two databases."""

    def __init__(self, place: Place, backlog: Backlog) -> None:
        self.place = place
        self.backlog = backlog
        self._holder = place.register()
        self.me = place.register()
        self.declare()
        place.put(backlog.job, 2)
        # The head runs, and what it holds is held, for as long as this measures.
        place.claim(self._holder, 2, fair=backlog.fair)

    def declare(self, *more: LimitPolicy) -> None:
        queues = [QueuePolicy(QUEUE, fair=self.backlog.fair)]
        self.place.declare(*self.backlog.limits, *more, takes=self.backlog.takes, queues=queues)
        self.place.store.upkeep.promote()

    def fill(self, count: int) -> float:
        """Seconds that claims needed to set it aside."""
        self.place.put(self.backlog.job, count)
        took = 0.0 if self.backlog.fair else self.place.set_aside(self.me)
        self.place.vacuum()
        return took

    def turn(self, others: Jobs) -> tuple[float, float]:
        """Wall and processor seconds of one claim of a hundred others."""
        self.place.put(others, CLAIMED)
        found: list[ClaimedJob] = []

        def claim() -> None:
            found.extend(self.place.claim(self.me, CLAIMED, fair=self.backlog.fair))

        cost = self.place.cost(claim)
        assert len(found) == CLAIMED, (self.backlog.name, len(found))
        self.place.complete(self.me, found)
        return cost.wall, cost.cpu


def run(store: str, make: Make, server: PostgresServer | None, report: Report, jobs: int, turns: int) -> None:
    for backlog in BACKLOGS:
        with make() as empty, make() as full:
            sides = _Side(empty, backlog), _Side(full, backlog)
            took = sides[1].fill(jobs)
            if took:
                each = took / jobs * 1e6
                report.row(
                    store, f"{jobs:,} set aside behind {backlog.name}", ("", ""), each, None, " µs a job"
                )
            for name, others in backlog.others.items():
                what = f"claim of 100 {name}, beside {jobs:,} behind {backlog.name}"
                if backlog.fair:
                    what = f"claim of 100 {name}, beside {jobs:,} of one"
                _compare(store, server, report, what, sides, others, turns)
                if backlog.capped:
                    for side in sides:
                        side.declare(*backlog.capped)
                    _compare(store, server, report, what + " at its cap", sides, others, turns)


def _compare(
    store: str,
    server: PostgresServer | None,
    report: Report,
    what: str,
    sides: tuple[_Side, _Side],
    others: Jobs,
    turns: int,
) -> None:
    for side in sides:
        side.turn(others)
    watched = report.watch(server)
    pairs = [(sides[0].turn(others), sides[1].turn(others)) for _ in range(turns)]
    place = 1 if report.saw(watched) else 0
    without, with_it = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
    report.row(
        store,
        what,
        (milliseconds(without), milliseconds(with_it)),
        statistics.median(full[place] / empty[place] for empty, full in pairs),
        MOST,
    )
