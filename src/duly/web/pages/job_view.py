"""One job in words: what a list says of it, its story as moments, and what may be done with it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from duly.core.job import AttemptRecord, JobRecord
from duly.core.lifecycle import FINAL, WAITING, Event, State
from duly.core.trace import is_trace
from duly.web.pages.text import age

Kind = Literal["note", "wait", "run", "good", "bad"]

_ENDINGS: Final[dict[Event, tuple[str, Kind]]] = {
    Event.fail: ("failed", "bad"),
    Event.lose: ("was lost: its worker vanished", "bad"),
    Event.snooze: ("snoozed", "wait"),
    Event.interrupt: ("was interrupted, and handed back", "wait"),
    Event.bury: ("went dead", "bad"),
    Event.skip: ("was skipped", "note"),
    Event.cancel: ("was cancelled", "note"),
    Event.complete: ("completed", "good"),
}
_FINALS: Final[dict[State, Kind]] = {State.completed: "good", State.dead: "bad", State.shed: "bad"}
_AFTER: Final = {
    Event.fail: "waited for its retry",
    Event.snooze: "snoozed",
    Event.lose: "waited to be run again",
}


class Moment(Struct, frozen=True):
    """Something that happened to a job, or a wait between two such."""

    kind: Kind
    text: str
    at: datetime | None = None
    detail: str = ""


class Deed(Struct, frozen=True):
    """One act that makes sense in the job's state."""

    verb: str
    label: str
    title: str
    scope: Literal["operate", "dead"]
    tone: str = ""


def attempts_begun(job: JobRecord) -> int:
    """Attempts begun since the enqueue or the last redrive; snoozes and interrupts begin none."""
    spent = job.counters.failed + job.counters.lost
    if job.started_at is None or job.state in WAITING:
        return spent
    return max(1, spent) if job.state is State.dead else spent + 1


def about(job: JobRecord) -> str:
    """What a person asks next of a line in a list."""
    if job.error is not None:
        return f"{job.error.type}: {job.error.message[:300]}"
    if job.reason:
        return job.reason
    if job.progress is not None:
        share = f"{job.progress.done:,}" + ("" if job.progress.of is None else f" of {job.progress.of:,}")
        return f"{share} {job.progress.note or ''}".rstrip()
    if job.waits_for is not None:
        waits = {"task": "no worker knows its task, or it is paused", "key": "behind its ordering key"}
        return waits.get(job.waits_for, f"behind {job.waits_for}")
    return job.note or ""


def deeds(job: JobRecord) -> tuple[Deed, ...]:
    """What may be done now, the likeliest first."""
    name = f"job {job.id}"
    match job.state:
        case State.running:
            if job.cancel_wished:
                return ()
            return (Deed("cancel", "Stop", f"Ask {name} to stop; it ends as cancelled", "operate", "danger"),)
        case State.dead:
            return (
                Deed("redrive", "Redrive", f"Run {name} again, with new attempts", "dead", "primary"),
                Deed("purge", "Delete", f"Delete {name} for good", "dead", "danger"),
            )
        case State.cancelled | State.skipped:
            return (Deed("redrive", "Run again", f"Run {name} again, with new attempts", "dead"),)
        case state if state in WAITING:
            found = [Deed("cancel", "Cancel", f"Cancel {name} before it runs", "operate", "danger")]
            found.append(Deed("reprioritise", "Priority", f"Give {name} another priority", "operate"))
            if state is not State.blocked:
                found.insert(0, Deed("run_now", "Run now", _now(state, name), "operate"))
            return tuple(found)
    return ()


def _now(state: State, name: str) -> str:
    return (
        f"Make {name} ready now" if state is State.scheduled else f"Put {name} at the tail of its lane again"
    )


def story(job: JobRecord, attempts: Sequence[AttemptRecord], now: datetime) -> list[Moment]:
    """All that is known of it in time order: waits, runs, snoozes, retries, and where it stands."""
    moments = [Moment("note", "enqueued", job.enqueued_at, _cause(job))]
    last, waited = job.enqueued_at, "waited"
    for attempt in attempts:
        moments += _run(attempt, last, waited)
        last, waited = attempt.ended_at, _AFTER.get(attempt.event, "waited")
    moments += _rest(job, attempts, last, waited, now)
    return moments


def _run(attempt: AttemptRecord, last: datetime, waited: str) -> Iterator[Moment]:
    began = attempt.started_at
    if began is not None:
        yield from _wait(last, began, waited)
        yield Moment("run", f"run {attempt.run} began", began, f"worker {attempt.incarnation}")
    said, kind = _ENDINGS.get(attempt.event, (str(attempt.event), "note"))
    took = "" if began is None else f" after {age(attempt.ended_at - began)}"
    why = attempt.reason or ""
    if attempt.error is not None:
        why = f"{attempt.error.type}: {attempt.error.message[:500]}"
    yield Moment(kind, f"run {attempt.run} {said}{took}", attempt.ended_at, why)


def _rest(
    job: JobRecord, attempts: Sequence[AttemptRecord], last: datetime, waited: str, now: datetime
) -> Iterator[Moment]:
    told = any(attempt.run == job.run for attempt in attempts)
    if job.started_at is not None and not told and job.state in FINAL | {State.running}:
        yield from _wait(last, job.started_at, waited)
        holder = "" if job.incarnation is None else f"worker {job.incarnation}"
        yield Moment("run", f"run {job.run} began", job.started_at, holder)
        last = job.started_at
    if job.state is State.running:
        asked = "asked to stop; " if job.cancel_wished else ""
        until = "" if job.deadline is None else _deadline(job.deadline - now)
        yield Moment("run", f"running for {age(now - last)}", None, f"{asked}{until}")
    elif job.state is State.scheduled:
        yield Moment("wait", "due", job.run_at, "" if not told else f"{waited} since {age(now - last)}")
    elif job.state in FINAL:
        ended_with_run = any(attempt.ended_at == job.finished_at for attempt in attempts)
        took = "" if told or job.started_at is None or job.finished_at is None else _took(job)
        if not ended_with_run or job.state is State.dead:
            why = "" if ended_with_run else job.reason or ""
            yield Moment(_FINALS.get(job.state, "note"), f"{job.state}{took}", job.finished_at, why)
    else:
        yield Moment(
            "wait",
            f"{job.state} for {age(now - last)}",
            None,
            about(job) if job.state is State.blocked else "",
        )


def _deadline(left: timedelta) -> str:
    if left > timedelta(0):
        return f"taken back in {age(left)} if its worker is silent"
    return f"silent for {age(-left)} beyond its deadline: the next worker that looks takes it back"


def _took(job: JobRecord) -> str:
    if job.started_at is None or job.finished_at is None:
        return ""
    return f" after {age(job.finished_at - job.started_at)}"


def _wait(since: datetime, until: datetime, waited: str) -> Iterator[Moment]:
    if until - since >= timedelta(milliseconds=1):
        yield Moment("wait", f"{waited} {age(until - since)}")


def _cause(job: JobRecord) -> str:
    return job.trigger if job.trigger and not is_trace(job.trigger) else ""
