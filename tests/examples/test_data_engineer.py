"""Long work in killable processes: cut by a shutdown, resumed by the next worker, followed up once."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from duly.core.lifecycle import State
from tests.examples.programs import EXAMPLES, load, run, work
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

FOLDER, APP = "data_engineer", "embed:jobs"
PHOTOS = [f"{number}.jpg" for number in range(30)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.setenv("DATA", str(tmp_path))
    (tmp_path / "big.npy").write_bytes(bytes(1_000_000))
    return tmp_path


def test_work_that_is_cut_goes_on_where_it_was(place: Path) -> None:
    run(FOLDER, "embed", "monday", *PHOTOS)
    run(FOLDER, "embed", "monday", *PHOTOS)
    embedded = place / "monday" / "embedded"

    worker = subprocess.Popen(
        [sys.executable, "-m", "duly.cli.main", "worker", APP, "--isolated", "1"],
        cwd=EXAMPLES / FOLDER,
        env={**os.environ, "PACE": "0.1"},
    )
    try:
        wait_until(lambda: embedded.exists() and len(embedded.read_text().splitlines()) >= 3, timeout=60)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
    cut = len(embedded.read_text().splitlines())
    work(FOLDER, APP, "--isolated", "1")

    done = Counter(line.split()[0] for line in embedded.read_text().splitlines())
    assert set(done) == set(PHOTOS)
    # The item on which it was cut is told before the loop asks for the next one: it may come again, no other does.
    assert sum(done.values()) <= len(PHOTOS) + 1
    assert 3 <= cut < len(PHOTOS)
    assert (place / "monday" / "packed").read_text().split() == ["count", "embedded"]


def test_large_inputs_and_follow_ups_arrive(place: Path) -> None:
    run(FOLDER, "embed", "tuesday", "a.jpg", "b.jpg")

    work(FOLDER, APP, "--isolated", "1")

    embed = load(FOLDER, "embed")
    records = {record.task: record for record in embed.jobs.inspect.jobs().jobs}
    assert {record.state for record in records.values()} == {State.completed}
    assert records["load"].result == b"1000000"
    assert records["pack"].result == b"2"
    assert records["pack"].correlation_id == records["embed"].correlation_id
    embed.jobs.close()
