"""Jobs, schedules and bounds as JSON, the form in which functions of the schema take and keep what has many parts.

Knows no SQL. Arguments stand in it as text, with RESULT_MARK where a follow-up wants its parent's result.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

from msgspec import json

from duly.core.control import BreakerPolicy, LimitPolicy, TaskLimit
from duly.core.job import NewJob, UniqueKey
from duly.core.registration import CatchUp, Overlap, QueuePolicy, Schedule
from duly.stores.postgres.columns import seconds

Spec = dict[str, Any]

_DECODER: Final = json.Decoder()


def is_rich(job: NewJob) -> bool:
    """Whether it has more to it than its place in a queue; plain jobs take a quicker way."""
    return bool(
        job.unique
        or job.idempotency
        or job.then
        or job.on_dead
        or job.blobs
        or job.version is not None
        or job.ordering_key is not None
        or (job.fair and job.tenant)
        or job.batch is not None
    )


def specs(jobs: Sequence[NewJob]) -> str:
    """Jobs whose arguments are passed beside."""
    return json.encode([_spec(job) for job in jobs]).decode()


def whole_specs(jobs: Sequence[NewJob]) -> str:
    """Jobs with their arguments, as they are kept to be enqueued later."""
    return json.encode([_whole(job) for job in jobs]).decode()


def references(jobs: Iterable[NewJob]) -> list[str]:
    """The blobs that jobs and their follow-ups use."""
    return sorted({reference for job in jobs for reference in _blobs(job)})


def _spec(job: NewJob) -> Spec:
    refs = sorted(set(_blobs(job)))
    spec: Spec = {
        "queue": job.queue,
        "task": job.task,
        "priority": job.priority,
        "delay": seconds(job.delay),
        "run_at": None if job.run_at is None else job.run_at.isoformat(),
        "expires": seconds(job.expires),
        "timeout": seconds(job.timeout),
        "attempts": job.attempts,
        "tenant": job.tenant or None,
        "tags": job.tags or None,
        "correlation_id": job.correlation_id,
        "idempotency": None if job.idempotency is None else job.idempotency.hex(),
        "unique": None if job.unique is None else _unique(job.unique),
        "version": job.version,
        "then": [_whole(follow) for follow in job.then] or None,
        "on_dead": [_whole(follow) for follow in job.on_dead] or None,
        "trigger": job.trigger,
        "blobs": job.blobs or None,
        "ordering_key": job.ordering_key,
        "serialise": (job.serialise and job.ordering_key is not None) or None,
        "fair": job.fair or None,
        "batch": job.batch,
        # A blob must stay for the follow-ups that this job may still enqueue.
        "refs": refs or None,
    }
    return {name: value for name, value in spec.items() if value is not None}


def _whole(job: NewJob) -> Spec:
    return {**_spec(job), "args": job.args.decode()}


def _unique(key: UniqueKey) -> Spec:
    return {"digest": key.digest.hex(), "live": key.live, "replace": key.replace}


def _blobs(job: NewJob) -> Iterator[str]:
    yield from job.blobs
    for follow in (*job.then, *job.on_dead):
        yield from _blobs(follow)


def _job(spec: Spec) -> NewJob:
    unique = spec.get("unique")
    return NewJob(
        queue=spec["queue"],
        task=spec["task"],
        args=spec["args"].encode(),
        priority=spec["priority"],
        delay=_span(spec.get("delay")),
        run_at=None if "run_at" not in spec else datetime.fromisoformat(spec["run_at"]),
        expires=_span(spec.get("expires")),
        timeout=_span(spec.get("timeout")),
        attempts=spec.get("attempts"),
        tenant=spec.get("tenant", ""),
        tags=tuple(spec.get("tags", ())),
        correlation_id=spec.get("correlation_id"),
        idempotency=bytes.fromhex(spec["idempotency"]) if "idempotency" in spec else None,
        unique=unique and UniqueKey(bytes.fromhex(unique["digest"]), unique["live"], unique["replace"]),
        version=spec.get("version"),
        then=tuple(_job(follow) for follow in spec.get("then", ())),
        on_dead=tuple(_job(follow) for follow in spec.get("on_dead", ())),
        trigger=spec.get("trigger"),
        blobs=tuple(spec.get("blobs", ())),
        ordering_key=spec.get("ordering_key"),
        serialise=spec.get("serialise", False),
        fair=spec.get("fair", False),
    )


def jobs_of(text: str | None) -> tuple[NewJob, ...]:
    """The jobs of an array of whole specs; () for None."""
    found: list[Spec] = [] if text is None else _DECODER.decode(text)
    return tuple(map(_job, found))


def _span(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def definition(schedule: Schedule) -> str:
    """A schedule without its name, equal for equal ones."""
    return json.encode(_definition(schedule)).decode()


def definitions(schedules: Iterable[Schedule]) -> str:
    return json.encode([_definition(schedule) for schedule in schedules]).decode()


def _definition(schedule: Schedule) -> Spec:
    return {
        "every": seconds(schedule.every),
        "cron": schedule.cron,
        "tz": schedule.tz,
        "job": None if schedule.job is None else _whole(schedule.job),
        "jitter": schedule.jitter.total_seconds(),
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
    }


def schedule(name: str, text: str) -> Schedule:
    """The schedule of a stored definition."""
    found: Spec = _DECODER.decode(text)
    return Schedule(
        name=name,
        every=_span(found["every"]),
        cron=found["cron"],
        tz=found["tz"],
        job=None if found["job"] is None else _job(found["job"]),
        jitter=timedelta(seconds=found["jitter"]),
        catch_up=cast(CatchUp, found["catch_up"]),
        overlap=cast(Overlap, found["overlap"]),
    )


def bounds(queues: Iterable[QueuePolicy]) -> str:
    """What is declared of queues beside owner and retention."""
    return json.encode(
        [
            {
                "name": queue.name,
                "fair": queue.fair,
                "ordering": queue.ordering,
                "serialise": queue.serialise,
                "wait_target": seconds(queue.wait_target),
                "max_depth": queue.max_depth,
                "max_age": seconds(queue.max_age),
                "when_full": queue.when_full,
                "importance": queue.importance,
            }
            for queue in queues
        ]
    ).decode()


def limits(policies: Iterable[LimitPolicy]) -> str:
    return json.encode(
        [
            {
                "name": policy.name,
                "max_running": policy.max_running,
                "interval": policy.rate and policy.rate.interval,
                "burst": policy.rate and policy.rate.burst,
                "breaker": policy.breaker and _breaker(policy.breaker),
            }
            for policy in policies
        ]
    ).decode()


def _breaker(policy: BreakerPolicy) -> Spec:
    return {
        "failures": policy.failures,
        "min_calls": policy.min_calls,
        "window": policy.window.total_seconds(),
        "cool_down": policy.cool_down.total_seconds(),
    }


def task_limits(taken: Iterable[TaskLimit]) -> str:
    return json.encode(
        [{"task": limit.task, "policy": limit.policy, "argument": limit.argument} for limit in taken]
    ).decode()
