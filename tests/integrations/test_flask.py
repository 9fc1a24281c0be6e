"""The glue for Flask: contexts around handlers, `flask duly`, problems."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flask import Flask
from flask.wrappers import Response

from duly import App
from duly.client.ticketing import TicketReader
from duly.flask import accepted, init_app

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


def shop(jobs: App, at: str | None) -> Flask:
    web = Flask("shop")
    init_app(web, jobs, at=at)

    @jobs.task
    def send(order_id: int) -> None: ...

    @web.post("/orders")
    def create() -> Response:
        return accepted(send.enqueue(order_id=7), title="Your receipt")

    return web


def test_an_accepted_job_comes_with_a_ticket_where_its_page_has_a_place(tmp_path: Path) -> None:
    jobs = App(f"sqlite:///{tmp_path}/shop.db")

    answer = shop(jobs, "/duly").test_client().post("/orders")

    told = answer.get_json()
    assert (answer.status_code, answer.content_type) == (202, "application/json")
    assert answer.headers["Location"] == f"/duly/t/{told['ticket']}" == told["ticket_url"]
    assert (told["status_url"], answer.headers["Retry-After"]) == (f"/duly/v1/jobs/{told['job_id']}", "2")
    assert TicketReader(jobs.client).open(told["ticket"]).words.title == "Your receipt"
    jobs.close()


def test_an_accepted_job_is_told_by_its_number_where_no_page_is(tmp_path: Path) -> None:
    jobs = App(f"sqlite:///{tmp_path}/shop.db")

    answer = shop(jobs, None).test_client().post("/orders")

    assert answer.get_json() == {"job_id": "1", "outcome": "created"}
    assert "Location" not in answer.headers
    jobs.close()


def test_the_public_address_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_PUBLIC_URL", "https://shop.example/duly/")
    jobs = App(f"sqlite:///{tmp_path}/shop.db")

    told = shop(jobs, "/elsewhere").test_client().post("/orders").get_json()

    assert told["ticket_url"] == f"https://shop.example/duly/t/{told['ticket']}"
    jobs.close()
