"""What waits in the store, as a test asks for it: found, matched against a draft or some arguments, and told.

Reads through the store's protocol; changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from duly.client.draft import Draft
from duly.client.encoding import new_job
from duly.client.options import Options
from duly.client.sealing import Sealing
from duly.client.task import Task
from duly.core.errors import PayloadError, UsageError
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, State
from duly.stores.protocol import Store

Wanted = Task[..., Any] | Draft[Any]
_WAITING: Final = (State.ready, State.scheduled, State.blocked, State.running)
_ANY: Final = object()


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A job that is stored and has not ended."""

    task: str
    arguments: Mapping[str, Any]
    """As the handler will get them."""
    record: JobRecord

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        when = f", due {self.record.run_at:%Y-%m-%d %H:%M:%S} UTC" if self.record.run_at is not None else ""
        return f"{self.task}({inside:.200}) in {self.record.queue}, {self.record.state}{when}"


def committed(store: Store) -> list[JobId]:
    """Every job of a state that is not final, oldest first, without a caller's transaction."""
    ids: list[JobId] = []
    for state in _WAITING:
        after: int | None = 0
        while after is not None:
            page = store.inspection.page(Filter(state=state), after=after, limit=500)
            ids += [record.id for record in page.jobs]
            after = page.next
    return sorted(ids)


def found(records: Sequence[JobRecord | None], tasks: Mapping[str, Task[..., Any]]) -> list[WaitingJob]:
    """Those that wait, their arguments decoded."""
    return [
        WaitingJob(record.task, _arguments(record, tasks), record)
        for record in records
        if record is not None and record.state not in FINAL
    ]


def matching(
    waiting: Sequence[WaitingJob], wanted: Wanted | None, part: Mapping[str, Any] | None
) -> list[WaitingJob]:
    """Those of a task with these arguments among theirs, or those that equal a draft in all that it says."""
    if wanted is None:
        return list(waiting)
    if isinstance(wanted, Draft):
        if part is not None:
            raise UsageError("a draft says all arguments; give a task and some of them, or the draft alone")
        return _like(waiting, wanted)
    if not isinstance(wanted, Task):
        raise UsageError(f"{wanted!r:.80} is neither a task nor a draft; write task, or task.draft(…)")
    names = (wanted.name, *wanted.aliases)
    said = dict(part or {})
    unknown = set(said) - set(wanted.arguments.names)
    if unknown:
        raise UsageError(
            f"{wanted.name} takes no {', '.join(sorted(unknown))}; its arguments: {', '.join(wanted.arguments.names)}"
        )
    return [
        job
        for job in waiting
        if job.task in names and all(job.arguments.get(name, _ANY) == value for name, value in said.items())
    ]


def told(waiting: Sequence[WaitingJob]) -> str:
    """What is there, for the message of a failed assertion."""
    if not waiting:
        return "nothing waits"
    lines = [f"  {job}" for job in waiting[:20]]
    more = [] if len(waiting) <= 20 else [f"  and {len(waiting) - 20} more"]
    return "\n".join(["these wait:", *lines, *more])


def _arguments(record: JobRecord, tasks: Mapping[str, Task[..., Any]]) -> Mapping[str, Any]:
    task = tasks.get(record.task) or next(
        (task for task in tasks.values() if record.task in task.aliases), None
    )
    data = record.args if task is None else _in_clear(task.sealing, record)
    plain: Mapping[str, Any] = msgspec.json.decode(data)
    if task is None:
        return plain
    try:
        return task.arguments.decode(data)
    except PayloadError:
        # What the handler could not take either is still worth showing.
        return plain


def _in_clear(sealing: Sealing, record: JobRecord) -> bytes:
    return sealing.open_arguments(record.queue, record.task, record.tenant, record.args)


def _like(waiting: Sequence[WaitingJob], draft: Draft[Any]) -> list[WaitingJob]:
    job = new_job(draft, None)
    sealing = draft.client.sealing
    args = msgspec.json.decode(sealing.open_arguments(job.queue, job.task, job.tenant, job.args))
    names = (draft.declaration.name, *draft.declaration.aliases)
    return [
        one
        for one in waiting
        if one.task in names
        and msgspec.json.decode(_in_clear(sealing, one.record)) == args
        and _agrees(one.record, draft.options)
    ]


def _agrees(record: JobRecord, options: Options) -> bool:
    """Whether the record has what the draft was told by `using`; what it was not told does not matter."""
    due = None if options.delay is None else record.enqueued_at + options.delay
    said = [
        (options.queue, record.queue),
        (options.tenant, record.tenant),
        (options.priority, record.priority),
        (options.timeout, record.timeout),
        (options.attempts, record.attempts),
        (options.correlation_id, record.correlation_id),
        (options.tags, record.tags),
        (options.run_at, record.run_at),
        (due, record.run_at),
    ]
    return all(wanted is None or wanted == held for wanted, held in said)
