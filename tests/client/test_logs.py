"""Lines of standard logging: whose job they are about, in both forms, whatever is logged."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duly import Job
from duly.client.job import current
from duly.core.errors import UsageError
from duly.logs import JsonFormatter, TextFormatter, job_fields
from duly.telemetry import context
from duly.testing import job as a_job

APP = """
import logging

from duly import App, Job

jobs = App()
log = logging.getLogger("shop")

@jobs.task
async def looped(job: Job) -> None:
    log.info("on the loop", extra={"order": 7})

@jobs.task
def threaded(job: Job) -> None:
    log.warning("in a thread")

@jobs.task(isolation="process")
def isolated(job: Job) -> None:
    log.error("in a process")
"""


@pytest.fixture
def inside() -> Iterator[Job]:
    job = a_job(task="send", queue="mail", attempt=2, tenant="acme", correlation_id="order-7")
    token = current.set(job)
    yield job
    current.reset(token)


def record(text: str, *args: object, level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("shop", level, __file__, 1, text, args, fields.pop("exc_info", None))
    made.__dict__.update(fields)
    return made


def line(*args: Any, **fields: Any) -> dict[str, Any]:
    found = JsonFormatter().format(record(*args, **fields))
    assert "\n" not in found
    told = json.loads(found)
    assert isinstance(told, dict)
    return told


def test_a_line_of_a_handler_names_its_job(inside: Job) -> None:
    told = line("sent %d", 3, extra_field=[1, "b"])

    assert told["text"] == "sent 3"
    assert (told["level"], told["logger"], told["pid"]) == ("info", "shop", os.getpid())
    assert (told["job_id"], told["task"], told["queue"], told["attempt"]) == (inside.id, "send", "mail", 2)
    assert (told["correlation_id"], told["tenant"]) == ("order-7", "acme")
    assert told["extra_field"] == [1, "b"]


def test_a_line_of_a_request_has_its_correlation_id_and_one_of_neither_nothing() -> None:
    token = context.correlation.set("req-1")
    within = line("hello")
    context.correlation.reset(token)

    assert within["correlation_id"] == "req-1"
    assert job_fields() == {}
    assert "job_id" not in line("hello")


def test_an_error_comes_with_its_traceback_on_the_same_line() -> None:
    try:
        raise UsageError("no such\nthing")
    except UsageError:
        told = line("failed", exc_info=sys.exc_info())

    assert (told["error"], told["message"]) == ("UsageError", "no such\nthing")
    assert "Traceback" in told["traceback"]


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "odd", ["\ud800", {1: object()}, float("nan"), object(), Unspeakable(), b"\xff", {(1, 2): 3}]
)
def test_whatever_is_logged_comes_out_as_one_line_of_json(odd: object) -> None:
    assert line("odd", odd=odd)["text"] == "odd"


def test_extra_cannot_pose_as_another_job(inside: Job) -> None:
    assert line("x", job_id=99, level_name="y")["job_id"] == inside.id


def test_text_ends_with_the_job(inside: Job) -> None:
    told = TextFormatter().format(record("sent", level=logging.WARNING))

    assert told[8:] == f" WARNING shop: sent [job {inside.id} send, attempt 2]"


def run_worker(folder: Path, url: str, form: str, program: str = APP) -> str:
    (folder / "shop.py").write_text(program)
    environment = {**os.environ, "DULY_URL": url, "DULY_LOG": form, "PYTHONPATH": f"{folder}"}
    for task in ("looped", "threaded", "isolated"):
        enqueue = [sys.executable, "-m", "duly.cli.main", "enqueue", "-a", "shop", task]
        subprocess.run(enqueue, cwd=folder, env=environment, check=True, capture_output=True, timeout=60)
    worker = [sys.executable, "-m", "duly.cli.main", "worker", "shop", "--until-idle"]
    done = subprocess.run(worker, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.process
def test_handlers_of_every_kind_log_json_with_their_jobs(tmp_path: Path, sqlite_url: str) -> None:
    log = run_worker(tmp_path, sqlite_url, "json")

    lines = [json.loads(one) for one in log.splitlines()]
    said = {one["text"]: one for one in lines if one.get("logger") == "shop"}
    assert set(said) == {"on the loop", "in a thread", "in a process"}
    assert {text: one["task"] for text, one in said.items()} == {
        "on the loop": "looped",
        "in a thread": "threaded",
        "in a process": "isolated",
    }
    assert said["on the loop"]["order"] == 7
    assert len({one["job_id"] for one in said.values()}) == 3


@pytest.mark.process
def test_an_application_that_configures_logging_itself_is_left_alone(tmp_path: Path, sqlite_url: str) -> None:
    own = APP + "\nlogging.basicConfig(format='MINE %(message)s', level='INFO')\n"

    log = run_worker(tmp_path, sqlite_url, "json", own)

    assert "MINE on the loop" in log
    assert '"logger":"shop"' not in log
