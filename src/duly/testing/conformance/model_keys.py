"""The model's way in: enqueues with their keys, follow-ups, and what is remembered beside the jobs."""

from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta

from msgspec import json
from msgspec.structs import replace

from duly.core.batch import ACCEPTING, BatchState
from duly.core.defaults import KEEP_KEYS, KEPT_RESULT
from duly.core.errors import KeyReused, LeaseLost
from duly.core.job import RESULT_MARK, JobId, KeptAnswer, NewJob, Stored
from duly.core.keys import arguments_digest, takes_place
from duly.core.lifecycle import FINAL, WAITING, Outcome, State
from duly.stores.audits import AUDITED

from .model import Entry, Kept, Model
from .model_batches import check


class KeyedModel(Model):
    """Jobs in, and the keys that they hold."""

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        with self.act():
            for job in jobs:
                token = job.holder
                if token is not None and self.holder(token.incarnation, token.job, token.run) is None:
                    raise LeaseLost("not the holder", job_id=token.job)
            for id in {job.batch for job in jobs if job.batch is not None}:
                check(self.tables.batches, id)
            self._refuse_reused(jobs)
            return [self._enqueue(job) for job in jobs]

    def enqueue_or_other(self, job: NewJob) -> Stored:
        """Enqueue one that nobody can be asked about: the job of a key used for other arguments stands for it."""
        try:
            return self.enqueue([job])[0]
        except KeyReused as error:
            return Stored(JobId(error.job_id or 0), Outcome.duplicate)

    def _refuse_reused(self, jobs: Sequence[NewJob]) -> None:
        """Before anything is stored: the same idempotency key with other arguments, before or in this call."""
        asked: dict[bytes, bytes] = {}
        for position, job in enumerate(jobs):
            if job.idempotency is None:
                continue
            mine = arguments_digest(job.args)
            kept = self._kept(job.idempotency)
            known = asked.setdefault(job.idempotency, mine if kept is None else kept.args_hash)
            if known != mine:
                id = None if kept is None else kept.id
                raise KeyReused("other arguments under this key", job_id=id, position=position)

    def _kept(self, digest: bytes) -> Kept | None:
        kept = self.tables.kept.get(digest)
        return kept if kept is not None and kept.until > self.clock() else None

    def _enqueue(self, job: NewJob) -> Stored:
        kept = self._kept(job.idempotency) if job.idempotency is not None else None
        if kept is not None:
            return Stored(kept.id, Outcome.duplicate)
        other = self.holder_of(job)
        replacing = (
            other is not None
            and job.unique is not None
            and takes_place(job.version, other.new.version, job.unique.replace)
        )
        if other is not None and not (replacing and other.state in WAITING):
            stored = Stored(other.id, Outcome.duplicate)
        else:
            stored = self._create(job)
            if other is not None:
                self.to_final(other, State.skipped, f"replaced by job {stored.id}")
            self.take(self.tables.entries[stored.id])
        if job.idempotency is not None:
            until = self.clock() + KEEP_KEYS
            self.tables.kept[job.idempotency] = Kept(stored.id, arguments_digest(job.args), until)
        return stored

    def _create(self, job: NewJob) -> Stored:
        now = self.clock()
        due = now + job.delay if job.delay is not None else job.run_at or now
        due = max(due, now).astimezone(UTC)
        entry = Entry(JobId(self.number()), job, now, job.priority)
        entry.expires_at = None if job.expires is None else due + job.expires
        entry.lane = job.tenant if job.fair else ""
        self.tables.entries[entry.id] = entry
        self._audit(entry)
        if job.batch is not None:
            self.tables.batches[job.batch].count("total")
        if due > now:
            self.to_scheduled(entry, due)
            return Stored(entry.id, Outcome.created, due)
        self.to_ready(entry)
        return Stored(entry.id, Outcome.created)

    def _audit(self, entry: Entry) -> None:
        new = entry.new
        for tag in new.tags:
            word, _, who = tag.partition(":")
            if word == AUDITED:
                detail = json.encode({"queue": new.queue, "task": new.task, "tenant": new.tenant}).decode()
                self.note("enqueue", f"job:{entry.id}", who or "unknown", new.trigger or "", detail)
                self.tables.audited.setdefault(entry.id, None)

    def holder_of(self, job: NewJob) -> Entry | None:
        """The other job that stands for this one: it holds the unique key, and may still run."""
        if job.unique is None:
            return None
        entry = self.tables.entries.get(self.tables.taken.get(job.unique.digest, JobId(0)))
        if entry is None or entry.state in FINAL:
            return None
        return None if entry.state in WAITING and self.has_expired(entry) else entry

    def take(self, entry: Entry) -> None:
        """Let this job hold its unique key."""
        if entry.new.unique is not None:
            self.tables.taken[entry.new.unique.digest] = entry.id

    def follow(self, parent: Entry, new: NewJob) -> None:
        """A duplicate is not created; nor is one whose key was used for other arguments, and the parent says so."""
        args = new.args.replace(RESULT_MARK, parent.result or b"null")
        correlation = new.correlation_id or parent.new.correlation_id or str(parent.id)
        job = replace(new, args=args, correlation_id=correlation, holder=None)
        batch = None if parent.new.batch is None else self.tables.batches.get(parent.new.batch)
        if batch is not None and batch.state is BatchState.cancelled:
            return
        if batch is not None and batch.state in ACCEPTING:
            job = replace(job, batch=batch.id)
        try:
            self._refuse_reused([job])
        except KeyReused as error:
            told = f"the follow-up {new.task!r} was not created: {error}"
            parent.note = told if parent.note is None else f"{parent.note}; {told}"
        else:
            self._enqueue(job)

    def follow_batch(self, new: NewJob) -> None:
        try:
            self._refuse_reused([new])
        except KeyReused:
            return
        self._enqueue(new)

    def forget(self, entry: Entry) -> None:
        """Delete a job for good; a key that stands for it still answers how it ended."""
        del self.tables.entries[entry.id]
        assert entry.finished_at is not None
        small = entry.result is not None and len(entry.result) <= KEPT_RESULT
        answer = KeptAnswer(
            entry.id, entry.state, entry.finished_at, entry.result if small else None, entry.reason
        )
        for kept in self.tables.kept.values():
            if kept.id == entry.id:
                kept.answer = answer

    def forget_keys(self) -> None:
        """Whatever is remembered beside the jobs, when its time is over."""
        now = self.clock()
        self.tables.kept = {key: kept for key, kept in self.tables.kept.items() if kept.until > now}
        self.tables.once = {key: until for key, until in self.tables.once.items() if until > now}
        self.tables.newest = {key: pair for key, pair in self.tables.newest.items() if pair[1] > now}

    def answer(self, id: JobId) -> KeptAnswer | None:
        with self.tables.lock:
            now = self.clock()
            found = [kept for kept in self.tables.kept.values() if kept.id == id and kept.until > now]
            return found[0].answer if found else None

    def once(self, digest: bytes, keep: timedelta) -> bool:
        with self.tables.lock:
            now = self.clock()
            if self.tables.once.get(digest, now) > now:
                return False
            self.tables.once[digest] = now + keep
            return True

    def unused_blobs(self, references: Sequence[str]) -> list[str]:
        with self.tables.lock:
            used = {one for entry in self.tables.entries.values() for one in _blobs([entry.new])}
            return [one for one in references if one not in used]


def _blobs(jobs: Iterable[NewJob]) -> Iterable[str]:
    """References of jobs and of whatever follows them."""
    for job in jobs:
        yield from job.blobs
        yield from _blobs(job.then)
        yield from _blobs(job.on_dead)
