"""`duly audit`: what people did is listed, and what was done to that record by hand is named."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from duly import App
from tests.cli.conftest import run

Tamper = Callable[[str], None]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Tamper]:
    """A store with three entries under one seal, and a way to change its tables by hand."""
    if request.param == "sqlite":
        path = tmp_path / "duly.db"
        url = f"sqlite:///{path}"

        def tamper(statement: str) -> None:
            connection = sqlite3.connect(path)
            with connection:
                connection.execute(statement.format(table="duly_audit_entry", seal="duly_audit_seal"))
            connection.close()
    else:
        url = request.getfixturevalue("postgres_url")

        def tamper(statement: str) -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    statement.format(table="duly.audit_entry", seal="duly.audit_seal").encode()
                )

    request.getfixturevalue("monkeypatch").setenv("DULY_ACTOR", "ada@ops")
    app = App(url)
    app.store.schema.migrate()
    for number in range(3):
        app.queue(f"q{number}")
        app.operate.pause(f"q{number}", reason=f"because of {number}")
    app.store.audits.seal()
    app.close()
    return url, tamper


def test_acts_are_listed_newest_first_with_who_and_why(place: tuple[str, Tamper]) -> None:
    url, _ = place

    listed = run("audit", "list", "--url", url)
    document = json.loads(run("audit", "list", "--limit", "2", "-o", "json", "--url", url).out)
    rest = json.loads(run("audit", "list", "--before", str(document["next"]), "-o", "json", "--url", url).out)

    assert listed.code == 0
    assert "because of 2" in listed.out
    assert [entry["target"] for entry in document["entries"]] == ["queue:q2", "queue:q1"]
    assert [(entry["by"], entry["verb"]) for entry in document["entries"]] == [("ada@ops", "pause")] * 2
    assert [entry["target"] for entry in rest["entries"]] == ["queue:q0"]
    assert rest["next"] is None


def test_a_filter_leaves_out_the_others(place: tuple[str, Tamper]) -> None:
    url, _ = place

    def found(*flags: str) -> list[str]:
        answer = run("audit", "list", *flags, "-o", "ndjson", "--url", url)
        return [json.loads(line)["target"] for line in answer.out.splitlines()]

    assert found("--target", "queue:q1") == ["queue:q1"]
    assert len(found("--verb", "pause", "--by", "ada@ops", "--since", "1h")) == 3
    assert found("--verb", "redrive") == found("--by", "eve") == found("--until", "1h") == []
    assert "no entry of the audit fits" in run("audit", "list", "--by", "eve", "--url", url).out


def test_an_untouched_audit_is_verified_and_has_its_head(place: tuple[str, Tamper]) -> None:
    url, _ = place

    found = json.loads(run("audit", "verify", "-o", "json", "--url", url).out)
    again = run("audit", "verify", "--head", found["head"], "--url", url)
    foreign = run("audit", "verify", "--head", "ab" * 32, "--url", url)

    assert (found["ok"], found["entries"], found["seals"], found["unsealed"]) == (True, 3, 1, 0)
    assert (again.code, "3 entries under 1 seal fit" in again.out) == (0, True)
    assert (foreign.code, "no seal has the head abab" in foreign.out) == (1, True)
    assert run("audit", "verify", "--head", "xyz", "--url", url).code == 2


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("update {table} set reason = 'a better one' where target = 'queue:q1'", "was changed"),
        ("update {table} set actor = 'bob' where target = 'queue:q2'", "was changed"),
        ("update {table} set at = (select min(at) from {table}) where target = 'queue:q2'", "was changed"),
        ("delete from {table} where target = 'queue:q1'", "is of 3 entries, and 2 are there"),
    ],
)
def test_what_was_done_by_hand_is_named(place: tuple[str, Tamper], statement: str, told: str) -> None:
    url, tamper = place

    tamper(statement)

    found = run("audit", "verify", "--url", url)
    assert found.code == 1
    assert told in found.out
    assert "the audit does not fit" in found.err


def test_an_audit_whose_seals_were_all_removed_lacks_the_head_that_was_noted(
    place: tuple[str, Tamper],
) -> None:
    url, tamper = place
    head = json.loads(run("audit", "verify", "-o", "json", "--url", url).out)["head"]

    tamper("delete from {seal}")

    found = run("audit", "verify", "--head", head, "--url", url)
    assert found.code == 1
    assert "the audit was rewritten since" in found.out


def test_an_audited_task_leaves_its_jobs_in_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ACTOR", "ann@shop")
    app = App(f"sqlite:///{tmp_path}/duly.db")

    @app.task(audit=True)
    def pay(amount: int) -> None:
        del amount

    id = pay.enqueue(7).id
    many = app.enqueue_many([pay.draft(1), pay.using(tags=["blue"]).draft(2)])

    entries = app.inspect.audit(verb="enqueue")
    job = app.inspect.job(many[1].id).job
    app.close()
    assert [(entry.actor, entry.target) for entry in entries] == [
        ("ann@shop", f"job:{one}") for one in (many[1].id, many[0].id, id)
    ]
    assert job.tags == ("blue", "audit:ann@shop")
