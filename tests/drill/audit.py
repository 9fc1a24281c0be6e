"""After the drill: compares what the store says with what the ledger saw, and says whether every promise held."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, Event, State
from duly.stores.protocol import Store
from tests.drill.effects import BOOKED, FOLLOW_UP, MOURNED, STEP, THEN, TRANSACTIONAL
from tests.drill.ledger import (
    COMMITTED,
    ENQUEUED,
    ROLLED_BACK,
    STARTED,
    STEPPED,
    Line,
    Run,
    overlaps,
    runs,
)

FOLLOWED = {11, 31, 32}
CONTROLLED_FROM = 500_000
"""Of each million of numbers, those from here on are of work that something bounds."""
EFFECTS = {
    "transactional": (TRANSACTIONAL, "n"),
    "keyed_booked": (BOOKED, "n"),
    "in_steps": (STEP, "n"),
    "afterwards": (FOLLOW_UP, "follows"),
    "after_all": (THEN, "batch"),
    "after_a_death": (MOURNED, "batch"),
}
"""Of each task that writes one: its effect, and the argument that numbers it."""
UNFINISHED = frozenset({Event.lose, Event.interrupt, Event.fail, Event.snooze, Event.bury})


@dataclass
class Findings:
    """What the audit counted; `broken` must stay empty."""

    jobs: int = 0
    states: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    handler_runs: int = 0
    duplicate_runs: int = 0
    died: set[int] = field(default_factory=set)
    overlaps_frozen: int = 0
    overlap_longest_ms: float = 0.0
    effects: Counter[str] = field(default_factory=Counter)
    due_times: int = 0
    broken: list[str] = field(default_factory=list)


def all_jobs(store: Store) -> dict[JobId, JobRecord]:
    """Every job of the store by its id, oldest first."""
    found: list[JobRecord] = []
    after: int | None = 0
    while after is not None:
        page = store.inspection.page(Filter(), after=after, limit=1000)
        found += page.jobs
        after = page.next
    return {record.id: record for record in found}


def audit(
    store: Store,
    records: dict[JobId, JobRecord],
    lines: list[Line],
    frozen: set[int],
    orders: set[int],
    effects: Counter[tuple[str, int]],
) -> Findings:
    """`frozen`: pids that were stopped by SIGSTOP; `orders` and `effects`: the rows of the user's own tables."""
    findings = Findings()
    findings.jobs = len(records)
    findings.states.update(record.state.value for record in records.values())
    arguments = {id: json.loads(record.args) for id, record in records.items()}
    by_number = Counter(given["n"] for given in arguments.values() if "n" in given)
    _effects(findings, records, arguments, lines, effects)
    _due_times(findings, store, records)
    _enqueued(findings, lines, records, by_number, orders)
    seen = runs(lines)
    for id, record in records.items():
        if "n" not in arguments[id]:
            continue
        _one_job(findings, store, record, seen.get(record.id, []), frozen)
    strangers = set(seen) - set(records)
    if strangers:
        findings.broken.append(
            f"{len(strangers)} jobs ran that the store does not know: {sorted(strangers)[:5]}"
        )
    return findings


def _effects(
    findings: Findings,
    records: dict[JobId, JobRecord],
    arguments: dict[JobId, dict[str, Any]],
    lines: list[Line],
    effects: Counter[tuple[str, int]],
) -> None:
    """Exactly once for handlers that complete in their own transaction, never lost for the others."""
    findings.effects.update(
        {kind: sum(n for (k, _), n in effects.items() if k == kind) for kind, _ in effects}
    )
    for id, record in records.items():
        if record.state is not State.completed:
            continue
        kind, numbered = EFFECTS.get(record.task, ("", ""))
        if kind and effects[kind, arguments[id][numbered]] == 0:
            findings.broken.append(
                f"job {id} ({record.task}, {arguments[id]}) is completed without its effect"
            )
    for (kind, n), count in effects.items():
        if kind != STEP and count > 1:
            findings.broken.append(f"the {kind} effect of {n} happened {count} times")
    stepped = {line.job: line.attempt for line in reversed(lines) if line.kind == STEPPED}
    for (kind, n), count in effects.items():
        if kind == STEP and count > len(
            {line.attempt for line in lines if line.n == n and line.kind == STARTED}
        ):
            findings.broken.append(f"the step of {n} ran {count} times, more often than its job")
    findings.effects["steps repeated"] = sum(
        count - 1 for (kind, _), count in effects.items() if kind == STEP
    )
    findings.effects["jobs with a finished step"] = len(stepped)
    followers = Counter(given["follows"] for given in arguments.values() if "follows" in given)
    for id, record in records.items():
        number = arguments[id].get("n", -1)
        plain = number % 1_000_000 < CONTROLLED_FROM
        if plain and number % 40 in FOLLOWED and followers[number] != (record.state is State.completed):
            findings.broken.append(f"job {id} is {record.state} and has {followers[number]} follow-ups")


def _due_times(findings: Findings, store: Store, records: dict[JobId, JobRecord]) -> None:
    """Each due time of the schedule has one job or is counted as missed, and none has two."""
    fired = Counter(record.trigger for record in records.values() if record.task == "every_second")
    findings.due_times = len(fired)
    findings.broken += [f"{trigger} fired {count} times" for trigger, count in fired.items() if count > 1]
    for schedule in store.schedules.all():
        if schedule.schedule.name != "every_second" or schedule.last_at is None or not fired:
            continue
        moments = sorted(datetime.fromisoformat(str(one).partition("@")[2]) for one in fired)
        due = round((schedule.last_at - moments[0]).total_seconds()) + 1
        if due != len(fired) + schedule.missed:
            findings.broken.append(
                f"of {due} due times {len(fired)} have a job and {schedule.missed} are counted as missed"
            )


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
    # A transactional one may be killed between its own commit and its last line.
    if (
        record.state is State.completed
        and record.task != "transactional"
        and not any(run.ended for run in seen)
    ):
        findings.broken.append(f"job {record.id} is completed and never ended in a handler")
    attempts = (
        store.inspection.attempts(record.id) if record.run > 1 or record.state is not State.completed else []
    )
    if record.state is State.dead or any(attempt.event is Event.bury for attempt in attempts):
        findings.died.add(record.id)
    findings.attempts.update(attempt.event.value for attempt in attempts)
    findings.failures.update(str(one.reason)[:80] for one in attempts if one.event is Event.fail)
    if len(seen) > 1:
        findings.duplicate_runs += len(seen) - 1
        explained = sum(attempt.event in UNFINISHED for attempt in attempts)
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
