"""Jobs in: - -> ready or scheduled, with their keys and whatever else they carry. Runs inside an open transaction.

With one writer on the file a key that was read stays as it was until the commit: nobody is waited for here.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec.structs import replace

from duly.core.defaults import ENQUEUE_BATCH, KEEP_KEYS
from duly.core.errors import KeyReused, LeaseLost
from duly.core.job import JobId, NewJob, Stored, UniqueKey
from duly.core.keys import arguments_digest, takes_place
from duly.core.lifecycle import Outcome, State
from duly.stores.sqlite import batches
from duly.stores.sqlite.moves import (
    BATCH,
    BLOB,
    KEYED,
    ON_DEAD,
    THEN,
    UNIQUE,
    VERSION,
    Moves,
    Values,
    lane_of,
    task_key,
    tenant_key,
)
from duly.stores.sqlite.releasing import look_again, ordering_key
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.specs import blobs_of, text_of
from duly.stores.sqlite.times import from_micros, maybe_span, span, to_micros
from duly.stores.sqlite.transport import ids_text, texts_of
from duly.stores.sqlite.waiting import BLOCKED, READY, SCHEDULED, jobs_of, subject_of, take

# Reading a member from its class runs Python code before 3.12.
_CREATED: Final = Outcome.created
# In all but these two jobs of a group are alike, and so are their rows.
_SHAPE: Final = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in {"args", "holder"}))
# From so many on one statement for all of them is the faster way.
_MANY: Final = 4
# Bytes of arguments that are sent as one text.
_MOST_TEXT: Final = 4 * 1024 * 1024


class Holder(NamedTuple):
    """The live job that a unique key belongs to."""

    id: int
    running: bool


def enqueue_in(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    """Store jobs in the open transaction; LeaseLost or KeyReused before anything is written."""
    if len(jobs) == 1 and jobs[0].holder is None and _is_plain(jobs[0]):
        return [_store_plain(session, jobs[0])]
    _check_holders(session, jobs)
    batches.check(session, jobs)
    if any(job.idempotency is not None or job.unique is not None for job in jobs):
        return _store_keyed(session, jobs)
    stored: list[Stored] = []
    for start in range(0, len(jobs), ENQUEUE_BATCH):
        chunk = jobs[start : start + ENQUEUE_BATCH]
        stored += _store_new(session, chunk, session.numbers(len(chunk)))
    return stored


def holder_of(session: Session, digest: bytes) -> Holder | None:
    """Who holds a unique key; None when it is free."""
    row = session.row("select_key_holder", key=digest, now=session.now)
    return None if row is None else Holder(row[0], bool(row[1]))


def hold_key(session: Session, digest: bytes, id: int, live: bool) -> None:
    """Take a unique key that is free."""
    session.run("upsert_unique_key", key=digest, id=id, live=live)


def _check_holders(session: Session, jobs: Sequence[NewJob]) -> None:
    for holder in {job.holder for job in jobs if job.holder is not None}:
        if session.row("select_token", incarnation=holder.incarnation, id=holder.job, run=holder.run) is None:
            raise LeaseLost(
                f"job {holder.job} no longer belongs to this attempt; nothing was enqueued", job_id=holder.job
            )


def _store_keyed(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    """One after the other, as if each came in a call of its own; answers in the order of the call."""
    known, repeats = _recognised(session, jobs)
    answers = {at: _duplicate(id) for at, id in known.items()}
    new = [(at, job) for at, job in enumerate(jobs) if at not in known and at not in repeats]
    for start in range(0, len(new), ENQUEUE_BATCH):
        answers |= _Keyed(session).store(new[start : start + ENQUEUE_BATCH])
    answers |= {at: _duplicate(answers[first].id) for at, first in repeats.items()}
    duplicates = [one.id for one in answers.values() if one.outcome is Outcome.duplicate]
    if duplicates:
        due: dict[int, int] = dict(session.rows("select_due_times", ids=ids_text([*duplicates])))
        answers |= {
            at: replace(one, run_at=from_micros(due[one.id]))
            for at, one in answers.items()
            if one.outcome is Outcome.duplicate and one.id in due
        }
    return [answers[at] for at in range(len(jobs))]


def _duplicate(id: int) -> Stored:
    return Stored(JobId(id), Outcome.duplicate)


def _recognised(session: Session, jobs: Sequence[NewJob]) -> tuple[dict[int, int], dict[int, int]]:
    """Places in the call whose idempotency key is taken: by a job stored before, and by an earlier place."""
    known: dict[int, int] = {}
    repeats: dict[int, int] = {}
    first: dict[bytes, int] = {}
    for at, job in enumerate(jobs):
        key = job.idempotency
        if key is None:
            continue
        before = first.setdefault(key, at)
        if before != at and jobs[before].args != job.args:
            raise _reused(job, at, known.get(before))
        if before in known:
            known[at] = known[before]
        elif before != at:
            repeats[at] = before
        elif (row := session.row("select_idempotency", key=key, now=session.now)) is not None:
            id, args_hash = row
            if args_hash != arguments_digest(job.args):
                raise _reused(job, at, id)
            known[at] = id
    return known, repeats


def _reused(job: NewJob, at: int, id: int | None) -> KeyReused:
    whose = "another job of this call" if id is None else f"job {id}"
    return KeyReused(
        f"the idempotency key of the {job.task!r} at position {at} belongs to {whose}, which has other arguments; "
        "nothing was enqueued. Give the new request a key of its own",
        job_id=id,
        position=at,
    )


class _Keyed:
    """A call of jobs with keys; what is new is written together, but before a key is looked up that it holds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[int, Stored] = {}
        self._jobs: list[tuple[int, NewJob]] = []
        self._places: list[int] = []
        self._held: dict[bytes, Row] = {}
        self._records: list[Row] = []

    def store(self, jobs: Sequence[tuple[int, NewJob]]) -> dict[int, Stored]:
        """(place in the call, job) -> place, answer. No idempotency key among them is known."""
        session = self._session
        for id, (at, job) in enumerate(jobs, session.numbers(len(jobs))):
            holder = None if job.unique is None else self._holder(job.unique, job.version, id)
            if holder is None:
                self._places.append(at)
                self._jobs.append((id, job))
                if job.unique is not None:
                    digest = job.unique.digest
                    self._held[digest] = (digest, id, job.unique.live)
            else:
                self._answers[at] = _duplicate(holder)
            if job.idempotency is not None:
                # Also for a duplicate: the request repeated later must find the job that stood for it.
                self._record(job.idempotency, job, id if holder is None else holder)
        self._write()
        session.tuples("upsert_idempotency", self._records)
        return self._answers

    def _holder(self, unique: UniqueKey, version: int | None, id: int) -> int | None:
        """The job that stands for the new one with this id; None when that is to be created."""
        if unique.digest in self._held:
            self._write()
        holder = holder_of(self._session, unique.digest)
        if holder is None:
            return None
        theirs = None if version is None else self._session.value("select_version", id=holder.id)
        if holder.running or not takes_place(version, theirs, unique.replace):
            return holder.id
        _replace(self._session, holder.id, id)
        return None

    def _record(self, key: bytes, job: NewJob, id: int) -> None:
        until = self._session.now + span(KEEP_KEYS)
        self._records.append((key, id, arguments_digest(job.args), until))

    def _write(self) -> None:
        stored = _store(self._session, self._jobs)
        self._answers |= zip(self._places, stored, strict=True)
        self._session.tuples("upsert_unique_key", [*self._held.values()])
        self._jobs, self._places = [], []
        self._held.clear()


def _replace(session: Session, old: int, new: int) -> None:
    """ready, scheduled or blocked -> skipped."""
    waiting = take(session, [old], READY, SCHEDULED, BLOCKED)
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.skipped, reason=f"replaced by job {new}")
    moves.flush()
    look_again(session)


def _store_new(session: Session, jobs: Sequence[NewJob], first: int) -> list[Stored]:
    """Write jobs without keys under consecutive ids."""
    if len(jobs) < _MANY:
        return _store(session, [*enumerate(jobs, first)])
    stored: list[Stored] = []
    unlike: list[tuple[int, NewJob]] = []
    for _shape, group in groupby(jobs, _SHAPE):
        alike = [*group]
        quick = session.utf8 and len(alike) >= _MANY and not _is_rich(alike[0])
        texts = _texts(alike) if quick else None
        if texts is None:
            unlike += enumerate(alike, first)
        else:
            stored += _store(session, unlike)
            unlike = []
            stored += _store_alike(session, alike, first, texts)
        first += len(alike)
    stored += _store(session, unlike)
    return stored


def _is_plain(job: NewJob) -> bool:
    """Whether it is ready at once and is its two rows."""
    return not (
        job.delay or job.run_at or job.tags or job.idempotency is not None or job.unique or _is_rich(job)
    )


def _store_plain(session: Session, job: NewJob) -> Stored:
    """As `_store`, for the one job of most calls."""
    id, now = session.numbers(1), session.now
    expires_at = None if job.expires is None else now + span(job.expires)
    session.one("insert_job", _job_row(id, job, expires_at, now))
    lane, task = lane_of(job.queue, False), task_key(job.task)
    session.one(
        "insert_ready", (lane, job.priority, id, id, task, 0, 0, 0, 0, 0, expires_at, now, _lane_tenant(job))
    )
    session.rings = True
    return Stored(JobId(id), _CREATED)


def _texts(jobs: Sequence[NewJob]) -> str | None:
    """Arguments as one JSON text; None where they would not come out of it as they are, or are large."""
    args = [job.args for job in jobs]
    return texts_of(args) if sum(map(len, args)) <= _MOST_TEXT else None


def _store_alike(session: Session, jobs: Sequence[NewJob], first: int, args: str) -> list[Stored]:
    """Write jobs that differ only in their arguments."""
    job, last = jobs[0], first + len(jobs) - 1
    run_at = _due(session.now, job)
    session.run(
        "insert_jobs_alike",
        first=first,
        **_common(job, _expiry(session.now, run_at, job), session.now),
        args=args,
    )
    session.tuples("insert_tag", [(tag, id) for id in range(first, last + 1) for tag in job.tags])
    place: Values = {
        "queue": lane_of(job.queue, False),
        "tenant": _lane_tenant(job),
        "task": task_key(job.task),
        "first": first,
        "last": last,
    }
    if run_at is None:
        session.run("insert_ready_alike", **place)
    else:
        session.run("insert_scheduled_alike", run_at=run_at, **place)
    session.rings = True
    due = None if run_at is None else from_micros(run_at)
    return [Stored(JobId(id), _CREATED, due) for id in range(first, last + 1)]


def _store(session: Session, jobs: Sequence[tuple[int, NewJob]]) -> list[Stored]:
    """Write jobs under the ids given."""
    stored: list[Stored] = []
    plain: list[Row] = []
    rich: list[tuple[NewJob, int, Row]] = []
    ready: list[Row] = []
    scheduled: list[Row] = []
    tags: list[Row] = []
    now = session.now
    for id, job in jobs:
        run_at = _due(now, job)
        expires_at = _expiry(now, run_at, job)
        row = _job_row(id, job, expires_at, now)
        if _is_rich(job):
            rich.append((job, id, row))
        else:
            plain.append(row)
        if job.tags:
            tags += [(tag, id) for tag in job.tags]
        lane, tenant, task = lane_of(job.queue, False), _lane_tenant(job), task_key(job.task)
        if run_at is None:
            # A new job's position is its id: one number of the sequence serves both.
            ready.append((lane, job.priority, id, id, task, 0, 0, 0, 0, 0, expires_at, now, tenant))
        else:
            scheduled.append((id, run_at, lane, task, job.priority, 0, 0, 0, 0, 0, expires_at, tenant))
        stored.append(Stored(JobId(id), _CREATED, None if run_at is None else from_micros(run_at)))
    session.tuples("insert_job", plain)
    if rich:
        _store_rich(session, rich)
    session.tuples("insert_tag", tags)
    session.tuples("insert_ready", ready)
    session.tuples("insert_scheduled", scheduled)
    # A new due time may be earlier than the one that the promoter waits for.
    session.rings = session.rings or bool(stored)
    return stored


def _is_rich(job: NewJob) -> bool:
    """Whether it carries anything beside itself, or needs columns that most jobs leave empty."""
    return bool(
        job.unique or job.trigger or job.then or job.on_dead or job.blobs or job.ordering_key or job.batch
    )


def _store_rich(session: Session, jobs: Sequence[tuple[NewJob, int, Row]]) -> None:
    """Write jobs with what they carry beside themselves."""
    rows: list[Row] = []
    follows: list[Row] = []
    blobs: list[Row] = []
    keyed: list[Row] = []
    for job, id, row in jobs:
        used = [*dict.fromkeys(blobs_of(job))]
        rows.append((*row, *_rich_columns(job, used)))
        follows += _follow_rows(id, THEN, job.then)
        follows += _follow_rows(id, ON_DEAD, job.on_dead)
        blobs += [(id, reference) for reference in used]
        if job.ordering_key is not None:
            keyed.append((ordering_key(job.queue, job.tenant, job.ordering_key), id))
    session.tuples("insert_rich_job", rows)
    session.tuples("insert_follow", follows)
    session.tuples("insert_blob", blobs)
    session.tuples("insert_keyed", keyed)
    batches.count_new(session, [job.batch for job, _, _ in jobs if job.batch is not None])


def _rich_columns(job: NewJob, blobs: Sequence[str]) -> Row:
    """(extras, unique_key, unique_live, version, trigger, ordering_key, batch)."""
    unique = job.unique
    versioned = unique is not None and job.version is not None
    extras = (
        (THEN if job.then else 0)
        | (ON_DEAD if job.on_dead else 0)
        | (UNIQUE if unique is not None else 0)
        | (VERSION if versioned else 0)
        | (BLOB if blobs else 0)
        | (KEYED if job.ordering_key is not None else 0)
        | (BATCH if job.batch is not None else 0)
    )
    return (
        extras,
        None if unique is None else unique.digest,
        None if unique is None else unique.live,
        job.version if versioned else None,
        job.trigger,
        job.ordering_key,
        job.batch,
    )


def _follow_rows(id: int, kind: int, follows: Sequence[NewJob]) -> list[Row]:
    return [(id, kind, position, text_of(follow)) for position, follow in enumerate(follows)]


def _job_row(id: int, job: NewJob, expires_at: int | None, now: int) -> Row:
    """(id, queue, task, args, priority, tenant, tags, correlation_id, attempts, timeout, expires_at, enqueued_at)."""
    return (
        id,
        job.queue,
        job.task,
        job.args,
        job.priority,
        job.tenant,
        json.dumps(job.tags, ensure_ascii=False) if job.tags else None,
        job.correlation_id,
        job.attempts,
        maybe_span(job.timeout),
        expires_at,
        now,
    )


def _common(job: NewJob, expires_at: int | None, now: int) -> Values:
    """What `_job_row` holds beside the id and the arguments."""
    _, queue, task, _, priority, tenant, tags, correlation_id, attempts, timeout, *_ = _job_row(
        0, job, expires_at, now
    )
    return {
        "queue": queue,
        "task": task,
        "priority": priority,
        "tenant": tenant,
        "tags": tags,
        "correlation_id": correlation_id,
        "attempts": attempts,
        "timeout": timeout,
        "expires_at": expires_at,
        "now": now,
    }


def _lane_tenant(job: NewJob) -> int:
    """The key of its tenant, where its queue goes round them."""
    return tenant_key(job.tenant) if job.fair else 0


def _expiry(now: int, run_at: int | None, job: NewJob) -> int | None:
    due = now if run_at is None else run_at
    return None if job.expires is None else due + span(job.expires)


def _due(now: int, job: NewJob) -> int | None:
    """When the job is due; None when that is now."""
    if job.delay is not None:
        run_at = now + span(job.delay)
    elif job.run_at is not None:
        run_at = to_micros(job.run_at)
    else:
        return None
    return run_at if run_at > now else None
