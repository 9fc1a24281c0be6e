"""The SaaS program: what an outside API sees of a fleet with thousands of customers, on both stores."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from aiohttp import web

from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from tests.examples.programs import EXAMPLES, load, run
from tests.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

FOLDER, APP = "saas", "sync:jobs"
CUSTOMERS = 5_000


class Call(NamedTuple):
    at: float
    customer: str
    account: int
    key: str
    status: int


class Api:
    """An API on a loop and a thread of its own, which notes who is inside; it answers after `takes` seconds."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.takes = 0.05
        self.failing = False
        self.throttle = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    async def answer(self, request: web.Request) -> web.Response:
        customer = request.headers["Customer"]
        status = 503 if self.failing else 200
        if self.throttle:
            self.throttle -= 1
            status = 429
        key = request.headers["Idempotency-Key"]
        self.calls.append(Call(time.monotonic(), customer, int(request.match_info["account"]), key, status))
        for name in (customer, "all"):
            self.inside[name] += 1
            self.most[name] = max(self.most[name], self.inside[name])
        done = self._loop.create_future()
        self._loop.call_later(self.takes, done.set_result, None)
        await done
        for name in (customer, "all"):
            self.inside[name] -= 1
        return web.Response(status=status, text="in step", headers={"Retry-After": "2"})

    @contextmanager
    def serving(self) -> Iterator[str]:
        app = web.Application()
        app.router.add_post("/accounts/{account}", self.answer)
        runner = web.AppRunner(app)
        self._thread.start()

        async def start() -> int:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port: int = runner.addresses[0][1]
            return port

        try:
            yield f"http://127.0.0.1:{asyncio.run_coroutine_threadsafe(start(), self._loop).result(30)}"
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result(30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(30)
            self._loop.close()

    def wait_calls(self, count: int) -> list[Call]:
        return wait_until(
            lambda: self.calls[:count] if len(self.calls) >= count else [], timeout=90, what=f"{count} calls"
        )


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    made = Api()
    with made.serving() as url:
        monkeypatch.setenv("CRM_URL", url)
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def sync(
    request: pytest.FixtureRequest, api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    monkeypatch.setenv("DULY_URL", request.getfixturevalue(f"{request.param}_url"))
    monkeypatch.setenv("DATA", str(tmp_path))
    run(FOLDER, "duly.cli.main", "migrate", "sync")
    program = load(FOLDER, "sync")
    yield program
    program.jobs.close()


@contextmanager
def fleet(tmp_path: Path) -> Iterator[None]:
    """Two worker processes; stopped as a deploy would."""
    log = tmp_path / "worker.log"
    with log.open("wb") as stream:
        worker = subprocess.Popen(
            [sys.executable, "-m", "duly.cli.main", "worker", APP, "--processes", "2", "--grace", "5s"],
            cwd=EXAMPLES / FOLDER,
            env=os.environ.copy(),
            stdout=stream,
            stderr=stream,
        )
    try:
        yield
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0, log.read_text()
    finally:
        worker.kill()
        worker.wait()


def enqueue(sync: ModuleType, accounts: list[tuple[str, int]]) -> None:
    sync.jobs.enqueue_many(sync.sync_account.draft(customer, account) for customer, account in accounts)


def records(sync: ModuleType) -> list[JobRecord]:
    found: list[JobRecord] = []
    after: int | None = 0
    while after is not None:
        page = sync.jobs.store.inspection.page(Filter(), after=after, limit=1_000)
        found += page.jobs
        after = page.next
    return found


def all_ended(sync: ModuleType) -> list[JobRecord]:
    def look() -> list[JobRecord]:
        rows = records(sync)
        return rows if all(row.state in {State.completed, State.skipped} for row in rows) else []

    return wait_until(look, timeout=90, what="the end of all jobs")


def test_five_thousand_customers_are_served_in_turn_within_rate_and_caps(
    sync: ModuleType, api: Api, tmp_path: Path
) -> None:
    accounts = tmp_path / "accounts.csv"
    customers = [f"customer-{number}" for number in range(CUSTOMERS)]
    rows = [f"whale,{number}" for number in range(1_000)]
    rows += [f"{name},{number}" for number, name in enumerate(customers, 1_000)]
    accounts.write_text("\n".join(rows))
    run(FOLDER, "sync", "nightly", str(accounts))

    with fleet(tmp_path):
        calls = api.wait_calls(300)

    assert len(records(sync)) == 1_000 + CUSTOMERS
    # The whale came first with a thousand, and has had its turns only.
    served = Counter(call.customer for call in calls)
    assert served["whale"] <= 20, served.most_common(5)
    assert len(served) >= 250
    assert api.most["all"] <= 40
    assert max(count for name, count in api.most.items() if name != "all") <= 5
    # 100 a second and 20 more at once; a claim and its call are some milliseconds apart.
    moments = [call.at for call in calls]
    assert moments[-1] - moments[0] > 2
    assert max(sum(start <= other < start + 1 for other in moments) for start in moments) <= 120 + 40


def test_a_customer_alone_has_what_its_plan_says(sync: ModuleType, api: Api, tmp_path: Path) -> None:
    api.takes = 0.4
    (tmp_path / "left").write_text("gone\n")
    enqueue(sync, [("small", number) for number in range(15)])
    enqueue(sync, [("big", number) for number in range(100, 160)])
    enqueue(sync, [("gone", 999)])
    run(FOLDER, "sync", "upgrade", "big", "20")
    urgent = asyncio.run(sync.now("small", 50))

    with fleet(tmp_path):
        ended = all_ended(sync)

    assert api.most["small"] == 5
    assert 5 < api.most["big"] <= 20
    assert api.most["all"] <= 40
    assert [(row.state, row.reason) for row in ended if row.tenant == "gone"] == [
        (State.skipped, "guard still_a_customer: gone has left, with account 999")
    ]
    small = sorted(
        (row for row in ended if row.tenant == "small"), key=lambda row: row.started_at or row.enqueued_at
    )
    assert urgent in {row.id for row in small[:5]}


def test_an_api_that_asks_for_a_rest_gets_it_from_the_whole_fleet(
    sync: ModuleType, api: Api, tmp_path: Path
) -> None:
    api.throttle = 1
    enqueue(sync, [(f"customer-{number}", number) for number in range(150)])

    with fleet(tmp_path):
        ended = all_ended(sync)

    assert sum(row.counters.snoozed for row in ended) == 1
    assert sum(row.counters.failed for row in ended) == 0
    moments = [call.at for call in api.calls]
    assert max(later - earlier for earlier, later in pairwise(moments)) > 1.5
    # The same request again is told as such.
    (throttled,) = [call for call in api.calls if call.status == 429]
    (again,) = [call for call in api.calls if (call.account, call.status) == (throttled.account, 200)]
    assert again.key == throttled.key


def test_an_api_that_fails_is_left_alone_until_one_try_succeeds(
    sync: ModuleType, api: Api, tmp_path: Path
) -> None:
    api.failing = True
    enqueue(sync, [(f"customer-{number}", number) for number in range(400)])

    def breaker() -> tuple[str, int]:
        (limit,) = sync.jobs.inspect.limits(["resource:crm-api"])
        return limit.breaker, limit.running

    with fleet(tmp_path):
        wait_until(lambda: breaker() == ("open", 0), timeout=60, what="the breaker to open")
        opened = len(api.calls)
        api.wait_calls(opened + 1)
        before = time.monotonic()
        api.wait_calls(opened + 5)
        took = time.monotonic() - before
        waiting = Counter(row.state for row in records(sync))
        api.failing = False
        ended = all_ended(sync)

    # Workers tell within a second what they saw; then one job tries after each cool-down, or two that meet.
    assert opened < 350
    assert took > 3
    assert waiting[State.running] <= 1
    failed = [call for call in api.calls if call.status == 503]
    assert sum(row.counters.failed for row in ended) == len(failed)
    assert {row.state for row in ended} == {State.completed}
    assert breaker() == ("closed", 0)
