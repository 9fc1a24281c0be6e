"""An enqueue whose reply was lost: repeated by the client where a key makes that safe, else said to be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from duly import App, KeyReused, Outcome, StoreUnreachable
from duly.client import enqueue
from duly.core.job import NewJob, Stored
from duly.stores.faults import Transient
from duly.stores.protocol import JobStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import Proxy


class LosesReplies:
    """The real store behind a line that breaks: before the store hears of the call, or after it has committed."""

    def __init__(self, jobs: JobStore, *breaks: str) -> None:
        self.calls = 0
        self._jobs = jobs
        self._breaks = list(breaks)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        self.calls += 1
        broken = self._breaks.pop(0) if self._breaks else ""
        if broken == "refused":
            raise Transient("connection refused")
        stored = [] if broken == "before" else self._jobs.enqueue(jobs)
        if broken:
            raise Transient("the connection broke", outcome_unknown=True)
        return stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)


def line(app: App, *breaks: str) -> LosesReplies:
    broken = LosesReplies(app.store.jobs, *breaks)
    app.store.jobs = broken
    return broken


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue, "_FIRST_PAUSE", 0.0)


@pytest.mark.parametrize("breaks", [["before"], ["after"], ["after", "refused", "before", "after"]])
def test_an_enqueue_with_a_key_is_repeated_and_stores_one_job(jobs: App, breaks: list[str]) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    broken = line(jobs, *breaks)

    enqueued = send.using(idempotency_key="receipt:7").enqueue(7)

    assert broken.calls == len(breaks) + 1
    assert jobs.inspect.queue("default").counts.ready == 1
    assert jobs.store.inspection.lookup([enqueued.id])[0] is not None


@pytest.mark.asyncio
async def test_it_is_repeated_for_async_code_and_for_many(jobs: App) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    line(jobs, "after", "after")
    drafts = [send.using(idempotency_key=f"receipt:{n}").draft(n) for n in range(3)]

    one = await send.using(idempotency_key="receipt:0").aenqueue(0)
    many = await jobs.aenqueue_many(drafts)

    counts = (await jobs.inspect.aqueue("default")).counts
    assert many[0].id == one.id
    assert counts.ready == 3


def test_a_repeat_that_meets_another_request_under_its_key_says_so(jobs: App) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    keyed = send.using(idempotency_key="receipt:7")
    first = keyed.enqueue(7)
    line(jobs, "before")

    with pytest.raises(KeyReused) as caught:
        keyed.enqueue(8)

    assert caught.value.job_id == first.id


def test_without_a_key_the_error_says_what_is_not_known(jobs: App) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    broken = line(jobs, "after", "after")

    with pytest.raises(
        StoreUnreachable, match=r"whether the job send was stored is not known.*idempotency_key"
    ):
        send.using(unique_key="order:7").enqueue(7)
    with pytest.raises(StoreUnreachable, match="whether the 2 jobs were stored is not known"):
        jobs.enqueue_many([send.using(idempotency_key="k").draft(1), send.draft(2)])

    assert broken.calls == 2


def test_a_store_that_was_never_reached_is_not_asked_again(jobs: App) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    broken = line(jobs, "refused")

    with pytest.raises(StoreUnreachable) as caught:
        send.using(idempotency_key="k").enqueue(7)

    assert broken.calls == 1
    assert "not known" not in str(caught.value)


def test_a_line_that_stays_broken_is_given_up_and_may_be_repeated_by_hand(jobs: App) -> None:
    @jobs.task
    def send(order_id: int) -> None: ...

    keyed = send.using(idempotency_key="receipt:7")
    broken = line(jobs, *["after"] * 8)

    with pytest.raises(StoreUnreachable, match="repeat it with the same idempotency key"):
        keyed.enqueue(7)
    again = keyed.enqueue(7)

    assert broken.calls == 9
    assert again.outcome is Outcome.duplicate
    assert jobs.inspect.queue("default").counts.ready == 1


def test_a_reply_that_is_cut_off_on_the_way_from_postgres_makes_no_second_job(
    server_jobs: App, postgres: PostgresServer
) -> None:
    proxy = Proxy(postgres.port)
    app = App(server_jobs.settings.url.replace(f":{postgres.port}/", f":{proxy.port}/"))

    @app.task
    def send(order_id: int) -> None: ...

    send.enqueue(1)
    proxy.treat("cut replies")
    with pytest.raises(StoreUnreachable, match="whether the job send was stored is not known"):
        send.enqueue(2)
    repeated = send.using(idempotency_key="receipt:3")
    enqueued = repeated.enqueue(3)
    proxy.treat("cut replies")
    again = repeated.enqueue(3)

    app.close()
    proxy.close()
    page = server_jobs.inspect.jobs().jobs
    assert [job.id for job in page if b"3" in job.args] == [enqueued.id] == [again.id]
