"""Workers of the previous release and of this one share a database that this release has migrated: every job runs once,
and on PostgreSQL those of an ordering key in order. Usage: mixed_fleet.py SRC_OF_THE_PREVIOUS_RELEASE
"""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from duly.core.job import JobId, NewJob
from duly.core.lifecycle import FINAL, State
from duly.stores.open import open_store
from duly.stores.protocol import Store
from tests.services import PostgresServer
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]
KEYS = ("a", "b", "")
MOST = 40
LEAST = 200


def fleet(store: Store, url: str, folder: Path, sources: tuple[Path, ...], *, keyed: bool) -> str:
    """Let one worker of each release work until both have; what they did, in words."""
    with (folder / "log").open("wb") as log:
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.start_worker", "tests.e2e.fleet_app:jobs", "{}"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(source), "DULY_URL": url, "CHORES": str(folder)},
                stdout=log,
                stderr=log,
            )
            for source in sources
        ]
    try:
        wait_until(lambda: len(store.inspection.workers()) == len(workers), timeout=120, what="both workers")
        ids: list[JobId] = []
        while len(ids) < LEAST or len({line["by"] for line in read(folder)}) < len(sources):
            assert len(ids) < 120 * MOST, (folder / "log").read_text()
            new = [stored.id for stored in store.jobs.enqueue(round_of(keyed))]
            wait_until(partial(ended, store, new), timeout=120, what="the end of a round")
            ids += new
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(60)
    check(store, ids, read(folder), KEYS if keyed else ())
    counts = [sum(line["by"].startswith(str(source)) for line in read(folder)) for source in sources]
    return f"{len(ids)} jobs, {counts[0]} by the previous release, {counts[1]} by this one"


def read(folder: Path) -> list[dict[str, Any]]:
    ledger = folder / "ledger"
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def check(store: Store, ids: list[JobId], lines: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    rows = store.inspection.lookup(ids)
    assert all(row is not None and row.state is State.completed and row.run == 1 for row in rows)
    assert sorted(line["id"] for line in lines) == sorted(ids), "a job ran twice or not at all"
    for key in filter(None, keys):
        of_key = [line["id"] for line in lines if line["key"] == key]
        assert of_key == sorted(of_key), f"the key {key} went out of order"


def round_of(keyed: bool) -> list[NewJob]:
    names = [KEYS[at % len(KEYS)] for at in range(MOST)]
    return [
        NewJob(
            "default",
            "work",
            json.dumps({"key": key}).encode(),
            ordering_key=(key or None) if keyed else None,
        )
        for key in names
    ]


def ended(store: Store, ids: list[JobId]) -> bool:
    return all(row is not None and row.state in FINAL for row in store.inspection.lookup(ids))


def main() -> int:
    sources = (Path(sys.argv[1]), ROOT / "src")
    with TemporaryDirectory() as place, PostgresServer(15) as server:
        for name in ("sqlite", "postgres"):
            folder = Path(place) / name
            folder.mkdir()
            keyed = name == "postgres"
            url = server.url(server.create_database()) if keyed else f"sqlite:///{folder}/fleet.db"
            store = open_store(url)
            try:
                store.schema.migrate()
                print(f"{name}: {fleet(store, url, folder, sources, keyed=keyed)}", flush=True)
            finally:
                store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
