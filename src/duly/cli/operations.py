"""`duly operations`: stored bulk acts, how far they are, and how to hold them."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from duly.core.errors import NotFound
from duly.stores.protocol import OperationRecord

from .errors import Conflict
from .follow import follow_operation
from .options import Act, acting, common
from .output import Column, Json, Out, age, count, counted, plain, printable, rate, relative
from .session import session_of

COLUMNS = (
    Column("N", "right"),
    Column("VERB"),
    Column("STATE"),
    Column("DONE", "right"),
    Column("OF", "right"),
    Column("RATE/s", "right"),
    Column("LEFT", "right"),
    Column("STARTED"),
    Column("BY"),
    Column("FILTER"),
    Column("REASON", wide=True),
)


@click.group(short_help="Bulk acts that the workers carry out.")
@common
def operations() -> None:
    """Bulk acts on more than 100 jobs: the workers carry them out, at the rate they were given.

    \b
      duly operations list
      duly operations show 7 --follow
      duly operations pause 7
    """


@operations.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """All operations, the newest first."""
    session = session_of(context)
    app = session.data()
    found = app.inspect.operations()
    now = app.client.call(app.store.inspection.now)
    session.out.answer(
        plain(found),
        lambda: lines(found, now, session.out) if found else ["no operations"],
        (plain(record) for record in found),
    )


@operations.command()
@common
@click.argument("number", type=int, metavar="N")
@click.option("--follow", is_flag=True, help="Watch until it ends; Ctrl-C ends only the watching.")
@click.pass_context
def show(context: click.Context, number: int, follow: bool) -> None:
    """One operation: how far it is, and how long it will take."""
    session = session_of(context)
    app = session.data()
    record = app.inspect.operation(number)
    if follow:
        follow_operation(session, app, number)
        record = app.inspect.operation(number)
    now = app.client.call(app.store.inspection.now)
    session.out.answer(plain(record), lambda: lines((record,), now, session.out))


@operations.command()
@common
@acting
@click.argument("number", type=int, metavar="N")
@click.pass_context
def pause(context: click.Context, number: int, act: Act) -> None:
    """Hold an operation. What it did stays done; `resume` lets it go on."""
    _set(context, number, "paused", act)


@operations.command()
@common
@acting
@click.argument("number", type=int, metavar="N")
@click.pass_context
def resume(context: click.Context, number: int, act: Act) -> None:
    """Let a paused operation go on where it stopped."""
    _set(context, number, "running", act)


@operations.command()
@common
@acting
@click.argument("number", type=int, metavar="N")
@click.pass_context
def cancel(context: click.Context, number: int, act: Act) -> None:
    """End an operation for good. What it did stays done."""
    _set(context, number, "cancelled", act)


def _set(context: click.Context, number: int, state: str, act: Act) -> None:
    session = session_of(context)
    app = session.data()
    before = app.inspect.operation(number)
    if before.ended_at is not None or before.state in {"done", "cancelled"}:
        raise Conflict(f"operation {number} is {before.state} already")
    if act.dry_run:
        document: Json = {"id": number, "state": state, "dry_run": True}
        session.out.answer(document, lambda: [f"operation {number} would be {state}; nothing was done"])
        return
    verbs = {
        "paused": app.operate.pause_operation,
        "running": app.operate.resume_operation,
        "cancelled": app.operate.cancel_operation,
    }
    try:
        record = verbs[state](number, reason=act.reason or "")
    except NotFound as error:
        raise Conflict(f"operation {number} ended meanwhile") from error
    done = counted(record.done, "job")
    session.out.answer(
        plain(record), lambda: [f"operation {number} is {record.state}; {done} of {record.total:,} done"]
    )


def lines(found: tuple[OperationRecord, ...], now: datetime, out: Out) -> list[str]:
    """The answer for people."""
    return out.table(COLUMNS, (_row(record, now) for record in found))


def _row(record: OperationRecord, now: datetime) -> list[str]:
    left = max(0, record.total - record.done - record.skipped)
    running = record.state == "running" and record.rate
    return [
        str(record.id),
        record.verb,
        record.state,
        count(record.done),
        count(record.total),
        "max" if record.rate is None else rate(record.rate),
        age(timedelta(seconds=left / record.rate)) if running and record.rate else "-",
        relative(record.created_at, now),
        record.by,
        printable(str(record.filter)),
        printable(record.reason),
    ]
