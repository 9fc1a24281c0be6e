"""`duly dead ack|assign|fixed|edit`: what people say of groups of dead letters, and one letter with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import click
import msgspec

from duly.app import App
from duly.client.triage_acts import Edited
from duly.client.triage_reads import NO_ERROR, TriagedGroup
from duly.core.errors import UsageError
from duly.core.operating import DeadMark

from .arguments import as_text_where_needed, like_before, plain_arguments, typed_arguments
from .errors import Conflict
from .follow import follow_job
from .options import Act, Handler, acting, common
from .output import Column, Json, Out, count, counted, plain, printable, relative
from .session import Session, session_of

GROUPS = (
    Column("FINGERPRINT"),
    Column("COUNT", "right"),
    Column("FIRST"),
    Column("LAST"),
    Column("QUEUE"),
    Column("OWNER"),
    Column("STATE"),
    Column("TASK"),
    Column("ERROR", wide=True),
)


def group_lines(found: tuple[TriagedGroup, ...], now: datetime, out: Out) -> list[str]:
    """The answer for people."""
    if not found:
        return ["no dead letters"]
    rows = [
        [
            group.fingerprint or NO_ERROR,
            count(group.count),
            relative(group.first, now),
            relative(group.last, now),
            group.queue,
            printable(group.owner or ""),
            state_word(group),
            group.task,
            printable(group.error),
        ]
        for group in found
    ]
    text = out.table(GROUPS, rows)
    if not out.quiet:
        total = sum(group.count for group in found)
        text.append(f"{counted(total, 'dead letter')} in {counted(len(found), 'group')}")
        text += [_regressed(group, now) for group in found if group.regressed_at is not None]
    return text


def said_lines(found: tuple[TriagedGroup, ...], now: datetime) -> list[str]:
    """Who said what of the groups, one line each."""
    lines = []
    for group in found:
        if group.by is not None:
            note = f": {printable(group.note)}" if group.note else ""
            where = f" in {group.queue}" if len(found) > 1 else ""
            lines.append(
                f"{group.state}{where}, as {printable(group.by)} said {relative(group.at, now)}{note}"
            )
        if group.edited:
            lines.append(
                f"{counted(group.edited, 'more letter')} of {group.queue} went on with edited arguments"
            )
    return lines


def state_word(group: TriagedGroup) -> str:
    """One word or two."""
    return "new again" if group.regressed_at is not None else group.state


def _regressed(group: TriagedGroup, now: datetime) -> str:
    return (
        f"{group.fingerprint or NO_ERROR} was fixed, and one died of it {relative(group.regressed_at, now)}: "
        "it is new again"
    )


def _which(command: Handler) -> Handler:
    for decorate in (
        click.option("--task", metavar="NAME", help="Only the group of this task."),
        click.option("--queue", metavar="NAME", help="Only the group of this queue."),
        click.option("--note", metavar="TEXT", help="Kept with the group, for whoever looks next."),
        click.argument("fingerprint"),
    ):
        command = decorate(command)
    return command


def commands(group: click.Group) -> None:
    """Put them under `duly dead`."""
    for command in (ack, assign, fixed, edit):
        group.add_command(command)


@click.command()
@common
@acting
@_which
@click.option("--owner", metavar="NAME", help="Who sees to it; else the queue's owner.")
@click.pass_context
def ack(
    context: click.Context,
    fingerprint: str,
    note: str | None,
    queue: str | None,
    task: str | None,
    owner: str | None,
    act: Act,
) -> None:
    """Say that somebody has seen a group: new -> acknowledged.

    \b
      duly dead ack a91f --owner growth@shop --note "the provider is down, INC-311"
    """
    _mark(
        context,
        act,
        (fingerprint, queue, task),
        lambda app: app.operate.acknowledge(
            fingerprint, owner=owner, note=note, queue=queue, task=task, reason=act.reason or ""
        ),
    )


@click.command()
@common
@acting
@_which
@click.option(
    "--owner", metavar="NAME", required=True, help="Who sees to it; '' gives it back to the queue's owner."
)
@click.pass_context
def assign(
    context: click.Context,
    fingerprint: str,
    note: str | None,
    queue: str | None,
    task: str | None,
    owner: str,
    act: Act,
) -> None:
    """Say who sees to a group; its state stays.

    \b
      duly dead assign a91f --owner ada
    """
    _mark(
        context,
        act,
        (fingerprint, queue, task),
        lambda app: app.operate.assign(
            fingerprint, owner or None, note=note, queue=queue, task=task, reason=act.reason or ""
        ),
    )


@click.command()
@common
@acting
@_which
@click.pass_context
def fixed(
    context: click.Context,
    fingerprint: str,
    note: str | None,
    queue: str | None,
    task: str | None,
    act: Act,
) -> None:
    """Say that the cause of a group is gone. When another job dies of it, the group is new again, and says so.

    Moves no letter: redrive or purge them.

    \b
      duly dead fixed a91f --note "release 41"
    """
    _mark(
        context,
        act,
        (fingerprint, queue, task),
        lambda app: app.operate.fixed(
            fingerprint, note=note, queue=queue, task=task, reason=act.reason or ""
        ),
    )


@click.command()
@common
@acting
@click.argument("id", type=int)
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--json", "file", metavar="FILE", help="Read the changes from a JSON object; - is standard input."
)
@click.option(
    "--follow", is_flag=True, help="Watch the new job to its end; exit 1 when that is not a success."
)
@click.pass_context
def edit(
    context: click.Context, id: int, arguments: tuple[str, ...], file: str | None, follow: bool, act: Act
) -> None:
    """Run a dead letter again with some of its arguments changed, as a new job.

    The letter stays dead and says which job runs in its place; a redrive leaves it where it is. With an App (-a,
    DULY_APP, pyproject.toml) the arguments are checked against the task's parameters; without, an argument that is
    there can get another value of its kind. A VALUE is JSON where it looks like it, else text. Exit 4 when it is dead
    no more, or was edited already.

    \b
      duly dead edit 42 address=ada@example.com --reason INC-311
    """
    session = session_of(context)
    given = typed_arguments(arguments, file)
    if not given:
        raise UsageError("which argument? Write it like address=ada@example.com, or --json FILE")
    app, has_code = _app(session)
    record = app.inspect.job(id).job
    if not has_code or app.client.registry.find(record.task) is None:
        given = like_before(given, _values(record.args))
    if act.dry_run:
        document: Json = {"job": id, "changes": plain(plain_arguments(given)), "dry_run": True}
        session.out.answer(
            document, lambda: [f"job {id} would run again with {', '.join(given)} changed; nothing was done"]
        )
        return
    done = as_text_where_needed(given, lambda values: app.operate.edit(id, values, reason=act.reason or ""))
    _say_edited(session, app, done, follow=follow)


def _say_edited(session: Session, app: App, done: Edited, *, follow: bool) -> None:
    if done.successor is None:
        raise Conflict(done.why)
    document: Json = {"job": done.job, "successor": done.successor, "args": msgspec.Raw(done.args)}
    line = f"job {done.successor} runs in the place of job {done.job}, which stays among the dead letters"
    session.out.answer(document, lambda: [line])
    if follow:
        follow_job(session, app, done.successor)


def _app(session: Session) -> tuple[App, bool]:
    """The user's App if one is configured, else one for the store alone."""
    if session.has_reference():
        app = session.app()
        app.load()
        return app, True
    return session.data(), False


def _values(args: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(args, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _mark(
    context: click.Context,
    act: Act,
    which: tuple[str, str | None, str | None],
    say: Callable[[App], tuple[DeadMark, ...]],
) -> None:
    session = session_of(context)
    app = session.data()
    if act.dry_run:
        fingerprint, queue, task = which
        groups = app.inspect.dead_group(fingerprint, queue=queue, task=task).groups
        document: Json = {"groups": plain(groups), "dry_run": True}
        session.out.answer(
            document, lambda: [f"{counted(len(groups), 'group')} would be marked; nothing was done"]
        )
        return
    marks = say(app)
    session.out.answer(
        plain(marks), lambda: [_marked(mark) for mark in marks], (plain(mark) for mark in marks)
    )


def _marked(mark: DeadMark) -> str:
    owner = f", for {printable(mark.owner)}" if mark.owner else ""
    note = f" ({printable(mark.note)})" if mark.note else ""
    return f"{mark.fingerprint or NO_ERROR} in {mark.queue}, task {mark.task}: {mark.state}{owner}{note}"
