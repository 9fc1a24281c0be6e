"""Which stored job a caller means: by number, by what enqueue returned, by a record, or by a handler's own Job.

Reads nothing.
"""

from __future__ import annotations

from duly.client.enqueued import Enqueued
from duly.client.job import Job
from duly.core.errors import UsageError
from duly.core.job import JobId, JobRecord

AnyJob = int | JobRecord | Enqueued[object] | Job


def job_id(job: object) -> JobId:
    """The number of a stored job. UsageError for what is none."""
    number = job.id if isinstance(job, JobRecord | Enqueued | Job) else job
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 2**63:
        return JobId(number)
    if isinstance(job, Job):
        raise UsageError(f"{job!r} is the job of a direct call, which is not stored")
    raise UsageError(f"{job!r:.80} is no job id; ids are whole numbers, as enqueue and `duly jobs` give them")
