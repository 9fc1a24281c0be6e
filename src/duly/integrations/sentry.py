"""Sentry for an App: an event for each failed attempt with its job, and a transaction for each attempt.

Needs the extra `sentry`; `sentry_sdk.init(…)` is the application's. Snoozes, skips and retries are no errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import sentry_sdk
from sentry_sdk.consts import OP, SPANDATA, SPANSTATUS
from sentry_sdk.tracing import TransactionSource

from duly.app import App
from duly.client.job import Job
from duly.core.endings import Dead, Retry, Skip, Snooze, unwrap_ending
from duly.core.errors import UsageError
from duly.core.secret import masked

_ORIGIN: Final = "auto.queue.duly"
_FLUSH: Final = 2.0


def instrument(jobs: App) -> None:
    """Report failed attempts of all tasks; write it below `jobs = App()`, so that worker processes do so, too.

    It adds no arguments of jobs; local variables in stack frames, which hold them, are Sentry's to send or not
    (`include_local_variables`). UsageError at the second call.
    """
    if _around in jobs.around_functions:
        raise UsageError(
            "this App reports to Sentry already; call instrument(jobs) once, where the App is made"
        )
    jobs.around_functions.insert(0, _around)
    # Worker processes end without waiting for the threads of others.
    jobs.lifespan_functions.insert(0, _flushed)


def _flushed() -> Iterator[None]:
    yield
    sentry_sdk.flush(_FLUSH)


def _around(job: Job) -> Iterator[None]:
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        scope.add_event_processor(_without_secrets)
        _describe(scope, job)
        headers = {} if job.traceparent is None else {"sentry-trace": _sentry_trace(job.traceparent)}
        transaction = sentry_sdk.continue_trace(
            headers, op=OP.QUEUE_PROCESS, name=job.task, source=TransactionSource.TASK, origin=_ORIGIN
        )
        with sentry_sdk.start_transaction(transaction) as span:
            for name, value in _data(job).items():
                span.set_data(name, value)
            try:
                yield
            except BaseException as error:
                span.set_status(_status(error))
                if _is_failure(error):
                    sentry_sdk.capture_exception(error)
                raise
            span.set_status(SPANSTATUS.OK)


def _without_secrets(event: Any, hint: Any) -> Any:
    """No value of a Secret leaves, not even as a local variable of a frame."""
    del hint
    return _masked(event)


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {key: _masked(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_masked(part) for part in value)
    return value


def _describe(scope: Any, job: Job) -> None:
    scope.set_transaction_name(job.task, source=TransactionSource.TASK)
    for name, value in (
        ("duly.task", job.task),
        ("duly.queue", job.queue),
        ("duly.tenant", job.tenant),
        ("duly.correlation_id", job.correlation_id),
    ):
        if value:
            scope.set_tag(name, value)
    scope.set_context(
        "duly",
        {"job_id": str(job.id), "attempt": job.attempt, "tags": list(job.tags), "trigger": job.trigger},
    )


def _data(job: Job) -> dict[str, object]:
    data: dict[str, object] = {
        SPANDATA.MESSAGING_MESSAGE_ID: str(job.id),
        SPANDATA.MESSAGING_DESTINATION_NAME: job.queue,
        SPANDATA.MESSAGING_SYSTEM: "duly",
        SPANDATA.MESSAGING_MESSAGE_RETRY_COUNT: job.attempt - 1,
    }
    if job.enqueued_at is not None:
        waited = (datetime.now(UTC) - job.enqueued_at).total_seconds()
        data[SPANDATA.MESSAGING_MESSAGE_RECEIVE_LATENCY] = max(0, round(waited * 1000))
    return data


def _sentry_trace(traceparent: str) -> str:
    _, trace, span, flags = traceparent.split("-")
    return f"{trace}-{span}-{int(flags, 16) & 1}"


def _is_failure(error: BaseException) -> bool:
    """A handler that says how its attempt ends has not failed, but for `Dead`, which gives a job up."""
    ending = unwrap_ending(error)
    return isinstance(error, Exception) or isinstance(ending, Dead)


def _status(error: BaseException) -> str:
    ending = unwrap_ending(error)
    if isinstance(ending, Snooze | Skip):
        return SPANSTATUS.OK
    if isinstance(ending, Retry):
        return SPANSTATUS.UNAVAILABLE
    return SPANSTATUS.INTERNAL_ERROR if _is_failure(error) else SPANSTATUS.CANCELLED
