"""`duly workers`: who works, on what, and whether it gets anywhere."""

from __future__ import annotations

import click

from duly.core.errors import NotFound
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.stores.protocol import WorkerRecord

from .jobs import COLUMNS as JOB_COLUMNS
from .jobs import row as job_row
from .options import Act, acting, common
from .output import Column, Json, age, count, plain, relative
from .session import session_of

COLUMNS = (
    Column("ID", "right"),
    Column("HOST"),
    Column("PID", "right"),
    Column("RUNNING", "right"),
    Column("SLOTS", "right"),
    Column("PULSE", "right"),
    Column("PROGRESS", "right"),
    Column("STARTED"),
    Column("VERSION"),
    Column("STATE"),
    Column("QUEUES", wide=True),
)


@click.group()
@common
def workers() -> None:
    """The worker processes that are alive.

    PULSE is the age of the last heartbeat, PROGRESS the time since the process last ended an attempt or found nothing
    to do: a pulse without progress is a hung worker.
    """


@workers.command("list")
@common
@click.pass_context
def list_(context: click.Context) -> None:
    """Every live worker process."""
    session = session_of(context)
    app = session.data()
    found = app.inspect.workers()
    now = app.client.call(app.store.inspection.now)
    session.out.answer(
        plain(found),
        lambda: (
            session.out.table(COLUMNS, (row(worker, relative(worker.started_at, now)) for worker in found))
            if found
            else ["no worker is alive; start one with duly worker MODULE"]
        ),
        (plain(worker) for worker in found),
    )


@workers.command()
@common
@click.argument("id", type=int)
@click.pass_context
def show(context: click.Context, id: int) -> None:
    """One worker process, and the jobs it holds."""
    session = session_of(context)
    app = session.data()
    worker = next((one for one in app.inspect.workers() if one.incarnation == id), None)
    if worker is None:
        raise NotFound(
            f"no worker {id} is alive; duly workers list shows those that are", kind="worker", name=str(id)
        )
    running = app.inspect.jobs(Filter(state=State.running), limit=1000).jobs
    held = [job for job in running if job.incarnation == id]
    now = app.client.call(app.store.inspection.now)
    document: Json = {"worker": plain(worker), "jobs": [plain(job) for job in held]}

    def lines() -> list[str]:
        text = session.out.table(COLUMNS, [row(worker, relative(worker.started_at, now))])
        if held:
            text += ["", *session.out.table(JOB_COLUMNS, (job_row(job, now) for job in held))]
        return text

    session.out.answer(document, lines)


@workers.command()
@common
@acting
@click.argument("id", type=int)
@click.pass_context
def drain(context: click.Context, id: int, act: Act) -> None:
    """Ask one worker process to claim no more, and to end when its jobs have.

    It sees the wish with its next heartbeat. Its supervisor starts another in its place unless that one drains, too.
    """
    session = session_of(context)
    app = session.data()
    if not act.dry_run:
        app.operate.drain_worker(id)
    word = "would be asked" if act.dry_run else "is asked"
    document: Json = {"worker": id, "draining": not act.dry_run, "dry_run": act.dry_run}
    session.out.answer(document, lambda: [f"worker {id} {word} to end when its jobs have"])


def row(worker: WorkerRecord, started: str) -> list[str]:
    """One worker as cells."""
    return [
        str(worker.incarnation),
        worker.host,
        str(worker.pid),
        count(worker.running),
        count(worker.slots),
        age(worker.beat_age),
        age(worker.progress_age),
        started,
        worker.version,
        "draining" if worker.draining else "",
        ", ".join(worker.queues),
    ]
