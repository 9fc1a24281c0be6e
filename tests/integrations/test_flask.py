"""The glue for Flask: contexts around handlers, `flask duly`, problems."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flask import Flask

from duly import App

FOLDER = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Flask, App]:
    monkeypatch.setenv("SITE_DB", str(tmp_path / "site.db"))
    sys.modules.pop("tests.integrations.flask_site", None)
    module = importlib.import_module("tests.integrations.flask_site")
    return module.web, module.jobs


def flask_duly(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flask", "--app", "tests.integrations.flask_site", "duly", *arguments],
        cwd=FOLDER,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.mark.process
def test_handlers_run_inside_the_application_context(site: tuple[Flask, App]) -> None:
    _, jobs = site
    waiting = [jobs.find_task(name).enqueue(name="Ada") for name in ("greet", "agreet")]
    jobs.close()

    worked = flask_duly("worker", "--until-idle")

    assert worked.returncode == 0, worked.stderr
    assert [job.result(timeout="5s") for job in waiting] == ["site greets Ada"] * 2
    jobs.close()


@pytest.mark.process
def test_flask_duly_is_the_whole_command_line_on_the_applications_jobs(site: tuple[Flask, App]) -> None:
    _, jobs = site
    jobs.find_task("greet").enqueue(name="Ada")
    jobs.close()

    status = flask_duly("status", "-o", "json")
    helped = flask_duly("--help")
    wrong = flask_duly("stauts")

    assert [queue["counts"]["ready"] for queue in json.loads(status.stdout)["queues"]] == [1]
    assert "flask duly" in helped.stdout
    assert (wrong.returncode, "did you mean 'status'" in wrong.stderr) == (2, True)


def test_errors_that_concern_the_client_are_problems(site: tuple[Flask, App]) -> None:
    web, _ = site

    reused, away = web.test_client().get("/reused"), web.test_client().get("/away")

    assert (reused.status_code, reused.content_type) == (422, "application/problem+json")
    assert "belongs to job 7" in json.loads(reused.data)["detail"]
    assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
    assert b"secret" not in away.data
