"""Real processes: one is killed in the middle of sending, and the next sends under the same id; a server looks, too."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from duly import App
from duly.alerts import Webhook
from duly.alerts.watch import AlertWatch
from duly.core.job import ClaimRequest, NewJob, QueueClaim, WorkerInfo
from duly.core.lifecycle import Event, State
from duly.stores.open import open_store
from duly.testing.conformance.bench import ended
from tests.alerts.servers import receiver
from tests.waiting import wait_until

pytestmark = pytest.mark.process


def die(url: str) -> None:
    """A job of this store goes dead, now."""
    store = open_store(url)
    store.schema.migrate()
    second = timedelta(seconds=1)
    info = WorkerInfo("here", 1, "here:1", ("mail",), {"send": 900 * second}, 30 * second, 5 * second, 1, "0")
    worker = store.leases.register(info)
    store.jobs.enqueue([NewJob(queue="mail", task="send", args=b"{}")])
    claimed = store.jobs.exchange(worker, [], ClaimRequest((QueueClaim("mail", 1),), 1)).claimed
    store.jobs.exchange(worker, [ended(job, Event.fail, State.dead, reason="no") for job in claimed], None)
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_while_the_sink_holds_the_line_it_is_sent_again_under_its_id(
    request: pytest.FixtureRequest, kind: str
) -> None:
    url: str = request.getfixturevalue(f"{kind}_url")
    die(url)
    held = threading.Event()
    with receiver() as hook:
        hook.hold = held
        sender = _sender(url, hook.url)
        wait_until(lambda: hook.requests, timeout=60, what="the first try")
        sender.kill()
        sender.wait()
        held.set()
        hook.hold = None
        # As another process a minute and a half later.
        app = App(url)
        app.client.clock = _later(timedelta(seconds=90))
        watch = AlertWatch(app.client, {"page": Webhook(hook.url)})
        for _ in range(3):
            watch.round(always=True)
        app.close()

    told = [one for one in hook.requests if one.json["data"]["rule"] == "dead-letter"]
    assert [one.headers["webhook-id"] for one in told] == [told[0].headers["webhook-id"]] * 2


def _sender(url: str, hook: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "duly.cli.main", "check", "--alerts", "--url", url],
        env={**os.environ, "DULY_ALERTS": f"page=webhook+{hook}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _later(by: timedelta) -> Callable[[], datetime]:
    return lambda: datetime.now(UTC) + by


def test_a_server_looks_too_where_no_worker_runs(sqlite_url: str) -> None:
    die(sqlite_url)
    port = str(free_port())
    with receiver() as hook:
        server = subprocess.Popen(
            [sys.executable, "-m", "duly.cli.main", "serve", "--open", "--port", port, "--url", sqlite_url],
            env={**os.environ, "DULY_ALERTS": f"page=webhook+{hook.url}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: hook.requests, timeout=60, what="a notification")
        finally:
            server.terminate()
            server.wait(30)

    assert hook.requests[0].json["data"]["rule"] == "dead-letter"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
