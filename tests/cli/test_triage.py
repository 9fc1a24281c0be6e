"""Dead letters as a work list on the command line: marks, owners, edits, and what a redrive says before it acts."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from duly import App
from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.testing.conformance.bench import BOOM, MINUTE, Bench, JobOptions, ended, unique
from tests.cli.conftest import Terminal, run

FINGERPRINT = BOOM.fingerprint
WHY = ("--reason", "INC-311")


@pytest.fixture
def worker(bench: Bench) -> Incarnation:
    return bench.worker("ok", "send_receipt")


def died(
    bench: Bench, worker: Incarnation, task: str = "ok", args: bytes = b"{}", **options: object
) -> JobId:
    given: JobOptions = {"args": args, **options}  # type: ignore[typeddict-item]
    id = bench.put(task, **given)
    bench.end(worker, ended(bench.claim_one(worker), Event.bury, State.dead, error=BOOM, reason="boom"))
    return id


def test_a_group_is_acknowledged_assigned_and_fixed(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    died(bench, worker)
    bench.store.schema.declare(Registration("app", "1", (QueuePolicy("default", owner="growth@shop"),)))

    fresh = duly("dead", "groups", "-o", "json").json
    acked = duly("dead", "ack", FINGERPRINT[:4], "--note", "the provider is down", *WHY)
    assigned = duly("dead", "assign", FINGERPRINT, "--owner", "bob@ops")
    shown = duly("dead", "show", FINGERPRINT)
    mine = duly("dead", "groups", "--owner", "bob@ops", "-o", "json").json
    given_back = duly("dead", "assign", FINGERPRINT, "--owner", "", "-o", "json").json
    done = duly("dead", "fixed", FINGERPRINT, "-o", "ndjson").json

    assert isinstance(fresh, list)
    assert (fresh[0]["owner"], fresh[0]["state"], fresh[0]["by"]) == ("growth@shop", "new", None)
    assert acked.out == f"{FINGERPRINT} in default, task ok: acknowledged (the provider is down)\n"
    assert assigned.out == (
        f"{FINGERPRINT} in default, task ok: acknowledged, for bob@ops (the provider is down)\n"
    )
    assert "acknowledged, as ada@ops said now: the provider is down" in shown.lines
    assert (
        f"try one:              duly dead redrive --fingerprint {FINGERPRINT} --first 1 --follow"
        in shown.lines
    )
    assert isinstance(mine, list)
    assert [group["owner"] for group in mine] == ["bob@ops"]
    assert isinstance(given_back, list)
    assert given_back[0]["owner"] is None
    assert isinstance(done, dict)
    assert (done["state"], done["note"]) == ("fixed", "the provider is down")
    assert [entry.reason for entry in bench.store.audits.page(verb="mark")] == ["", "", "", "INC-311"]
    assert duly("dead", "groups", "--mark", "new").out == "no dead letters\n"


def test_a_fixed_group_is_new_again_when_one_dies_of_it(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    died(bench, worker)
    duly("dead", "fixed", FINGERPRINT)
    bench.clock.advance(5 * MINUTE)
    died(bench, worker)
    bench.clock.advance(3 * MINUTE)

    told = duly("dead", "groups", "--mark", "new")

    assert "new again" in told.lines[1]
    assert told.lines[-1] == f"{FINGERPRINT} was fixed, and one died of it 3m 00s ago: it is new again"


def test_what_is_no_group_is_exit_3_and_a_doubtful_one_is_exit_2(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    missing, wrong = duly("dead", "ack", "feedface"), duly("dead", "ack", "what?")
    looked = duly("dead", "fixed", FINGERPRINT, "--queue", "default", "--task", "ok", "-o", "json")

    assert (missing.code, wrong.code) == (3, 2)
    assert (
        missing.err == "error: no dead letter has the fingerprint feedface; `duly dead groups` shows them\n"
    )
    # A group whose letters all run again can still be called fixed.
    assert (looked.code, [mark.state for mark in bench.store.triage.marks()]) == (0, ["fixed"])


def test_a_dry_mark_says_so_and_marks_nothing(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    died(bench, worker)

    answer = duly("dead", "ack", FINGERPRINT, "--dry-run")

    assert answer.out == "1 group would be marked; nothing was done\n"
    assert bench.store.triage.marks() == []


def test_a_dry_redrive_says_how_many_since_when_and_who_stays(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    died(bench, worker, unique=unique("a"))
    bench.clock.advance(timedelta(minutes=47))
    died(bench, worker)
    bench.put(unique=unique("a"))

    told = duly("dead", "redrive", "--fingerprint", FINGERPRINT, "--dry-run")
    document = duly("dead", "redrive", "--fingerprint", FINGERPRINT, "--dry-run", "-o", "json").json

    assert told.lines == [
        "2 jobs would run again; nothing was done",
        "the oldest is dead for 47m",
        "1 of them has a live twin by unique key and would stay dead while it lives",
    ]
    assert isinstance(document, dict)
    assert (document["matched"], document["twins"], document["dry_run"]) == (2, 1, True)


def test_a_large_redrive_is_measured_by_its_queue_and_stands_behind_its_own_priority(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    bench.put_many(101, priority=300)
    jobs = bench.claim(worker, 101)
    bench.end(worker, *(ended(job, Event.bury, State.dead, error=BOOM, reason="boom") for job in jobs))

    refused = duly("dead", "redrive", "--fingerprint", FINGERPRINT, *WHY, "--yes")
    started = duly("dead", "redrive", "--fingerprint", FINGERPRINT, "--rate", "20/s", *WHY, "--yes")

    assert refused.err == (
        "error: 101 jobs: say how fast with --rate, such as 20/s; --rate max means at once\n"
    )
    assert started.lines[0] == (
        "operation 1 started: 101 jobs, about 5s, at priority 400. The workers carry it out."
    )
    assert [one.priority for one in bench.store.inspection.operations()] == [400]


def test_a_letter_is_edited_into_a_linked_job(bench: Bench, worker: Incarnation, duly: Terminal) -> None:
    id = died(bench, worker, args=b'{"address":"ada@exmaple","n":12345678901234567890}', tags=("vip",))

    dry = duly("dead", "edit", str(id), "address=ada@example", "--dry-run")
    done = duly("dead", "edit", str(id), "address=ada@example", *WHY, "-o", "json").json
    again = duly("dead", "edit", str(id), "address=x")
    redriven = duly("dead", "redrive", str(id))

    assert dry.out == f"job {id} would run again with address changed; nothing was done\n"
    assert isinstance(done, dict)
    new = bench.row(JobId(int(done["successor"])))
    # Numbers that JavaScript would round come through as they were.
    assert new.args == b'{"address":"ada@example","n":12345678901234567890}'
    assert (new.trigger, new.tags, new.state) == (f"edited:{id}", ("vip",), State.ready)
    assert bench.row(id).note == f"edited: it runs again as job {new.id}"
    assert (again.code, again.err) == (
        4,
        f"error: job {id} was edited already: it runs again as job {new.id}\n",
    )
    assert (redriven.code, redriven.err) == (
        4,
        f"error: job {id} was edited: it runs again as job {new.id}\n",
    )
    assert duly("dead", "groups").out == "no dead letters\n"
    assert [entry.target for entry in bench.store.audits.page(verb="edit")] == [f"job:{id}"]


def test_an_edit_without_code_keeps_to_what_the_letter_has(
    bench: Bench, worker: Incarnation, duly: Terminal
) -> None:
    id = died(bench, worker, args=b'{"count":3,"note":"7"}')

    unknown = duly("dead", "edit", str(id), "colour=red")
    kind = duly("dead", "edit", str(id), "count=many")
    nothing = duly("dead", "edit", str(id))
    gone = duly("dead", "edit", "4711", "count=3")
    fine = duly("dead", "edit", str(id), "note=8", "count=4")

    assert (unknown.code, kind.code, nothing.code, gone.code, fine.code) == (2, 2, 2, 3, 0)
    assert "has no argument 'colour', only count, note" in unknown.err
    assert "count is a number, not text" in kind.err
    (new,) = bench.store.inspection.page(Filter(state=State.ready)).jobs
    assert new.args == b'{"count":4,"note":"8"}'


def test_an_edit_with_code_is_checked_by_the_types_of_the_task(
    bench: Bench,
    worker: Incarnation,
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "edit_shop.py").write_text(
        "from duly import App, Unique\n"
        "jobs = App()\n"
        '@jobs.task(queue="default", unique="receipt-{order_id}")\n'
        "def send_receipt(order_id: int, note: str = '') -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DULY_URL", sqlite_url)
    sys.modules.pop("edit_shop", None)
    app = App(sqlite_url)

    @app.task(queue="default", unique="receipt-{order_id}")
    def send_receipt(order_id: int, note: str = "") -> None: ...

    old = send_receipt.enqueue(order_id=7).id
    app.close()
    job = bench.claim_one(worker)
    bench.end(worker, ended(job, Event.bury, State.dead, error=BOOM, reason="boom"))
    before = bench.store.triage.asked(old)

    wrong = run("dead", "edit", str(old), "order_id=seven", "-a", "edit_shop")
    unknown = run("dead", "edit", str(old), "colour=red", "-a", "edit_shop")
    done = run("dead", "edit", str(old), "order_id=8", "note=8", "-a", "edit_shop")

    assert (wrong.code, unknown.code, done.code) == (2, 2, 0), done.err
    assert "send_receipt has no argument 'colour'; it takes order_id, note" in unknown.err
    (new,) = bench.store.inspection.page(Filter(state=State.ready)).jobs
    assert new.args == b'{"order_id":8,"note":"8"}'
    # Its key follows the number; another order's receipt may be enqueued beside it, its own may not.
    assert before is not None
    assert bench.ask("send_receipt", unique=before.unique).outcome == "created"
