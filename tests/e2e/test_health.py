"""`duly worker --health`: probes that tell a worker that lives from one that works, and counters of all processes."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duly.core.lifecycle import State
from tests.e2e import chores_app
from tests.e2e.workers import ROOT, Place
from tests.waiting import wait_until

pytestmark = pytest.mark.process


@contextmanager
def listening(place: Place, *flags: str, token: str = "") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A real `duly worker` with quick times, and the port of its probes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "DULY_URL": place.url, "CHORES": str(place.folder), "DULY_LEASE": "3s", "DULY_HEARTBEAT": "300ms",
        "DULY_GRACE": "1s",
        **({"DULY_HEALTH_TOKEN": token} if token else {}),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "duly.cli.main",
        "worker",
        "tests.e2e.chores_app:jobs",
        "--health",
        str(port),
    ]
    process = subprocess.Popen([*command, *flags], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    try:
        yield process, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def get(port: int, path: str, token: str = "") -> tuple[int, str]:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        asked.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def value(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_a_worker_counts_what_all_its_processes_did_once(any_place: Place) -> None:
    jobs = any_place.enqueue(chores_app.quick, 20)
    with listening(any_place, "--processes", "2") as (_, port):
        any_place.wait_state(jobs, State.completed)
        more = any_place.enqueue(chores_app.letter, 3)
        any_place.wait_state(more, State.completed)

        def everything() -> str:
            _, text = get(port, "/metrics")
            return text if value(text, "duly_worker_attempts_total") >= 23 else ""

        text = wait_until(everything, timeout=60, what="23 attempts in /metrics")

    assert value(text, "duly_worker_attempts_total", task="quick", outcome="complete") == 20
    assert value(text, "duly_worker_attempt_seconds_count", queue="mail", task="letter") == 3
    assert value(text, "duly_worker_attempts_total") == 23


def test_a_worker_is_ready_once_it_claims_and_no_longer_when_it_is_frozen(place: Place) -> None:
    with listening(place) as (process, port):
        wait_until(lambda: get(port, "/readyz")[0] == 200, timeout=60, what="readiness")
        (row,) = place.workers()
        assert get(port, "/livez") == (200, "alive\n")

        os.kill(row.pid, signal.SIGSTOP)
        wait_until(lambda: get(port, "/readyz")[0] == 503, timeout=60, what="that it is not ready")

        assert get(port, "/livez")[0] == 200
        os.kill(row.pid, signal.SIGCONT)
        wait_until(lambda: get(port, "/readyz")[0] == 200, timeout=60, what="readiness again")
        assert process.poll() is None


def test_counters_survive_the_process_that_counted(place: Place) -> None:
    with listening(place) as (_, port):
        place.wait_state(place.enqueue(chores_app.quick, 5), State.completed)
        counted = "duly_worker_attempts_total"
        wait_until(lambda: value(get(port, "/metrics")[1], counted) == 5, timeout=60, what="five attempts")
        (row,) = place.workers()

        os.kill(row.pid, signal.SIGKILL)
        place.wait_state(place.enqueue(chores_app.quick, 2), State.completed)

        wait_until(lambda: value(get(port, "/metrics")[1], counted) == 7, timeout=60, what="seven attempts")
        assert value(get(port, "/metrics")[1], "duly_worker_events_total", event="ChildDied") == 1


def test_metrics_ask_for_the_token_and_probes_do_not(place: Place) -> None:
    with listening(place, token="a-token-of-16-characters") as (_, port):
        wait_until(lambda: get(port, "/livez")[0] == 200, timeout=60, what="the probe")

        assert get(port, "/metrics")[0] == 401
        assert get(port, "/metrics", "wrong")[0] == 401
        assert get(port, "/metrics", "a-token-of-16-characters")[0] == 200
        assert get(port, "/elsewhere")[0] == 404


@pytest.mark.parametrize("place", ["0.0.0.0:9000", "[::]:9000", "example.org:9000"])
def test_an_address_that_others_reach_needs_a_token(place: str) -> None:
    command = [
        sys.executable,
        "-m",
        "duly.cli.main",
        "worker",
        "tests.e2e.chores_app:jobs",
        "--health",
        place,
    ]

    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert refused.returncode == 2
    assert "DULY_HEALTH_TOKEN" in refused.stderr


def test_a_port_that_is_taken_is_a_mistake_of_the_call(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [
            sys.executable,
            "-m",
            "duly.cli.main",
            "worker",
            "tests.e2e.chores_app:jobs",
            "--health",
            port,
        ]

        refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert refused.returncode == 2
    assert "cannot listen" in refused.stderr
