"""What a person does about dead letters beside running them again: says whose they are and how far, edits one.

The triage part of `operate`. A group is one fingerprint in one queue and task.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from duly.client.authorship import reason_given
from duly.client.control_acts import ControlActs
from duly.client.editing import edited
from duly.client.identity import AnyJob, job_id
from duly.client.triage_reads import NO_ERROR, group_filter, marks_of, one_error, triaged
from duly.client.twins import blocking, twin
from duly.core.errors import NotFound, UsageError
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import Outcome, State
from duly.core.names import check_name
from duly.core.operating import DeadMark, TriageState, successor_of
from duly.core.trace import edited_trigger
from duly.telemetry.moves import JobsMoved


class Edited(msgspec.Struct, frozen=True):
    """What became of an edit."""

    job: JobId
    """The dead letter."""
    successor: JobId | None
    """The job that runs in its place; None: nothing was done, and `why` says what stands in the way."""
    args: bytes = b""
    """Its arguments, as JSON."""
    why: str = ""


class TriageActs(ControlActs):
    """Base of `Operate`."""

    @blocking
    def acknowledge(
        self,
        fingerprint: str,
        *,
        owner: str | None = None,
        note: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        reason: str = "",
    ) -> tuple[DeadMark, ...]:
        """new, fixed -> acknowledged: somebody has seen the group. Moves no letter.

        `fingerprint` as `inspect.dead_groups` gives it, or its first four digits; of several queues and tasks all,
        unless one is named. NotFound where no letter has it.
        """
        return self._mark(fingerprint, queue, task, "acknowledged", owner, note, reason)

    @blocking
    def assign(
        self,
        fingerprint: str,
        owner: str | None,
        *,
        note: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        reason: str = "",
    ) -> tuple[DeadMark, ...]:
        """Say who sees to a group; None gives it back to the queue's owner. The state stays."""
        return self._mark(fingerprint, queue, task, None, owner or "", note, reason)

    @blocking
    def fixed(
        self,
        fingerprint: str,
        *,
        note: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        reason: str = "",
    ) -> tuple[DeadMark, ...]:
        """new, acknowledged -> fixed: the cause is gone. As soon as another job dies of it the group is new again.

        Moves no letter: redrive or purge them. With both `queue` and `task` also for a group that is empty by now.
        """
        return self._mark(fingerprint, queue, task, "fixed", None, note, reason)

    @blocking
    def edit(self, job: AnyJob, args: Mapping[str, object], *, reason: str = "") -> Edited:
        """- -> ready: run a job with these arguments changed in the place of a dead letter.

        The letter stays dead, says where it went, and no redrive moves it any more; the new job's trigger names it.
        Everything else is the letter's: queue, priority, tags, keys and follow-ups; a key that was filled from the
        arguments is filled anew. PayloadError or UsageError for arguments that the task does not take; where no code
        here declares the task, for names and kinds of values that the letter does not have. NotFound for no job.
        """
        number, said = job_id(job), reason_given(reason)
        store = self._client.store
        asked = store.triage.asked(number)
        if asked is None:
            return Edited(number, None, why=_stays(number, store.inspection.lookup([number])[0]))
        made = edited(self._client, asked, args)
        stored = store.triage.edit(number, replace(made, trigger=edited_trigger(number)), self.actor(), said)
        if stored is None:
            return Edited(number, None, why=_stays(number, store.inspection.lookup([number])[0]))
        if stored.outcome is Outcome.duplicate:
            why = f"job {number} stays dead: job {stored.id} has its unique key by now; cancel that one, or wait"
            return Edited(number, None, why=why)
        self._client.tell(JobsMoved("edit", (stored.id,), self.actor()))
        return Edited(number, stored.id, made.args)

    aacknowledge = twin(acknowledge)
    aassign = twin(assign)
    afixed = twin(fixed)
    aedit = twin(edit)

    def _mark(
        self,
        fingerprint: str,
        queue: str | None,
        task: str | None,
        state: TriageState | None,
        owner: str | None,
        note: str | None,
        reason: str,
    ) -> tuple[DeadMark, ...]:
        said, by = reason_given(reason), self.actor()
        if owner:
            check_name("actor", owner)
        text = None if note is None else reason_given(note)
        triage = self._client.store.triage
        return tuple(
            triage.mark(*group, by=by, reason=said, state=state, owner=owner, note=text)
            for group in self._groups(fingerprint, queue, task)
        )

    def _groups(self, fingerprint: str, queue: str | None, task: str | None) -> list[tuple[str, str, str]]:
        store = self._client.store
        found = store.inspection.dead_groups(group_filter(fingerprint, queue, task))
        if not found and queue is not None and task is not None:
            if fingerprint not in {"", NO_ERROR} and len(fingerprint) < 8:
                raise UsageError(
                    f"no dead letter has the fingerprint {fingerprint}; of a group without letters write all of it"
                )
            return [("" if fingerprint == NO_ERROR else fingerprint, queue, task)]
        groups = one_error(triaged(found, marks_of(store, found), {}), fingerprint)
        return [(group.fingerprint, group.queue, group.task) for group in groups]


def _stays(number: JobId, record: JobRecord | None) -> str:
    """Why a job is not edited. NotFound when there is none."""
    if record is None:
        raise NotFound(
            f"no job {number}: it never was, or it ended and is no longer kept", kind="job", name=str(number)
        )
    if record.state is State.dead and (successor := successor_of(record.note)) is not None:
        return f"job {number} was edited already: it runs again as job {successor}"
    return f"job {number} is {record.state}; only a dead letter can be edited"
