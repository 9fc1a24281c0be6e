"""Arguments and results that have hurt elsewhere: the same answer on each store, at the enqueue, before any worker."""

import os
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from duly import App, PayloadError, UsageError
from duly.core.filters import Filter
from duly.core.job import JobId
from duly.core.lifecycle import State
from duly.core.names import key_of
from duly.testing.conformance import Bench
from tests.scenarios.inside import record_of, run_until_final

KIB = 1024
NAIVE = datetime(2030, 5, 1, tzinfo=UTC).replace(tzinfo=None)


def nothing_stored(app: App) -> bool:
    return app.store.inspection.counts() == []


def arrived(task: Any, app: App, id: JobId) -> dict[str, Any]:
    """What the handler will be called with."""
    read: dict[str, Any] = task.handler.arguments.decode(record_of(app, id).args)
    return read


def test_a_nul_character_comes_back_exactly(jobs: App) -> None:
    @jobs.task
    def keep(value: dict[str, Any]) -> dict[str, Any]:
        return value

    values: list[dict[str, Any]] = [{"s": "a\0b"}, {"k\0": 1}, {"\0": ["\0", "\\u0000"]}]
    sent = [keep.enqueue(value) for value in values]

    records = run_until_final(jobs, *(one.id for one in sent))

    assert [record.state for record in records] == [State.completed] * 3
    assert [one.result(timeout="1s") for one in sent] == values


@pytest.mark.parametrize("option", ["tenant", "queue", "correlation_id", "tags"])
def test_a_nul_in_a_name_is_refused_and_leaves_the_transaction_usable(jobs: App, option: str) -> None:
    @jobs.task
    def keep(value: str) -> None: ...

    bad: dict[str, Any] = {option: ["a\0b"] if option == "tags" else "a\0b"}

    with jobs.transaction() as connection:
        with pytest.raises(UsageError, match="NUL"):
            keep.using(connection=connection, **bad).enqueue("x")
        good = keep.using(connection=connection).enqueue("a\0b")

    assert record_of(jobs, good.id).state is State.ready
    assert sum(count.ready for count in jobs.store.inspection.counts()) == 1


def test_half_a_character_is_refused_where_it_stands(jobs: App) -> None:
    @jobs.task
    def keep(value: dict[str, Any]) -> None: ...

    with pytest.raises(PayloadError, match="lone surrogate") as told:
        keep.enqueue({"s": "\ud800"})
    with pytest.raises(PayloadError, match="lone surrogate"):
        keep.enqueue({"\udfff": 1})

    assert told.value.path == "value.s"
    assert nothing_stored(jobs)


@pytest.mark.parametrize(
    ("name", "told"),
    [("\ud83d", "lone surrogate"), ("", "empty"), ("a" * 10 * KIB, "characters"), (b"\xff\x00", "text")],
    ids=["surrogate", "empty", "10 kB", "bytes"],
)
@pytest.mark.parametrize("option", ["queue", "tenant", "correlation_id", "ordering_key"])
def test_a_name_that_some_store_could_not_keep_is_refused_on_each(
    jobs: App, option: str, name: Any, told: str
) -> None:
    @jobs.task
    def keep() -> None: ...

    with pytest.raises(UsageError, match=told):
        keep.using(**{option: name}).enqueue()

    assert nothing_stored(jobs)


def test_any_text_that_is_accepted_as_a_name_has_a_stable_key_of_its_own(jobs: App) -> None:
    @jobs.task
    def keep() -> None: ...

    composed, decomposed = "caf\u00e9", "cafe\u0301"
    random_text = os.urandom(100).hex()
    names = [composed, decomposed, random_text, "\U0001f600" * 50, "Ä" * 100, "ä" * 100]

    ids = [keep.using(tenant=name, ordering_key=name).enqueue().id for name in names]

    assert [record_of(jobs, id).tenant for id in ids] == names
    assert [record_of(jobs, id).ordering_key for id in ids] == names
    assert len({key_of(name) for name in names}) == len(names)
    # Written out: a release that hashed otherwise would not find the rows of the one before it.
    assert (key_of(composed), key_of(decomposed)) == (-8858723660289998967, -9084035275619258937)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", ["typed", "open"])
def test_a_number_that_json_lacks_is_refused_with_its_place(jobs: App, number: float, kind: str) -> None:
    @jobs.task
    def typed(x: float) -> None: ...

    @jobs.task(name="open")
    def anything(x: Any) -> None: ...

    with pytest.raises(PayloadError, match="JSON cannot hold") as told:
        typed.enqueue(number) if kind == "typed" else anything.enqueue({"deep": [1.0, number]})

    assert told.value.path == ("x" if kind == "typed" else "x.deep[1]")
    assert nothing_stored(jobs)


def test_a_result_that_json_lacks_is_noted_and_runs_nothing_again(jobs: App, tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    @jobs.task(attempts=3)
    def answer() -> dict[str, float]:
        with ran.open("a") as file:
            file.write("x")
        return {"y": float("-inf")}

    (record,) = run_until_final(jobs, answer.enqueue().id)

    assert (record.state, record.result, record.counters.failed) == (State.completed, None, 0)
    assert "result not storable" in (record.note or "")
    assert ".y" in (record.note or "")
    assert ran.read_text() == "x"


class Colour(Enum):
    red = "r"


@dataclass
class Order:
    id: int
    price: Decimal


TYPED: list[tuple[Any, Any]] = [
    (tuple[int, int], (1, 2)),
    (dict[int, str], {1: "a"}),
    (datetime, datetime(2030, 5, 1, tzinfo=UTC)),
    (date, date(2030, 5, 1)),
    (Decimal, Decimal("0.10")),
    (UUID, UUID(int=7)),
    (bytes, b"\x00\xff"),
    (set[str], {"a", "b"}),
    (Order, Order(1, Decimal("9.90"))),
    (Colour, Colour.red),
    (int, 2**63),
    (int, 2**53 + 1),
    (float, 0.1),
]


@pytest.mark.parametrize(
    ("kind", "value"), TYPED, ids=[f"{type(value).__name__}-{at}" for at, (_, value) in enumerate(TYPED)]
)
def test_a_declared_type_arrives_in_the_handler_unchanged(jobs: App, kind: Any, value: Any) -> None:
    def keep(value: Any) -> None: ...

    keep.__annotations__["value"] = kind
    task = jobs.task(keep)

    got = arrived(task, jobs, task.enqueue(value).id)["value"]

    assert got == value
    assert type(got) is type(value)


OPEN: list[Any] = [
    (1, 2),
    {1: "a"},
    NAIVE,
    datetime(2030, 5, 1, tzinfo=UTC),
    date(2030, 5, 1),
    Decimal("0.10"),
    UUID(int=7),
    b"\x00\xff",
    {"a"},
    Order(1, Decimal(1)),
    Colour.red,
    [[(1,)]],
    {"deep": {"er": {1, 2}}},
]


@pytest.mark.parametrize("value", OPEN, ids=[f"{type(value).__name__}-{at}" for at, value in enumerate(OPEN)])
def test_what_would_arrive_as_something_else_is_refused_at_the_enqueue(jobs: App, value: Any) -> None:
    @jobs.task
    def keep(value: Any) -> None: ...

    with pytest.raises(PayloadError, match="value") as told:
        keep.enqueue(value)

    assert told.value.path.startswith("value")
    assert nothing_stored(jobs)


def test_a_naive_datetime_is_refused_and_a_zone_keeps_instant_and_offset(jobs: App) -> None:
    @jobs.task
    def keep(at: datetime) -> None: ...

    berlin = datetime(2030, 5, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))

    with pytest.raises(PayloadError, match="time zone"):
        keep.enqueue(NAIVE)
    got = arrived(keep, jobs, keep.enqueue(berlin).id)["at"]

    assert (got, got.utcoffset()) == (berlin, berlin.utcoffset())


def test_a_worker_calls_the_handler_with_what_was_sent(jobs: App) -> None:
    seen: list[Any] = []

    @jobs.task
    def keep(
        pair: tuple[int, int], by_number: dict[int, str], order: Order, colour: Colour, raw: bytes
    ) -> None:
        seen.append((pair, by_number, order, colour, raw))

    sent = ((1, 2), {1: "a"}, Order(1, Decimal("9.90")), Colour.red, b"\x00\xff")

    (record,) = run_until_final(jobs, keep.enqueue(*sent).id)

    assert record.state is State.completed
    assert seen == [sent]


def test_work_that_is_done_stays_done_when_its_result_cannot_be_stored(jobs: App, tmp_path: Path) -> None:
    effects = tmp_path / "effects"

    @jobs.task(attempts=3)
    def work() -> Any:
        with effects.open("a") as file:
            file.write("done\n")
        return file

    @jobs.task(attempts=3)
    async def awork() -> Any:
        with effects.open("a") as file:
            file.write("done\n")
        return lambda: None

    records = run_until_final(jobs, work.enqueue().id, awork.enqueue().id)

    assert [(record.state, record.run, record.result) for record in records] == [
        (State.completed, 1, None),
        (State.completed, 1, None),
    ]
    assert all("result not storable" in (record.note or "") for record in records)
    assert effects.read_text() == "done\n" * 2


def test_a_payload_up_to_the_limit_is_stored_and_one_beyond_it_is_refused(jobs: App) -> None:
    @jobs.task
    def keep(body: str, other: int) -> None: ...

    fits = keep.enqueue("x" * 255 * KIB, 1)

    with pytest.raises(PayloadError, match="256 KiB") as told:
        keep.enqueue("x" * 257 * KIB, 1)
    with pytest.raises(PayloadError, match="draft 1 of enqueue_many"):
        jobs.enqueue_many([keep.draft("x", 1), keep.draft("x" * 257 * KIB, 1)])

    assert told.value.path == "body"
    assert len(record_of(jobs, fits.id).args) > 255 * KIB
    assert sum(count.ready for count in jobs.store.inspection.counts()) == 1


def peak_of(act: Callable[[], object]) -> int:
    """Bytes of Python memory that an act needed at its worst."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_claims_counts_and_lists_leave_the_payloads_of_a_long_queue_alone(bench: Bench) -> None:
    body = b'{"body":"' + b"x" * 250 * KIB + b'"}'
    for _ in range(8):
        bench.put_many(25, args=body)
    worker = bench.worker()

    claiming = peak_of(lambda: bench.claim(worker, 100))
    counting = peak_of(bench.store.inspection.counts)
    listing = peak_of(lambda: bench.store.inspection.page(Filter(), limit=5))

    claimed = bench.claim(worker, 1)[0]
    assert claimed.args is None
    assert bench.store.jobs.arguments([claimed.id]) == {claimed.id: body}
    assert max(claiming, counting) < len(body)
    assert listing < 20 * len(body)
