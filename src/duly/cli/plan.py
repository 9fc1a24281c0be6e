"""`duly plan`: how long a backlog takes, and how many workers it would need. Arithmetic; the store only when asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import click
import msgspec

from duly.client.inspect import QueueStatus
from duly.core.durations import parse_rate
from duly.core.errors import UsageError
from duly.core.plan import Plan, spelled
from duly.core.plan import plan as planned

from .options import common, duration
from .output import counted, plain, rate
from .session import Session, session_of

_MOST: Final = 1e15


class Answer(msgspec.Struct, frozen=True):
    """The whole answer without a store."""

    plan: Plan
    sentence: str


class LivePlan(msgspec.Struct, frozen=True):
    """What becomes of one queue as it stands. `plan` is None where nobody has measured its speed."""

    queue: str
    workers: int
    plan: Plan | None
    workers_needed: int | None
    """For its wait target."""
    sentence: str


@click.command("plan", short_help="How long a backlog takes, and how many workers it needs.")
@common
@click.option("--backlog", metavar="N", help="Jobs that wait, as 40000 or 1e6.")
@click.option("--rate", "speed", metavar="N/s", help="What all workers together finish, as 500/s or 20/min.")
@click.option("--arrivals", metavar="N/s", help="What comes meanwhile. [0/s]")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="How many workers finish --rate. [1]")
@click.option(
    "--within", type=duration("--within"), metavar="DURATION", help="Say how many do it in this time."
)
@click.option("--from-live", "live", is_flag=True, help="Take the numbers of the queues as they are now.")
@click.option("--queue", metavar="NAME", help="With --from-live: only this one.")
@click.pass_context
def plan(
    context: click.Context,
    backlog: str | None,
    speed: str | None,
    arrivals: str | None,
    workers: int | None,
    within: timedelta | None,
    live: bool,
    queue: str | None,
) -> None:
    """How long until a backlog is done, and how many workers it takes.

    Without --arrivals the time is the backlog by the rate; with arrivals below the rate, by the difference; at or
    above it the line never empties, and the answer says how many workers it would need.

    \b
      duly plan --backlog 1e6 --rate 500/s
      duly plan --backlog 40000 --rate 90/s --arrivals 20/s --workers 3 --within 5m
      duly plan --from-live
    """
    session = session_of(context)
    if live:
        if any(said is not None for said in (backlog, speed, arrivals, workers)):
            raise UsageError(
                "--from-live reads backlog, rate, arrivals and workers from the store; leave those out"
            )
        _answer_live(session, queue, within)
        return
    if queue is not None:
        raise UsageError("--queue names one of the store's; add --from-live")
    if backlog is None or speed is None:
        raise UsageError("give --backlog and --rate, as --backlog 1e6 --rate 500/s, or --from-live")
    made = planned(
        _jobs(backlog),
        _per_second(speed, "--rate"),
        0.0 if arrivals is None else _arrivals(arrivals),
        workers=workers or 1,
        within=within,
    )
    document = plain(Answer(made, made.sentence()))
    session.out.answer(document, lambda: _lines(made, within))


def _lines(made: Plan, within: timedelta | None) -> Iterator[str]:
    yield made.sentence()
    if within is not None:
        yield f"in {spelled(within)}: {counted(made.workers_needed, 'worker')}"


def _answer_live(session: Session, queue: str | None, within: timedelta | None) -> None:
    app = session.data()
    found = app.inspect.queues() if queue is None else (app.inspect.queue(queue),)
    plans = [_live(status, within) for status in found]

    def lines() -> Iterator[str]:
        for status, made in zip(found, plans, strict=True):
            counts = status.counts
            head = (
                f"{made.queue}: {counted(counts.ready, 'job')}, {rate(counts.in_per_s)}/s in, "
                f"{rate(counts.out_per_s)}/s out, {counted(made.workers, 'worker')}: "
            )
            yield head + _said(made, counts.ready)
            if made.plan is not None and within is not None:
                yield f"  in {spelled(within)}: {counted(made.plan.workers_needed, 'worker')}"

    session.out.answer([plain(made) for made in plans], lines, (plain(made) for made in plans))


def _said(made: LivePlan, ready: int) -> str:
    if made.plan is not None:
        return made.plan.sentence()
    return "nobody has measured its speed yet" if ready else "nothing waits"


def _live(status: QueueStatus, within: timedelta | None) -> LivePlan:
    counts = status.counts
    made = None
    if counts.ready and counts.in_per_s is not None and counts.out_per_s is not None and status.workers:
        made = planned(counts.ready, counts.out_per_s, counts.in_per_s, workers=status.workers, within=within)
    return LivePlan(counts.queue, status.workers, made, status.workers_needed, status.health)


def _jobs(text: str) -> float:
    try:
        number = float(text.replace("_", "").replace(",", ""))
    except ValueError:
        number = math.nan
    if not 0 <= number <= _MOST:
        raise UsageError(f"--backlog {text!r:.40} is no number of jobs; write 40000, 40,000 or 1e6")
    return number


def _per_second(text: str, flag: str) -> float:
    value = parse_rate(text, flag)
    if value is None:
        raise UsageError(f"{flag} max is no speed; write one such as 500/s")
    return value


def _arrivals(text: str) -> float:
    """As a rate, and nothing may come, too."""
    if text.strip().startswith("0/"):
        return 0.0
    return _per_second(text, "--arrivals")
