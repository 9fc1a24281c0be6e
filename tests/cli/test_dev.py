"""`duly dev` with real processes: it works, answers, restarts on a change, outlives broken code, and leaves nothing."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from duly import App
from duly.cli.changes import Changes
from tests.children import living_in
from tests.cli.conftest import run
from tests.waiting import wait_until

SOURCE = """
from duly import App
jobs = App()
@jobs.task
def hello() -> str:
    return "{}"
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_change_is_told_once_when_it_has_rested(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "app.py").write_text("1")
    changes = Changes([tmp_path], clock)
    (tmp_path / "app.py").write_text("22")
    (tmp_path / "more.py").write_text("3")

    looks = []
    for clock.now in (1.0, 1.1, 1.3, 1.6, 2.5):
        looks.append([path.name for path in changes.look()])

    assert looks == [[], [], ["app.py", "more.py"], [], []]


def test_a_removed_file_is_a_change(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "app.py").write_text("1")
    changes = Changes([tmp_path], clock)
    (tmp_path / "app.py").unlink()

    clock.now = 1.0
    first = changes.look()
    clock.now = 1.3

    assert (first, [path.name for path in changes.look()]) == ([], ["app.py"])


@pytest.mark.parametrize("name", ["notes.txt", ".venv/app.py", "__pycache__/app.py", "node_modules/x/app.py"])
def test_what_is_no_source_is_left_alone(tmp_path: Path, clock: Clock, name: str) -> None:
    changes = Changes([tmp_path], clock)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("1")

    looks = []
    for clock.now in (1.0, 1.3, 2.0):
        looks += changes.look()

    assert looks == []


def test_a_taken_port_is_told_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        answer = run("dev", "app", "--port", str(port))

    assert answer.code == 2
    assert f"port {port} of 127.0.0.1 is taken" in answer.err


@contextmanager
def developing(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    out = folder.parent / "out"
    command = [sys.executable, "-m", "duly.cli.main", "dev", "app", "--port", str(port)]
    environment = {**os.environ, "DULY_URL": f"sqlite:///{folder.parent}/dev.db", "DULY_POLL": "100ms"}
    with out.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
    try:
        yield process, out
    finally:
        process.kill()
        process.wait()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_code_is_run_changed_broken_and_mended_without_a_restart_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    source = folder / "app.py"
    source.write_text(SOURCE.format("one"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = App(f"sqlite:///{tmp_path}/dev.db")

    def answers() -> str:
        """What a job that is asked for over HTTP, without any token, comes to; empty while nobody answers."""
        try:
            asked = httpx2.post(f"http://127.0.0.1:{port}/v1/jobs", json={"task": "hello", "args": {}})
            if asked.status_code != 202:
                return ""
            id = int(asked.json()["job_id"])
        except (httpx2.TransportError, httpx2.TimeoutException):
            return ""
        wait_until(
            lambda: (record := store.inspect.lookup([id])[0]) and record.state == "completed", timeout=60
        )
        record = store.inspect.lookup([id])[0]
        return "" if record is None or record.result is None else record.result.decode()

    with developing(folder, port) as (dev, out):

        def says(text: str, times: int = 1) -> None:
            wait_until(lambda: out.read_text().count(text) >= times, timeout=90, what=text)

        wait_until(lambda: answers() == '"one"', timeout=90)
        says("/ui/login?code=")
        link = next(word for word in out.read_text().split() if "/ui/login?code=" in word)
        signs_in = httpx2.get(link)
        dashboard = httpx2.get(f"http://127.0.0.1:{port}/ui", follow_redirects=True)
        source.write_text(SOURCE.format("second"))
        wait_until(lambda: answers() == '"second"', timeout=90)
        source.write_text("broken = (")
        says("the worker ended with 2")
        source.write_text(SOURCE.format("third one"))
        wait_until(lambda: answers() == '"third one"', timeout=90)
        dev.send_signal(signal.SIGINT)
        code = dev.wait(60)

    store.close()
    assert code == 0, out.read_text()
    assert signs_in.status_code == 200
    assert dashboard.status_code == 200
    assert "no sign-in is needed" in out.read_text()
    assert "stopped" in out.read_text()
    assert wait_until(lambda: not living_in(folder), timeout=30)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is told to children by Linux alone")
def test_nothing_is_left_when_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text(SOURCE.format("one"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    with developing(folder, port) as (dev, out):
        wait_until(lambda: "works as incarnation" in out.read_text(), timeout=90)
        several = len(living_in(folder))
        dev.kill()

    assert several >= 4
    assert wait_until(lambda: not living_in(folder), timeout=60)
