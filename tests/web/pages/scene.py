"""A store with tenants, keys, limits, schedules, workers and alerts, as a night may bring them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from duly import App, Breaker
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import told
from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, QueueClaim, WorkerInfo
from duly.worker.registration import declare as declare_in_store
from tests.web.conftest import Place, Serving

HOSTILE = "<script>alert(1)</script>\u202e'\"&"
"""Text that would be run, or turned round, if it got onto a page as it is."""
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Night(Place):
    """A place with what the pages show."""

    def worker(self, *queues: str, host: str = "vm-1", slots: int = 10) -> Incarnation:
        tasks = dict.fromkeys(self.app.client.registry.tasks, MINUTE)
        info = WorkerInfo(
            host,
            4711,
            f"{host}:4700",
            queues or ("mail", "sync"),
            tasks,
            30 * SECOND,
            5 * SECOND,
            slots,
            "1.2",
        )
        return self.app.store.leases.register(info)

    def claim(self, owner: Incarnation, queue: str, count: int = 1) -> list[ClaimedJob]:
        request = ClaimRequest((QueueClaim(queue, count, fair=queue == "sync"),), count)
        return list(self.app.store.jobs.exchange(owner, [], request).claimed)

    def die(self, owner: Incarnation, jobs: list[ClaimedJob], why: str = "no such account") -> None:
        policy = Policy(10, self.app.client.backoff, 10)
        error = told("UnknownAccount", why)
        ends = [failed(job, Verdict("permanent"), policy, 0.5, error, timedelta(0)) for job in jobs]
        self.app.store.jobs.exchange(owner, ends, None)

    def acts(self, verb: str | None = None) -> list[tuple[str, str, str]]:
        """Who did what, and why, the newest first; without what the test itself has arranged."""
        found = self.app.store.audits.page(verb=verb)
        return [(one.actor[:5], one.target, one.reason) for one in found if one.actor != "tester"]


def declare(app: App) -> None:
    app.queue("mail", owner="growth@shop", max_running=20)
    app.queue("sync", fair=True, tenant_max_running=5)
    smtp = app.resource("smtp", max_running=4, rate="100/s burst 20", breaker=Breaker())

    @app.task(queue="mail", uses=[smtp])
    async def send(order_id: int = 0) -> None: ...

    @app.task(queue="mail", ordering_key="{account}")
    async def apply(account: str, change: int = 0) -> None: ...

    @app.task(queue="sync", tenant="{tenant}")
    async def push(tenant: str) -> None: ...

    @app.cron("30 7 * * 1-5", tz="Europe/Lisbon")
    @app.task(queue="mail")
    async def digest() -> None: ...

    @app.every("10m")
    @app.task(queue="sync")
    async def refresh() -> None: ...


@contextmanager
def night(url: str) -> Iterator[Night]:
    app = App(url)
    declare(app)
    app.store.schema.migrate()
    declare_in_store(app)
    web = app.asgi()
    with ExitStack() as stack, Serving(web) as serving:
        yield Night(app, serving, stack, web.state.site)
        stack.close()
    app.close()


def clean(text: str) -> bool:
    """Whether nothing of HOSTILE got onto a page as it is."""
    return "<script>alert" not in text and "\u202e" not in text
