"""After the drill: compares what the store says with what the ledger saw, and says whether every promise held."""

from collections import Counter
from dataclasses import dataclass, field

from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, Event, State
from duly.stores.protocol import Store
from tests.drill.ledger import COMMITTED, ENQUEUED, ROLLED_BACK, Line, Run, overlaps, runs


@dataclass
class Findings:
    """What the audit counted; `broken` must stay empty."""

    jobs: int = 0
    states: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    handler_runs: int = 0
    duplicate_runs: int = 0
    overlaps_frozen: int = 0
    overlap_longest_ms: float = 0.0
    broken: list[str] = field(default_factory=list)


def all_jobs(store: Store) -> list[JobRecord]:
    """Every job of the store, oldest first."""
    found: list[JobRecord] = []
    after: int | None = 0
    while after is not None:
        page = store.inspection.page(Filter(), after=after, limit=1000)
        found += page.jobs
        after = page.next
    return found


def audit(store: Store, lines: list[Line], frozen: set[int], orders: set[int]) -> Findings:
    """`frozen`: pids that were stopped by SIGSTOP; `orders`: the rows of the producers' own table."""
    findings = Findings()
    records = {record.id: record for record in all_jobs(store)}
    findings.jobs = len(records)
    findings.states.update(record.state.value for record in records.values())
    by_number = Counter(int(record.args.split(b":")[1].rstrip(b" }")) for record in records.values())
    _enqueued(findings, lines, records, by_number, orders)
    seen = runs(lines)
    for record in records.values():
        _one_job(findings, store, record, seen.get(record.id, []), frozen)
    strangers = set(seen) - set(records)
    if strangers:
        findings.broken.append(
            f"{len(strangers)} jobs ran that the store does not know: {sorted(strangers)[:5]}"
        )
    return findings


def _enqueued(
    findings: Findings,
    lines: list[Line],
    records: dict[JobId, JobRecord],
    by_number: Counter[int],
    orders: set[int],
) -> None:
    for line in lines:
        if line.kind in (ENQUEUED, COMMITTED) and line.job not in records:
            findings.broken.append(f"lost: job {line.job} ({line.n}) was accepted and is nowhere")
        if line.kind == ROLLED_BACK and by_number[line.n]:
            findings.broken.append(f"{line.n} was rolled back and its job exists")
    findings.broken += [f"order {n} has {by_number[n]} jobs" for n in sorted(orders) if by_number[n] != 1]
    findings.broken += [f"number {n} was stored {count} times" for n, count in by_number.items() if count > 1]


def _one_job(findings: Findings, store: Store, record: JobRecord, seen: list[Run], frozen: set[int]) -> None:
    findings.handler_runs += len(seen)
    if record.state not in FINAL:
        findings.broken.append(f"job {record.id} is still {record.state}")
    if record.state is State.completed and not any(run.ended for run in seen):
        findings.broken.append(f"job {record.id} is completed and never ended in a handler")
    attempts = (
        store.inspection.attempts(record.id) if record.run > 1 or record.state is not State.completed else []
    )
    findings.attempts.update(attempt.event.value for attempt in attempts)
    findings.failures.update(str(one.reason)[:80] for one in attempts if one.event is Event.fail)
    if len(seen) > 1:
        findings.duplicate_runs += len(seen) - 1
        explained = sum(attempt.event in (Event.lose, Event.interrupt, Event.fail) for attempt in attempts)
        if explained < len(seen) - 1:
            findings.broken.append(f"job {record.id} ran {len(seen)} times with {explained} recorded reasons")
    lost = {attempt.run for attempt in attempts if attempt.event is Event.lose}
    if record.state is State.completed and record.run in lost:
        findings.broken.append(
            f"stale ack accepted: job {record.id} completed in run {record.run}, which was lost"
        )
    for first, second in overlaps(seen):
        together = (min(first.last, second.last) - max(first.start, second.start)) / 1e6
        findings.overlap_longest_ms = max(findings.overlap_longest_ms, together)
        if {first.pid, first.parent, second.pid, second.parent} & frozen:
            findings.overlaps_frozen += 1
        else:
            findings.broken.append(
                f"job {record.id} ran twice at once for {together:.0f} ms in {first.pid}, {second.pid}"
            )
