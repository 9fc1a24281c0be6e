"""duly: durable background jobs on the SQLite or PostgreSQL a team already runs."""

from duly.app import App
from duly.client.blobs import Blob
from duly.client.blocking import BlockingCallWarning
from duly.client.bounds import PerKey
from duly.client.dead_breaker import DeadBreaker
from duly.client.draft import Draft
from duly.client.ended import JobCancelled, JobDead, JobEnded, JobSkipped, ResultTimeout
from duly.client.enqueued import Enqueued
from duly.client.job import Job
from duly.client.limit import Limit
from duly.client.lock import Lock
from duly.client.paced import Paced
from duly.client.provider import OWN, TransactionNotJoined
from duly.client.queue import Queue
from duly.client.resource import Breaker, Resource
from duly.client.task import Task
from duly.core.backoff import Backoff
from duly.core.endings import Dead, Ending, Retry, Skip, Snooze
from duly.core.errors import (
    AlreadyOpen,
    ConnectionMismatch,
    DulyError,
    KeyReused,
    LeaseLost,
    MigrationNeeded,
    NotFound,
    PayloadError,
    QueueFull,
    StoreFull,
    StoreUnreachable,
    UsageError,
)
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobRecord
from duly.core.keys import Unique
from duly.core.lifecycle import Outcome, State
from duly.core.placeholder import RESULT
from duly.core.secret import Secret

__all__ = [
    "OWN",
    "RESULT",
    "AlreadyOpen",
    "App",
    "AttemptRecord",
    "Backoff",
    "Blob",
    "BlockingCallWarning",
    "Breaker",
    "ConnectionMismatch",
    "Dead",
    "DeadBreaker",
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
    "KeyReused",
    "LeaseLost",
    "Limit",
    "Lock",
    "MigrationNeeded",
    "NotFound",
    "Outcome",
    "Paced",
    "PayloadError",
    "PerKey",
    "Queue",
    "QueueFull",
    "Resource",
    "ResultTimeout",
    "Retry",
    "Secret",
    "Skip",
    "Snooze",
    "State",
    "StoreFull",
    "StoreUnreachable",
    "Task",
    "TransactionNotJoined",
    "Unique",
    "UsageError",
]
