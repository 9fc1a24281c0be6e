"""`duly dead`: the dead letters, in groups or one by one, and what to do with them."""

from __future__ import annotations

import re

import click
import msgspec

from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.core.operating import TriageState

from .acts import Bulk, perform
from .job import lines as job_lines
from .jobs import COLUMNS as JOB_COLUMNS
from .jobs import row as job_row
from .options import Act, Rate, acting, common, filters, rated
from .output import Json, plain
from .session import session_of
from .triage import commands, group_lines, said_lines


@click.group()
@common
def dead() -> None:
    """Dead letters: jobs that failed for good. They are kept with everything needed to run again.

    \b
      duly dead groups --since 3h                       what failed, by error
      duly dead show a91f                               one error, with its latest traceback
      duly dead ack a91f --owner ada                    somebody sees to it
      duly dead redrive --fingerprint a91f --dry-run    how many, since when
      duly dead redrive --fingerprint a91f --first 1 --follow
      duly dead redrive --fingerprint a91f --rate 20/s --reason INC-311
      duly dead fixed a91f                              new again as soon as one dies of it
    """


@dead.command()
@common
@filters
@click.option("--owner", metavar="NAME", help="Only groups that this one sees to.")
@click.option(
    "--mark", type=click.Choice(["new", "acknowledged", "fixed"]), help="Only groups that stand so."
)
@click.pass_context
def groups(
    context: click.Context, filter: Filter, everything: bool, owner: str | None, mark: TriageState | None
) -> None:
    """Dead letters by error, the largest group first, with whose they are and what was said of them.

    \b
      duly dead groups --queue mail --since 3h
      duly dead groups --mark new
    """
    del everything
    session = session_of(context)
    app = session.data()
    found = app.inspect.dead_groups(filter, state=mark, owner=owner)
    now = app.client.call(app.store.inspection.now)
    rows: list[Json] = [plain(group) for group in found]
    session.out.answer(rows, lambda: group_lines(found, now, session.out), rows)


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
    group = app.inspect.dead_group(which)
    details = [] if group.latest is None else [app.inspect.job(group.latest.id)]
    document: Json = {
        "groups": plain(group.groups),
        "outlook": plain(group.outlook),
        "latest": [plain(detail) for detail in details],
    }

    def lines() -> list[str]:
        text = group_lines(group.groups, now, session.out)
        text += said_lines(group.groups, now)
        for detail in details:
            text += ["", *job_lines(detail, now, session.out)]
        if group.fingerprint and not session.out.quiet:
            text += ["", *_next_steps(group.fingerprint)]
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
    "--priority",
    type=int,
    help="Lower is more urgent. A large redrive stands behind today's work: at its jobs' own priority + 100.",
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


def _next_steps(fingerprint: str) -> list[str]:
    return [
        f"somebody sees to it:  duly dead ack {fingerprint} --owner NAME",
        f"how many, since when: duly dead redrive --fingerprint {fingerprint} --dry-run",
        f"try one:              duly dead redrive --fingerprint {fingerprint} --first 1 --follow",
        f"then the rest:        duly dead redrive --fingerprint {fingerprint} --rate 20/s --reason WHY",
        f"when it is over:      duly dead fixed {fingerprint}",
    ]


def _dead(filter: Filter) -> Filter:
    if filter.state not in {None, State.dead}:
        raise UsageError(
            f"--state {filter.state} is not dead; list them with duly jobs --state {filter.state}"
        )
    return msgspec.structs.replace(filter, state=State.dead)


commands(dead)
