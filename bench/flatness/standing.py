"""What one worker process is while it does nothing, and after millions of jobs: memory, CPU, statements."""

import time

from bench.flatness.product import BATCH, Product, product
from bench.flatness.report import Report
from tests.services import PostgresServer

_IDLE_MB = 90.0
_AFTER_MB = 150.0
_GROWTH_MB = 5.0
_CORE = 0.01
_STATEMENTS = 5.0


def run(server: PostgresServer, report: Report, jobs: int, idle: float) -> None:
    report.title(f"One worker process: idle, after {jobs:,} jobs and after {2 * jobs:,}")
    with product(server) as made:
        made.execute("create extension if not exists pg_stat_statements")
        worker = made.start_worker()
        made.flow(1)
        rows = [_moment(made, "idle at the start", idle)]
        for done in (jobs, 2 * jobs):
            for start in range(0, jobs, BATCH):
                made.flow(min(BATCH, jobs - start))
            rows.append(_moment(made, f"after {done:,} jobs", idle))
        del worker
    report.table(
        (
            "when",
            "worker process MB",
            "supervisor MB",
            "worker CPU of a core",
            "PostgreSQL CPU",
            "statements/s",
            "transactions/s",
        ),
        (
            (
                when,
                f"{own:.1f}",
                f"{supervisor:.1f}",
                f"{core:.2%}",
                f"{backend:.2%}",
                f"{statements:.1f}",
                f"{transactions:.1f}",
            )
            for when, own, supervisor, core, backend, statements, transactions in rows
        ),
    )
    first, middle, last = rows
    report.target("memory of an idle worker process", first[1], _IDLE_MB, " MB")
    report.target(f"memory after {jobs:,} jobs", middle[1], _AFTER_MB, " MB")
    report.target(f"growth over a further {jobs:,}", last[1] - middle[1], _GROWTH_MB, " MB")
    report.target(
        "CPU of an idle worker, its supervisor included",
        max(row[3] for row in rows) * 100,
        _CORE * 100,
        " % of a core",
    )
    report.target("statements a second of an idle worker", max(row[5] for row in rows), _STATEMENTS)


Moment = tuple[str, float, float, float, float, float, float]


def _moment(made: Product, when: str, idle: float) -> Moment:
    """Look for `idle` seconds at a worker that has nothing to do."""
    assert made.worker is not None
    made.worker_catches_up()
    # What it does once after work is over: the door, the last beats.
    time.sleep(min(5.0, idle))
    memory = made.worker.resident
    meter = made.meter()
    began, calls = meter.read(), _calls(made)
    time.sleep(idle)
    ended, more = meter.read(), _calls(made)
    meter.close()
    used = ended - began
    return (
        when,
        memory.get("process 1", 0.0),
        memory["supervisor"],
        used.worker / used.wall,
        used.server / used.wall,
        (more[0] - calls[0]) / used.wall,
        (more[1] - calls[1]) / used.wall,
    )


def _calls(made: Product) -> tuple[int, int]:
    """Statements as clients sent them, and transactions, of this database; without those of the looking."""
    row = made.execute(
        "select (select coalesce(sum(calls), 0)::bigint from pg_stat_statements s"
        " join pg_database d on d.oid = s.dbid where d.datname = current_database()"
        " and s.query not like '%pg_stat_statements%'),"
        " (select xact_commit + xact_rollback from pg_stat_database where datname = current_database())"
    )[0]
    return int(str(row[0])), int(str(row[1]))
