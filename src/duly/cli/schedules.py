"""`duly schedules`: what is done by the clock, when next, and what became of it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from duly.app import App
from duly.client import schedule_acts
from duly.client.authorship import reason_given
from duly.client.schedule_acts import Ran
from duly.core.registration import ScheduleRecord
from duly.core.schedule import in_words

from .acts import confirm
from .errors import Conflict
from .options import Act, acting, common
from .output import Column, Json, clock, count, counted, cut, plain, printable, relative
from .session import session_of

_LONG: Final = 200
COLUMNS = (
    Column("SCHEDULE"),
    Column("TASK"),
    Column("NEXT"),
    Column("LAST"),
    Column("FIRED", "right"),
    Column("MISSED", "right"),
    Column("WHEN", wide=True),
)


@click.group()
@common
def schedules() -> None:
    """What is enqueued by the clock. Workers fire it; a due time makes one job, however many workers there are.

    FIRED counts due times that made a job, MISSED those that passed without one: nobody was there, or the job before
    still waited or ran. Under a schedule that could not enqueue stands why; it is tried again until it can.
    """


@schedules.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """Every schedule, with its next and its last due time."""
    session = session_of(context)
    app = session.data()
    found = app.inspect.schedules()
    now = app.client.call(app.store.inspection.now)

    def lines() -> list[str]:
        if not found:
            return ["no schedule is stored; declare one with @jobs.cron or @jobs.every and start a worker"]
        listed = session.out.table(COLUMNS, (row(record, now) for record in found))
        headings = len(listed) - len(found)
        told = (
            [line, *failure_of(record, now)] for line, record in zip(listed[headings:], found, strict=True)
        )
        return [*listed[:headings], *(line for lines in told for line in lines)]

    documents = [document(record) for record in found]
    session.out.answer(documents, lines, documents)


@schedules.command()
@common
@acting
@click.argument("name")
@click.pass_context
def run(context: click.Context, name: str, act: Act) -> None:
    """Enqueue now what a due time would. When it is due next stays as it is.

    A tick needs the App that declares it: add -a MODULE.
    """
    session = session_of(context)
    app = session.app() if session.app_reference is not None else session.data()
    if _dry(context, app, name, "run", act):
        return
    reason = reason_given(act.reason or "")
    ran = app.client.call(schedule_acts.run, app.client, name, app.operate.actor(), reason)
    document: Json = {
        "schedule": name,
        "jobs": list(ran.ids),
        "created": list(ran.created),
        "refused": list(ran.refused),
    }
    session.out.answer(document, lambda: _told(name, ran))


@schedules.command()
@common
@acting
@click.argument("name")
@click.pass_context
def pause(context: click.Context, name: str, act: Act) -> None:
    """Fire nothing until it is resumed. Due times that pass meanwhile are not made up for."""
    session = session_of(context)
    app = session.data()
    if _dry(context, app, name, "paused", act):
        return
    if not app.operate.pause_schedule(name, reason=act.reason or ""):
        raise Conflict(f"{name} is paused already")
    session.out.answer(
        {"schedule": name, "paused": True}, lambda: [f"{name} paused. Undo: duly schedules resume {name}"]
    )


@schedules.command()
@common
@acting
@click.argument("name")
@click.pass_context
def resume(context: click.Context, name: str, act: Act) -> None:
    """Fire again, from the next due time on."""
    session = session_of(context)
    app = session.data()
    if _dry(context, app, name, "resumed", act):
        return
    if not app.operate.resume_schedule(name, reason=act.reason or ""):
        raise Conflict(f"{name} is not paused")
    record = app.inspect.schedule(name)
    session.out.answer(
        {"schedule": name, "paused": False, "next_at": plain(record.next_at)},
        lambda: [f"{name} resumed; next at {clock(record.next_at)} UTC"],
    )


@schedules.command()
@common
@acting
@click.argument("name")
@click.pass_context
def remove(context: click.Context, name: str, act: Act) -> None:
    """Forget a schedule; the jobs it made stay.

    One that is declared in code comes back with the next start of a worker: pause it instead, or delete it there.
    """
    session = session_of(context)
    app = session.data()
    if _dry(context, app, name, "removed", act):
        return
    origin = app.inspect.schedule(name).origin
    confirm(act, f"{name} would be removed. Go on?")
    if not app.operate.remove_schedule(name, reason=act.reason or ""):
        raise Conflict(f"{name} was removed by someone else")
    again = f"; a worker of {origin} declares it again when it starts" if origin else ""
    session.out.answer({"schedule": name, "removed": True}, lambda: [f"{name} removed{again}"])


def row(record: ScheduleRecord, now: datetime) -> list[str]:
    """One schedule as cells."""
    schedule = record.schedule
    return [
        schedule.name,
        "a tick" if schedule.job is None else schedule.job.task,
        "paused" if record.paused else relative(record.next_at, now),
        relative(record.last_at, now) if record.fired else "",
        count(record.fired),
        count(record.missed),
        in_words(schedule),
    ]


def failure_of(record: ScheduleRecord, now: datetime) -> list[str]:
    """What went wrong when a schedule was tried last, under its row; nothing since its last success."""
    if record.failure is None:
        return []
    why = click.style(cut(printable(record.failure), _LONG), fg="red")
    return [f"  failed {counted(record.failures, 'time')}, last {relative(record.failed_at, now)}: {why}"]


def document(record: ScheduleRecord) -> Json:
    """One schedule for programs; the job as far as people know it."""
    schedule, job = record.schedule, record.schedule.job
    return {
        "name": schedule.name,
        "words": in_words(schedule),
        "task": None if job is None else job.task,
        "queue": None if job is None else job.queue,
        "args": None if job is None else plain(job.args),
        "cron": schedule.cron,
        "tz": schedule.tz,
        "every_s": plain(schedule.every),
        "jitter_s": plain(schedule.jitter),
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
        "origin": record.origin,
        "paused": record.paused,
        "next_at": plain(record.next_at),
        "last_at": plain(record.last_at),
        "last_job": record.last_id,
        "last_waiting": record.last_waiting,
        "last_running": record.last_running,
        "fired": record.fired,
        "missed": record.missed,
        "failure": record.failure,
        "failed_at": plain(record.failed_at),
        "failures": record.failures,
    }


def _dry(context: click.Context, app: App, name: str, word: str, act: Act) -> bool:
    app.inspect.schedule(name)
    if act.dry_run:
        session_of(context).out.answer(
            {"schedule": name, "dry_run": True}, lambda: [f"{name} would be {word}; nothing was done"]
        )
    return act.dry_run


def _told(name: str, ran: Ran) -> list[str]:
    known = tuple(id for id in ran.ids if id not in set(ran.created))
    lines = [f"{name} enqueued {_jobs(ran.created)}"] if ran.created else []
    if known:
        also = "also found" if lines else "enqueued nothing: it found"
        lines.append(f"{name} {also} what has its job already: {_jobs(known)}")
    if ran.refused:
        lines.append(f"{name} found {counted(len(ran.refused), 'row')} that made no job: {ran.refused[0]}")
    return lines or [f"{name} found no row that is ready"]


def _jobs(ids: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ids[:20]))
    more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"job {shown}" if len(ids) == 1 else f"jobs {shown}{more}"
