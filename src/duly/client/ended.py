"""The errors of waiting for a job: it ended without a result (JobEnded), or has not ended yet (ResultTimeout).

JobDead, JobSkipped and JobCancelled are JobEnded; ResultTimeout is a TimeoutError, too. Knows no store.
"""

from __future__ import annotations

from duly.core.errors import DulyError
from duly.core.fingerprint import ErrorRecord
from duly.core.job import JobId, JobRecord, KeptAnswer
from duly.core.lifecycle import State


class JobEnded(DulyError):
    """The job ended otherwise than by completing, so that there is no result: see `state` and `reason`."""

    def __init__(self, record: JobRecord | KeptAnswer, task: str) -> None:
        self.id: JobId = record.id
        self.state: State = record.state
        self.reason = record.reason or ""
        self.error: ErrorRecord | None = record.error if isinstance(record, JobRecord) else None
        """What the handler raised last, as text."""
        text = self.reason or (self.error.message if self.error is not None else "")
        super().__init__(f"job {record.id} ({task}) is {record.state}: {text or 'no reason given'}")


class JobDead(JobEnded):
    """It failed for good: `duly job ID` shows its attempts, `duly dead redrive` runs it again."""


class JobSkipped(JobEnded):
    """It was not needed any more, or it expired: `reason` says which."""


class JobCancelled(JobEnded):
    """Somebody cancelled it: `reason` says who and why."""


class ResultTimeout(DulyError, TimeoutError):
    """The job has not ended within the time given; it is still stored: ask again by its id."""

    def __init__(self, id: JobId, text: str) -> None:
        super().__init__(text)
        self.id = id


def ended(record: JobRecord | KeptAnswer, task: str) -> JobEnded:
    """The error for a final job that has not completed."""
    match record.state:
        case State.dead:
            return JobDead(record, task)
        case State.skipped:
            return JobSkipped(record, task)
        case State.cancelled:
            return JobCancelled(record, task)
        case _:
            return JobEnded(record, task)
