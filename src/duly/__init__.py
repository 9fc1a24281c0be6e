"""duly: durable background jobs on the SQLite or PostgreSQL a team already runs."""

from duly.app import App
from duly.client.blocking import BlockingCallWarning
from duly.client.draft import Draft
from duly.client.ended import JobCancelled, JobDead, JobEnded, JobSkipped, ResultTimeout
from duly.client.enqueued import Enqueued
from duly.client.job import Job
from duly.client.limit import Limit
from duly.client.provider import OWN
from duly.client.queue import Queue
from duly.client.task import Task
from duly.core.backoff import Backoff
from duly.core.endings import Dead, Ending, Retry, Skip, Snooze
from duly.core.errors import (
    AlreadyOpen,
    ConnectionMismatch,
    DulyError,
    LeaseLost,
    MigrationNeeded,
    NotFound,
    PayloadError,
    StoreUnreachable,
    UsageError,
)
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobRecord
from duly.core.lifecycle import Outcome, State

__all__ = [
    "OWN",
    "AlreadyOpen",
    "App",
    "AttemptRecord",
    "Backoff",
    "BlockingCallWarning",
    "ConnectionMismatch",
    "Dead",
    "Draft",
    "DulyError",
    "Ending",
    "Enqueued",
    "Filter",
    "Job",
    "JobCancelled",
    "JobDead",
    "JobEnded",
    "JobRecord",
    "JobSkipped",
    "LeaseLost",
    "Limit",
    "MigrationNeeded",
    "NotFound",
    "Outcome",
    "PayloadError",
    "Queue",
    "ResultTimeout",
    "Retry",
    "Skip",
    "Snooze",
    "State",
    "StoreUnreachable",
    "Task",
    "UsageError",
]
