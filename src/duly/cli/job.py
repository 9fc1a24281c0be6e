"""`duly job`: one job with its whole story."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import click
import msgspec

from duly.client.inspect import JobDetail
from duly.core.job import AttemptRecord, JobRecord
from duly.core.lifecycle import FINAL, State

from .follow import follow_job
from .jobs import begun
from .options import common
from .output import Column, Out, age, clock, counted, cut, elapsed, plain, printable, relative
from .session import session_of

ATTEMPTS: Final = (
    Column("RUN", "right"),
    Column("ENDED"),
    Column("AS"),
    Column("TOOK", "right"),
    Column("WORKER", "right"),
    Column("WHY", wide=True),
)
_LONG: Final = 2000


@click.command(short_help="One job with its attempts and errors.")
@common
@click.argument("id", type=int)
@click.option(
    "--follow", is_flag=True, help="Print each change until it ends; exit 1 when it ends dead or cancelled."
)
@click.pass_context
def job(context: click.Context, id: int, follow: bool) -> None:
    """One job: where it stands, its attempts with their errors, and where to look next.

    \b
      duly job 42
      duly job 42 --follow
    """
    session = session_of(context)
    app = session.data()
    if follow:
        follow_job(session, app, id)
        return
    detail = app.inspect.job(id)
    now = app.client.call(app.store.inspection.now)
    session.out.answer(plain(detail), lambda: lines(detail, now, session.out))


def lines(detail: JobDetail, now: datetime, out: Out) -> Iterator[str]:
    """The answer for people."""
    record = detail.job
    yield (
        click.style(f"job {record.id}  {record.task} in {record.queue}", bold=True)
        + f"  {_standing(record, now)}"
    )
    for name, value in _facts(record, now):
        yield f"  {name:<12} {value}"
    if detail.attempts:
        yield ""
        yield from out.table(ATTEMPTS, (_attempt(attempt, now) for attempt in detail.attempts))
    if record.error is not None and record.error.traceback:
        yield ""
        yield from (f"  {line}" for line in printable(record.error.traceback).splitlines())
    if not out.quiet and (links := _links(record)):
        yield ""
        yield from links


def _standing(job: JobRecord, now: datetime) -> str:
    match job.state:
        case State.running:
            asked = ", asked to stop" if job.cancel_wished else ""
            since = "" if job.started_at is None else f" for {age(now - job.started_at)}"
            return f"running{since}{asked}"
        case State.scheduled:
            return f"scheduled, due {relative(job.run_at, now)}"
        case state if state in FINAL:
            return f"{state} {relative(job.finished_at, now)}"
        case state:
            return str(state)


def _facts(job: JobRecord, now: datetime) -> Iterator[tuple[str, str]]:
    counters = job.counters
    yield "enqueued", f"{clock(job.enqueued_at, now)} ({relative(job.enqueued_at, now)})"
    if job.started_at is not None and job.finished_at is not None:
        took = elapsed(job.finished_at - job.started_at)
        yield "last run", f"{clock(job.started_at, now)} to {clock(job.finished_at, now)} ({took})"
    spent = f"{counters.failed} failed, {counters.lost} lost, "
    spent += f"{counters.interrupted} interrupted, {counters.snoozed} snoozed"
    limit = "" if job.attempts is None else f" of {job.attempts}"
    yield "attempts", f"{begun(job)}{limit} in {counted(job.run, 'run')}; {spent}"
    yield "priority", str(job.priority)
    if job.tenant:
        yield "tenant", printable(job.tenant)
    if job.tags:
        yield "tags", printable(", ".join(job.tags))
    yield "correlation", printable(job.correlation_id)
    if job.expires_at is not None:
        yield "expires", relative(job.expires_at, now)
    if job.deadline is not None:
        yield "deadline", relative(job.deadline, now)
    if job.progress is not None:
        share = f"{job.progress.done:,}" + ("" if job.progress.of is None else f" of {job.progress.of:,}")
        yield "progress", f"{share} {printable(job.progress.note or '')}".rstrip()
    yield "arguments", _stored(job.args)
    if job.result is not None:
        yield "result", _stored(job.result)
    if job.reason:
        yield "reason", cut(printable(job.reason), _LONG)
    if job.note:
        yield "note", cut(printable(job.note), _LONG)
    if job.error is not None:
        yield "error", cut(printable(f"{job.error.type}: {job.error.message}"), _LONG)


def _attempt(attempt: AttemptRecord, now: datetime) -> list[str]:
    took = "-" if attempt.started_at is None else elapsed(attempt.ended_at - attempt.started_at)
    why = attempt.reason or ""
    if attempt.error is not None:
        why = f"{attempt.error.type}: {attempt.error.message}"
    ended = clock(attempt.ended_at, now)
    return [str(attempt.run), ended, attempt.event, took, str(attempt.incarnation), printable(why)]


def _links(job: JobRecord) -> list[str]:
    text: list[str] = []
    if job.correlation_id != str(job.id):
        text.append(f"the work it belongs to: duly jobs --correlation {job.correlation_id}")
    if job.error is not None and job.state is State.dead:
        text.append(f"all of this error:      duly dead show {job.error.fingerprint}")
    if job.state in {State.dead, State.cancelled, State.skipped}:
        text.append(f"run it again:           duly dead redrive {job.id}")
    if job.state not in FINAL:
        text.append(f"stop it:                duly cancel {job.id}")
    return text


def _stored(data: bytes) -> str:
    """Stored JSON on one line, cut where it gets long."""
    try:
        text = msgspec.json.format(data, indent=-1).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = data.decode(errors="backslashreplace")
    return cut(printable(text), _LONG)
