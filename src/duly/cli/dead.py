"""`duly dead`: the dead letters, in groups or one by one, and what to do with them."""

from __future__ import annotations

import re
from datetime import datetime

import click
import msgspec

from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.stores.protocol import DeadGroup

from .acts import Bulk, perform
from .job import lines as job_lines
from .jobs import COLUMNS as JOB_COLUMNS
from .jobs import row as job_row
from .options import Act, Rate, acting, common, filters, rated
from .output import Column, Json, Out, count, counted, plain, printable, relative
from .session import session_of

GROUPS = (
    Column("FINGERPRINT"),
    Column("COUNT", "right"),
    Column("FIRST"),
    Column("LAST"),
    Column("QUEUE"),
    Column("OWNER"),
    Column("TASK"),
    Column("ERROR", wide=True),
)


@click.group()
@common
def dead() -> None:
    """Dead letters: jobs that failed for good. They are kept with everything needed to run again.

    \b
      duly dead groups --since 3h                       what failed, by error
      duly dead show a91f                               one error, with its latest traceback
      duly dead redrive --fingerprint a91f --first 1 --follow
      duly dead redrive --fingerprint a91f --rate 20/s --reason INC-311
    """


@dead.command()
@common
@filters
@click.pass_context
def groups(context: click.Context, filter: Filter, everything: bool) -> None:
    """Dead letters by error, the largest group first.

    \b
      duly dead groups --queue mail --since 3h
    """
    del everything
    session = session_of(context)
    app = session.data()
    found = app.inspect.dead_groups(filter)
    owners = {status.counts.queue: status.owner or "" for status in app.inspect.queues()} if found else {}
    now = app.client.call(app.store.inspection.now)
    rows: list[Json] = [_with_owner(group, owners) for group in found]
    session.out.answer(rows, lambda: _group_lines(found, owners, now, session.out), rows)


@dead.command("list")
@common
@filters
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many."
)
@click.pass_context
def list_(context: click.Context, filter: Filter, everything: bool, limit: int) -> None:
    """Dead letters one by one, newest first.

    \b
      duly dead list --fingerprint a91f --limit 10
    """
    del everything
    session = session_of(context)
    app = session.data()
    page = app.inspect.jobs(_dead(filter), limit=limit)
    now = app.client.call(app.store.inspection.now)
    document: Json = {"jobs": [plain(job) for job in page.jobs], "next": page.next}
    session.out.answer(
        document,
        lambda: (
            session.out.table(JOB_COLUMNS, (job_row(job, now) for job in page.jobs))
            if page.jobs
            else ["no dead letters"]
        ),
        (plain(job) for job in page.jobs),
    )


@dead.command()
@common
@click.argument("which", metavar="ID|FINGERPRINT")
@click.pass_context
def show(context: click.Context, which: str) -> None:
    """One dead letter by its id, or one group by its fingerprint with its latest letter.

    Digits alone are an id if there is such a job, else a fingerprint.

    \b
      duly dead show 42
      duly dead show a91f
    """
    session = session_of(context)
    app = session.data()
    now = app.client.call(app.store.inspection.now)
    if which.isdecimal():
        try:
            detail = app.inspect.job(int(which))
        except NotFound:
            if not re.fullmatch("[0-9]{4,8}", which):
                raise
        else:
            session.out.answer(plain(detail), lambda: job_lines(detail, now, session.out))
            return
    found = app.inspect.dead_groups(Filter(fingerprint=which))
    if not found:
        raise NotFound(f"no dead letter has the fingerprint {which}", kind="fingerprint", name=which)
    owners = {status.counts.queue: status.owner or "" for status in app.inspect.queues()}
    latest = app.inspect.jobs(_dead(Filter(fingerprint=which)), limit=1).jobs
    details = [app.inspect.job(job.id) for job in latest]
    document: Json = {
        "groups": [_with_owner(group, owners) for group in found],
        "latest": [plain(detail) for detail in details],
    }

    def lines() -> list[str]:
        text = _group_lines(found, owners, now, session.out)
        for detail in details:
            text += ["", *job_lines(detail, now, session.out)]
        return text

    session.out.answer(document, lines)


@dead.command()
@common
@filters
@acting
@rated
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...")
@click.option("--first", type=click.IntRange(1, 100), metavar="N", help="Only the oldest N: to try it out.")
@click.option(
    "--priority", type=int, help="Lower is more urgent; a large redrive stands at 200, behind today's work."
)
@click.option("--follow", is_flag=True, help="Watch until it is done; exit 1 when a job ends badly again.")
@click.pass_context
def redrive(
    context: click.Context,
    ids: tuple[int, ...],
    filter: Filter,
    everything: bool,
    act: Act,
    rate: Rate | None,
    first: int | None,
    priority: int | None,
    follow: bool,
) -> None:
    """Run dead letters again, with a new budget of attempts. Asked twice, a job still runs again once.

    Takes dead jobs; with ids or --state also cancelled and skipped ones. More than 100 jobs need --rate and become
    an operation, which the workers carry out and which can be paused.

    \b
      duly dead redrive 42
      duly dead redrive --fingerprint a91f --dry-run
      duly dead redrive --fingerprint a91f --rate 20/s --priority 200 --reason INC-311 --yes
    """
    session = session_of(context)
    wish = Bulk("redrive", ids, filter, everything, first, rate, priority, follow)
    perform(session, session.data(), wish, act)


@dead.command()
@common
@filters
@acting
@rated
@click.argument("ids", nargs=-1, type=int, metavar="[ID]...")
@click.pass_context
def purge(
    context: click.Context,
    ids: tuple[int, ...],
    filter: Filter,
    everything: bool,
    act: Act,
    rate: Rate | None,
) -> None:
    """Delete dead letters for good, with their arguments and errors.

    \b
      duly dead purge --fingerprint a91f --until 7d --reason "the service is gone" --rate max
    """
    session = session_of(context)
    perform(session, session.data(), Bulk("purge", ids, filter, everything, rate=rate), act)


def _dead(filter: Filter) -> Filter:
    if filter.state not in {None, State.dead}:
        raise UsageError(
            f"--state {filter.state} is not dead; list them with duly jobs --state {filter.state}"
        )
    return msgspec.structs.replace(filter, state=State.dead)


def _with_owner(group: DeadGroup, owners: dict[str, str]) -> Json:
    document = plain(group)
    if isinstance(document, dict):
        document["owner"] = owners.get(group.queue) or None
    return document


def _group_lines(found: tuple[DeadGroup, ...], owners: dict[str, str], now: datetime, out: Out) -> list[str]:
    if not found:
        return ["no dead letters"]
    rows = [
        [
            group.fingerprint,
            count(group.count),
            relative(group.first, now),
            relative(group.last, now),
            group.queue,
            owners.get(group.queue, ""),
            group.task,
            printable(group.error),
        ]
        for group in found
    ]
    text = out.table(GROUPS, rows)
    if not out.quiet:
        total = sum(group.count for group in found)
        text.append(f"{counted(total, 'dead letter')} in {counted(len(found), 'group')}")
    return text
