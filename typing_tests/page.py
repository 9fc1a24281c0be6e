"""The page of the manual that shows everything at once. Both checkers must find nothing. Never run."""

from typing import Any

from duly import RESULT, App, Backoff, Blob, Job, Retry, Skip, Snooze

sessions: Any = None


class UnknownAccount(Exception): ...


jobs = App(include=["shop.tasks"])  # DULY_URL at first use; opens nothing here

mail = jobs.queue("mail", owner="growth@shop")


@jobs.task(
    queue=mail,
    timeout="30s",
    attempts=10,
    backoff=Backoff("2s", factor=3, cap="15m"),
    permanent=(UnknownAccount,),
)
async def send_receipt(job: Job, order_id: int) -> str:  # job: first, or absent
    if job.should_stop:
        raise Snooze("10s")  # endings are raised: Snooze Skip Retry Dead
    if order_id == 0:
        raise Skip("no such order")
    if job.attempt == 1:
        raise Retry("10s", "warming up")
    async with sessions.begin() as session:
        await job.acomplete("sent", connection=session)  # completion in the user's commit, fenced
    return "sent"


@jobs.task(unique="order:{order_id}")  # at most one waits per order
def archive(order_id: int, receipt: str) -> None: ...


@jobs.cron("0 9 * * 1-5", tz="Europe/Berlin")  # the task must have no required argument
@jobs.task
def digest() -> None: ...


@jobs.tick(
    "10s", source="select order_id from ready_orders", key="ship:{order_id}"
)  # a job for each row, once
@jobs.task
def ship(order_id: int) -> None: ...


@jobs.task
def load(data: Blob) -> None: ...  # a file too large for the arguments


async def program(ids: list[int], session: Any) -> None:
    await send_receipt(7)  # a function still (local Job)
    send_receipt.enqueue(order_id=7)  # Enqueued: id, outcome, result(timeout=)
    await send_receipt.aenqueue(order_id=7)
    send_receipt.using(
        delay="2d",
        tenant="acme",
        idempotency_key="receipt:7",  # a repeat returns the first job
        then=[archive.draft(7, RESULT)],  # stored in the transaction that completes it
    ).enqueue(order_id=7)
    jobs.schedule("order-7", ship.draft(7), cron="@daily", tz="UTC")  # at run time, stored
    load.enqueue(Blob.of("/data/big.npy"))
    send_receipt.using(app=jobs.at("postgresql://eu/db")).enqueue(order_id=7)  # another store
    with session.begin():  # any connection the caller has
        if not jobs.once("webhook:7", connection=session):  # true the first time
            return
        send_receipt.using(connection=session).enqueue(order_id=7)
    jobs.enqueue_many(send_receipt.draft(i) for i in ids)  # list[Enqueued], one per position


async def opened() -> None:
    async with jobs:  # optional open and close; `with jobs:` too
        await jobs.operate.apause("mail", lasting="30m", reason="INC-311")


if __name__ == "__main__":
    jobs.run_worker()  # usually `duly worker`
