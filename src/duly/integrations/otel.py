"""OpenTelemetry for an App: spans around its enqueues and its attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from duly.app import App
from duly.core.errors import UsageError
from duly.telemetry.otel import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


def instrument(jobs: App, *, tracer_provider: TracerProvider | None = None) -> None:
    """Trace every enqueue and every attempt; write it below `jobs = App()`, so that worker processes do so, too.

    Without an SDK it costs next to nothing and hands on the trace of the request. UsageError at the second call.
    """
    if jobs.client.tracer is not None:
        raise UsageError("this App is traced already; call instrument(jobs) once, where the App is made")
    tracing = Tracing(tracer_provider)
    jobs.client.tracer = tracing

    def flushed() -> Iterator[None]:
        yield
        tracing.flush()

    # Outermost: what the App's own around functions do belongs to the span.
    jobs.around_functions.insert(0, tracing.around)
    jobs.lifespan_functions.insert(0, flushed)
