"""What `duly check` says of what leaves this machine, of who runs what, and of what is not encrypted."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

from duly import App
from duly.client.blobs import Blob
from duly.client.check_exposure import exposed_server, exposed_sinks, exposed_store, is_here
from duly.client.settings import Settings, resolve
from tests.client.conftest import Hands

AWAY = "postgresql://shop@db.example.com/shop"
KEY = "a key of many letters"


def settings(tmp_path: Path, **environ: str) -> Settings:
    return resolve({}, environ={f"DULY_{name}": value for name, value in environ.items()}, directory=tmp_path)


def said(app: App, part: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in app.check().findings if part in finding.text]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (AWAY, ["in the clear (sslmode=prefer)", "nothing proves"]),
        (f"{AWAY}?sslmode=require", ["does not look whose certificate", "nothing proves"]),
        (f"{AWAY}?sslmode=verify-full&sslcert=/c.pem", []),
        ("postgresql://shop:secret@db.example.com/shop?sslmode=verify-full", []),
        ("postgresql://shop:secret@localhost,10.0.0.7:5433/shop", ["the database on 10.0.0.7 may be"]),
        ("postgresql://shop@localhost/shop", []),
        ("postgresql://shop@[::1]:5432/shop", []),
        ("postgresql:///shop?host=/run/postgresql", []),
        ("postgresql:///shop?host=db.example.com&password=x&sslmode=verify-ca", []),
        ("sqlite:///shop.db", []),
    ],
)
def test_a_database_elsewhere_wants_tls_and_a_password(
    tmp_path: Path, url: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    found = list(exposed_store(settings(tmp_path, URL=url), {}))

    assert len(found) == len(told)
    assert all(part in text for part, text in zip(told, found, strict=True))
    assert "secret" not in " ".join(found)


def test_what_the_environment_says_counts(tmp_path: Path) -> None:
    environ = {"PGSSLMODE": "verify-full", "PGPASSWORD": "x"}

    assert list(exposed_store(settings(tmp_path, URL=AWAY), environ)) == []
    assert len(list(exposed_store(settings(tmp_path, URL="postgresql:///shop"), {"PGHOST": "db"}))) == 2


def test_sinks_are_told_over_tls(tmp_path: Path) -> None:
    alerts = "oncall=slack+https://hooks.example.com/s3cret,mine=webhook+http://127.0.0.1:9,webhook+http://alerts.example.com/s3cret"

    found = list(exposed_sinks(settings(tmp_path, ALERTS=alerts, ALIVE_URL="http://ping.example.com/s3cret")))

    assert [text.split(" in the clear")[0] for text in found] == [
        "DULY_ALERTS tells alerts.example.com",
        "DULY_ALIVE_URL tells ping.example.com",
    ]
    assert "s3cret" not in " ".join(found)


@pytest.mark.parametrize(
    ("environ", "tokens", "told"),
    [
        ({}, False, []),
        ({"HOST": "0.0.0.0"}, False, ["duly serve refuses to start", "who ends TLS"]),
        ({"HOST": "0.0.0.0", "TRUSTED_PROXIES": "10.0.0.1"}, True, []),
        ({"HOST": "0.0.0.0", "PUBLIC_URL": "https://jobs.example.com"}, True, []),
        (
            {"HOST": "::", "TRUSTED_PROXIES": "10.0.0.1", "PUBLIC_URL": "http://jobs.example.com"},
            True,
            ["without TLS"],
        ),
    ],
)
def test_a_server_that_others_reach_wants_tokens_and_tls(
    tmp_path: Path, environ: dict[str, str], tokens: bool, told: list[str]
) -> None:
    found = list(exposed_server(settings(tmp_path, **environ), tokens=tokens))

    assert len(found) == len(told)
    assert all(part in text for part, text in zip(told, found, strict=True))


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.9", True),
        ("[::1]", True),
        ("/run", True),
        ("0.0.0.0", False),
        ("db", False),
        ("10.0.0.1", False),
    ],
)
def test_what_is_this_machine(host: str, here: bool) -> None:
    assert is_here(host) is here


def test_an_open_host_is_a_finding_until_a_token_is_made(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_HOST", "0.0.0.0")
    monkeypatch.setenv("DULY_TRUSTED_PROXIES", "10.0.0.1")
    jobs.store.schema.migrate()

    before = said(jobs, "no token is made")
    jobs.operate.create_token(["read"], reason="x")

    assert [level for level, _ in before] == ["warning"]
    assert said(jobs, "no token is made") == []


def test_a_queue_that_no_worker_serves_is_found(jobs: App) -> None:
    jobs.queue("mail")
    jobs.queue("reports")

    @jobs.task(queue="mail")
    def send() -> None: ...

    @jobs.every("1h")
    @jobs.task(queue="reports")
    def report() -> None: ...

    jobs.store.schema.migrate()
    without = said(jobs, "serves")
    Hands(jobs.store, "send", queues=("mail",))

    found = said(jobs, "serves")

    assert without == []
    assert [text.split(",")[0] for _, text in found] == [
        "no live worker serves the queue 'reports'",
        "schedule 'report' enqueues into 'reports'",
    ]


def test_a_stored_schedule_without_any_worker_is_found(jobs: App) -> None:
    @jobs.task
    def report(name: str) -> None: ...

    jobs.schedule("weekly", report.draft("x"), every="7d")

    assert [text for _, text in said(jobs, "schedules fire only while one does: weekly")]
    Hands(jobs.store, "report")
    assert said(jobs, "schedules fire only while") == []


def test_an_enqueue_that_knows_no_session_is_told(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("django.db", "flask_sqlalchemy", "sqlalchemy.orm"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    none = said(jobs, "commits at once")
    monkeypatch.setitem(sys.modules, "flask_sqlalchemy", ModuleType("flask_sqlalchemy"))

    told = said(jobs, "commits at once")
    jobs.client.provider = lambda: None

    assert none == []
    assert [(level, text.split(" is in use")[0]) for level, text in told] == [("note", "Flask-SQLAlchemy")]
    assert said(jobs, "commits at once") == []


def test_encrypted_tasks_without_a_key_stand_in_the_way(jobs: App) -> None:
    @jobs.task(encrypt=True)
    def pay(iban: str) -> None: ...

    assert [level for level, _ in said(jobs, "pay: encrypted, and no key is set")] == ["error"]


def test_what_is_not_encrypted_beside_it_is_told(
    jobs: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DULY_KEYS", KEY)
    monkeypatch.setenv("DULY_BLOBS", f"file://{tmp_path}")

    @jobs.task(encrypt=True)
    def scan(image: Blob) -> None: ...

    @jobs.task(encrypt=True, ack="start")
    def once(n: int) -> None: ...

    assert len(said(jobs, "the content of its Blob is not")) == 1
    assert len(said(jobs, "a worker without its key loses the job")) == 1
    assert KEY not in str(jobs.check())


def test_keys_that_encrypt_nothing_are_told(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_KEYS", KEY)

    @jobs.task
    def plain(n: int) -> None: ...

    assert [level for level, _ in said(jobs, "no task is encrypted")] == ["warning"]


def test_another_default_of_isolation_is_told(postgres_url: str) -> None:
    app = App(f"{postgres_url}?options=-c%20default_transaction_isolation%3Dserializable")
    app.store.schema.migrate()
    usual = App(postgres_url)

    assert len(said(app, "transactions are serializable by default")) == 1
    assert said(usual, "by default") == []
    app.close()
    usual.close()


def test_functions_that_came_after_the_roles_are_told(postgres_url: str) -> None:
    app = App(postgres_url)
    app.store.schema.migrate()
    before = said(app, "migrate --roles again")
    app.store.schema.grant_roles()
    made = said(app, "migrate --roles again")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("grant execute on function duly.audit_totals_1 to public")

    after = said(app, "migrate --roles again")

    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("drop owned by duly_producer, duly_worker, duly_viewer, duly_operator, duly_server")
    app.close()
    assert (before, made) == ([], [])
    assert [text for _, text in after if "1 functions are for everybody" in text]
