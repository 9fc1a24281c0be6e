"""Jobs that are asked for by name and JSON, as over HTTP: checked and made into what a store takes.

By the App's own tasks where it declares them, else by what workers have registered in the store. Stores nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from duly.client.client import Client
from duly.client.encoding import new_job
from duly.client.options import attempt_count, aware, literal_key, tag_names, urgency
from duly.client.registry import nearest
from duly.client.task import Task
from duly.client.unique import stored_form
from duly.core.defaults import PRIORITY, QUEUE
from duly.core.durations import parse_duration
from duly.core.encoding import encode_value
from duly.core.errors import NotFound, PayloadError, UsageError
from duly.core.job import NewJob
from duly.core.keys import Unique
from duly.core.names import LENGTHS, Kind, check_name

_FRESH: Final = 5.0
"""Seconds in which what workers have registered is not read again."""

Span = Annotated[
    str,
    Meta(
        description='A duration such as "30s" or "2d", or ISO 8601 such as "P2D".',
        # Only told: what is none is refused in words that say what to write.
        extra_json_schema={"pattern": r"^([0-9]+(ms|[wdhms])|P[0-9]+D|PT[0-9]+[HMS])$"},
    ),
]
# As core.names has it, for the document only: what is none is refused in words that say what to write.
_CONTROL: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_TEXT: Final = rf"^[^\s{_CONTROL}]([^{_CONTROL}]*[^\s{_CONTROL}])?$"


def _named(kind: Kind, pattern: str) -> Meta:
    return Meta(extra_json_schema={"minLength": 1, "maxLength": LENGTHS[kind], "pattern": pattern})


QueueName = Annotated[str, _named("queue", rf"^[^\s,:{_CONTROL}]+$")]
TaskName = Annotated[str, _named("task", rf"^[^\s,{_CONTROL}]+$")]
TenantName = Annotated[str, _named("tenant", _TEXT)]
TagName = Annotated[str, _named("tag", _TEXT)]
CorrelationName = Annotated[str, _named("correlation id", _TEXT)]
KeyName = Annotated[str, _named("key", _TEXT)]


class Asked(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One job to be: the task, its arguments by name, and the options of `task.using`."""

    task: Annotated[str, Meta(min_length=1, max_length=200)]
    args: dict[str, Any] = {}
    queue: QueueName | None = None
    delay: Span | None = None
    run_at: datetime | None = None
    expires: Span | None = None
    timeout: Span | None = None
    attempts: int | None = None
    priority: int | None = None
    tenant: TenantName | None = None
    ordering_key: KeyName | None = None
    unique_key: KeyName | None = None
    tags: tuple[TagName, ...] | None = None
    correlation_id: CorrelationName | None = None


class Registered:
    """What workers have written down: read again after some seconds. Any thread."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._read_at = float("-inf")
        self.queues: frozenset[str] = frozenset()
        self.tasks: Mapping[str, str] = {}
        """Task -> queue."""

    @property
    def is_fresh(self) -> bool:
        return self._clock() - self._read_at < _FRESH

    def read(self) -> None:
        """Ask the store, and let the bounds of its queues hold here, too; blocks."""
        store, registry = self._client.store, self._client.registry
        queues, tasks = store.schema.declared()
        foreign = [name for name in queues if name not in registry.queues]
        for name, pressure in store.pressing.pressures(foreign).items() if foreign else ():
            if pressure.bound is not None:
                registry.bounds[name] = pressure.bound
        self.queues, self.tasks = frozenset(queues), dict(tasks)
        self._read_at = self._clock()


class Asking:
    """Makes jobs of what is asked for."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.registered = Registered(client)

    async def prepare(self, asked: Asked) -> None:
        """Read what `job` needs to know of this one, if it is not known."""
        known = self._task(asked) is not None and (
            asked.queue is None or self.client.registry.knows_queue(asked.queue)
        )
        if not known and not self.registered.is_fresh:
            await self.client.acall(self.registered.read)

    def queue_of(self, asked: Asked) -> str:
        """Where it would go. NotFound names the nearest task or queue."""
        task = self._task(asked)
        if asked.queue is not None:
            return self._known_queue(asked.queue)
        if task is not None:
            return task.queue
        queue = self.registered.tasks.get(asked.task)
        if queue is None:
            known = {*self.registered.tasks, *self.client.registry.tasks}
            raise NotFound(
                f"no task is named {asked.task!r:.80}{nearest(asked.task, known) if known else '; none is known yet'}; "
                "start a worker that knows it, or run duly migrate with its App, or say the queue",
                kind="task",
                name=asked.task,
            )
        return queue

    def job(self, asked: Asked, *, trigger: str | None = None, correlation_id: str | None = None) -> NewJob:
        """The job as a store takes it. UsageError or PayloadError says what to write instead."""
        task = self._task(asked)
        queue = self.queue_of(asked)
        made = self._by_name(asked, queue) if task is None else _of_task(task, asked, self.client)
        if trigger is not None or (correlation_id is not None and made.correlation_id is None):
            made = replace(
                made, trigger=trigger or made.trigger, correlation_id=made.correlation_id or correlation_id
            )
        return made

    def _task(self, asked: Asked) -> Task[..., Any] | None:
        return self.client.registry.find(asked.task)

    def _known_queue(self, name: str) -> str:
        check_name("queue", name)
        known = {QUEUE, *self.client.registry.queues, *self.registered.queues}
        if name not in known:
            raise NotFound(f"no queue is named {name!r}{nearest(name, known)}", kind="queue", name=name)
        return name

    def _by_name(self, asked: Asked, queue: str) -> NewJob:
        tenant = "" if asked.tenant is None else check_name("tenant", asked.tenant)
        task = check_name("task", asked.task)
        unique = None if asked.unique_key is None else Unique(literal_key(asked.unique_key, "unique_key"))
        _refuse_two_times(asked)
        return NewJob(
            queue=queue,
            task=task,
            args=encode_value(asked.args, self.client.settings.bounds, "argument"),
            priority=PRIORITY if asked.priority is None else urgency(asked.priority),
            delay=read_span(asked.delay, "delay"),
            run_at=None if asked.run_at is None else aware(asked.run_at, "run_at"),
            expires=read_span(asked.expires, "expires", positive=True),
            timeout=read_span(asked.timeout, "timeout", positive=True),
            attempts=None if asked.attempts is None else attempt_count(asked.attempts),
            tenant=tenant,
            tags=() if asked.tags is None else tag_names(asked.tags),
            correlation_id=None
            if asked.correlation_id is None
            else check_name("correlation id", asked.correlation_id),
            unique=None if unique is None else stored_form(unique, task, tenant),
            ordering_key=None
            if asked.ordering_key is None
            else literal_key(asked.ordering_key, "ordering_key"),
        )


def _of_task(task: Task[..., Any], asked: Asked, client: Client) -> NewJob:
    arguments = task.arguments
    refuse_unfit(task, asked.args)
    try:
        values = arguments.decode(msgspec.json.encode(asked.args))
    except UnicodeEncodeError as error:
        raise PayloadError(f"an argument holds half of a surrogate pair: {error.reason}") from None
    options = {
        name: value
        for name in (
            "queue",
            "run_at",
            "attempts",
            "priority",
            "tenant",
            "ordering_key",
            "unique_key",
            "tags",
        )
        if (value := getattr(asked, name)) is not None
    }
    for name in ("delay", "expires", "timeout"):
        if (said := getattr(asked, name)) is not None:
            options[name] = read_span(said, name)
    if asked.correlation_id is not None:
        options["correlation_id"] = asked.correlation_id
    _refuse_two_times(asked)
    fitted = task.using(**options) if options else task
    return new_job(fitted.draft(**values), None, client)


def refuse_unfit(task: Task[..., Any], args: Mapping[str, object]) -> None:
    """In words for whoever calls from outside: a name that is not there, one that is missing."""
    arguments = task.arguments
    names = arguments.names
    for name in args:
        if name not in names:
            takes = ", ".join(names) or "nothing"
            raise PayloadError(f"{task.name} has no argument {name!r:.80}; it takes {takes}", path=name[:80])
    missing = [name for name in names if name in arguments.required and name not in args]
    if missing:
        raise PayloadError(f"{task.name} needs {', '.join(missing)}", path=missing[0])


def read_span(text: str | None, what: str, *, positive: bool = False) -> timedelta | None:
    """Read "2d" or ISO 8601's "P2D". UsageError with what to write instead."""
    if text is None:
        return None
    if not text.startswith("P"):
        return parse_duration(text, what, positive=positive)
    try:
        span = msgspec.convert(text, timedelta)
    except (msgspec.ValidationError, OverflowError):
        raise UsageError(f"{what}={text!r:.60} is no duration; write '30s', or as ISO 8601 'PT30S'") from None
    return parse_duration(span, what, positive=positive)


def _refuse_two_times(asked: Asked) -> None:
    if asked.delay is not None and asked.run_at is not None:
        raise UsageError("delay and run_at say two things; give one of them")
