"""The site on one machine: uploads and jobs in one SQLite file, through Flask-SQLAlchemy's session."""

from pathlib import Path
from types import ModuleType

import pytest

from duly.core.lifecycle import State
from tests.examples.programs import load, run, work

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

FOLDER, APP = "flask_site", "site_app:jobs"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("SITE_DB", str(tmp_path / "site.db"))
    module = load(FOLDER, "site_app")
    with module.web.app_context():
        module.db.create_all()
    return module


def test_an_upload_and_its_thumbnail_are_one_transaction(site: ModuleType) -> None:
    client = site.web.test_client()

    answers = [client.post("/upload/cat.png"), client.post("/upload/virus.exe")]
    work(FOLDER, APP)

    assert [answer.status_code for answer in answers] == [202, 415]
    with site.web.app_context():
        pictures = [(one.path, one.thumbnail) for one in site.db.session.query(site.Picture)]
        site.db.session.rollback()
    assert pictures == [("/cat.png", "/cat.png.small.jpg")]
    (record,) = site.jobs.inspect.jobs().jobs
    assert (str(record.id), record.state) == (answers[0].json["job_id"], State.completed)
    assert record.result == b'"site_app: /cat.png.small.jpg"'
    site.jobs.close()


def test_the_nightly_task_is_shown_in_plain_words(site: ModuleType) -> None:
    site.jobs.close()

    work(FOLDER, APP)
    shown = run(FOLDER, "flask", "--app", "site_app", "duly", "schedules", "list")

    assert "forget_orphans" in shown
    assert "03:00" in shown
    assert "Europe/Berlin" in shown
