"""A shop whose jobs end in every way; what a handler waits for is a file in the folder that SHOP names."""

import os
from pathlib import Path

from duly import App, Breaker, Dead, Job, Skip, Snooze
from tests.waiting import wait_until

jobs = App()
mail = jobs.queue("mail", owner="growth@shop.example", wait_target="30s", max_depth=10_000)
billing = jobs.queue("billing", owner="money@shop.example", fair=True, tenant_max_running=5)
photos = jobs.queue("photos", owner="pictures@shop.example", max_running=20)
reports = jobs.queue("reports", owner="office@shop.example")
gateway = jobs.resource("gateway", max_running=10, rate="100/s burst 20", breaker=Breaker())


def there(name: str) -> bool:
    return (Path(os.environ["SHOP"]) / name).exists()


@jobs.task(queue=mail, attempts=1)
async def send_receipt(order_id: int, address: str) -> str:
    """Fails for an address without an @."""
    if "@" not in address:
        raise ValueError(f"order {order_id}: {address!r} is no mailbox")
    return f"sent to {address}"


@jobs.task(queue=billing, attempts=1, uses=[gateway])
async def charge(order_id: int, cents: int) -> str:
    """Fails, always."""
    raise ConnectionError("gateway.example answered 503: try again later")


@jobs.task(queue=billing, attempts=1)
async def refund(order_id: int, cents: int) -> str:
    """Fails until there is a file of this name."""
    if not there("refund"):
        raise PermissionError("the gateway refunds nothing today")
    return f"refunded {cents}"


@jobs.task(queue=billing, attempts=1)
async def weigh(parcel: str) -> None:
    raise LookupError("no scales are connected")


@jobs.task(queue=photos, attempts=3)
def resize(job: Job, photo: str, go: str) -> str:
    """Says how far it is, then waits for the file `go`, or for the worker's end."""
    job.progress(2, 5, f"{photo}: drawing")
    wait_until(lambda: there(go) or job.should_stop, timeout=600, what=f"the file {go}")
    job.progress(5, 5, "done")
    return f"/photos/{photo}"


@jobs.task(queue=photos, attempts=50)
async def fetch(url: str) -> None:
    """Is tried again later, always."""
    raise TimeoutError(f"{url} did not answer within 3 s")


@jobs.task(queue=mail)
async def remind(order_id: int) -> None:
    raise Snooze("2h", "the shop is closed")


@jobs.task(queue=mail)
async def greet(name: str) -> None:
    raise Skip(f"{name} has been greeted already")


@jobs.task(queue=reports, attempts=1)
async def report(day: str) -> None:
    raise Dead(f"no figures for {day}")


@jobs.task(queue=reports, ordering_key="order:{order_id}")
async def pack(order_id: int, part: int) -> None: ...


@jobs.task(queue=billing)
async def order(order_id: int) -> int:
    """Enqueues two others, so that there is a trace."""
    await send_receipt.aenqueue(order_id=order_id, address=f"buyer-{order_id}@shop.example")
    await remind.aenqueue(order_id=order_id)
    return order_id


@jobs.every("24h")
@jobs.task(queue=reports)
async def count_stock() -> None: ...


@jobs.cron("0 9 * * 1-5", tz="Europe/Berlin")
@jobs.task(queue=mail)
async def newsletter() -> None: ...
