"""What stands around one job, for whoever asks why it is not running. A read in one snapshot."""

from typing import Final

from duly.core.control import queue_limit, tenant_limit
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.names import key_of
from duly.core.why import MOST_AHEAD, JobFacts
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.limiting import limit_names
from duly.stores.sqlite.releasing import ordering_key
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.views import job_of

_SHOWN: Final = 5


def facts_in(session: Session, id: JobId) -> JobFacts | None:
    job = _job(session, id)
    if job is None:
        return None
    name = job.ordering_key
    key = None if name is None else ordering_key(job.queue, job.tenant, name)
    row = session.row("select_facts", id=id, queue=job.queue, task=job.task, key=key, most=MOST_AHEAD)
    ahead, serving, knowing, head, paused, before = row or (0, 0, 0, None, 0, 0)
    owner = None if head is None else _job(session, JobId(head))
    limits = limit_names(bounds_of(session), key_of(job.task), job.args)
    lanes = (queue_limit(job.queue), tenant_limit(job.queue, job.tenant))
    return JobFacts(
        job,
        ahead,
        serving,
        knowing,
        None if head is None else JobId(head),
        None if owner is None else State(owner.state),
        bool(paused),
        before,
        tuple(sorted(limits)),
        tuple(
            (limit, JobId(held))
            for limit in (*limits, *lanes)
            for (held,) in session.rows("select_some_holders", key=key_of(limit), most=_SHOWN)
        ),
    )


def _job(session: Session, id: JobId) -> JobRecord | None:
    row = session.row("select_job_records", ids=ids_text([id]))
    return None if row is None else job_of(row)
