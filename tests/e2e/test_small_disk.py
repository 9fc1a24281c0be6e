"""A store that fills up while producers run: payments go on, analytics give way, nothing is lost, and it recovers.

On SQLite the disk itself is small; on PostgreSQL duly's tables may take only so much.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from duly.stores.open import open_store
from tests.disks import small_disk
from tests.e2e.workers import ROOT, Place, Worker, a_place
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

APP = "tests.e2e.small_disk_app"
LONG = 120.0


class Scene:
    """A store with a budget, producers and workers."""

    def __init__(self, place: Place, budget: Mapping[str, str]) -> None:
        self.place = place
        self.budget = dict(budget)
        self._producers: list[subprocess.Popen[bytes]] = []

    def produce(self, queue: str) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", APP, queue],
            cwd=ROOT,
            env={**os.environ, "DULY_URL": self.place.url, "CHORES": str(self.place.folder), **self.budget},
            stdin=subprocess.DEVNULL,
        )
        self._producers.append(process)

    def work(self, **options: Any) -> Worker:
        return self.place.start(f"{APP}:jobs", self.budget, **options)

    def stop(self, queue: str) -> None:
        (self.place.folder / f"stop-{queue}").touch()

    def join(self) -> None:
        for process in self._producers:
            assert process.wait(LONG) == 0

    def close(self) -> None:
        for process in self._producers:
            process.kill()
            process.wait()

    def answers(self, queue: str) -> list[dict[str, Any]]:
        return _lines(self.place.folder / queue)

    def refusals(self, queue: str) -> list[str]:
        return [line["refused"] for line in self.answers(queue) if line["refused"]]

    def stored(self, queue: str) -> set[int]:
        return {id for line in self.answers(queue) for id in line["ids"]}

    def ran(self) -> set[int]:
        return {line["id"] for line in _lines(self.place.folder / "ran")}

    def shed(self) -> int:
        """How many jobs the workers say that they have shed."""
        return sum(map(int, re.findall(r"(\d+) jobs? (?:was|were) shed", self.place.logs())))

    def nothing_waits(self) -> bool:
        return not any(count.ready or count.running for count in self.place.store.inspection.counts())


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    # The last line may be half written.
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    if request.param == "sqlite":
        disk = tmp_path / "disk"
        disk.mkdir()
        with small_disk(disk, "16m"):
            yield from _scene(f"sqlite:///{disk / 'jobs.db'}", tmp_path, {"DULY_MIN_FREE_DISK": "4MiB"})
        return
    url = request.getfixturevalue("postgres_url")
    store = open_store(url)
    store.schema.migrate()
    store.close()
    yield from _scene(url, tmp_path, {"DULY_MAX_BYTES": "8MiB"})


def _scene(url: str, folder: Path, budget: Mapping[str, str]) -> Iterator[Scene]:
    with a_place(url, folder) as place:
        scene = Scene(place, budget)
        try:
            yield scene
        finally:
            scene.close()


def test_payments_go_on_while_a_full_store_refuses_and_sheds_analytics(scene: Scene) -> None:
    first = scene.work(queues={"payments": None})
    first.wait_said("duly worker on")
    for queue in ("analytics", "analytics", "payments"):
        scene.produce(queue)

    wait_until(lambda: scene.refusals("analytics"), timeout=LONG, what="analytics to be refused")
    before = len(scene.stored("payments"))
    wait_until(lambda: scene.shed() > 0, timeout=LONG, what="analytics to be shed")
    scene.stop("payments")
    assert len(scene.stored("payments")) > before
    assert scene.refusals("payments") == []

    refused = len(scene.answers("analytics"))
    scene.work()
    wait_until(
        lambda: any(line["ids"] for line in scene.answers("analytics")[refused:]),
        timeout=LONG,
        what="analytics to be let in again",
    )

    scene.stop("analytics")
    scene.join()
    wait_until(scene.nothing_waits, timeout=LONG, what="everything to have run")
    stored, ran = {queue: scene.stored(queue) for queue in ("payments", "analytics")}, scene.ran()
    assert set(scene.refusals("analytics")) == {"QueueFull"}
    assert stored["payments"] <= ran
    assert len(stored["analytics"] - ran) == scene.shed()
    print(
        f"{len(stored['payments'])} payments and {len(stored['analytics'])} analytics stored, "
        f"{len(scene.refusals('analytics'))} x refused, {scene.shed()} shed"
    )
