"""Thousands of customers in turn, each within its plan, at an API that allows so much and is left alone while it fails.

CRM_URL=https://crm.example DULY_URL=postgresql://… duly worker sync:jobs
python sync.py nightly accounts.csv          a line for each account: CUSTOMER,NUMBER
python sync.py upgrade acme 20               at most 20 at once from now on, and five turns in each round
"""

import os
import sys
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

import aiohttp

from duly import App, Backoff, Breaker, Job, Snooze

CRM_URL = os.environ.get("CRM_URL", "http://127.0.0.1:8080")
LEFT = Path(os.environ.get("DATA", ".")) / "left"  # who is no customer any more; yours is a table

jobs = App()
crm = jobs.resource(
    "crm-api",
    max_running=40,
    rate="100/s burst 20",
    breaker=Breaker(failures=0.5, min_calls=20, cool_down="2s"),
)
sync = jobs.queue(
    "sync",
    owner="platform@saas",
    wait_target="2m",
    fair=True,
    tenant_max_running=5,
    tenant_rate="10/s",
    max_depth=2_000_000,
    when_full="slow",
)


class Crm:
    """One session for each process that runs handlers."""

    session: aiohttp.ClientSession


@jobs.lifespan
async def connected() -> AsyncIterator[None]:
    async with aiohttp.ClientSession(CRM_URL, timeout=aiohttp.ClientTimeout(total=60)) as Crm.session:
        yield


@jobs.task(
    queue=sync,
    timeout="2m",
    backoff=Backoff("1s", factor=2, cap="10m"),
    uses=[crm],
    tenant="{customer}",
    ordering_key="account:{account}",
)
async def sync_account(job: Job, customer: str, account: int) -> str:
    headers = {"Customer": customer, "Idempotency-Key": job.effect_key("crm")}
    async with Crm.session.post(f"/accounts/{account}", headers=headers) as answer:
        if answer.status == 429:  # concerns the whole fleet, not this job
            wait = timedelta(seconds=float(answer.headers["Retry-After"]))
            await crm.ahold(wait, "429")
            raise Snooze(wait, "429")
        # 5xx: tried again, and counted by the breaker. Other 4xx: an answer, so the job is dead.
        answer.raise_for_status()
        return await answer.text()


@sync_account.guard
def still_a_customer(customer: str, account: int) -> str | None:
    if LEFT.exists() and customer in LEFT.read_text().split():
        return f"{customer} has left, with account {account}"
    return None


def nightly(accounts: Iterable[tuple[str, int]]) -> None:
    jobs.enqueue_many(sync_account.draft(customer, account) for customer, account in accounts)


async def now(customer: str, account: int) -> int:
    """What a button does: before the customer's own nightly ones, and before nobody else's."""
    return (await sync_account.using(priority=10).aenqueue(customer, account)).id


def upgrade(customer: str, max_running: int) -> None:
    # Data, not code: thousands of customers have plans.
    jobs.operate.tenant(customer, weight=5, max_running=max_running)


def main(verb: str, *said: str) -> None:
    if verb == "nightly":
        rows = (line.split(",") for line in Path(said[0]).read_text().splitlines())
        nightly((customer, int(account)) for customer, account in rows)
    else:
        upgrade(said[0], int(said[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
