"""What a job costs as more and more of them have gone through one database: CPU and WAL per job, at each size."""

from dataclasses import dataclass

from bench.flatness.product import BATCH, product
from bench.flatness.report import Report, ratio
from bench.flatness.server import Used
from tests.services import PostgresServer

_WITHIN = 1.2


@dataclass(frozen=True, slots=True)
class Stage:
    upto: int
    jobs: int
    used: Used
    size: int

    @property
    def us(self) -> float:
        return self.used.server / self.jobs * 1e6


def run(server: PostgresServer, report: Report, most: int, first: int) -> None:
    report.title(f"Cost per job from {first:,} to {most:,} jobs through one database")
    stages: list[Stage] = []
    with product(server) as made:
        worker = made.start_worker()
        # Plans and caches.
        made.flow(max(1, first // 10))
        meter = made.meter()
        flowed, mark = 0, first
        while flowed < most:
            before, began = meter.read(), flowed
            while flowed < mark:
                some = min(BATCH, mark - flowed)
                made.flow(some)
                flowed += some
            size = int(str(made.execute("select pg_database_size(current_database())")[0][0]))
            stages.append(Stage(flowed, flowed - began, meter.read() - before, size))
            mark = min(most, mark * 3 if str(mark)[0] == "1" else mark // 3 * 10)
        meter.close()
        assert worker.counter.value >= most
    report.saw(*(stage.used for stage in stages))
    report.say(
        "Enqueued by the thousand, run by one worker meanwhile; autovacuum and checkpoints included.\n"
    )
    report.table(
        (
            "jobs so far",
            "PostgreSQL CPU us/job",
            "worker CPU us/job",
            "WAL B/job",
            "jobs/s",
            "database MB",
            "foreign",
        ),
        (
            (
                f"{stage.upto:,}",
                f"{stage.us:.1f}",
                f"{stage.used.worker / stage.jobs * 1e6:.1f}",
                f"{stage.used.wal / stage.jobs:,.0f}",
                f"{stage.jobs / stage.used.wall:,.0f}",
                f"{stage.size / 2**20:,.0f}",
                f"{stage.used.foreign:.0%}",
            )
            for stage in stages
        ),
    )
    # The first decade is too short to be exact: from the second on.
    base = stages[1] if len(stages) > 2 else stages[0]
    report.target(
        f"CPU of PostgreSQL per job at {most:,} / at {base.upto:,}", ratio(stages[-1].us, base.us), _WITHIN
    )
    wal = [stage.used.wal / stage.jobs for stage in (base, stages[-1])]
    report.target(f"WAL per job at {most:,} / at {base.upto:,}", ratio(wal[1], wal[0]), _WITHIN)
