"""duly's rows for the peer harness: --variant sqlite | postgres.

Knows the harness's Peer protocol (HARNESS, a folder with common.py) and duly's public interface; no internals but the
tables that purge and remaining look at.
"""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
HARNESS = Path(os.environ.get("HARNESS", HERE.parent.parent / "shared" / "bench"))
sys.path.insert(0, str(HARNESS))
os.environ["HARNESS"] = str(HARNESS)
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])

from common import PEERS, Peer, PgPeer, main, pg_url, record  # noqa: E402  # the harness is found at run time

from duly import App  # noqa: E402

VARIANT = os.environ.get("BENCH_VARIANT") or (
    sys.argv[sys.argv.index("--variant") + 1] if "--variant" in sys.argv else "sqlite"
)
FOLDER = Path(PEERS) / "duly"
URL = pg_url("bench_duly") if VARIANT == "postgres" else f"sqlite:///{FOLDER}/duly.db"
LIVE = ("ready", "scheduled", "blocked", "claimed")
HISTORY = ("job", "finished", "dead", "attempt")

jobs = App(URL)


@jobs.task
async def noop(x: float) -> None:
    record(x)


class Duly:
    """What both rows share: the public interface."""

    dist = "duly"
    bulk = True

    def enqueue(self, x: float) -> None:
        noop.enqueue(x)

    def enqueue_bulk(self, xs: Iterable[float]) -> None:
        jobs.enqueue_many(noop.draft(x) for x in xs)

    def worker_cmd(self) -> list[str]:
        concurrency = os.environ.get("BENCH_CONCURRENCY", "50")
        return [
            sys.executable,
            "-m",
            "duly.cli.main",
            "worker",
            "peer_duly:jobs",
            "--concurrency",
            concurrency,
        ]

    def close(self) -> None:
        jobs.close()


class DulyPostgres(Duly, PgPeer):
    """synchronous_commit on, everything durable."""

    name = "duly postgres"
    note = "psycopg 3, one worker process, finished rows kept for 24 h, synchronous_commit on"
    tables = tuple(f"duly.{table}" for table in (*LIVE, *HISTORY))
    left_sql = "SELECT " + " + ".join(f"(SELECT count(*) FROM duly.{table})" for table in LIVE)

    def open(self) -> None:
        import psycopg

        # What an earlier release left there is no business of this run.
        with psycopg.connect(pg_url("postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS bench_duly WITH (FORCE)")
        self.create_db()
        jobs.store.schema.migrate()


class DulySQLite(Duly, Peer):
    """synchronous=FULL in the journal mode that this SQLite is safe with."""

    name, server = "duly sqlite", "sqlite"

    def open(self) -> None:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        jobs.store.schema.migrate()
        facts = jobs.store.inspection.describe()
        journal = facts.get("journal", "?")
        self.note = f"synchronous=FULL, journal {journal}, one worker process, finished rows kept for 24 h"

    def purge(self) -> None:
        with jobs.transaction() as connection:
            for table in (*LIVE, *HISTORY):
                connection.execute(f"DELETE FROM duly_{table}")

    def remaining(self) -> int:
        return sum(
            count.ready + count.scheduled + count.blocked + count.running
            for count in jobs.store.inspection.counts()
        )


if __name__ == "__main__":
    main(DulyPostgres if VARIANT == "postgres" else DulySQLite)
