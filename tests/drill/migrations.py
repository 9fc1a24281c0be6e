"""Migrations killed at random moments: the next one finishes the work, and the jobs of the old schema are all there."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from duly.core.filters import Filter
from duly.core.job import NewJob
from duly.core.lifecycle import State
from duly.core.names import key_of
from duly.stores.open import open_store
from duly.stores.sqlite.statements import migrations as sqlite_migrations
from tests.drill.effects import own_connection
from tests.services import PostgresServer

JOBS = 50
SQLITE_VERSION = """
CREATE TABLE duly_schema_version
(version integer primary key, name text not null, checksum text not null, applied_at integer not null) strict
"""
SQLITE_JOB = """
INSERT INTO duly_job (id, queue, task, args, priority, tenant, enqueued_at)
VALUES (:id, 'default', 'before', x'7b7d', 100, '', 0)
"""
SQLITE_READY = """
INSERT INTO duly_ready (queue, priority, pos, id, task, run, failed, lost, interrupted, snoozed, ready_at)
VALUES (:queue, 100, :id, :id, :task, 0, 0, 0, 0, 0, 0)
"""
POSTGRES_JOBS = """
INSERT INTO duly.job (id, queue_key, suspect_key, task_key, enqueued_at, priority, queue, task, args)
SELECT nextval('duly.pos'), %(queue)s, 0, %(task)s, now(), 100, 'default', 'before', '{}'::bytea
  FROM generate_series(1, %(jobs)s)
"""
POSTGRES_READY = """
INSERT INTO duly.ready (queue, pos, id, task, ready_at, priority)
SELECT %(queue)s, n, n, %(task)s, now(), 100 FROM generate_series(1, %(jobs)s) n
"""
# A whole `duly migrate` takes about this long; kills fall anywhere into it.
LONGEST = 0.8


def drill(
    kind: str, folder: Path, server: PostgresServer | None, seed: int, rounds: int, broken: list[str]
) -> None:
    """`rounds` databases of the first release, each migrated by processes of which the first ones are killed."""
    dice = random.Random(seed)
    for number in range(rounds):
        url = (
            f"sqlite:///{folder}/old-{number}.db" if server is None else server.url(server.create_database())
        )
        begin_at_the_first_release(url)
        killed = 0
        while killed < 5 and not migrated(url, dice.random() * LONGEST):
            killed += 1
        if killed == 5 and not migrated(url, 60.0):
            broken.append(f"migration {number} of {kind} did not end after {killed} kills")
        broken += left_behind(url, number, killed)
    print(f"\n{kind}: {rounds} migrations, each killed until it got through")


def begin_at_the_first_release(url: str) -> None:
    """The schema of migration 1 alone, with jobs in it."""
    queue, task = key_of("default"), key_of("before")
    with own_connection(url) as connection:
        if url.startswith("sqlite"):
            first = sqlite_migrations("duly")[0]
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SQLITE_VERSION)
            for statement in first.statements:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO duly_schema_version VALUES (?, ?, ?, 0)",
                (first.version, first.name, first.checksum),
            )
            for id in range(1, JOBS + 1):
                connection.execute(SQLITE_JOB, {"id": id})
                connection.execute(SQLITE_READY, {"id": id, "queue": queue, "task": task})
            connection.execute("UPDATE duly_seq SET value = ?", (JOBS,))
        else:
            store = open_store(url)
            connection.execute(store.schema.sql().partition("-- migration 2")[0])
            store.close()
            connection.execute(POSTGRES_JOBS, {"jobs": JOBS, "queue": queue, "task": task})
            connection.execute(POSTGRES_READY, {"jobs": JOBS, "queue": queue, "task": task})
        connection.commit()


def migrated(url: str, patience: float) -> bool:
    """Run `duly migrate`, killed after so many seconds; whether it ended by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "duly.cli.main", "migrate", "--url", url],
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    timer = threading.Timer(patience, process.kill)
    timer.start()
    code = process.wait()
    timer.cancel()
    return code == 0


def left_behind(url: str, number: int, killed: int) -> list[str]:
    """What is wrong with the database afterwards."""
    store = open_store(url)
    try:
        if store.schema.version() != store.schema.wanted():
            return [f"migration {number}, killed {killed} times, ended at version {store.schema.version()}"]
        store.jobs.enqueue([NewJob(queue="default", task="after", args=b"{}")] * JOBS)
        found = Counter((job.task, job.state) for job in store.inspection.page(Filter(), limit=1000).jobs)
        wanted = {("before", State.ready): JOBS, ("after", State.ready): JOBS}
        return [] if found == wanted else [f"migration {number}, killed {killed} times, left {dict(found)}"]
    finally:
        store.close()
