"""`duly enqueue`: one job from a shell, by the name of its task."""

from __future__ import annotations

import time
from datetime import timedelta

import click
import msgspec

from duly.app import App
from duly.client.pressing import press
from duly.client.registry import nearest
from duly.core.durations import parse_duration
from duly.core.errors import NotFound
from duly.core.job import JobId, NewJob
from duly.core.names import check_name

from .arguments import fitted_arguments, plain_arguments, typed_arguments
from .follow import follow_job
from .options import common
from .output import Json, plain, relative
from .session import Session, session_of


@click.command()
@common
@click.argument("task")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--json", "file", metavar="FILE", help="Read the arguments from a JSON object; - is standard input."
)
@click.option("--queue", metavar="NAME", help="Instead of the task's own queue.")
@click.option("--delay", metavar="DURATION", help="Run that long from now, such as 10m.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 when that is not a success.")
@click.pass_context
def enqueue(
    context: click.Context,
    task: str,
    arguments: tuple[str, ...],
    file: str | None,
    queue: str | None,
    delay: str | None,
    wait: bool,
) -> None:
    """Store one job. A VALUE is JSON where it looks like it (7, true, [1, 2], "7"), else text.

    With an App (-a, DULY_APP, pyproject.toml) the arguments are checked against the task's parameters. Without, the
    task must have been written down by a worker or `duly migrate APP`, or --queue must say where it goes. Exit 4 when
    the queue is full.

    \b
      duly enqueue send_receipt order_id=7
      duly enqueue report --json order.json --delay 10m
      duly enqueue digest --wait
    """
    session = session_of(context)
    given = typed_arguments(arguments, file)
    app, has_code = _app(session)
    # The error says it.
    app.client.tell = lambda _: None
    later = None if delay is None else parse_duration(delay, "--delay")
    if has_code:
        id, due = _checked(app, task, given, queue, later)
    else:
        id, due = _by_name(app, task, given, queue, later)
    record = app.inspect.job(id).job
    if wait:
        ended = follow_job(session, app, id)
        if session.out.for_people and ended.result is not None:
            click.echo(ended.result.decode(errors="backslashreplace"))
        return
    now = app.client.call(app.store.inspection.now)
    document: Json = {
        "id": id,
        "outcome": "created",
        "task": record.task,
        "queue": record.queue,
        "run_at": plain(due),
    }
    when = "" if record.run_at is None else f", due {relative(record.run_at, now)}"
    line = str(id) if session.quiet else f"job {id} created: {record.task} in {record.queue}{when}"
    session.out.answer(document, lambda: [line])


def _app(session: Session) -> tuple[App, bool]:
    """The user's App if one is configured, else one for the store alone."""
    if session.has_reference():
        return session.app(), True
    return session.data(), False


def _by_name(
    app: App, task: str, given: dict[str, object], queue: str | None, delay: timedelta | None
) -> tuple[JobId, object]:
    """Store a job of a task that only the workers know."""
    call = app.client.call
    if queue is None:
        _, tasks = call(app.store.schema.declared)
        if task not in tasks:
            raise NotFound(
                f"no worker has registered a task {task!r}{nearest(task, tasks) if tasks else ''}; check the name, or "
                "say where it goes with --queue, or whose it is with -a",
                kind="task",
                name=task,
            )
        queue = tasks[task]
    job = NewJob(
        queue=check_name("queue", queue),
        task=check_name("task", task),
        args=msgspec.json.encode(plain_arguments(given)),
        delay=delay,
    )
    _refuse_if_full(app, job)
    stored = call(app.store.jobs.enqueue, [job])[0]
    return stored.id, stored.run_at


def _refuse_if_full(app: App, job: NewJob) -> None:
    """What the App that declared the queue would meet here, for one that has only the store."""
    bound = app.client.call(app.store.pressing.pressures, [job.queue])[job.queue].bound
    if bound is not None:
        app.client.registry.bounds[job.queue] = bound
        time.sleep(press(app.client, [job], frozenset(), joined=False).pause)


def _checked(
    app: App, name: str, given: dict[str, object], queue: str | None, delay: timedelta | None
) -> tuple[JobId, object]:
    """Store a job of a task of the App, its arguments checked against the function."""
    task = app.find_task(name)
    # A misspelt or forgotten argument, in Python's words.
    task.arguments.filled((), given)
    values = fitted_arguments(task.arguments, given)
    enqueued = task.using(queue=queue, delay=delay).enqueue(**values)
    return enqueued.id, enqueued.run_at
