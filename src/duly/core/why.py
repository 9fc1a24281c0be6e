"""Why a job is not running: the sentences, one for each reason, and the command that changes it.

Facts in, sentences out; knows no store and no clock. A queue, a tenant and a resource are told about next door.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec import Struct

from duly.core.batch import BatchRecord
from duly.core.control import LimitRecord, Override, queue_limit
from duly.core.durations import LONGEST, format_duration
from duly.core.errors import UsageError
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, State

MOST_AHEAD: Final = 10_000
"""Jobs before one are counted so far."""
_SHOWN: Final = 5


class JobFacts(Struct, frozen=True):
    """One job and what stands around it, from one moment."""

    job: JobRecord
    ahead: int = 0
    """Ready jobs before it in its lane."""
    serving: int = 0
    """Live workers of its queue that take jobs."""
    knowing: int = 0
    """Those of them that know its task."""
    head: JobId | None = None
    """Who owns its ordering key."""
    head_state: State | None = None
    key_paused: bool = False
    before: int = 0
    """Jobs before it in its ordering key."""
    limits: tuple[str, ...] = ()
    """Those that its task and arguments make it take."""
    holders: tuple[tuple[str, JobId], ...] = ()
    """Some of the jobs that hold these and its queue's and tenant's."""


class Stop(Struct, frozen=True):
    """A pause in force."""

    target: str
    by: str
    reason: str
    until: datetime | None


class GuardAnswer(Struct, frozen=True):
    """What a guard said when it was asked without a start."""

    guard: str
    said: str
    """"" for yes."""


class Situation(Struct, frozen=True):
    """A job with everything that may hold it back."""

    now: datetime
    facts: JobFacts
    stops: tuple[Stop, ...] = ()
    limits: tuple[LimitRecord, ...] = ()
    overrides: tuple[Override, ...] = ()
    out_per_s: float | None = None
    """Of its queue."""
    guards: tuple[GuardAnswer, ...] = ()
    batch: BatchRecord | None = None
    """The one that it is a member of."""
    pressed: str | None = None
    """What its queue holds back of producers and sheds, in words."""


class Reason(Struct, frozen=True):
    """One sentence, and what would change it."""

    kind: str
    """due, queue paused, task paused, no worker, task unknown, key, key paused, block, limit, rate, held, breaker,
    suspect, cancel, place, guard, free, running, ended or batch; of what is no job also state, numbers, full, late,
    keys, cap, slow, tenant, dead or health."""
    text: str
    change: str | None = None
    """A command; None where only time or other jobs change it."""
    at: datetime | None = None
    """When it ends by itself, where that is known."""


class Why(Struct, frozen=True):
    """The answer: what was asked about, and every reason."""

    about: str
    text: str
    """One line: where it stands."""
    reasons: tuple[Reason, ...]


def why_job(situation: Situation) -> Why:
    """Every reason why a job is not running now; of one that has ended, how, and what can be done."""
    job = situation.facts.job
    head = f"job {job.id} ({job.task} in {job.queue}) is {job.state}"
    if job.state in FINAL:
        reasons = [_ended(job, situation.now)]
    elif job.state is State.running:
        reasons = [_running(job, situation.now)]
    else:
        reasons = [*_waiting(situation)]
        if situation.pressed is not None:
            reasons.append(Reason("full", f"its queue: {situation.pressed}", f"duly why {quoted(job.queue)}"))
    if situation.batch is not None:
        reasons.append(member_reason(situation.batch))
    return Why(f"job {job.id}", head, tuple(reasons))


def _waiting(situation: Situation) -> Iterator[Reason]:
    found = [*_bars(situation)]
    yield from found
    job = situation.facts.job
    if job.state is State.ready and not any(reason.kind in _BARS for reason in found):
        yield _place(situation)
    elif job.state is State.blocked and not any(reason.kind in _BARS for reason in found):
        behind = "an ordering key" if job.waits_for == "key" else job.waits_for or "something"
        yield Reason(
            "free", f"it waited behind {behind}, which lets it go on by now: the next claim looks at it"
        )
    for answer in situation.guards:
        if answer.said:
            yield Reason("guard", f"guard {answer.guard} would stop it: {answer.said}")


_BARS: Final = frozenset(
    {
        "queue paused",
        "task paused",
        "no worker",
        "task unknown",
        "key",
        "key paused",
        "block",
        "limit",
        "rate",
        "held",
        "breaker",
    }
)


def _bars(situation: Situation) -> Iterator[Reason]:
    job, now = situation.facts.job, situation.now
    if job.state is State.scheduled:
        yield _due(job, now)
    if job.cancel_wished:
        yield Reason("cancel", "its cancellation was asked for: it ends as cancelled")
    for stop in situation.stops:
        yield stop_reason(stop, now)
    yield from _workers(situation.facts)
    yield from _key(situation.facts)
    for override in situation.overrides:
        if _blocks(override, job):
            yield block_reason(override, now)
    for limit in situation.limits:
        held = [id for name, id in situation.facts.holders if name == limit.name and id != job.id]
        yield from limit_reasons(limit, now, held)
    if job.state is State.ready and job.counters.lost:
        yield Reason(
            "suspect",
            f"{_times(job.counters.lost, 'worker')} vanished under it: it runs alone, in a process without other jobs, "
            "and waits for one to be empty",
        )


def _due(job: JobRecord, now: datetime) -> Reason:
    again = ""
    if job.counters.failed:
        again = f" after {_times(job.counters.failed, 'failure')}"
    change = f"jobs.operate.run_now({job.id})"
    if job.run_at is None or job.run_at <= now:
        return Reason("due", f"it is due{again}, and a worker makes it ready within a second", None)
    text = f"it is not due{again} before {moment(job.run_at, now)}"
    return Reason("due", text, change, job.run_at)


def _workers(facts: JobFacts) -> Iterator[Reason]:
    job = facts.job
    if not facts.serving:
        yield Reason(
            "no worker", f"no worker serves the queue {job.queue}", f"duly worker --queues {job.queue}"
        )
    elif not facts.knowing:
        many = f"the worker of {job.queue} does not know"
        if facts.serving > 1:
            many = f"none of the {facts.serving} workers of {job.queue} knows"
        yield Reason(
            "task unknown", f"{many} the task {job.task}: deploy code that has it", "duly workers list"
        )


def _key(facts: JobFacts) -> Iterator[Reason]:
    job = facts.job
    if job.ordering_key is None:
        return
    resume = resume_key_command(job.queue, job.tenant, job.ordering_key)
    if facts.key_paused:
        yield Reason(
            "key paused", f"its ordering key {job.ordering_key} is paused since a job of it died", resume
        )
    if facts.head is None or facts.head == job.id:
        return
    state = facts.head_state or "gone"
    text = f"it is behind job {facts.head} ({state}) of its ordering key {job.ordering_key}"
    if facts.before > 1:
        text += f", as number {counted(facts.before + 1)}"
    if facts.head_state is State.dead:
        yield Reason("key", text, f"duly dead redrive {facts.head}, or on without it: {resume}")
    else:
        yield Reason("key", text, f"duly why {facts.head}")


def _blocks(override: Override, job: JobRecord) -> bool:
    if override.kind != "block" or override.target != queue_limit(job.queue):
        return False
    try:
        return msgspec.convert(override.value, Filter).matches(job)
    except (msgspec.ValidationError, UsageError):
        # Of a release that knows more.
        return False


def _place(situation: Situation) -> Reason:
    facts, rate = situation.facts, situation.out_per_s
    if not facts.ahead:
        return Reason("place", "nothing is ahead of it: the next free slot takes it")
    more = " or more" if facts.ahead >= MOST_AHEAD else ""
    text = f"{counted(facts.ahead)}{more} {'job is' if facts.ahead == 1 else 'jobs are'} ahead of it"
    if facts.job.tenant:
        text += " in its lane"
    if not rate or facts.ahead / rate >= LONGEST.total_seconds():
        return Reason("place", f"{text}; nothing was finished lately, so that nobody can say when it starts")
    wait = timedelta(seconds=facts.ahead / rate)
    text += f"; at {rate:.3g}/s it starts in about {span(wait)}"
    return Reason("place", text, None, situation.now + wait)


def _running(job: JobRecord, now: datetime) -> Reason:
    since = "" if job.started_at is None else f" for {span(now - job.started_at)}"
    worker = "" if job.incarnation is None else f" on worker {job.incarnation}"
    text = f"it runs{since}{worker}"
    if job.cancel_wished:
        text += " and was asked to stop"
    return Reason("running", text, f"duly cancel {job.id}", job.deadline)


def _ended(job: JobRecord, now: datetime) -> Reason:
    when = "" if job.finished_at is None else f" {span(now - job.finished_at)} ago"
    why = f": {job.reason}" if job.reason else ""
    if job.state is State.completed:
        return Reason("ended", f"it completed{when}", f"duly job {job.id}")
    if job.state is State.dead and job.error is not None:
        why = why or f": {job.error.type}: {job.error.message}"
        again = f"duly dead redrive {job.id}; all of this error: duly dead show {job.error.fingerprint}"
        return Reason("ended", f"it died{when}{why}", again)
    verb = "died" if job.state is State.dead else f"was {job.state}"
    return Reason("ended", f"it {verb}{when}{why}", f"duly dead redrive {job.id}")


def resume_key_command(queue: str, tenant: str, key: str) -> str:
    """What lets an ordering key go on without its dead head."""
    return f"duly resume {quoted(f'key:{queue}/{key}')}" + (f" --tenant {quoted(tenant)}" if tenant else "")


def member_reason(batch: BatchRecord) -> Reason:
    """What a job is a part of."""
    return Reason("batch", f"it is a member of {batch_progress(batch)}", f"duly why batch:{batch.id}")


def batch_progress(batch: BatchRecord) -> str:
    """Which batch, and how much of it is done."""
    counts = batch.counts
    name = f" ({batch.name})" if batch.name else ""
    dead = f", {counted(counts.dead)} of them dead" if counts.dead else ""
    return f"batch {batch.id}{name}: {counted(counts.ended)} of {counted(counts.total)} done{dead}"


def stop_reason(stop: Stop, now: datetime) -> Reason:
    """One pause."""
    kind, _, name = stop.target.partition(":")
    until = "until it is resumed" if stop.until is None else f"until {moment(stop.until, now)}"
    text = f"the {kind} {name} is paused by {stop.by} {until}{_because(stop.reason)}"
    target = name if kind == "queue" else stop.target
    return Reason(f"{kind} paused", text, f"duly resume {quoted(target)}", stop.until)


def block_reason(override: Override, now: datetime) -> Reason:
    """One block."""
    what = " ".join(f"{name}={value}" for name, value in override.value.items())
    until = "" if override.until is None else f" until {moment(override.until, now)}"
    text = f"override {override.id} of {override.by} blocks {what}{until}{_because(override.reason)}"
    return Reason("block", text, f"duly overrides lift {override.id}", override.until)


def limit_reasons(limit: LimitRecord, now: datetime, holders: Sequence[JobId] = ()) -> Iterator[Reason]:
    """Why nothing more of a limit can start now; nothing where something can."""
    flags = limit_target(limit.name)
    if limit.held_until is not None and limit.held_until > now:
        by = f" by {limit.held_by}" if limit.held_by else ""
        until = moment(limit.held_until, now)
        text = f"{limit.name} is held{by} until {until}{_because(limit.held_reason or '')}"
        yield Reason("held", text, None, limit.held_until)
    if limit.breaker == "open":
        until = (
            "until it is set again"
            if limit.breaker_until is None
            else f"until {moment(limit.breaker_until, now)}"
        )
        change = f"duly limit {flags} --breaker {'auto' if limit.breaker_until is None else 'closed'}"
        yield Reason("breaker", f"the breaker of {limit.name} is open {until}", change, limit.breaker_until)
    most = limit.max_running
    if limit.breaker == "half-open" and limit.running:
        yield Reason("breaker", f"the breaker of {limit.name} is half open: one job tries it first")
    elif most is not None and limit.running >= most:
        by = f" (job{'s' if len(holders) > 1 else ''} {_listed(holders, limit.running)})" if holders else ""
        text = f"{limit.name} is at its cap: {counted(limit.running)} of {counted(most)} run{by}"
        change = f"duly limit {flags} --max-running {most + 1} --for 1h"
        if limit.override is not None:
            text += f", by override {limit.override}"
            change = f"duly overrides lift {limit.override}"
        yield Reason("limit", text, change)
    shut = limit.breaker == "open" or (limit.held_until is not None and limit.held_until > now)
    if limit.rate is not None and limit.next_at is not None and limit.next_at > now and not shut:
        text = f"the rate of {limit.name} lets the next one start {moment(limit.next_at, now)}"
        yield Reason("rate", text, f"duly limit {flags} --rate none --for 1h", limit.next_at)


def limit_target(name: str) -> str:
    """The arguments of `duly limit` that mean a limit."""
    kind, _, rest = name.partition(":")
    if kind == "queue":
        return quoted(rest)
    if kind == "tenant":
        queue, _, tenant = rest.partition("=")
        return f"{quoted(queue)} --tenant {quoted(tenant)}".removeprefix("'' ")
    return quoted(name)


def moment(at: datetime, now: datetime) -> str:
    """A moment to come, as a person reads it: how long from now, and the time."""
    utc = at.astimezone(UTC)
    form = "%H:%M:%S UTC" if utc.date() == now.astimezone(UTC).date() else "%Y-%m-%d %H:%M:%S UTC"
    return f"{utc.strftime(form)} (in {span(at - now)})"


def span(length: timedelta) -> str:
    """Whole seconds, below ten with tenths."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    return format_duration(timedelta(seconds=round(seconds)))


def counted(number: int) -> str:
    return f"{number:,}"


def quoted(text: str) -> str:
    """One word of a shell, as it must be typed."""
    if text and all(character.isalnum() or character in "_-.:/=@%+," for character in text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _times(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _listed(ids: Sequence[JobId], total: int) -> str:
    shown = ", ".join(map(str, ids[:_SHOWN]))
    return f"{shown}, …" if total > len(ids[:_SHOWN]) else shown


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
