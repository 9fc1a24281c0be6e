"""Acts on single jobs from a page that may be old by now: what has moved on since is told, and left as it is."""

from __future__ import annotations

from typing import Final

from duly.client.operate import Act
from duly.core.errors import UsageError
from duly.core.job import JobId, JobRecord
from duly.core.scopes import Verb
from duly.web.pages.acts import Form, Visit
from duly.web.problems import Refused

SCOPES: Final[dict[str, Verb]] = {
    "cancel": "operate",
    "run_now": "operate",
    "reprioritise": "operate",
    "redrive": "dead",
    "purge": "dead",
}
"""The verbs that a page offers, and what a visitor needs for each."""
DONE: Final = {
    "cancel": "cancelled",
    "run_now": "made ready",
    "reprioritise": "given another priority",
    "redrive": "made to run again",
    "purge": "deleted",
}


async def seen(visit: Visit, id: int) -> JobRecord:
    """The job, if the visitor may look at it. Refused, 404, as for one that is not there."""
    record = (await visit.inspect.alookup([id]))[0]
    if record is None or not visit.may("read", record.queue):
        raise Refused(
            404,
            f"There is no job {id} here",
            "it never was, its transaction was rolled back, it ended and is no longer kept, or you may not see it",
        )
    return record


async def still(visit: Visit, id: int, form: Form) -> JobRecord:
    """The job, if it stands where the page showed it: its fields `state` and `run`. Refused, 409, with where it is."""
    record = await seen(visit, id)
    if moved(record, form.text("state"), form.text("run")):
        raise moved_on(record, form.text("state"))
    return record


def moved(record: JobRecord, state: str, run: str) -> bool:
    """Whether a job is no longer what a page has shown."""
    return (str(record.state), str(record.run)) != (state, run)


def moved_on(record: JobRecord, state: str) -> Refused:
    """What is said of an act that comes too late."""
    again = f"{record.state} again, in another run" if record.state == state else f"{record.state} by now"
    return Refused(
        409,
        f"Job {record.id} has moved on: it is {again}",
        f"the page showed it as {state[:40] or 'something else'}; look at it again. Nothing was changed",
    )


async def do(visit: Visit, verb: str, ids: list[JobId], reason: str) -> Act:
    """Carry out one verb. UsageError for one that no page offers."""
    operate = visit.operate
    match verb:
        case "cancel":
            return await operate.acancel(ids, reason=reason)
        case "redrive":
            return await operate.aredrive(ids, reason=reason)
        case "purge":
            return await operate.apurge(ids, reason=reason)
        case "run_now":
            return await operate.arun_now(ids, reason=reason)
        case "reprioritise":
            return await operate.areprioritise(ids, visit.form.signed("priority"), reason=reason)
    raise UsageError(f"{verb[:40]!r} is nothing that can be done with a job here")


def check_verb(verb: str) -> Verb:
    """The scope that a verb needs. UsageError for one that no page offers."""
    if verb not in SCOPES:
        raise UsageError(f"{verb[:40]!r} is nothing that can be done with a job here")
    return SCOPES[verb]
