"""Enqueueing: what is stored, what is refused with which words, and how jobs inherit from a handler."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from duly import (
    App,
    BlockingCallWarning,
    Job,
    LeaseLost,
    Outcome,
    PayloadError,
    State,
    UsageError,
)
from duly.client.job import LocalPort, current
from duly.core.job import JobId, JobRecord, Token
from tests.client.conftest import Hands


def stored(jobs: App, id: JobId) -> JobRecord:
    record = jobs.store.inspection.lookup([id])[0]
    assert record is not None
    return record


@dataclass
class Order:
    id: int
    price: Decimal


class Color(enum.Enum):
    red = "red"


def test_enqueue_stores_a_ready_job(both: App) -> None:
    mail = both.queue("mail")

    @both.task(queue=mail, priority=7)
    def send(order_id: int, to: str = "x") -> None: ...

    enqueued = send.using(
        tenant="acme", tags=["vip", "eu"], timeout="5m", attempts=3, correlation_id="r-1", expires="1h"
    ).enqueue(order_id=7)

    record = stored(both, enqueued.id)
    assert (enqueued.outcome, enqueued.queue, enqueued.run_at) == (Outcome.created, "mail", None)
    assert (record.state, record.queue, record.task, record.priority) == (State.ready, "mail", "send", 7)
    assert (record.tenant, sorted(record.tags), record.correlation_id) == ("acme", ["eu", "vip"], "r-1")
    assert (record.timeout, record.attempts) == (timedelta(minutes=5), 3)
    assert record.expires_at == record.enqueued_at + timedelta(hours=1)
    assert msgspec.json.decode(record.args)["order_id"] == 7


def test_positional_and_keyword_arguments_are_stored_alike(jobs: App) -> None:
    @jobs.task
    def send(job: Job, order_id: int, to: str) -> None: ...

    first, second = send.enqueue(7, "x"), send.enqueue(to="x", order_id=7)

    assert stored(jobs, first.id).args == stored(jobs, second.id).args


def test_delay_and_run_at_store_a_scheduled_job(both: App) -> None:
    @both.task
    def send() -> None: ...

    moment = datetime(2031, 5, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))

    later, at, past = (
        send.using(delay="2d").enqueue(),
        send.using(run_at=moment).enqueue(),
        send.using(run_at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(),
    )

    record = stored(both, later.id)
    assert record.state is State.scheduled
    assert later.run_at == record.run_at == record.enqueued_at + timedelta(days=2)
    assert at.run_at == moment
    assert stored(both, past.id).state is State.ready


@pytest.mark.asyncio
async def test_aenqueue_stores_the_same(both: App) -> None:
    @both.task
    async def send(order_id: int) -> None: ...

    enqueued = await send.aenqueue(order_id=7)

    assert stored(both, enqueued.id).state is State.ready


def test_values_of_many_types_survive(jobs: App) -> None:
    @jobs.task
    def handler(
        order: Order,
        color: Color,
        day: date,
        at: datetime,
        id: UUID,
        raw: bytes,
        sizes: set[int],
        pair: tuple[int, str],
    ) -> None: ...

    values: dict[str, Any] = {
        "order": Order(1, Decimal("9.90")),
        "color": Color.red,
        "day": date(2030, 1, 2),
        "at": datetime(2030, 1, 2, 3, tzinfo=UTC),
        "id": UUID(int=5),
        "raw": b"\x00\xff",
        "sizes": {1, 2},
        "pair": (1, "a"),
    }

    enqueued = handler.enqueue(**values)

    assert handler.arguments.decode(stored(jobs, enqueued.id).args) == values


class Node:
    pass


def cyclic() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), "value"),
        ({"deep": [1, float("inf")]}, r"value.*deep.*1"),
        ("a\ud800b", "value"),
        (cyclic(), "value"),
        (Node(), "value"),
        (sys.stdout, "value"),
        ("x" * 300_000, "256 KiB"),
        (datetime(2030, 1, 1), "value"),  # noqa: DTZ001 - the mistake itself
    ],
    ids=["nan", "infinity inside", "surrogate", "cycle", "object", "open file", "300 KB", "naive datetime"],
)
def test_an_argument_that_cannot_be_stored_is_named(both: App, value: Any, told: str) -> None:
    @both.task
    def handler(value: Any) -> None: ...

    with pytest.raises(PayloadError, match=told):
        handler.enqueue(value)

    assert both.inspect.jobs().jobs == ()


@pytest.mark.parametrize(
    "call", [((), {}), ((1, 2), {}), ((1,), {"widht": 2}), ((), {"photo": "a", "job": 1})]
)
def test_arguments_that_do_not_fit_the_handler_are_refused(
    jobs: App, call: tuple[tuple[Any, ...], dict[str, Any]]
) -> None:
    @jobs.task
    def resize(job: Job, photo: str) -> None: ...

    with pytest.raises((PayloadError, UsageError)):
        resize.enqueue(*call[0], **call[1])

    assert jobs.inspect.jobs().jobs == ()


def test_an_undeclared_queue_is_an_error_that_names_the_nearest(jobs: App) -> None:
    jobs.queue("mail")

    @jobs.task(queue="mial")
    def send() -> None: ...

    with pytest.raises(UsageError, match=r"'mial'.*did you mean 'mail'\?"):
        send.enqueue()
    with pytest.raises(UsageError, match="did you mean 'mail'"):
        send.using(queue="mael").enqueue()
    with pytest.raises(UsageError, match="did you mean 'mail'"):
        jobs.load()


def test_the_default_queue_exists_undeclared(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    assert send.enqueue().queue == "default"


def test_many_drafts_are_stored_in_one_go_with_an_answer_each(both: App) -> None:
    @both.task
    def send(number: int) -> None: ...

    def drafts() -> Iterator[Any]:
        for number in range(2_500):
            yield send.using(priority=number).draft(number)

    answers = both.enqueue_many(drafts())

    numbers = [
        msgspec.json.decode(stored(both, answer.id).args)["number"] for answer in (answers[0], answers[-1])
    ]
    assert len(answers) == len({answer.id for answer in answers}) == 2_500
    assert numbers == [0, 2_499]
    assert both.inspect.queue("default").counts.ready == 2_500


@pytest.mark.parametrize(("total", "bad"), [(2_000, 1_234), (20_000, 19_999)], ids=["middle", "last"])
def test_one_bad_draft_among_many_stores_nothing_and_is_named(both: App, total: int, bad: int) -> None:
    @both.task
    def send(number: float) -> None: ...

    drafts = (send.draft(float("nan") if number == bad else number) for number in range(total))

    with pytest.raises(PayloadError, match=rf"draft {bad} .*nothing was stored") as caught:
        both.enqueue_many(drafts)

    assert "number" in caught.value.path
    assert both.inspect.jobs().jobs == ()


@pytest.mark.asyncio
async def test_many_drafts_from_async_code(jobs: App) -> None:
    @jobs.task
    def send(number: int) -> None: ...

    answers = await jobs.aenqueue_many(send.draft(number) for number in range(1_001))

    assert len(answers) == 1_001
    assert [await jobs.aenqueue_many([]), jobs.client.is_open] == [[], True]


def test_what_is_no_draft_of_this_app_is_refused(jobs: App, sqlite_url: str) -> None:
    other = App(sqlite_url)

    @other.task
    def foreign() -> None: ...

    @jobs.task
    def own() -> None: ...

    mistakes: list[Any] = [foreign.draft(), own, own.using(connection=object()).draft()]

    for mistake in mistakes:
        with pytest.raises(UsageError, match="draft 1 of enqueue_many"):
            jobs.enqueue_many([own.draft(), mistake])
    assert jobs.enqueue_many([]) == []


def running(token: Token) -> Job:
    return Job(
        id=token.job,
        task="parent",
        queue="default",
        port=LocalPort("test", timedelta(minutes=1)),
        encode=lambda _: (None, None),
        correlation_id="r-77",
        token=token,
    )


def test_a_job_enqueued_by_a_handler_inherits_the_correlation_id(both: App) -> None:
    @both.task
    def parent() -> None: ...

    @both.task
    def child() -> None: ...

    hands = Hands(both.store, "parent", "child")
    parent.enqueue()
    (claimed,) = hands.claim()
    reset = current.set(running(Token(hands.incarnation, claimed.id, claimed.run)))

    inherited, own = child.enqueue(), child.using(correlation_id="own").enqueue()

    current.reset(reset)
    assert stored(both, inherited.id).correlation_id == "r-77"
    assert stored(both, own.id).correlation_id == "own"


def test_a_former_holder_can_no_longer_enqueue(both: App) -> None:
    @both.task
    def parent() -> None: ...

    @both.task
    def child() -> None: ...

    hands = Hands(both.store, "parent", "child")
    parent.enqueue()
    (claimed,) = hands.claim()
    hands.complete(claimed)
    reset = current.set(running(Token(hands.incarnation, claimed.id, claimed.run)))

    with pytest.raises(LeaseLost):
        child.enqueue()
    with pytest.raises(LeaseLost):
        both.enqueue_many([child.draft(), child.draft()])

    current.reset(reset)
    assert both.inspect.queue("default").counts.ready == 0


@pytest.mark.asyncio
async def test_a_blocking_enqueue_inside_a_loop_warns_once_per_line_with_file_and_line(jobs: App) -> None:
    @jobs.task
    def send() -> None: ...

    with pytest.warns(BlockingCallWarning) as caught:
        for _ in range(3):
            send.enqueue()

    (warning,) = caught
    assert warning.filename == __file__
    assert f"{__file__}:{warning.lineno}" in str(warning.message)
    assert "await send.aenqueue()" in str(warning.message)


@pytest.mark.asyncio
async def test_a_blocking_enqueue_inside_a_loop_raises_under_debug(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_DEBUG", "1")
    jobs = App(sqlite_url)

    @jobs.task
    def send() -> None: ...

    with pytest.raises(UsageError, match=r"await send\.aenqueue\(\)"):
        send.enqueue()
    await jobs.client.aclose()
