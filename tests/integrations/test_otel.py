"""Traces through the queue, on every store, with the real SDK: one trace, the right parents, links and names."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from duly import App, Backoff, Dead, Job, KeyReused, Skip, Snooze, UsageError
from duly.core.trace import parent_of, traceparent_of
from duly.otel import instrument
from duly.telemetry import context
from tests.waiting import await_until

pytestmark = pytest.mark.asyncio
SOON = Backoff("0s", jitter=False)
REMOTE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass
class Traced:
    jobs: App
    provider: TracerProvider
    exporter: InMemorySpanExporter

    def spans(self, name: str) -> list[ReadableSpan]:
        """By that name, in the order of their ends."""
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture(params=["sqlite", "postgres"])
def traced(request: pytest.FixtureRequest) -> Iterator[Traced]:
    app = App(request.getfixturevalue(f"{request.param}_url"), backoff=SOON)
    app.store.schema.migrate()
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(app, tracer_provider=provider)
    yield Traced(app, provider, exporter)
    app.close()
    provider.shutdown()


def id_of(span: ReadableSpan) -> tuple[int, int]:
    found = span.get_span_context()
    assert found is not None
    return found.trace_id, found.span_id


def parent_of_span(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_one_trace_leads_from_the_request_through_the_queue_to_the_children(traced: Traced) -> None:
    jobs = traced.jobs

    @jobs.task
    def thumbnail(size: int) -> None:
        with traced.provider.get_tracer("the application").start_as_current_span("resize"):
            pass

    @jobs.task
    async def photo() -> None:
        await jobs.aenqueue_many([thumbnail.draft(1), thumbnail.draft(2)])

    async with jobs, jobs.working():
        with traced.provider.get_tracer("the application").start_as_current_span("POST /photos"):
            enqueued = await photo.aenqueue()
        await await_until(lambda: len(traced.spans("process default")) == 3)

    (request,) = traced.spans("POST /photos")
    send, batch = sorted(traced.spans("send default"), key=lambda span: span.start_time or 0)
    first, *children = sorted(traced.spans("process default"), key=lambda span: span.start_time or 0)
    assert parent_of_span(send) == id_of(request)
    assert parent_of_span(first) == id_of(send)
    assert links_of(first) == [id_of(send)]
    assert parent_of_span(batch) == id_of(first)
    assert [parent_of_span(child) for child in children] == [id_of(batch)] * 2
    assert {parent_of_span(span) for span in traced.spans("resize")} == {id_of(child) for child in children}
    assert {id_of(span)[0] for span in traced.exporter.get_finished_spans()} == {id_of(request)[0]}
    assert (send.kind, first.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    record = (await jobs.inspect.ajob(enqueued.id)).job
    assert traceparent_of(record.trigger) == f"00-{id_of(send)[0]:032x}-{id_of(send)[1]:016x}-01"
    families = [
        parent_of(row.trigger) for row in (await jobs.inspect.ajobs()).jobs if row.task == "thumbnail"
    ]
    assert families == [enqueued.id, enqueued.id]


async def test_spans_say_what_the_conventions_ask_for(traced: Traced) -> None:
    @traced.jobs.task
    async def send(text: str) -> None: ...

    async with traced.jobs, traced.jobs.working():
        enqueued = await send.using(correlation_id="order-7").aenqueue("hello")
        await await_until(lambda: traced.spans("process default"))

    (sent,), (processed,) = traced.spans("send default"), traced.spans("process default")
    both = {
        "messaging.system": "duly",
        "messaging.destination.name": "default",
        "messaging.message.id": str(enqueued.id),
        "messaging.message.conversation_id": "order-7",
        "duly.task": "send",
    }
    assert dict(sent.attributes or {}) == both | {
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.message.body.size": len(b'{"text":"hello"}'),
    }
    assert dict(processed.attributes or {}) == both | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "duly.attempt": 1,
    }
    assert processed.status.status_code is StatusCode.UNSET


async def test_each_further_attempt_is_linked_to_the_enqueue_and_the_failure_is_an_error(
    traced: Traced,
) -> None:
    @traced.jobs.task
    def flaky(job: Job) -> None:
        if job.attempt < 3:
            raise ValueError("not yet")

    async with traced.jobs, traced.jobs.working():
        await flaky.aenqueue()
        await await_until(lambda: len(traced.spans("process default")) == 3)

    (sent,) = traced.spans("send default")
    attempts = traced.spans("process default")
    assert [(span.attributes or {})["duly.attempt"] for span in attempts] == [1, 2, 3]
    assert [links_of(span) for span in attempts] == [[id_of(sent)]] * 3
    assert [span.status.status_code for span in attempts] == [
        StatusCode.ERROR,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]
    assert [event.name for event in attempts[0].events] == ["exception"]
    assert (attempts[0].attributes or {})["error.type"] == "ValueError"


async def test_a_snooze_and_a_skip_are_no_errors_and_a_burial_is_one(traced: Traced) -> None:
    waits = [Snooze("0s"), Skip("nobody wants it")]

    @traced.jobs.task
    async def polite() -> None:
        raise waits.pop(0)

    @traced.jobs.task
    def hopeless() -> None:
        raise Dead("no such account")

    async with traced.jobs, traced.jobs.working():
        await polite.aenqueue()
        await await_until(lambda: len(traced.spans("process default")) == 2)
        await hopeless.aenqueue()
        await await_until(lambda: len(traced.spans("process default")) == 3)

    found = [
        ((span.attributes or {})["duly.ending"], span.status.status_code)
        for span in traced.spans("process default")
    ]
    assert found == [
        ("snooze", StatusCode.UNSET),
        ("skip", StatusCode.UNSET),
        ("dead", StatusCode.ERROR),
    ]


async def test_an_enqueue_that_fails_is_an_error_and_a_repeated_one_says_so(traced: Traced) -> None:
    @traced.jobs.task
    async def send(number: int) -> None: ...

    once = send.using(idempotency_key="k")
    await once.aenqueue(1)
    await once.aenqueue(1)
    with pytest.raises(KeyReused):
        await once.aenqueue(2)

    first, again, refused = traced.spans("send default")
    assert "duly.duplicates" not in (first.attributes or {})
    assert (again.attributes or {})["duly.duplicates"] == 1
    assert refused.status.status_code is StatusCode.ERROR


async def test_the_traceparent_that_middleware_took_is_the_parent_where_no_span_is_open(
    traced: Traced,
) -> None:
    @traced.jobs.task
    async def send() -> None: ...

    token = context.traceparent.set(REMOTE)
    await send.aenqueue()
    context.traceparent.reset(token)

    (sent,) = traced.spans("send default")
    assert parent_of_span(sent) == (0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7)


async def test_without_an_sdk_the_trace_of_the_request_goes_on(jobs_without_sdk: App) -> None:
    @jobs_without_sdk.task
    async def send() -> None: ...

    plain = await send.aenqueue()
    token = context.traceparent.set(REMOTE)
    traced = await send.aenqueue()
    context.traceparent.reset(token)

    triggers = [(await jobs_without_sdk.inspect.ajob(one.id)).job.trigger for one in (plain, traced)]
    assert triggers == [None, f"trace:{REMOTE}"]


@pytest.fixture
def jobs_without_sdk(sqlite_url: str) -> Iterator[App]:
    app = App(sqlite_url)
    instrument(app, tracer_provider=trace.NoOpTracerProvider())
    yield app
    app.close()


async def test_an_app_is_traced_once(jobs_without_sdk: App) -> None:
    with pytest.raises(UsageError, match="traced already"):
        instrument(jobs_without_sdk)


APP = """
import os
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from duly import App
from duly.otel import instrument

out = open(Path(os.environ["SPANS"]) / f"{os.getpid()}.jsonl", "a", buffering=1)
provider = TracerProvider()
# An hour between exports: only a flush brings the spans out.
exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
jobs = App()
instrument(jobs, tracer_provider=provider)

@jobs.task
async def looped() -> None: ...

@jobs.task
def threaded() -> None: ...

@jobs.task(isolation="process")
def isolated() -> None: ...

if __name__ == "__main__":
    for task in (looped, threaded, isolated):
        task.enqueue()
    provider.force_flush()
"""


def spans_of_processes(folder: Path, url: str) -> list[dict[str, Any]]:
    """What a program that enqueues and a worker leave behind."""
    (folder / "traced_shop.py").write_text(APP)
    environment = {**os.environ, "DULY_URL": url, "SPANS": str(folder), "PYTHONPATH": str(folder)}
    worker = [sys.executable, "-m", "duly.cli.main", "worker", "traced_shop:jobs", "--until-idle"]
    for command in ([sys.executable, str(folder / "traced_shop.py")], worker):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    return [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]


@pytest.mark.process
async def test_worker_processes_of_every_kind_hand_over_their_spans_before_they_end(
    tmp_path: Path, sqlite_url: str
) -> None:
    spans = await asyncio.to_thread(spans_of_processes, tmp_path, sqlite_url)

    sent = {span["context"]["span_id"]: span for span in spans if span["name"] == "send default"}
    processed = {span["attributes"]["duly.task"]: span for span in spans if span["name"] == "process default"}
    assert set(processed) == {"looped", "threaded", "isolated"}
    assert {span["parent_id"] for span in processed.values()} == set(sent)
