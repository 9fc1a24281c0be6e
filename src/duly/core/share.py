"""How much of its database a queue takes, in words: its share, and whether it should have a place of its own.

Pure numbers in, words out; knows no store and no clock.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

MOSTLY: Final = 0.5
"""From this share on the queue is what the database is busy with."""
MANY_COMMITS: Final = 1_000.0
MUCH_WAL: Final = 4 * 1024 * 1024.0
"""Bytes a second: 350 GB a day that backups and replicas carry."""
MANY_WRITES: Final = 10_000.0
"""Rows a second, where nobody knows the WAL."""
MANY_JOBS: Final = 10_000.0
"""A second: towards the end of one database, whatever else is in it."""
CROWDED: Final = 0.8

_LEAST_SPAN: Final = timedelta(seconds=20)


class LoadReading(Struct, frozen=True):
    """Counters of a database that only grow, at one moment. None: not known there."""

    at: datetime
    commits: int
    written: int
    """Rows inserted, updated or deleted in the database."""
    wal: int
    """Bytes, of the whole server."""
    own_statements: int | None
    """The queue's; nearly each is a commit of its own, but for enqueues in a caller's transaction."""
    own_wal: int | None
    own_written: int


class DatabaseLoad(Struct, frozen=True):
    """What the database does a second over the last minutes, and what of it is the queue's. None: not known."""

    connections: int
    """Of the whole server."""
    own_connections: int
    most_connections: int
    span: timedelta | None = None
    """Over how long; None: workers have kept no two readings lately."""
    commits_per_s: float | None = None
    own_commits_per_s: float | None = None
    wal_per_s: float | None = None
    """Bytes, of the whole server."""
    own_wal_per_s: float | None = None
    written_per_s: float | None = None
    own_written_per_s: float | None = None


def load_between(
    readings: Sequence[LoadReading], connections: int, own_connections: int, most_connections: int
) -> DatabaseLoad:
    """The rates between the first and the last reading, oldest first, since the statistics were last reset."""
    load = DatabaseLoad(connections, own_connections, most_connections)
    first = 0
    for place in range(1, len(readings)):
        if _reset(readings[place - 1], readings[place]):
            first = place
    if not readings or readings[-1].at - readings[first].at < _LEAST_SPAN:
        return load
    before, after = readings[first], readings[-1]
    span = after.at - before.at
    seconds = span.total_seconds()

    def rate(old: int | None, new: int | None) -> float | None:
        return None if old is None or new is None else (new - old) / seconds

    return DatabaseLoad(
        connections,
        own_connections,
        most_connections,
        span,
        commits_per_s=rate(before.commits, after.commits),
        own_commits_per_s=rate(before.own_statements, after.own_statements),
        wal_per_s=rate(before.wal, after.wal),
        own_wal_per_s=rate(before.own_wal, after.own_wal),
        written_per_s=rate(before.written, after.written),
        own_written_per_s=rate(before.own_written, after.own_written),
    )


def share(own: float | None, whole: float | None) -> float | None:
    """The part, at most 1; None when either is not known, or when nothing happened."""
    if own is None or not whole:
        return None
    return min(1.0, own / whole)


def shares(load: DatabaseLoad) -> str:
    """What the queue takes of commits, WAL and connections, in one line."""
    parts = []
    if load.span is not None:
        parts.append(_part(load.own_commits_per_s, load.commits_per_s, "{:,.0f} commits/s"))
        wal = None if load.wal_per_s is None else load.wal_per_s / 1024
        own_wal = None if load.own_wal_per_s is None else load.own_wal_per_s / 1024
        parts.append(_part(own_wal, wal, "{:,.0f} KiB/s of WAL"))
        if load.own_wal_per_s is None:
            parts.append(_part(load.own_written_per_s, load.written_per_s, "{:,.0f} rows/s written"))
    parts.append(f"{load.own_connections} of {load.most_connections} connections ({load.connections} in use)")
    text = "the queue's share: " + ", ".join(parts)
    if load.span is None:
        return f"{text}; commits and WAL are known once a worker has run for a minute"
    if load.own_commits_per_s is None:
        return (
            f"{text}; the unknown ones need pg_stat_statements, and pg_read_all_stats for the schema's owner"
        )
    return text


def advice(load: DatabaseLoad, jobs_per_s: float | None) -> list[str]:
    """When it is time for a broker, a database of its own or a pooler; one sentence that it is not, when it is not."""
    found = []
    if load.most_connections and load.connections >= CROWDED * load.most_connections:
        found.append(
            f"{load.connections} of {load.most_connections} connections are in use, {load.own_connections} by duly: "
            "put PgBouncer before the application, or raise max_connections"
        )
    if jobs_per_s is not None and jobs_per_s >= MANY_JOBS:
        found.append(
            f"at {jobs_per_s:,.0f} jobs/s one database comes to its end: time for a broker, or for a second one "
            "beside it (jobs.at(url))"
        )
    if reason := _too_much(load):
        found.append(
            f"{reason}: time for a database of its own, so that backups, replicas and vacuum carry your data only"
        )
    if not found and load.span is not None:
        known = "" if load.own_wal_per_s is not None else ", as far as rows tell"
        found.append(f"it needs neither a broker nor a database of its own{known}")
    return found


def _too_much(load: DatabaseLoad) -> str | None:
    for own, whole, much, what in (
        (load.own_wal_per_s, load.wal_per_s, MUCH_WAL, "WAL"),
        (load.own_commits_per_s, load.commits_per_s, MANY_COMMITS, "commits"),
        (load.own_written_per_s, load.written_per_s, MANY_WRITES, "rows written"),
    ):
        part = share(own, whole)
        if own is not None and part is not None and own >= much and part >= MOSTLY:
            return f"{part:.0%} of the {what} are the queue's"
    return None


def _part(own: float | None, whole: float | None, words: str) -> str:
    part = share(own, whole)
    said = words.format(whole or 0.0)
    return f"unknown of {said}" if part is None and whole else f"{part or 0.0:.0%} of {said}"


def _reset(before: LoadReading, after: LoadReading) -> bool:
    """Whether a counter went back, or became known only between the two."""
    return (
        after.commits < before.commits
        or after.written < before.written
        or after.wal < before.wal
        or after.own_written < before.own_written
        or (after.own_statements is None) != (before.own_statements is None)
        or (after.own_statements or 0) < (before.own_statements or 0)
        or (after.own_wal or 0) < (before.own_wal or 0)
    )
