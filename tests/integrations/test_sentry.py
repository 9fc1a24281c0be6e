"""Sentry, with its real SDK: what is reported of a failed attempt, and what is not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from duly import App, Backoff, Dead, Job, Retry, Skip, Snooze, UsageError
from duly.sentry import instrument
from duly.telemetry import context
from tests.waiting import await_until

pytestmark = pytest.mark.asyncio
SOON = Backoff("0s", jitter=False)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Kept(Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[tuple[str, dict[str, Any]]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            data = item.get_bytes()
            if item.headers.get("content_encoding") == "gzip":
                data = gzip.decompress(data)
            self.items.append((item.headers["type"], json.loads(data)))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [body for found, body in self.items if found == kind]


@pytest.fixture
def sent() -> Iterator[Kept]:
    kept = Kept()
    sentry_sdk.init(
        dsn="https://key@127.0.0.1/1",
        transport=kept,
        traces_sample_rate=1.0,
        default_integrations=False,
        auto_enabling_integrations=False,
    )
    yield kept
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture(params=["sqlite", "postgres"])
def jobs(request: pytest.FixtureRequest, sent: Kept) -> Iterator[App]:
    app = App(request.getfixturevalue(f"{request.param}_url"), backoff=SOON)
    app.store.schema.migrate()
    instrument(app)
    yield app
    app.close()


async def test_each_failure_is_an_event_with_its_job_and_adds_no_arguments(jobs: App, sent: Kept) -> None:
    @jobs.task
    def pay(job: Job, card: str) -> None:
        if job.attempt < 3:
            raise ValueError("declined")

    async with jobs, jobs.working():
        enqueued = await pay.using(correlation_id="order-7", tenant="acme").aenqueue("4242-4242")
        await await_until(lambda: len(sent.of("transaction")) == 3)

    first, second = sent.of("event")
    assert first["exception"]["values"][0]["type"] == "ValueError"
    assert [event["contexts"]["duly"]["attempt"] for event in (first, second)] == [1, 2]
    assert first["contexts"]["duly"]["job_id"] == str(enqueued.id)
    assert first["tags"] == {
        "duly.task": "pay",
        "duly.queue": "default",
        "duly.tenant": "acme",
        "duly.correlation_id": "order-7",
    }
    # Stack frames are Sentry's own: their local variables go by its include_local_variables.
    assert "4242" not in json.dumps({**first, "exception": None})


async def test_an_attempt_is_a_transaction_in_the_trace_of_its_request(jobs: App, sent: Kept) -> None:
    @jobs.task
    async def send() -> None: ...

    token = context.traceparent.set(f"00-{TRACE}-00f067aa0ba902b7-01")
    async with jobs, jobs.working():
        enqueued = await send.aenqueue()
        await await_until(lambda: sent.of("transaction"))
    context.traceparent.reset(token)

    (transaction,) = sent.of("transaction")
    traced = transaction["contexts"]["trace"]
    assert (transaction["transaction"], traced["op"]) == ("send", "queue.process")
    assert (traced["trace_id"], traced["parent_span_id"]) == (TRACE, "00f067aa0ba902b7")
    assert traced["data"]["messaging.message.id"] == str(enqueued.id)
    assert traced["data"]["messaging.destination.name"] == "default"
    assert traced["data"]["messaging.message.retry.count"] == 0
    assert traced["data"]["messaging.message.receive.latency"] >= 0


async def test_what_a_handler_says_of_its_end_is_no_error_but_for_giving_up(jobs: App, sent: Kept) -> None:
    endings = [Snooze("0s"), Retry("0s"), Skip("nobody wants it")]

    @jobs.task
    async def polite() -> None:
        raise endings.pop(0)

    @jobs.task
    def hopeless() -> None:
        raise Dead("no such account")

    async with jobs, jobs.working():
        await polite.aenqueue()
        await hopeless.aenqueue()
        await await_until(lambda: len(sent.of("transaction")) == 4)

    (event,) = sent.of("event")
    assert event["exception"]["values"][0]["type"] == "Dead"
    assert event["tags"]["duly.task"] == "hopeless"


async def test_an_app_reports_once(jobs: App) -> None:
    with pytest.raises(UsageError, match="already"):
        instrument(jobs)
