"""The `duly` program itself, as a shell starts it: a worker, a live view, a closed pipe, an interrupt."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from duly.core.lifecycle import Event
from duly.testing.conformance.bench import Bench, ended
from tests.cli.conftest import Answer, Terminal, run
from tests.waiting import wait_until

pytestmark = pytest.mark.process

DULY = [sys.executable, "-m", "duly.cli.main"]
SHOP = """
from duly import App

jobs = App("sqlite:///code.db")


@jobs.task
def add(one: int, other: int) -> int:
    return one + other
"""


def test_a_worker_obeys_the_url_of_the_command_line_before_that_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SHOP)
    url = ["--url", f"sqlite:///{tmp_path}/flag.db"]

    made = subprocess.run(
        [*DULY, "enqueue", "add", "one=2", "other=3", "-a", "sums", "-q", *url], capture_output=True
    )
    worked = subprocess.run(
        [*DULY, "worker", "sums", "--until-idle", *url], capture_output=True, text=True, timeout=50
    )

    assert worked.returncode == 0, worked.stderr
    assert str(tmp_path / "flag.db") in worked.stderr + worked.stdout
    assert not (tmp_path / "code.db").exists()
    assert "  result       5" in run("job", made.stdout.decode().strip(), *url).lines


def test_top_redraws_until_it_is_interrupted(sqlite_url: str) -> None:
    reader, writer = pty.openpty()
    # A shell starts background jobs with the signal ignored, and whoever runs the tests may be one.
    command = ["env", "--default-signal=INT", *DULY, "top", "--url", sqlite_url]
    top = subprocess.Popen(command, stdout=writer, stderr=writer, stdin=writer)
    os.close(writer)
    seen = b""

    def two_frames() -> bool:
        nonlocal seen
        if select.select([reader], [], [], 0)[0]:
            seen += os.read(reader, 65536)
        return seen.count(b"\x1b[H") >= 2

    try:
        wait_until(two_frames, timeout=90, what="two frames")
        top.send_signal(signal.SIGINT)
        code = top.wait(30)
        two_frames()
    finally:
        top.kill()
        top.wait()
        os.close(reader)

    assert b"QUEUE" in seen
    assert b"Traceback" not in seen
    assert b"\x1b[?25h\x1b[?1049l" in seen, "the terminal is as it was"
    assert code == 130


def test_a_reader_that_has_seen_enough_ends_a_list_quietly(bench: Bench, sqlite_url: str) -> None:
    bench.put_many(2000)

    listed = subprocess.run(
        ["bash", "-c", '"$@" | head -1', "sh", *DULY, "jobs", "--limit", "2000", "--url", sqlite_url],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert listed.stdout.startswith("  ID  STATE")
    assert listed.stderr == ""


def test_enqueue_waits_for_the_end_and_prints_the_result(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker()
    answers: list[Answer] = []
    waiting = threading.Thread(
        target=lambda: answers.append(duly("enqueue", "ok", "--queue", "default", "--wait")), daemon=True
    )

    waiting.start()
    (job,) = wait_until(lambda: bench.claim(worker), what="the enqueued job")
    bench.end(worker, ended(job, Event.complete, result=b'"sent"', elapsed=timedelta(seconds=1)))
    waiting.join(10)

    assert answers[0].code == 0
    assert answers[0].lines[-1] == '"sent"'


def test_an_operation_is_watched_to_its_end(bench: Bench, duly: Terminal) -> None:
    bench.put_many(150)
    duly("cancel", "--all", "--rate", "max", "--reason", "INC-311", "--yes")
    answers: list[Answer] = []
    watching = threading.Thread(
        target=lambda: answers.append(duly("operations", "show", "1", "--follow")), daemon=True
    )

    watching.start()
    wait_until(lambda: bench.store.operator.advance_operation(1, 10**9, 150, 0, True), what="the last step")
    watching.join(10)

    assert answers[0].code == 0
    assert answers[0].lines[0] == "operation 1 is done: 150 jobs moved"
