"""What stands in the way at a queue, of a tenant or at a resource: the sentences of `why` for what is no job.

Facts in, sentences out; knows no store and no clock.
"""

from collections.abc import Sequence
from datetime import datetime

from duly.core.batch import BatchRecord, BatchState
from duly.core.control import MOST_WAITING, LimitRecord, Override, TenantPlan, TenantWait
from duly.core.pace import pace_text
from duly.core.why import (
    Reason,
    Stop,
    Why,
    batch_progress,
    block_reason,
    counted,
    limit_reasons,
    moment,
    span,
    stop_reason,
)


def why_queue(
    queue: str,
    now: datetime,
    *,
    counts: str,
    health: str,
    stops: Sequence[Stop],
    limits: Sequence[LimitRecord],
    overrides: Sequence[Override],
    pressed: str | None = None,
    late: str | None = None,
    keys: Sequence[str] = (),
    waits: Sequence[Reason] = (),
) -> Why:
    """`counts`, `health`, `pressed`, `late`, `keys` and `waits` are the read model's words for it."""
    reasons = [Reason("numbers", counts)]
    reasons += [stop_reason(stop, now) for stop in stops]
    for limit in limits:
        reasons += _limit(limit, now)
    reasons += [block_reason(one, now) for one in overrides if one.kind == "block"]
    if pressed is not None:
        reasons.append(Reason("full", pressed))
    if late is not None:
        reasons.append(Reason("late", late))
    reasons += [Reason("keys", text) for text in keys]
    reasons += waits
    reasons.append(Reason("health", health))
    return Why(f"queue {queue}", f"queue {queue}", tuple(reasons))


def why_tenant(
    name: str,
    now: datetime,
    plan: TenantPlan | None,
    limits: Sequence[LimitRecord],
    waits: Sequence[TenantWait] = (),
) -> Why:
    """One tenant over its queues."""
    planned = "it has no plan: each queue's own values hold"
    if plan is not None:
        most = "any number may run" if plan.max_running is None else f"{counted(plan.max_running)} may run"
        pace = (
            "" if plan.rate is None else f", at most {pace_text(plan.rate.interval, plan.rate.burst)} start"
        )
        planned = f"its plan: weight {plan.weight}, {most} in each queue{pace}"
    reasons = [Reason("state", planned, f"duly tenants show {name}")]
    for wait in waits:
        many = "1 job is" if wait.ready == 1 else f"{ready_text(wait.ready)} jobs are"
        reasons.append(Reason("numbers", f"{many} ready in {wait.queue}, the oldest for {span(wait.oldest)}"))
    for limit in limits:
        reasons += _limit(limit, now)
    held = [reason for reason in reasons if reason.kind not in {"state", "numbers"}]
    reasons.append(
        Reason(
            "health", "something holds its jobs back" if held else "nothing holds its jobs back but its turn"
        )
    )
    return Why(f"tenant {name}", f"tenant {name}", tuple(reasons))


def ready_text(ready: int) -> str:
    """A number that was counted to MOST_WAITING and one."""
    return f"over {counted(MOST_WAITING)}" if ready > MOST_WAITING else counted(ready)


def why_resource(name: str, now: datetime, limit: LimitRecord) -> Why:
    """One resource."""
    reasons = _limit(limit, now)
    if limit.breaker is not None and limit.breaker != "open":
        until = "" if limit.breaker_until is None else f", open until {moment(limit.breaker_until, now)}"
        reasons.append(Reason("state", f"its breaker is {limit.breaker}{until}"))
    held = [reason for reason in reasons if reason.kind not in {"state", "numbers"}]
    waits = f"{counted(limit.waiting)} {'job waits' if limit.waiting == 1 else 'jobs wait'} for it"
    reasons.append(Reason("health", f"{waits}: nothing starts now" if held else f"it is free; {waits}"))
    return Why(f"resource {name}", f"resource {name}", tuple(reasons))


def why_batch(batch: BatchRecord, now: datetime) -> Why:
    """One batch: what is missing until what follows it is enqueued."""
    counts = batch.counts
    ends = {
        "completed": counts.completed, "skipped": counts.skipped, "cancelled": counts.cancelled,
        "shed": counts.shed, "dead": counts.dead,
    }  # fmt: skip
    parts = ", ".join(f"{counted(number)} {state}" for state, number in ends.items() if number)
    reasons = [Reason("numbers", batch_progress(batch) + (f" ({parts})" if parts else ""))]
    cancel = f"jobs.operate.cancel_batch({batch.id})"
    if batch.parent is not None:
        reasons.append(
            Reason("batch", f"it is a member of batch {batch.parent}", f"duly why batch:{batch.parent}")
        )
    if counts.dead:
        many = "job has" if counts.dead == 1 else "jobs have"
        text = f"{counted(counts.dead)} {many} died: its then waits until redriven ones have ended well"
        reasons.append(Reason("dead", text, "duly dead redrive ID"))
    match batch.state:
        case BatchState.open:
            told = "it is open: the block that made it has not ended, or was killed inside"
            reasons.append(Reason("state", told, cancel))
        case BatchState.running:
            left = "1 job has" if counts.left == 1 else f"{counted(counts.left)} jobs have"
            reasons.append(Reason("state", f"its then waits: {left} not ended", cancel))
        case BatchState.completed:
            when = "" if batch.finished_at is None else f" {span(now - batch.finished_at)} ago"
            reasons.append(Reason("state", f"it has ended: its then was enqueued{when}"))
        case BatchState.cancelled:
            because = f" ({batch.reason})" if batch.reason else ""
            reasons.append(Reason("state", f"it was cancelled{because}: nothing follows it"))
        case BatchState.dead:
            reasons.append(Reason("state", "every job has ended, and not all of them well"))
    return Why(f"batch {batch.id}", f"batch {batch.id} is {batch.state}", tuple(reasons))


def _limit(limit: LimitRecord, now: datetime) -> list[Reason]:
    most = "" if limit.max_running is None else f" of {counted(limit.max_running)}"
    pace = "" if limit.rate is None else f", at most {pace_text(limit.rate.interval, limit.rate.burst)} start"
    text = f"{limit.name}: {counted(limit.running)}{most} run{pace}"
    if limit.waiting:
        text += f", {counted(limit.waiting)} wait behind it"
    change = None
    if limit.override is not None:
        text += f", by override {limit.override}"
        change = f"duly overrides lift {limit.override}"
    return [Reason("numbers", text, change), *limit_reasons(limit, now)]
