"""`duly status`: one row a queue, and in a sentence what will happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click
from msgspec.structs import replace

from duly.client.alert_reads import firing
from duly.client.inspect import QueueStatus, Status
from duly.core.bounds import share_text
from duly.core.operating import AlertRecord
from duly.core.share import advice, shares
from duly.stores.protocol import QueueCount

from .options import common
from .output import Column, Out, age, count, counted, plain, printable, rate
from .session import session_of

COLUMNS = (
    Column("QUEUE"),
    Column("READY", "right"),
    Column("SCHEDULED", "right"),
    Column("BLOCKED", "right"),
    Column("RUNNING", "right"),
    Column("DEAD", "right"),
    Column("OLDEST", "right"),
    Column("IN/s", "right"),
    Column("OUT/s", "right"),
    Column("DRAIN", "right"),
    Column("SLOPE/s", "right"),
    Column(""),
)

_ALARMS = 5
_KEYS = 5
"""Ordering keys that are stuck or hot, and told of."""


@click.command()
@common
@click.argument("queue", required=False)
@click.pass_context
def status(context: click.Context, queue: str | None) -> None:
    """What waits, what runs, and what will come of it.

    One row for each queue: jobs by state, the age of the job that is ready longest, jobs in and out per second over
    the last minutes, the time until nothing waits (DRAIN), and how fast the line grows (SLOPE); of a queue with
    max_depth how full it is. Then a sentence for each queue that needs a person or turns jobs away; with a budget for
    the store (DULY_MAX_BYTES, DULY_MIN_FREE_DISK) what is spent of it and when it will be full; and, on PostgreSQL,
    what share of its commits, WAL and connections the queues take, and whether they should have a broker or a database
    of their own. Who writes how much WAL is known by pg_stat_statements only; without it, rows tell.

    \b
      duly status
      duly status mail -o json
    """
    session = session_of(context)
    app = session.data()
    found = app.inspect.status()
    if queue is not None:
        found = replace(found, queues=(app.inspect.queue(queue),))
    people = session.out.for_people and not session.quiet
    troubles = app.inspect.key_troubles(queue) if people else ()
    alarms = firing(app.inspect.alerts()) if people else []

    def told() -> list[str]:
        more = [f"{len(troubles) - _KEYS} more ordering keys: duly check"] if len(troubles) > _KEYS else []
        return [
            *lines(found, session.out),
            *(f"{text[0].upper()}{text[1:]}." for text in troubles[:_KEYS]),
            *more,
            *alarm(alarms),
        ]

    session.out.answer(plain(found), told, (plain(row) for row in found.queues))


def lines(found: Status, out: Out) -> list[str]:
    """The answer for people."""
    text = [] if out.quiet else [headline(found)]
    text += out.table(COLUMNS, (row(queue) for queue in found.queues))
    if not out.quiet:
        text += [*sentences(found), *room(found), *burden(found)]
    return text


def alarm(alarms: Sequence[AlertRecord]) -> list[str]:
    """What fires, by name."""
    if not alarms:
        return []
    named = ", ".join(printable(f"{one.rule} {one.target}") for one in alarms[:_ALARMS])
    more = f" and {len(alarms) - _ALARMS} more" if len(alarms) > _ALARMS else ""
    fires = "1 alert fires" if len(alarms) == 1 else f"{len(alarms)} alerts fire"
    return [f"{fires}: {named}{more}; see duly alerts list"]


def room(found: Status) -> list[str]:
    """How much of its budget the store has spent, and when it will be full."""
    return [] if found.room is None else [f"{found.room.health[0].upper()}{found.room.health[1:]}."]


def burden(found: Status) -> list[str]:
    """What the queues are to a database that others use, too."""
    if found.load is None:
        return []
    return [shares(found.load), *advice(found.load, found.jobs_per_s)]


def headline(found: Status) -> str:
    """Where the store is, and whether anybody works."""
    facts = found.store
    where = facts.get("where", "?")
    extra = [f"{name} {facts[name]}" for name in ("schema", "journal") if name in facts]
    workers = counted(found.workers, "worker")
    if found.workers:
        progress = (
            "no progress yet"
            if found.newest_progress is None
            else f"progress {age(found.newest_progress)} ago"
        )
        workers = (
            f"{workers}, newest {progress}" if found.newest_progress is not None else f"{workers}, {progress}"
        )
    return " · ".join([where, *extra, workers, found.now.strftime("%H:%M:%S UTC")])


def row(queue: QueueStatus) -> list[str]:
    """One queue as cells."""
    counts = queue.counts
    if not counts.ready:
        drain = "-"
    elif queue.drain is not None:
        drain = age(queue.drain)
    else:
        drain = "never" if queue.rates_known else "?"
    slope = "-"
    if counts.slope_per_s is not None:
        slope = ("+" if counts.slope_per_s > 0 else "") + rate(counts.slope_per_s)
    return [
        counts.queue,
        *(_counted(counts, state) for state in ("ready", "scheduled", "blocked", "running", "dead")),
        age(counts.oldest_ready),
        rate(counts.in_per_s),
        rate(counts.out_per_s),
        drain,
        slope,
        _noted(queue),
    ]


def _noted(queue: QueueStatus) -> str:
    """What is true of this queue that is not of others."""
    bound, paused = queue.pressure.bound, "paused" if queue.counts.paused else ""
    filled = (
        "" if bound is None or bound.max_depth is None else f"{share_text(bound, queue.counts.ready)} full"
    )
    late = "" if queue.late is None else "late"
    return ", ".join(part for part in (paused, late, filled) if part)


def _counted(counts: QueueCount, state: str) -> str:
    """A count; an estimate with two figures and a sign that it is one."""
    number: int = getattr(counts, state)
    return f"~{count(round(number, 2 - len(str(number))))}" if state in counts.estimated else count(number)


def sentences(found: Status) -> Iterable[str]:
    """One sentence for each queue that waits for somebody; else that there is none."""
    text: list[str] = []
    for queue in found.queues:
        if queue.health != "idle" and not queue.health.startswith("keeping up"):
            text.append(f"{queue.counts.queue}: {queue.health}")
        if queue.pressed is not None:
            text.append(f"{queue.counts.queue}: {queue.pressed}")
        if queue.late is not None:
            text.append(f"{queue.counts.queue}: {queue.late}")
        if queue.counts.dead:
            name = queue.counts.queue
            text.append(
                f"{name}: {counted(queue.counts.dead, 'dead letter')}; see duly dead groups --queue {name}"
            )
    if text:
        return text
    busy = any(queue.counts.ready or queue.counts.running for queue in found.queues)
    return ["All queues keep up." if busy else "Nothing waits, nothing runs."]
