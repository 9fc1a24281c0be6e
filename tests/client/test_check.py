"""What `duly check` says before a worker starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from duly import App
from duly.client.check import Check, Finding
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import describe
from tests.client.conftest import Hands

SECOND = timedelta(seconds=1)


def texts(check: Check, level: str) -> list[str]:
    return [finding.text for finding in check.findings if finding.level == level]


def test_a_sound_app_has_no_error(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    check = jobs.check()

    assert check.ok
    assert texts(check, "error") == []
    assert {row.name for row in check.settings} >= {"url", "lease", "timeout"}


def test_every_mistake_is_found_in_one_go(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_URL", "sqlite:///hidden.db")
    jobs.queue("mail", owner="growth@shop")
    jobs.queue("reports")

    @jobs.task(queue="mial")
    def send() -> None: ...

    def untyped(order: int) -> None: ...

    untyped.__annotations__["order"] = "Nowhere"
    jobs.task(untyped)

    check = jobs.check()

    assert not check.ok
    errors = "\n".join(texts(check, "error"))
    assert "did you mean 'mail'" in errors
    assert "Nowhere" in errors
    assert any("DULY_URL" in text for text in texts(check, "warning"))
    assert any("nobody owns reports" in text for text in texts(check, "note"))
    assert any("costs no attempt" in text for text in texts(check, "note"))
    assert [finding.level for finding in check.findings] == sorted(
        (finding.level for finding in check.findings), key=["error", "warning", "note"].index
    )


def test_a_wrong_setting_is_the_only_finding(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_LEESE", "30s")

    check = App(sqlite_url).check()

    (finding,) = check.findings
    assert (finding.level, check.ok) == ("error", False)
    assert "did you mean DULY_LEASE?" in finding.text


def test_an_included_module_that_is_not_there_is_named(sqlite_url: str) -> None:
    jobs = App(sqlite_url, include=["shop.nowhere"])

    errors = texts(jobs.check(), "error")

    assert len(errors) == 1
    assert "shop.nowhere" in errors[0]
    jobs.close()


def test_an_included_module_that_fails_is_a_finding(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_tasks.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    jobs = App(sqlite_url, include=["broken_tasks"])

    errors = texts(jobs.check(), "error")

    assert errors == ["importing the tasks failed: ZeroDivisionError('division by zero')"]
    jobs.close()


def test_an_app_without_tasks_is_told(jobs: App) -> None:
    assert (
        Finding("warning", "no task is declared; name their modules in App(include=[…])")
        in jobs.check().findings
    )


def test_a_server_without_our_schema_says_migrate(empty_postgres_url: str) -> None:
    jobs = App(empty_postgres_url)

    errors = texts(jobs.check(), "error")

    assert any("duly migrate" in text for text in errors)
    jobs.close()


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url"])
def test_a_key_that_stands_still_is_found_with_what_frees_it(
    url: str, request: pytest.FixtureRequest
) -> None:
    app = App(request.getfixturevalue(url))
    app.store.schema.migrate()

    @app.task(ordering_key="order:{order}")
    def send(order: int) -> None: ...

    head, _ = send.enqueue(7), send.enqueue(7)
    hands = Hands(app.store, "send")
    (job,) = hands.claim()
    hands.end(
        failed(job, Verdict("permanent"), Policy(1, Backoff(), 10), 0.5, describe(ValueError("no")), SECOND)
    )
    hands.claim()
    found = texts(app.check(), "warning")
    app.close()

    (text,) = [one for one in found if "ordering key" in one]
    assert text == (
        f"ordering key order:7 of default is stuck: 1 job waits behind job {head.id}, which is dead. duly dead redrive "
        f"{head.id}, or on without it: duly resume key:default/order:7"
    )
