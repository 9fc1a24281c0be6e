"""InspectionStore on PostgreSQL: what can be read. Writes nothing."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from duly.core.control import queue_limit
from duly.core.dead_breaker import AUTHOR, Outcomes
from duly.core.durations import format_duration
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.share import DatabaseLoad, LoadReading, load_between
from duly.core.why import MOST_AHEAD, JobFacts
from duly.stores.postgres import records
from duly.stores.postgres.columns import utc
from duly.stores.postgres.counting import queue_counts
from duly.stores.postgres.database import Database, behind
from duly.stores.protocol import DeadGroup, OperationRecord, Page, Pause, QueueCount, WorkerRecord

# A page reads on for so long, then answers with what it has and where to go on.
_PAGE_SECONDS: Final = 0.15
_PAGE_STEP: Final = 250
_SKEW: Final = 2.0

# Tables of so many pages are counted whole, in about 10 ms; in larger ones, lanes of more jobs are estimated.
_PAGES: Final = 1_000
_SAMPLE: Final = 8
_EXACT: Final = 10_000

_BY_STATE: Final = {
    State.ready: "ready",
    State.scheduled: "scheduled",
    State.blocked: "blocked",
    State.running: "running",
    State.dead: "dead",
}


class PostgresInspection:
    """See `InspectionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lookup(self, ids: Sequence[JobId]) -> list[JobRecord | None]:
        found = self._records(ids)
        return [found.get(id) for id in ids]

    def facts(self, id: JobId) -> JobFacts | None:
        rows = self._database.call("read_job_facts", {"id": id, "most": MOST_AHEAD})
        return records.job_facts(rows[0]) if rows else None

    def outcomes(self, queue: str, since: datetime, least: int, share: float) -> Outcomes:
        parameters = {
            "queue": queue,
            "target": queue_limit(queue),
            "by": AUTHOR,
            "since": since,
            "least": least,
            "share": share,
            "most": MOST_AHEAD,
        }
        return Outcomes(*self._database.call("read_outcomes", parameters)[0])

    def attempts(self, id: JobId) -> list[AttemptRecord]:
        return [records.attempt_record(row) for row in self._database.call("read_attempts", {"id": id})]

    def page(
        self, filter: Filter, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """Walks the narrowest index that the filter allows, in statements of a few milliseconds each."""
        source, value = _source(filter)
        # Without a correlation id of its own a job is found by its number, which stands in no index of those.
        own = _own(value) if source == "correlation" else None
        if source == "error":
            statement = "select_dead_error_ids_before" if after is None else "select_dead_error_ids_after"
        else:
            statement = "list_ids_before" if after is None else "list_ids_after"
        edge = after if after is not None else before if before is not None else 2**63 - 1
        indexed = replace(filter, where=None)
        found: list[JobRecord] = []
        give_up = time.monotonic() + _PAGE_SECONDS
        while True:
            most = max(limit - len(found) + 1, _PAGE_STEP if found or filter.parts() else limit + 1)
            rows = self._database.call(
                statement, {"source": source, "value": value, "edge": edge, "most": most}
            )
            ids = [JobId(row[0]) for row in rows]
            if own is not None and own not in ids and (own < edge if after is None else own > edge):
                ids = sorted([*ids, own], reverse=after is None)[:most]
            known = self._records(ids)
            for id in ids:
                record = known.get(id)
                if record is not None and indexed.matches(record):
                    if len(found) == limit:
                        return Page(tuple(found), edge)
                    found.append(record)
                edge = id
            if len(ids) < most:
                return Page(tuple(found), None)
            if time.monotonic() >= give_up:
                return Page(tuple(found), edge)

    def counts(self) -> list[QueueCount]:
        at = {"now": self._database.now()}
        counts = self._database.call(
            "count_queues", {**at, "exact": _EXACT, "pages": _PAGES, "sample": _SAMPLE}
        )
        return queue_counts(counts, self._database.call("read_samples", at), self.now())

    def workers(self) -> list[WorkerRecord]:
        rows = self._database.call("read_workers", {"now": self._database.now()})
        return [records.worker_record(row) for row in rows]

    def dead_groups(self, filter: Filter) -> list[DeadGroup]:
        if filter.state not in {None, State.dead}:
            return []
        parameters = {
            "queue": filter.queue,
            "task": filter.task,
            "tenant": filter.tenant,
            "correlation": filter.correlation,
            "fingerprint": filter.fingerprint,
            "tag": filter.tag,
            "since": filter.since,
            "until": filter.until,
        }
        return [records.dead_group(row) for row in self._database.call("group_dead", parameters)]

    def pauses(self) -> list[Pause]:
        rows = self._database.call("read_pauses", {"now": self._database.now()})
        return [records.pause_record(row) for row in rows]

    def operations(self) -> list[OperationRecord]:
        return [records.operation_record(row) for row in self._database.call("read_operations")]

    def now(self) -> datetime:
        given = self._database.now()
        return given if given is not None else utc(self._database.call("read_clock")[0][0])

    def load(self) -> DatabaseLoad | None:
        rows = self._database.call("read_load", {"now": self._database.now()})
        connections, own, most = self._database.call("count_connections")[0]
        readings = [LoadReading(utc(row[0]), *row[1:]) for row in rows]
        return load_between(readings, connections, own, most)

    def describe(self) -> dict[str, str]:
        version, name, user, commit, _ = self._database.call("read_facts")[0]
        with self._database.pool.link() as link:
            found = self._database.found_version(link.connection)
        return {
            "store": "PostgreSQL",
            "where": self._database.where,
            "server": f"PostgreSQL {version}",
            "database": f"{name} as {user}",
            "sync": f"synchronous_commit {commit}",
            "schema": f"version {found}, schema {self._database.schema}",
        }

    def warnings(self) -> list[str]:
        rows = self._database.call("find_warnings", {"process": datetime.now(UTC)})
        found = [_warning(kind, detail, number, self._database.schema) for kind, detail, number in rows]
        if self._database.pooled:
            found.append(
                "this URL leads through a connection pooler, where workers cannot be woken and poll instead: "
                "give workers a URL of the server itself, or say notify=False to keep it so"
            )
        return [warning for warning in found if warning]

    def _records(self, ids: Sequence[JobId]) -> dict[JobId, JobRecord]:
        if not ids:
            return {}
        rows = self._database.call("lookup_jobs", {"ids": sorted(set(ids))})
        return {record.id: record for record in map(records.job_record, rows)}


def _own(correlation: str | None) -> JobId | None:
    """The job that a correlation id may be the number of."""
    if (
        correlation is None
        or not (correlation.isascii() and correlation.isdecimal())
        or len(correlation) > 18
    ):
        return None
    return JobId(int(correlation))


def _source(filter: Filter) -> tuple[str, str | None]:
    """The index to walk, and its value: the narrowest first."""
    if filter.correlation is not None:
        return "correlation", filter.correlation
    if filter.tag is not None:
        return "tag", filter.tag
    if filter.fingerprint is not None:
        # Letters of several errors no index has in one order.
        return ("error", filter.fingerprint) if filter.names_one_error else ("dead", None)
    if filter.state is not None:
        return _BY_STATE.get(filter.state, "finished"), None
    return "job", None


def _warning(kind: str, detail: str, number: float, schema: str) -> str | None:
    age = format_duration(timedelta(seconds=int(abs(number))))
    match kind:
        case "transaction":
            return (
                f"connection {detail} has had a transaction open for {age}: dead rows cannot be removed "
                "meanwhile; end it, or set idle_in_transaction_session_timeout"
            )
        case "prepared":
            return (
                f"prepared transaction {detail!r} is {age} old and keeps dead rows; "
                "COMMIT PREPARED or ROLLBACK PREPARED it"
            )
        case "slot":
            return (
                f"replication slot {detail!r} has no reader and keeps dead rows; "
                "drop it with pg_drop_replication_slot"
            )
        case "setting" if detail == "autovacuum":
            return "autovacuum is off: turn it on, or the queue slows down with every job that ran"
        case "setting":
            return f"{detail} is off: set it to on, or a crash may lose jobs that were confirmed"
        case "isolation":
            return (
                f"transactions are {detail} by default: our own say what they need, but an enqueue with a key in yours "
                "may fail with 40001; repeat the transaction, or set default_transaction_isolation to read committed"
            )
        case "public":
            return (
                f"the roles are made, and {int(number)} functions are for everybody ({detail} …), as a migration came "
                "after them; run duly migrate --roles again"
            )
        case "behind":
            return behind(schema, detail, int(number))
        case "clock" if abs(number) > _SKEW:
            return f"the server's clock is {number:+.1f} s off this machine's; synchronise both (NTP)"
        case _:
            return None
