"""Mistakes, one a line: each is an error to both checkers, which the ignore on its line expects. Never run."""

from collections.abc import Iterator
from datetime import datetime

from duly import RESULT, App, Backoff, Blob, Job, PerKey, Snooze, Unique

jobs = App()


@jobs.task
def resize(photo: str, width: int = 100) -> int:
    return width


@jobs.task(queue="mail")
async def send_receipt(job: Job, order_id: int) -> str:
    return "sent"


def enqueueing() -> None:
    resize.enqueue(7)  # type: ignore[arg-type] # pyright: ignore
    resize.enqueue()  # type: ignore[call-arg] # pyright: ignore
    resize.enqueue("a.jpg", widht=3)  # type: ignore[call-arg] # pyright: ignore
    resize.draft(photo=1)  # type: ignore[arg-type] # pyright: ignore
    send_receipt.enqueue("seven")  # type: ignore[arg-type] # pyright: ignore
    resize.using(delay=30).enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(dealy="30s").enqueue("a.jpg")  # type: ignore[call-arg] # pyright: ignore
    resize.using(ordering_key=7).enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(batch="later").enqueue("a.jpg")  # type: ignore[call-arg] # pyright: ignore
    resize.using(unique_key=7).enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(idempotency_key=b"k").enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(version="3").enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(then=[resize]).enqueue("a.jpg")  # type: ignore[list-item] # pyright: ignore
    resize.using(then=resize.draft("a.jpg")).enqueue("a.jpg")  # type: ignore[arg-type] # pyright: ignore
    resize.using(then=[resize.draft(RESULT, widht=RESULT)])  # type: ignore[call-arg] # pyright: ignore
    resize.using(on_dead=[resize.draft(7)])  # type: ignore[arg-type] # pyright: ignore
    resize.using(app="sqlite:///eu.db")  # type: ignore[arg-type] # pyright: ignore
    resize.enqueue(Blob.of("a.jpg"))  # type: ignore[arg-type] # pyright: ignore
    jobs.once("k")  # type: ignore[call-arg] # pyright: ignore
    jobs.once("k", connection=None, keep=30)  # type: ignore[arg-type] # pyright: ignore
    resize.delay("a.jpg")  # type: ignore[attr-defined] # pyright: ignore
    resize.enqueue("a.jpg").result()  # type: ignore[call-arg] # pyright: ignore
    resize.enqueue("a.jpg").result(timeout=5)  # type: ignore[arg-type] # pyright: ignore
    text: str = resize.enqueue("a.jpg").result(timeout="5s")  # type: ignore[assignment] # pyright: ignore
    number: int = send_receipt.enqueue(7).result(timeout="5s")  # type: ignore[assignment] # pyright: ignore
    print(text, number)


async def awaiting() -> None:
    send_receipt.aenqueue(7)  # type: ignore[unused-coroutine] # pyright: ignore
    await send_receipt("seven")  # type: ignore[arg-type] # pyright: ignore


@jobs.task(timeout=30)  # type: ignore[call-overload, untyped-decorator] # pyright: ignore
def number_as_timeout() -> None: ...


@jobs.task(unique=7)  # type: ignore[call-overload, untyped-decorator] # pyright: ignore
def number_as_key() -> None: ...


Unique("key", scope="running")  # type: ignore[arg-type] # pyright: ignore
Unique("key", on_conflict="keep")  # type: ignore[arg-type] # pyright: ignore


@jobs.cron("0 9 * * *", tz="UTC")  # type: ignore[type-var] # pyright: ignore
@jobs.task
def needs_an_argument(order_id: int) -> None: ...


@jobs.tick("10s", source="select 1", key="order:{order_id}")  # type: ignore[type-var] # pyright: ignore
def no_task(order_id: int) -> None: ...


@send_receipt.guard  # type: ignore[arg-type] # pyright: ignore
async def other_parameters(customer_id: str) -> None: ...


@resize.guard  # type: ignore[arg-type, type-var] # pyright: ignore
def number_as_answer(photo: str, width: int = 100) -> int:
    return 7


jobs.cron("0 9 * * *")  # type: ignore[call-arg] # pyright: ignore
jobs.every(60)  # type: ignore[arg-type] # pyright: ignore
jobs.every("1h", overlap="both")  # type: ignore[arg-type] # pyright: ignore
jobs.schedule("nightly", resize, every="1h")  # type: ignore[arg-type] # pyright: ignore


@jobs.task(rate=5)  # type: ignore[call-overload, untyped-decorator] # pyright: ignore
def number_as_rate() -> None: ...


@jobs.task(uses=["stripe"])  # type: ignore[list-item] # pyright: ignore
def name_as_resource() -> None: ...


@jobs.task(batch=10)  # type: ignore[call-overload, untyped-decorator] # pyright: ignore
def later_option() -> None: ...


jobs.queue("sync", max_running="20")  # type: ignore[arg-type] # pyright: ignore
jobs.queue("sync", ordering="skip")  # type: ignore[arg-type] # pyright: ignore
jobs.queue("sync", when_full="drop")  # type: ignore[arg-type] # pyright: ignore
jobs.queue("sync", max_depth="9")  # type: ignore[arg-type] # pyright: ignore
jobs.resource("stripe", breaker=True)  # type: ignore[arg-type] # pyright: ignore
jobs.lock("import")  # type: ignore[call-arg] # pyright: ignore
PerKey(1)  # type: ignore[call-arg] # pyright: ignore


@jobs.task
def job_last(order_id: int, job: Job) -> None: ...


job_last.enqueue(order_id=7)  # type: ignore[call-arg] # pyright: ignore


@jobs.around  # type: ignore[type-var] # pyright: ignore
def around_without_job() -> Iterator[None]:
    yield


def ending() -> None:
    raise Snooze(30)  # type: ignore[arg-type] # pyright: ignore


Backoff(2)  # type: ignore[arg-type] # pyright: ignore
jobs.operate.run_at(7, "tomorrow")  # type: ignore[arg-type] # pyright: ignore
jobs.operate.pause("mail", lasting=30)  # type: ignore[arg-type] # pyright: ignore
moment: datetime = jobs.inspect.status().now.date()  # type: ignore[assignment] # pyright: ignore
