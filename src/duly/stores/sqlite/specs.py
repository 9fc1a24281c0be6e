"""Jobs and schedules as JSON text: follow-ups that wait with their parents, and what a schedule enqueues.

Reads and writes nothing; a field that is missing in a text has its default.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from duly.core.job import NewJob, UniqueKey
from duly.core.registration import Schedule
from duly.stores.sqlite.times import maybe_duration, maybe_from_micros, span, to_micros

Spec = dict[str, Any]

# Bytes that are not UTF-8 come back as they were.
_BYTES: Final = "surrogateescape"


def text_of(job: NewJob) -> str:
    """A job with its own follow-ups; without a holder, which a job enqueued later cannot have."""
    return json.dumps(_spec_of(job), separators=(",", ":"))


def job_of(text: str) -> NewJob:
    return _job_of(json.loads(text))


def schedule_text(schedule: Schedule) -> str:
    """All but the name."""
    return json.dumps(
        {
            "every": None if schedule.every is None else span(schedule.every),
            "cron": schedule.cron,
            "tz": schedule.tz,
            "job": None if schedule.job is None else _spec_of(schedule.job),
            "jitter": span(schedule.jitter),
            "catch_up": schedule.catch_up,
            "overlap": schedule.overlap,
        },
        separators=(",", ":"),
    )


def schedule_of(name: str, text: str) -> Schedule:
    spec: Spec = json.loads(text)
    return Schedule(
        name=name,
        every=maybe_duration(spec["every"]),
        cron=spec["cron"],
        tz=spec["tz"],
        job=None if spec["job"] is None else _job_of(spec["job"]),
        jitter=maybe_duration(spec["jitter"]) or Schedule("").jitter,
        catch_up=spec["catch_up"],
        overlap=spec["overlap"],
    )


def blobs_of(job: NewJob) -> Iterator[str]:
    """References that a job and its follow-ups use: theirs are needed as long as the parent may still enqueue them."""
    yield from job.blobs
    for follow in (*job.then, *job.on_dead):
        yield from blobs_of(follow)


def _spec_of(job: NewJob) -> Spec:
    spec: Spec = {
        "queue": job.queue,
        "task": job.task,
        "args": job.args.decode("utf-8", _BYTES),
        "priority": job.priority,
        "delay": None if job.delay is None else span(job.delay),
        "run_at": None if job.run_at is None else to_micros(job.run_at),
        "expires": None if job.expires is None else span(job.expires),
        "timeout": None if job.timeout is None else span(job.timeout),
        "attempts": job.attempts,
        "tenant": job.tenant,
        "tags": job.tags,
        "correlation_id": job.correlation_id,
        "idempotency": None if job.idempotency is None else job.idempotency.hex(),
        "unique": None if job.unique is None else _unique_spec(job.unique),
        "version": job.version,
        "then": [_spec_of(follow) for follow in job.then],
        "on_dead": [_spec_of(follow) for follow in job.on_dead],
        "trigger": job.trigger,
        "blobs": job.blobs,
        "ordering_key": job.ordering_key,
        "serialise": job.serialise or None,
        "fair": job.fair or None,
    }
    return {field: value for field, value in spec.items() if value is not None}


def _job_of(spec: Spec) -> NewJob:
    return NewJob(
        queue=spec["queue"],
        task=spec["task"],
        args=spec["args"].encode("utf-8", _BYTES),
        priority=spec["priority"],
        delay=maybe_duration(spec.get("delay")),
        run_at=maybe_from_micros(spec.get("run_at")),
        expires=maybe_duration(spec.get("expires")),
        timeout=maybe_duration(spec.get("timeout")),
        attempts=spec.get("attempts"),
        tenant=spec.get("tenant", ""),
        tags=tuple(spec.get("tags", ())),
        correlation_id=spec.get("correlation_id"),
        idempotency=None if "idempotency" not in spec else bytes.fromhex(spec["idempotency"]),
        unique=None if "unique" not in spec else _unique_of(*spec["unique"]),
        version=spec.get("version"),
        then=tuple(map(_job_of, spec.get("then", ()))),
        on_dead=tuple(map(_job_of, spec.get("on_dead", ()))),
        trigger=spec.get("trigger"),
        blobs=tuple(spec.get("blobs", ())),
        ordering_key=spec.get("ordering_key"),
        serialise=spec.get("serialise", False),
        fair=spec.get("fair", False),
    )


def _unique_spec(unique: UniqueKey) -> list[object]:
    return [unique.digest.hex(), unique.live, unique.replace]


def _unique_of(digest: str, live: bool, replace: bool) -> UniqueKey:
    return UniqueKey(bytes.fromhex(digest), live, replace)
