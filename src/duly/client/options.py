"""What `Task.using` overlays on one enqueue: read, checked and merged; the last one wins.

Knows nothing of tasks or stores.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from duly.client.client import Client
from duly.client.queue import Queue
from duly.client.unique import as_unique
from duly.core.defaults import EARLIEST, LATEST, MAX_PRIORITY, MIN_PRIORITY
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.core.keys import Unique
from duly.core.names import check_name

if TYPE_CHECKING:
    from duly.client.draft import Draft

MAX_TAGS = 20


class Options(Struct, frozen=True, kw_only=True):
    """One overlay; None is "not said"."""

    connection: Any = None
    queue: str | None = None
    delay: timedelta | None = None
    run_at: datetime | None = None
    expires: timedelta | None = None
    timeout: timedelta | None = None
    attempts: int | None = None
    priority: int | None = None
    tenant: str | None = None
    correlation_id: str | None = None
    tags: tuple[str, ...] | None = None
    ordering_key: str | None = None
    unique_key: str | Unique | None = None
    """Text: the key alone, under the scope that the task declares."""
    idempotency_key: str | None = None
    version: int | None = None
    then: tuple[Draft[Any], ...] | None = None
    on_dead: tuple[Draft[Any], ...] | None = None
    strict: bool | None = None
    """Rather QueueFull than a job above its queue's bound."""
    client: Client | None = None
    """Another store than the task's App has."""

    def merged(self, later: Options) -> Options:
        """These with what `later` says on top; its delay replaces a run_at and the other way round."""
        if self is NOTHING:
            return later
        said = {
            name: value for name in Options.__struct_fields__ if (value := getattr(later, name)) is not None
        }
        if "delay" in said:
            said["run_at"] = None
        elif "run_at" in said:
            said["delay"] = None
        return replace(self, **said)


NOTHING: Final = Options()


def read_options(
    *,
    connection: Any,
    queue: str | Queue | None,
    delay: Duration | None,
    run_at: datetime | None,
    expires: Duration | None,
    timeout: Duration | None,
    attempts: int | None,
    priority: int | None,
    tenant: str | None,
    ordering_key: str | None,
    correlation_id: str | None,
    tags: Iterable[str] | None,
    unique_key: str | Unique | None,
    idempotency_key: str | None,
    version: int | None,
    then: tuple[Draft[Any], ...] | None,
    on_dead: tuple[Draft[Any], ...] | None,
    strict: bool | None,
    client: Client | None,
) -> Options:
    """Check what a caller wrote. UsageError with the text to write instead."""
    if strict is not None:
        switched(strict, "strict")
    if delay is not None and run_at is not None:
        raise UsageError("delay and run_at say two things; give one of them")
    return Options(
        connection=connection,
        queue=None if queue is None else queue_name(queue),
        delay=None if delay is None else parse_duration(delay, "delay"),
        run_at=None if run_at is None else aware(run_at, "run_at"),
        expires=None if expires is None else parse_duration(expires, "expires", positive=True),
        timeout=None if timeout is None else parse_duration(timeout, "timeout", positive=True),
        attempts=None if attempts is None else attempt_count(attempts),
        priority=None if priority is None else urgency(priority),
        tenant=None if tenant is None else check_name("tenant", tenant),
        ordering_key=None if ordering_key is None else literal_key(ordering_key, "ordering_key"),
        correlation_id=None if correlation_id is None else check_name("correlation id", correlation_id),
        tags=None if tags is None else tag_names(tags),
        unique_key=None if unique_key is None else _unique_key(unique_key),
        idempotency_key=None if idempotency_key is None else literal_key(idempotency_key, "idempotency_key"),
        version=None if version is None else _version(version),
        then=then,
        on_dead=on_dead,
        strict=strict,
        client=client,
    )


def _unique_key(said: str | Unique) -> str | Unique:
    unique = as_unique(said, "unique_key")
    return unique.key if isinstance(said, str) else unique


def literal_key(key: object, option: str) -> str:
    """The key itself, if it may be one; UsageError with the option's name else."""
    if not isinstance(key, str):
        raise UsageError(f"{option}={key!r:.80} is no text; write {option}='receipt:7'")
    try:
        return check_name("key", key)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _version(version: object) -> int:
    if isinstance(version, bool) or not isinstance(version, int) or not -(2**63) <= version < 2**63:
        raise UsageError(
            f"version={version!r:.80} is no whole number of 64 bits; write the row's version, or its time of change "
            "in microseconds"
        )
    return version


def queue_name(queue: str | Queue) -> str:
    return queue.name if isinstance(queue, Queue) else check_name("queue", queue)


def aware(moment: datetime, name: str) -> datetime:
    """The moment itself, if it says its time zone."""
    if not isinstance(moment, datetime):
        raise UsageError(f"{name}={moment!r} is no datetime; write datetime(…, tzinfo=UTC)")
    if moment.utcoffset() is None:
        raise UsageError(
            f"{name}={moment!r} has no time zone; write {name}=value.replace(tzinfo=UTC) if it is meant in UTC, "
            'or tzinfo=ZoneInfo("Europe/Berlin")'
        )
    if not EARLIEST <= moment < LATEST:
        raise UsageError(f"{name}={moment!r} is no due time: write a year from 1970 to 8999")
    return moment


def attempt_count(attempts: object) -> int:
    return whole_number(attempts, "attempts", "; 1 means no retry")


def whole_number(value: object, name: str, hint: str = "") -> int:
    """The value, if it counts something; UsageError with its name else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise UsageError(f"{name}={value!r} must be a whole number from 1{hint}")
    return value


def urgency(priority: object) -> int:
    if (
        isinstance(priority, bool)
        or not isinstance(priority, int)
        or not MIN_PRIORITY <= priority <= MAX_PRIORITY
    ):
        raise UsageError(
            f"priority={priority!r} must be a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}; lower is more urgent"
        )
    return priority


def switched(value: object, name: str) -> bool:
    """The value, if it is True or False; UsageError with its name else."""
    if not isinstance(value, bool):
        raise UsageError(f"{name}={value!r:.60} is True or False")
    return value


def tag_names(tags: Iterable[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise UsageError(f"tags={tags!r} is one text; write tags=[{tags!r}]")
    names = tuple(dict.fromkeys(check_name("tag", tag) for tag in tags))
    if len(names) > MAX_TAGS:
        raise UsageError(f"{len(names)} tags on one job; at most {MAX_TAGS} fit")
    return names
