"""The errors duly raises, and what each asks its reader to do.

Owns the tree and nothing else: it knows no store, no worker, no exit code.

    DulyError
    ├── UsageError            the call or the declaration is wrong: the text says what to write
    ├── PayloadError          (also ValueError) an argument or a result cannot be stored
    ├── QueueFull             the queue holds as much as it may
    ├── LeaseLost             this attempt belongs to someone else by now
    ├── NotFound              no such job, queue, task or operation
    ├── KeyReused             an idempotency key came back with other arguments
    ├── ConnectionMismatch    the connection handed in leads to another database
    ├── AlreadyOpen           too late to configure
    ├── StoreUnreachable      the database does not answer
    │   └── StoreFull         its disk is full
    └── MigrationNeeded       the database has another schema version
"""

from __future__ import annotations

from datetime import timedelta


class DulyError(Exception):
    """Any error of duly: catch it to tell duly's refusals from your own errors."""


class UsageError(DulyError):
    """The call or the declaration is wrong: write what the message says instead."""


class PayloadError(DulyError, ValueError):
    """An argument or a result cannot be stored unchanged: change the value that `path` names.

    `path` reads like the code that reaches the value, for example `order.lines[3].price`; it is
    empty when the whole payload is meant.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class QueueFull(DulyError):
    """The queue holds as much as it may, and nothing was stored: try again after `retry_after`, or tell your caller to.

    `queue` is the one that is full, `retry_after` how long it takes to make the room at its present pace: a guess of
    one second to one minute.
    """

    def __init__(
        self, message: str, *, queue: str = "", retry_after: timedelta = timedelta(minutes=1)
    ) -> None:
        super().__init__(message)
        self.queue = queue
        self.retry_after = retry_after


class LeaseLost(DulyError):
    """This attempt no longer owns its job: stop, undo what you can, and write nothing more.

    Another worker may be running the job already; nothing this attempt asked for was stored.
    """

    def __init__(self, message: str, *, job_id: int | str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class NotFound(DulyError):
    """Nothing has this name or id: check the spelling, or whether retention has removed it."""

    def __init__(self, message: str, *, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name


class KeyReused(DulyError):
    """An idempotency key was used before for other arguments: give the new request a key of its own.

    Nothing was stored. `job_id` is the job that the key belongs to.
    """

    def __init__(self, message: str, *, job_id: int | None = None, position: int = 0) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.position = position


class ConnectionMismatch(DulyError):
    """The connection belongs to another database: pass one that leads to the App's own store."""


class AlreadyOpen(DulyError):
    """The App is in use already: call `configure()` before its first enqueue, worker or inspect."""


class StoreUnreachable(DulyError):
    """The store does not answer: check its URL, its server and the network, then try again.

    Nothing was lost; whether the last write arrived is unknown until the store answers again.
    """


class StoreFull(StoreUnreachable):
    """The disk of the store is full: free some space, then try again. Nothing of this call was stored.

    What was stored before is safe. A budget (`max_bytes`, `min_free_disk`) refuses less important jobs before it comes
    to this.
    """


class MigrationNeeded(DulyError):
    """The store has another schema version: run `duly migrate`, or deploy the matching release."""

    def __init__(self, message: str, *, found: int | None = None, wanted: int | None = None) -> None:
        super().__init__(message)
        self.found = found
        self.wanted = wanted
