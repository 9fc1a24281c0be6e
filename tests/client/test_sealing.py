"""Encrypted payloads: nobody reads them who has no key, and nothing is lost for want of one."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import RESULT, App, Enqueued, Filter, Job, JobDead, KeyReused, Outcome, Secret, State, UsageError
from duly.client.outside import Outside, completed
from duly.core.envelope import PREFIX, KeyNotHeld, Keys, NotOpened, is_sealed, key_of
from duly.core.job import JobId, JobRecord, Stored
from duly.testing import standing
from tests.cli.conftest import run
from tests.waiting import wait_until

VALUE = "IBAN-DE89370400440532013000"
OLD, NEW = "an old key of many letters", "a new key of many letters"


def test_what_is_sealed_opens_for_the_same_and_for_nothing_else() -> None:
    keys = Keys([b"one", b"two"])

    sealed = keys.seal(b'{"a":1}', ("arguments", "mail", "send"), os.urandom(12))

    assert is_sealed(sealed)
    assert json.loads(sealed)
    assert sealed != keys.seal(b'{"a":1}', ("arguments", "mail", "send"), os.urandom(12))
    assert keys.open(sealed, ("arguments", "mail", "send")) == b'{"a":1}'
    assert keys.open(b'{"a":1}', ()) == b'{"a":1}'
    for about in [("arguments", "mail", "pay"), ("arguments", "mailsend"), ("result", "mail", "send"), ()]:
        with pytest.raises(NotOpened, match="belongs to another"):
            keys.open(sealed, about)


@pytest.mark.parametrize("at", [len(PREFIX) + 9, 40, -4])
def test_what_was_changed_does_not_open(at: int) -> None:
    keys = Keys([b"one"])
    sealed = bytearray(keys.seal(b'{"amount":100}', ("a",), None))

    sealed[at] = ord("A") if sealed[at] != ord("A") else ord("B")

    with pytest.raises(NotOpened):
        keys.open(bytes(sealed), ("a",))
    for spoilt in (
        PREFIX + b'"}',
        PREFIX + keys.first.encode() + b'.%%%"}',
        PREFIX + keys.first.encode() + b'."}',
    ):
        with pytest.raises(NotOpened):
            keys.open(spoilt, ("a",))


def test_the_first_key_seals_and_every_key_opens() -> None:
    old, both, new = Keys([b"old"]), Keys([b"new", b"old"]), Keys([b"new"])
    sealed = old.seal(b"1", ("a",), None)

    assert both.open(sealed, ("a",)) == b"1"
    assert key_of(both.seal(b"1", ("a",), None)) == new.first
    assert both.ids == (new.first, old.first)
    with pytest.raises(KeyNotHeld, match=f"the key {old.first}, which this process does not have"):
        new.open(sealed, ("a",))
    assert "old" not in repr(both)


def test_equal_data_is_sealed_alike_only_where_asked() -> None:
    keys = Keys([b"one"])

    assert keys.seal(b"1", ("a",), None) == keys.seal(b"1", ("a",), None)
    assert keys.seal(b"1", ("a",), None) != keys.seal(b"1", ("b",), None)
    assert keys.open(keys.seal(b"1", ("a",), None), ("a",)) == b"1"


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_KEYS", OLD)


@pytest.fixture
def shop(keyed: None, both: App) -> App:
    return both


def declare(app: App, seen: list[Any]) -> Any:
    @app.task(encrypt=True, attempts=3)
    def pay(job: Job, iban: str) -> dict[str, str]:
        seen.append((iban, job.step("look", lambda: f"checked {iban}")))
        if len(seen) == 1:
            raise ValueError("again")
        return {"paid": iban}

    return pay


def raw(app: App, id: int) -> JobRecord:
    record = app.store.inspection.lookup([JobId(id)])[0]
    assert record is not None
    return record


def test_arguments_steps_and_results_are_stored_encrypted_and_come_back(shop: App) -> None:
    seen: list[Any] = []
    pay = declare(shop, seen)
    backoff = pay.using(attempts=2)

    async def main() -> tuple[int, Any]:
        made = await backoff.aenqueue(VALUE)
        async with shop.working():
            return made.id, await made.aresult(timeout="60s")

    id, result = asyncio.run(main())

    record = raw(shop, id)
    assert result == {"paid": VALUE}
    assert seen == [(VALUE, f"checked {VALUE}")] * 2
    assert is_sealed(record.args)
    assert is_sealed(record.result)
    key = Keys([OLD.encode()]).first
    detail = shop.inspect.job(id).job
    assert json.loads(detail.args) == json.loads(detail.result or b"") == f"encrypted with the key {key}"
    shown = run("job", str(id), "--url", shop.settings.url).out
    assert f"encrypted with the key {key}" in shown
    assert VALUE not in shown


def test_no_file_of_the_store_holds_the_text(keyed: None, jobs: App, sqlite_url: str) -> None:
    seen: list[Any] = []
    pay = declare(jobs, seen)
    folder = Path(sqlite_url.removeprefix("sqlite:///")).parent

    async def main() -> None:
        made = await pay.using(unique_key="one", idempotency_key="r", correlation_id="c").aenqueue(VALUE)
        async with jobs.working():
            await made.aresult(timeout="60s")
        await pay.using(then=[pay.draft(VALUE)], delay="1h").aenqueue(VALUE)
        await jobs.aschedule("daily", pay.draft(VALUE), every="1d")

    asyncio.run(main())

    assert seen
    held = [path.name for path in folder.iterdir() if path.is_file() and VALUE.encode() in path.read_bytes()]
    assert held == []


def test_a_worker_without_the_key_leaves_the_job_unspent(
    both: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []
    url = both.settings.url
    with monkeypatch.context() as patch:
        patch.setenv("DULY_KEYS", OLD)
        writer = App(url)
        id = declare(writer, []).enqueue(VALUE).id
        writer.close()
    declare(both, seen)

    async def main() -> None:
        async with both.working():
            await asyncio.to_thread(
                wait_until, lambda: raw(both, id).state is State.scheduled, what="the job is put off"
            )

    asyncio.run(main())

    record = raw(both, id)
    key = Keys([OLD.encode()]).first
    assert seen == []
    assert (record.state, record.counters.failed, record.counters.lost) == (State.scheduled, 0, 0)
    assert (
        f"encrypted with the key {key}, which this process does not have; add that key to DULY_KEYS"
        in str(both.inspect.job(id).attempts[-1].reason)
    )


def test_arguments_that_were_moved_from_another_job_are_not_run(shop: App) -> None:
    seen: list[Any] = []
    pay = declare(shop, seen)
    stolen = pay.using(tenant="acme", delay="1h").enqueue(VALUE).id
    victim = pay.using(tenant="mini").enqueue("another").id
    move(shop, f"set args = (select args from {{job}} where id = {stolen}) where id = {victim}")

    async def main() -> None:
        async with shop.working():
            with pytest.raises(JobDead):
                await shop_result(shop, victim)

    asyncio.run(main())

    record = raw(shop, victim)
    assert seen == []
    assert record.reason is not None
    assert (
        "arguments cannot be read: it was changed since it was encrypted, or belongs to another"
        in record.reason
    )
    assert is_sealed(record.args)


def move(app: App, change: str) -> None:
    """What somebody does who may write to the tables."""
    url = app.settings.url
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        with connection:
            connection.execute(f"update duly_job {change.format(job='duly_job')}")
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"update duly.job {change.format(job='duly.job')}".encode())


async def shop_result(app: App, id: int) -> object:
    """The end of a job by its id."""
    (task,) = app.tasks.values()
    made: Enqueued[Any] = Enqueued(
        app.client, task.handler, Stored(JobId(id), Outcome.created), queue="other", task="pay"
    )
    return await made.aresult(timeout="60s")


def test_an_idempotency_key_still_tells_equal_arguments_from_others(shop: App) -> None:
    pay = declare(shop, [])
    request = pay.using(idempotency_key="request 1")

    first, again = request.enqueue(VALUE), request.enqueue(VALUE)

    assert (again.outcome, again.id) == (Outcome.duplicate, first.id)
    with pytest.raises(KeyReused):
        request.enqueue("another")


def test_what_is_encrypted_is_said_by_task_queue_and_setting(
    keyed: None, jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.queue("money", encrypt=True)
    jobs.queue("open", encrypt=False)

    @jobs.task(queue="money")
    def by_queue(a: int) -> None: ...

    @jobs.task(queue="money", encrypt=False)
    def not_after_all(a: int) -> None: ...

    @jobs.task
    def plain(a: int) -> None: ...

    @jobs.task(encrypt=True)
    def nothing() -> None: ...

    def sealed(task: Any, *args: int) -> bool:
        return is_sealed(raw(jobs, task.enqueue(*args).id).args)

    assert sealed(by_queue, 1)
    assert not sealed(by_queue.using(queue="open"), 1)
    assert not sealed(not_after_all, 1)
    assert not sealed(plain, 1)
    assert sealed(plain.using(queue="money"), 1)
    assert not sealed(nothing)
    jobs.close()
    monkeypatch.setenv("DULY_ENCRYPT", "on")
    other = jobs.at(jobs.settings.url)
    assert is_sealed(raw(other, plain.using(app=other).enqueue(1).id).args)
    other.close()


def test_without_a_key_nothing_is_stored_in_clear(jobs: App) -> None:
    pay = declare(jobs, [])

    with pytest.raises(UsageError, match="task 'pay' is encrypted, and no key is set: write DULY_KEYS"):
        pay.enqueue(VALUE)

    assert jobs.inspect.jobs().jobs == ()


def test_a_result_that_the_database_would_hand_on_is_refused(keyed: None, jobs: App) -> None:
    pay = declare(jobs, [])

    @jobs.task
    def tell(text: Any) -> None: ...

    for draft in (pay.using(then=[tell.draft(RESULT)]), tell.using(then=[pay.draft(RESULT)])):
        with pytest.raises(UsageError, match="RESULT is put in by the database, which cannot read it"):
            draft.enqueue("x")


def test_a_filter_by_an_argument_says_what_it_cannot_see(keyed: None, jobs: App) -> None:
    pay = declare(jobs, [])

    @jobs.task
    def plain(iban: str) -> None: ...

    pay.enqueue(VALUE)
    pay.enqueue("x")
    found = plain.enqueue(VALUE).id

    page = jobs.inspect.jobs(Filter(where=f"args.iban = '{VALUE}'"))

    assert [job.id for job in page.jobs] == [found]
    assert page.encrypted == 2
    told = run("jobs", "--where", f"args.iban = '{VALUE}'", "--url", jobs.settings.url).out
    assert "2 jobs are encrypted" in told


def test_another_language_is_given_the_text_where_the_server_has_the_key(keyed: None, jobs: App) -> None:
    pay = declare(jobs, [])
    id = pay.enqueue(VALUE).id
    outside = Outside(jobs.client)
    incarnation = outside.open(["default"], None, timedelta(seconds=30), "go", 1)

    (reserved,) = outside.take(incarnation, ["default"], 1, (), suspects=False)

    assert json.loads(reserved.job.args or b"") == {"iban": VALUE}
    outside.end(outside.held([reserved.token]), [completed(b'"done"')])  # type: ignore[arg-type]
    assert is_sealed(raw(jobs, id).result)


def test_another_language_is_given_nothing_where_the_server_has_no_key(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = jobs.settings.url
    with monkeypatch.context() as patch:
        patch.setenv("DULY_KEYS", OLD)
        writer = App(url)
        id = declare(writer, []).enqueue(VALUE).id
        writer.close()
    outside = Outside(jobs.client)
    incarnation = outside.open(["default"], ["pay"], timedelta(seconds=30), "go", 1)

    taken = outside.take(incarnation, ["default"], 1, (), suspects=False)

    assert taken == []
    assert raw(jobs, id).state is State.scheduled


def test_a_secret_inside_is_hidden_twice(keyed: None, jobs: App) -> None:
    @jobs.task(encrypt=True)
    def log_in(password: Secret[str]) -> None: ...

    with standing(jobs, "memory://") as kit:
        log_in.enqueue(Secret(VALUE))
        kit.assert_enqueued(log_in.draft(Secret(VALUE)), times=1)
        kit.refute_enqueued(log_in.draft(Secret("another")))
        assert kit.drain().completed == 1
