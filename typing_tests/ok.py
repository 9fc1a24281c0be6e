"""Correct programs: both checkers must find nothing. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, assert_type

from duly import (
    RESULT,
    App,
    Backoff,
    Blob,
    Breaker,
    Dead,
    Draft,
    Enqueued,
    Filter,
    Job,
    JobRecord,
    KeyReused,
    Lock,
    Outcome,
    Paced,
    PerKey,
    Queue,
    QueueFull,
    Resource,
    Retry,
    Skip,
    Snooze,
    Task,
    Unique,
)

jobs = App(include=["shop.tasks"], blobs="file:///var/lib/shop/blobs")
mail = jobs.queue("mail", owner="growth@shop", keep="2d", keep_dead=timedelta(days=60))


class UnknownAccount(Exception): ...


@dataclass
class Order:
    id: int


# Bare and called, async and sync, with and without a job.


@jobs.task
def plain(a: int, b: str = "x") -> str:
    return f"{a}{b}"


@jobs.task
async def plain_async(a: int) -> Order:
    return Order(a)


@jobs.task()
def called(a: int) -> int:
    return a


@jobs.task(
    queue=mail,
    timeout="30s",
    attempts=10,
    backoff=Backoff("2s", factor=3, cap="15m"),
    permanent=(UnknownAccount,),
)
async def send_receipt(job: Job, order_id: int) -> str:
    if job.should_stop:
        raise Snooze("10s")
    if job.time_left() < timedelta(seconds=1):
        raise Retry("1m", reason="too late")
    job.progress(1, of=2, note=job.effect_key("charge"))
    job.extend("30s")
    await job.acomplete("sent")
    return "sent"


@jobs.task
def with_job(job: Job) -> None:
    if job.attempt > 3:
        raise Dead("no use")
    raise Skip("not needed")


@jobs.task(
    queue="mail", isolation="process", ack="start", priority=10, expires="1h", aliases=["old"], name="new"
)
def keywords(job: Job, a: int, *, flag: bool = False) -> list[int]:
    return [a]


@send_receipt.guard
async def not_refunded(order_id: int) -> str | None:
    return None


@send_receipt.guard
def with_the_job(job: Job, order_id: int) -> bool:
    return job.attempt < 3


@plain.guard
def silent(a: int, b: str = "x") -> None: ...


smtp = jobs.resource("smtp", max_running=40, rate="100/s burst 20", breaker=Breaker(min_calls=20))
turns = jobs.queue(
    "sync",
    wait_target="2m",
    max_running=20,
    rate="600/min",
    fair=True,
    tenant_max_running=5,
    tenant_rate="10/s",
    reserve="10%",
    ordering="skip_dead",
    serialise=True,
)


@jobs.task(
    queue=turns, uses=[smtp], tenant="{tenant}", ordering_key="account:{account}", max_running=3, rate="5/s"
)
async def bounded(job: Job, tenant: str, account: Annotated[int, PerKey(max_running=1)]) -> None:
    async with job.lock("ledger"), smtp:
        assert_type(await smtp.ahold("30s", "429"), datetime)


def outside() -> None:
    with jobs.lock("ledger", ttl="1m") as lock, smtp as resource:
        assert_type(lock, Lock)
        assert_type(resource, Resource)
    bounded.using(ordering_key="literal", tenant="acme").enqueue("acme", 7)


async def guards_alone() -> None:
    assert_type(await not_refunded(7), str | None)
    assert_type([guard.name for guard in send_receipt.guards], list[str])


@jobs.task(transient=[ConnectionError, lambda error: "busy" in str(error)])
def with_predicate() -> None: ...


@jobs.task(unique="order:{order_id}")
def sync(order_id: int) -> int:
    return order_id


@jobs.task(unique=Unique("{order_id}", scope="live", on_conflict="replace"))
async def export(order_id: int) -> dict[str, int]:
    return {"order": order_id}


@jobs.task
def load(blob: Blob, note: str = "") -> int:
    with blob.open() as opened:
        return len(opened.read())


# A task is still the function.


def calls() -> None:
    assert_type(plain(1), str)
    assert_type(plain(1, b="y"), str)
    assert_type(called(1), int)
    assert_type(with_job(), None)
    assert_type(keywords(1, flag=True), list[int])


async def acalls() -> None:
    assert_type(await send_receipt(7), str)
    assert_type(await plain_async(7), Order)


# Enqueue takes the handler's parameters, without the job.


def enqueues() -> None:
    assert_type(plain.enqueue(1), Enqueued[str])
    assert_type(send_receipt.enqueue(7).result(timeout="10s"), str)
    assert_type(plain_async.enqueue(7).result(timeout=timedelta(seconds=1)), Order)
    assert_type(plain.enqueue(7).result(timeout="10s"), str)
    assert_type(with_job.enqueue().result(timeout="10s"), None)
    with_predicate.enqueue()


async def aenqueues() -> None:
    assert_type(await plain.aenqueue(1), Enqueued[str])
    enqueued = await send_receipt.aenqueue(order_id=7)
    assert_type(await enqueued.aresult(timeout="10s"), str)
    many = await jobs.aenqueue_many(plain.draft(number) for number in range(3))
    assert_type(many, list[Enqueued[str]])
    async with jobs.atransaction() as connection:
        await plain.using(connection=connection).aenqueue(1)
    async with jobs, jobs.working(queues=["mail"], concurrency=4):
        await jobs.inspect.astatus()


# Options keep the task's own type, also in a row.


def options() -> None:
    later = send_receipt.using(delay="2d", tenant="acme").using(priority=5, tags=["vip"])
    assert_type(later.enqueue(7).result(timeout="1s"), str)
    assert_type(plain.using(priority=1).draft(7), Draft[str])
    plain.using(
        run_at=datetime.now(UTC), expires="1h", timeout="5m", attempts=1, queue=mail, correlation_id="r-1"
    )
    with jobs.transaction() as connection:
        plain.using(connection=connection).enqueue(1)
        assert_type(jobs.enqueue_many([plain.draft(1)], connection=connection), list[Enqueued[str]])


def keys(connection: object) -> None:
    keyed = sync.using(idempotency_key="receipt:7", unique_key=Unique("order:7"), version=3)
    enqueued = keyed.enqueue(7)
    assert_type(enqueued.outcome, Outcome)
    assert_type(enqueued.outcome is Outcome.duplicate, bool)
    assert_type(enqueued.result(timeout="1s"), int)
    try:
        sync.using(unique_key="order:7").enqueue(order_id=7)
    except KeyReused as error:
        assert_type(error.job_id, int | None)
    assert_type(jobs.once("webhook:7", connection=connection, keep="1d"), bool)


def follow_ups() -> None:
    chain = export.using(
        then=[sync.using(then=[load.draft(RESULT)]).draft(RESULT), load.draft(Blob.of("a"), note=RESULT)],
        on_dead=(plain.draft(number) for number in range(2)),
    )
    assert_type(chain.enqueue(7).result(timeout="1s"), dict[str, int])
    assert_type(sync.draft(RESULT), Draft[int])
    assert_type(load.enqueue(Blob.of("/data/big.npy")).result(timeout="1s"), int)


def elsewhere() -> None:
    eu = jobs.at("postgresql://eu/db")
    assert_type(eu, App)
    assert_type(sync.using(app=eu).enqueue(7), Enqueued[int])
    assert_type(eu.enqueue_many([sync.draft(7)]), list[Enqueued[int]])


def accepts(task: Task[[int], int], queue: Queue) -> None:
    assert_type(task.enqueue(1).result(timeout="1s"), int)
    assert_type(task.name, str)
    queue.name.upper()


accepts(called, mail)


@jobs.around
def context(job: Job) -> Iterator[None]:
    yield


@jobs.around
async def acontext(job: Job) -> AsyncIterator[None]:
    yield


@jobs.lifespan
def models() -> Iterator[None]:
    yield


def operates() -> None:
    with jobs:
        page = jobs.inspect.jobs(Filter(queue="mail", where="args.order_id = 7"), limit=10)
        assert_type(page.jobs, tuple[JobRecord, ...])
        jobs.operate.pause("mail", lasting="30m", reason="INC-311")
        act = jobs.operate.redrive(Filter(fingerprint="a91f"), rate="20/s", reason="INC-311")
        assert_type(act.matched, int)
        jobs.operate.cancel([plain.enqueue(1).id, 7], reason="two")
        jobs.operate.cancel(plain.enqueue(1), reason="one")


async def aoperates() -> None:
    act = await jobs.operate.acancel(7, reason="x")
    assert_type(act.verb, str)
    detail = await jobs.inspect.ajob(7)
    assert_type(detail.job, JobRecord)


if __name__ == "__main__":
    jobs.run_worker(concurrency=4, grace="10s")


# Schedules keep the task's own type.


@jobs.cron("0 9 * * 1-5", tz="Europe/Berlin", jitter="5m", catch_up="skip", overlap="allow")
@jobs.every("10m", name="often", overlap="queue")
@jobs.task
async def digest(job: Job, days: int = 7) -> str:
    return f"{job.trigger} {days}"


def ready(connection: object) -> Iterator[tuple[int, str]]:
    yield (1, "x")


@jobs.tick("10s", source=ready, key="plain:{a}")
@jobs.task
def of_rows(a: int, b: str) -> int:
    return a


async def scheduling() -> None:
    assert_type(digest.enqueue(3).result(timeout="5s"), str)
    assert_type(of_rows.enqueue(1, "x").result(timeout="5s"), int)
    record = jobs.schedule("nightly", plain.draft(1), every=timedelta(hours=1))
    assert_type(record.next_at, datetime)
    await jobs.aschedule("weekly", plain.draft(1), cron="@weekly", tz="UTC")
    assert_type(jobs.operate.pause_schedule("nightly", reason="INC-7"), bool)
    print([each.name for each in await jobs.inspect.aschedules()])


# Full queues: a bound, what producers meet at it, and loops that wait.

pressed = jobs.queue("pressed", max_depth=100_000, max_age="10m", when_full="slow", importance=10)
assert_type(pressed, Queue)


def fill(orders: list[Order]) -> timedelta | None:
    for order in Paced(orders, plain):
        assert_type(order, Order)
    try:
        assert_type(plain.using(strict=True).enqueue(1).over_limit, bool)
    except QueueFull as full:
        assert_type(full.queue, str)
        return full.retry_after
    return None


async def afill(orders: AsyncIterator[Order]) -> None:
    async for order in Paced(orders, plain_async):
        assert_type(order, Order)
