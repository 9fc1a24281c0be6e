"""Spans of OpenTelemetry: one for each enqueue, one for each attempt, in one trace from the request to the last child.

Names and attributes are those of the messaging conventions. Needs the extra `otel`, which is the API alone: whoever
wants spans kept configures an SDK. Knows neither an App nor a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from duly.core.endings import Dead, Retry, Skip, Snooze, unwrap_ending
from duly.core.fingerprint import describe
from duly.core.lifecycle import Outcome
from duly.core.secret import masked
from duly.telemetry import context

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from duly.core.job import NewJob, Stored

SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
SYSTEM: Final = "duly"

_HEADERS: Final = TraceContextTextMapPropagator()
_SAMPLED: Final = trace.TraceFlags.SAMPLED
Attributes = dict[str, str | int | bool]


class Handled(Protocol):
    """What a span needs of the job whose attempt begins."""

    task: str
    queue: str
    attempt: int
    correlation_id: str
    traceparent: str | None

    @property
    def id(self) -> int | str: ...


class Sent:
    """One enqueue under way, as the marking of its jobs sees it."""

    def __init__(self, span: Span) -> None:
        self._span = span
        found = span.get_span_context()
        self.traceparent: str | None = None
        if found.is_valid:
            flags = found.trace_flags & _SAMPLED
            self.traceparent = f"00-{found.trace_id:032x}-{found.span_id:016x}-{flags:02x}"

    def stored(self, stored: Sequence[Stored]) -> None:
        if len(stored) == 1:
            self._span.set_attribute("messaging.message.id", str(stored[0].id))
        duplicates = sum(1 for one in stored if one.outcome is Outcome.duplicate)
        if duplicates:
            # Another job stands for these: no span of theirs will follow.
            self._span.set_attribute("duly.duplicates", duplicates)


class Tracing:
    """Spans of one App. Any thread may call it."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self.provider = provider
        self._tracer = trace.get_tracer("duly", version("duly"), provider, SCHEMA)

    @contextmanager
    def sending(self, jobs: Sequence[NewJob]) -> Iterator[Sent]:
        """A producer's span around one round trip; inside, its context is the current one."""
        queues, tasks = {job.queue for job in jobs}, {job.task for job in jobs}
        attributes = _attributes("send", queues.copy().pop() if len(queues) == 1 else None)
        if len(tasks) == 1:
            attributes["duly.task"] = jobs[0].task
        if len(jobs) == 1:
            attributes["messaging.message.body.size"] = len(jobs[0].args)
            if jobs[0].correlation_id is not None:
                attributes["messaging.message.conversation_id"] = jobs[0].correlation_id
        else:
            attributes["messaging.batch.message_count"] = len(jobs)
        with self._tracer.start_as_current_span(
            _named("send", attributes), _request(), SpanKind.PRODUCER, attributes
        ) as span:
            yield Sent(span)

    def around(self, job: Handled) -> Iterator[None]:
        """A consumer's span around one attempt: a generator as `App.around` takes them.

        It is a child of the enqueue's span and linked to it, as every further attempt is: a trace shows them all.
        """
        created = _extracted(job.traceparent)
        source = trace.get_current_span(created).get_span_context()
        attributes = _attributes("process", job.queue)
        attributes |= {
            "messaging.message.id": str(job.id),
            "messaging.message.conversation_id": job.correlation_id,
            "duly.task": job.task,
            "duly.attempt": job.attempt,
        }
        span = self._tracer.start_span(
            _named("process", attributes),
            created,
            SpanKind.CONSUMER,
            attributes,
            [Link(source)] if source.is_valid else None,
        )
        token = contexts.attach(trace.set_span_in_context(span, created))
        try:
            yield
        except BaseException as error:
            _note(span, error)
            raise
        finally:
            contexts.detach(token)
            span.end()

    def flush(self) -> None:
        """Have the SDK hand over what it holds; worker processes end without waiting for its threads."""
        flush = getattr(self.provider or trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            flush()


def _attributes(operation: str, queue: str | None) -> Attributes:
    attributes: Attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    if queue is not None:
        attributes["messaging.destination.name"] = queue
    return attributes


def _named(operation: str, attributes: Attributes) -> str:
    """`{operation} {destination}`; a batch for several queues has no destination."""
    queue = attributes.get("messaging.destination.name")
    return operation if queue is None else f"{operation} {queue}"


def _request() -> Context | None:
    """The context to begin in: the current span's, else what middleware took from the request."""
    if trace.get_current_span().get_span_context().is_valid:
        return None
    header = context.traceparent.get()
    return None if header is None else _extracted(header)


def _extracted(traceparent: str | None) -> Context:
    # From an empty context: whatever happens to be current in a worker is not what caused the job.
    carrier = {} if traceparent is None else {"traceparent": traceparent}
    return _HEADERS.extract(carrier, contexts.Context())


def _note(span: Span, error: BaseException) -> None:
    """What a handler's end by exception means for its span: only failures are errors."""
    ending = unwrap_ending(error)
    if isinstance(ending, Snooze | Skip):
        span.set_attribute("duly.ending", type(ending).__name__.lower())
        return
    if isinstance(ending, Retry | Dead):
        span.set_attribute("duly.ending", type(ending).__name__.lower())
    else:
        # As the library's record_exception does, in words without a Secret in them.
        told = describe(error)
        span.add_event(
            "exception",
            {
                "exception.type": told.type,
                "exception.message": told.message,
                "exception.stacktrace": told.traceback,
            },
        )
    span.set_attribute("error.type", type(ending).__qualname__)
    span.set_status(Status(StatusCode.ERROR, masked(str(ending)) or type(ending).__name__))
