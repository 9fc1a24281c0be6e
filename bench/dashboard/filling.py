"""Millions of jobs as copies of the templates, with queues, tenants, tags, errors and keys of their own.

Knows the tables, but takes every column that it does not set from a row of the product's. The state of a job follows
from its number: the newest tenth waits, the others have ended, and everywhere some are scheduled, dead or cancelled.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bench.dashboard.shop import KINDS, QUEUES, Kind, kinds, tasks
from bench.dashboard.templates import Templates

CHUNK = 250_000
HOURS = 20
"""So long ago the oldest job was enqueued: what is finished is kept for a day."""
AUDITED = 20_000


class Engine(Protocol):
    """One kind of database, as far as SQL differs."""

    def numbers(self, first: int, last: int) -> str:
        """A query with one column `id`."""

    def ago(self, seconds: str) -> str:
        """The moment so many seconds ago, as columns hold it."""

    def data(self, text: str) -> str:
        """Text as columns of arguments hold it."""

    def tags(self, tag: str) -> str:
        """A list of one tag."""

    def moment(self, at: datetime) -> object:
        """A moment as columns hold it."""

    def sample(self, queue: str, at: datetime, ready: int, ended: int) -> tuple[object, ...]:
        """A row of what stood in a queue."""

    def table(self, name: str) -> str: ...

    def columns(self, name: str) -> list[str]: ...

    def execute(self, statement: str) -> None: ...

    def many(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        """With a ? for each value."""

    def settle(self, last: int) -> None:
        """As autovacuum would, once there was time; new jobs are numbered from `last` on."""


def fill(engine: Engine, templates: Templates, size: int, *, tell: bool = True) -> float:
    """Add `size` jobs behind those of the templates; the seconds it took."""
    began = time.monotonic()
    first = templates.ready + 1
    _store_kinds(engine, kinds())
    for start in range(first, first + size, CHUNK):
        last = min(start + CHUNK, first + size) - 1
        for statement in _statements(engine, templates, first, size, (start, last)):
            engine.execute(statement)
        if tell and size >= CHUNK:
            print(
                f"  {last - first + 1:,} of {size:,} jobs after {time.monotonic() - began:,.0f} s", flush=True
            )
    _store_heads(engine)
    _store_history(engine, datetime.now(UTC))
    engine.settle(first + size)
    return time.monotonic() - began


def _statements(
    engine: Engine, templates: Templates, first: int, size: int, part: tuple[int, int]
) -> list[str]:
    recent = f"g.id >= {first + size * 9 // 10}"
    slot = "g.id % 100"
    keyed = f"{recent} and {slot} between 10 and 30"
    # The last one was enqueued a moment ago, whatever the size.
    at = engine.ago(f"({HOURS * 3600} * ({first + size} - g.id) / {size})")
    named = {"queue": "k.queue", "task": "k.task", "tenant": "k.tenant", "queue_key": "k.queue_key"}
    keys = {"queue": "k.queue_key", "task": "k.task_key", "pos": "g.id"}
    correlation = "case when g.id % 2 = 0 then 'order-' || (g.id / 10) end"
    times = {"enqueued_at": at, "started_at": at, "finished_at": at, "died_at": at, "ended_at": at}
    times |= {"announced_at": at}
    error = {"fingerprint": "k.fingerprint", "error_message": "k.message || ' ' || g.id"}
    error |= {"traceback": "k.traceback", "error_traceback": "k.traceback"}
    arguments = (
        """'{"order_id":' || g.id || ',"customer_id":' || (g.id % 10007) || ',"note":"gift wrapping"}'"""
    )
    job = {
        **named,
        "suspect_key": "k.suspect_key",
        "task_key": "k.task_key",
        "enqueued_at": at,
        "correlation_id": correlation,
        "args": engine.data(arguments),
        "tags": f"case when g.id % 4 = 0 then {engine.tags('k.tag')} end",
        "ordering_key": f"case when {keyed} then k.ordering_key end",
    }
    ended = named | times | {"correlation_id": correlation}
    later = engine.ago("-(86400 + g.id % 31000000)")
    copies: list[tuple[str, int, str, Mapping[str, str]]] = [
        ("job", templates.ready, "true", job),
        ("finished", templates.completed, f"not ({recent}) and {slot} >= 10", ended),
        ("finished", templates.cancelled, f"{slot} in (8, 9)", ended),
        ("dead", templates.dead, f"{slot} in (0, 1)", ended | error),
        ("attempt", templates.dead, f"{slot} in (0, 1)", times | error),
        ("scheduled", templates.scheduled, f"{slot} between 2 and 7", keys | {"run_at": later}),
        (
            "blocked",
            templates.blocked,
            f"{keyed} and {slot} <> 30",
            keys | {"gate": "k.ordering", "since": at},
        ),
        ("ready", templates.ready, f"{recent} and {slot} >= 30", keys | {"ready_at": at}),
    ]
    source = f"({engine.numbers(*part)}) g join bench_kind k on k.number = g.id % {KINDS}"
    rows = [
        ("job_tag", "tag, id", "k.tag, g.id", "g.id % 4 = 0"),
        ("keyed", "key, id", "k.ordering, g.id", keyed),
    ]
    return [
        *(_copy(engine, source, *copy) for copy in copies),
        *(
            f"insert into {engine.table(table)} ({into}) select {values} from {source} where {which}"
            for table, into, values, which in rows
        ),
    ]


def _copy(engine: Engine, source: str, table: str, template: int, which: str, own: Mapping[str, str]) -> str:
    columns = engine.columns(table)
    values = [own.get(column, "g.id" if column == "id" else f"t.{column}") for column in columns]
    return (
        f"insert into {engine.table(table)} ({', '.join(map(_quoted, columns))}) select {', '.join(values)}"
        f" from {source} cross join (select * from {engine.table(table)} where id = {template}) t where {which}"
    )


def _quoted(column: str) -> str:
    return f'"{column}"'


def _store_kinds(engine: Engine, all_kinds: list[Kind]) -> None:
    engine.execute(
        "create temporary table bench_kind (number bigint primary key, queue text, queue_key bigint,"
        " suspect_key bigint, task text, task_key bigint, tenant text, tag text, fingerprint text, message text,"
        " traceback text, ordering_key text, ordering bigint)"
    )
    rows: list[tuple[object, ...]] = [
        tuple(getattr(kind, field) for field in Kind.__dataclass_fields__) for kind in all_kinds
    ]
    engine.many(f"insert into bench_kind values ({', '.join('?' * len(rows[0]))})", rows)


def _store_heads(engine: Engine) -> None:
    """One of the ready jobs of each ordering key goes first."""
    engine.execute(
        f"insert into {engine.table('key_head')} (key, id, queue, since)"
        f" select k.ordering, min(x.id), min(k.queue_key), {engine.ago('60')}"
        f" from {engine.table('keyed')} x join bench_kind k on k.ordering = x.key"
        f" join {engine.table('ready')} r on r.id = x.id group by k.ordering"
    )


def _store_history(engine: Engine, now: datetime) -> None:
    """What pages tell of the past: a fortnight of tallies, two hours of samples, and acts."""
    counts = (1_200, 10, 5, 2, 0, 40, 1, 2, 3, 1, 7, 9_000_000, 70_000_000)
    minute = now.replace(second=0, microsecond=0)
    tallies: list[tuple[object, ...]] = [
        (span, engine.moment(end - timedelta(minutes=span * place)), queue, task, *counts)
        for span, places, end in ((1, 60, minute), (60, 14 * 24, minute.replace(minute=0)))
        for place in range(1, places)
        for task, queue in tasks()
    ]
    engine.many(f"insert into {engine.table('tally')} values ({', '.join('?' * len(tallies[0]))})", tallies)
    samples = [
        engine.sample(
            f"queue-{queue:02}", now - timedelta(seconds=10 * place), 20_000 - 3 * place, 10**6 - 40 * place
        )
        for place in range(720)
        for queue in range(QUEUES)
    ]
    engine.many(f"insert into {engine.table('sample')} values ({', '.join('?' * len(samples[0]))})", samples)
    acts: list[tuple[object, ...]] = [
        (
            engine.moment(now - timedelta(minutes=number)),
            "ada",
            "cancel",
            "",
            f"order {number} was a mistake",
            '{"jobs":1}',
        )
        for number in range(AUDITED)
    ]
    engine.many(
        f"insert into {engine.table('audit_entry')} (at, actor, verb, target, reason, detail)"
        " values (?, ?, ?, ?, ?, ?)",
        acts,
    )
