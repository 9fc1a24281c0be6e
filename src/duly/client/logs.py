"""Formatters of standard logging that say whose job a line is about: JSON for machines, text for a terminal.

A worker process installs one where the application has no logging of its own. Reads the running job and the request's
correlation id; knows no worker.
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

import msgspec

from duly.client.job import current
from duly.core.secret import masked
from duly.telemetry import context

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def job_fields() -> dict[str, object]:
    """Of the running job: job_id, task, queue, attempt, correlation_id and tenant; outside of one what is known of
    the request. Empty values are left out."""
    job = current.get()
    if job is None:
        correlation = context.correlation.get()
        return {} if correlation is None else {"correlation_id": correlation}
    fields: dict[str, object] = {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "correlation_id": job.correlation_id,
        "tenant": job.tenant,
    }
    return {name: value for name, value in fields.items() if value != ""}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at, level, logger, pid, text, the job, what `extra` says, an error with its traceback.

    For `logging.config`: {"()": "duly.logs.JsonFormatter"}. What `extra` calls like a field of the line stays out.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": os.getpid(),
            "text": masked(record.getMessage()),
            **job_fields(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            kind, error, _ = record.exc_info
            line["error"] = kind.__name__
            line["message"] = masked(str(error))
            line["traceback"] = masked(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        for name, value in record.__dict__.items():
            if name not in _STANDARD and name not in line:
                line[name] = masked(value) if isinstance(value, str) else value
        return _encoded(line)


class TextFormatter(logging.Formatter):
    """`09:00:00 WARNING shop: text [job 7 send, attempt 2]`, in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        mark = "" if record.levelno == logging.INFO else f"{record.levelname} "
        job = current.get()
        whose = "" if job is None else f" [job {job.id} {job.task}, attempt {job.attempt}]"
        at = datetime.fromtimestamp(record.created, UTC)
        text = f"{at:%H:%M:%S} {mark}{record.name}: {record.getMessage()}{whose}"
        if record.exc_info and record.exc_info[0] is not None:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        return masked(text)


def install(form: Literal["text", "json"] | None, level: str) -> logging.Handler | None:
    """Give the root logger a handler on stderr, unless the application has given it one. The handler, if it did.

    `form` None: text on a terminal, else JSON.
    """
    root = logging.getLogger()
    if root.handlers:
        return None
    stream = _stderr()
    if stream is None:
        return None
    handler = logging.StreamHandler(stream)
    text = form == "text" or (form is None and stream.isatty())
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    root.addHandler(handler)
    root.setLevel(level.upper())
    return handler


def _stderr() -> TextIO | None:
    """A copy, so that a handler which closes or redirects sys.stderr does not silence the log."""
    try:
        descriptor = os.dup(2)
    except OSError:
        # Started with stderr closed.
        return None
    os.set_inheritable(descriptor, False)
    return os.fdopen(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace")


def _encoded(line: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=repr).decode()
    except Exception:
        # A key that is no text, a lone surrogate, an object that contains itself or has no repr: users' values.
        plain = {str(name): _text(value) for name, value in line.items()}
        return msgspec.json.encode(plain).decode()


def _text(value: object) -> object:
    if isinstance(value, int | float | datetime):
        return value
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except Exception as error:
        return f"<{type(value).__name__} without text: {type(error).__name__}>"
