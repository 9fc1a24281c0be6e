"""Which payloads of this App are encrypted, and what each is bound to. Blocks for nothing; knows no store."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from duly.core.envelope import NONCE_BYTES, KeyNotHeld, Keys, NotOpened, is_sealed, key_of
from duly.core.errors import UsageError
from duly.core.job import RESULT_MARK, JobId, NewJob, Steps
from duly.stores.sealed import Part, SealedRow

if TYPE_CHECKING:
    from duly.client.client import Client

__all__ = ["KeyNotHeld", "NotOpened", "Sealing"]

_EMPTY = b"{}"
alike: Final[ContextVar[bool]] = ContextVar("duly_alike", default=False)
"""Equal arguments become equal bytes: where somebody compares what is stored with what is declared."""


class Sealing:
    """The keys of one client, read at first use."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._keys: Keys | None = None

    @property
    def keys(self) -> Keys | None:
        """The ring of the setting `keys`; None without one."""
        given = self._client.settings.keys
        if self._keys is None and given is not None:
            self._keys = Keys([secret.encode() for secret in given])
        return self._keys

    def wants(self, task: bool | None, queue: str) -> bool:
        """Whether payloads are encrypted: what the task says, else its queue, else the setting `encrypt`."""
        if task is not None:
            return task
        declared = self._client.registry.queues.get(queue)
        if declared is not None and declared.encrypt is not None:
            return declared.encrypt
        return self._client.settings.encrypt

    def required(self, what: str | None = None) -> Keys:
        """The keys; UsageError where payloads have to be encrypted and there are none."""
        if self.keys is None:
            if what is None:
                raise UsageError(
                    "no key is set, so that nothing can be encrypted; write DULY_KEYS, or DULY_KEYS_FILE"
                )
            raise UsageError(
                f"{what} is encrypted, and no key is set: write DULY_KEYS, or DULY_KEYS_FILE; make a key with "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        return self.keys

    def seal_job(self, job: NewJob) -> NewJob:
        """A job on its way in with its arguments encrypted; none at all are left as they are."""
        keys = self.required(f"task {job.task!r}")
        if RESULT_MARK in job.args or any(RESULT_MARK in follow.args for follow in job.then):
            raise UsageError(
                f"task {job.task!r} is encrypted, and RESULT is put in by the database, which cannot read it; let the "
                "follow-up read the value by its id, or enqueue it at the end of the handler"
            )
        if job.args == _EMPTY:
            return job
        same = alike.get() or job.idempotency is not None
        return replace(
            job,
            args=keys.seal(
                job.args, _of_arguments(job.queue, job.task, job.tenant), None if same else _nonce()
            ),
        )

    def open_arguments(self, queue: str, task: str, tenant: str, data: bytes) -> bytes:
        """Arguments as they were before; KeyNotHeld, NotOpened."""
        return self._opened(data, _of_arguments(queue, task, tenant))

    def seal_result(self, id: JobId, data: bytes) -> bytes:
        return self.required(f"the result of job {id}").seal(data, ("result", str(id)), _nonce())

    def open_result(self, id: JobId, data: bytes | None) -> bytes | None:
        """A result as it was before; KeyNotHeld, NotOpened."""
        return None if data is None else self._opened(data, ("result", str(id)))

    def seal_step(self, id: JobId, name: str, data: bytes) -> bytes:
        return self.required(f"a step of job {id}").seal(data, ("step", str(id), name), _nonce())

    def open_steps(self, id: JobId, steps: Steps) -> Steps:
        """Steps as they were before; KeyNotHeld, NotOpened."""
        if not any(map(is_sealed, steps.finished.values())):
            return steps
        opened = {name: self._opened(data, ("step", str(id), name)) for name, data in steps.finished.items()}
        return Steps(opened, steps.cursors)

    def renewed(self, part: Part, row: SealedRow) -> bytes:
        """A stored payload under the key that encrypts now; KeyNotHeld, NotOpened."""
        about: tuple[str, ...]
        if part == "arguments":
            about = _of_arguments(row.queue, row.task, row.tenant)
        elif part == "steps":
            about = ("step", str(row.id), row.name)
        else:
            about = ("result", str(row.id))
        return self.required().seal(self._opened(row.data, about), about, _nonce())

    def _opened(self, data: bytes, about: tuple[str, ...]) -> bytes:
        if not is_sealed(data):
            return data
        if self.keys is None:
            raise KeyNotHeld(key_of(data))
        return self.keys.open(data, about)


def _nonce() -> bytes:
    return os.urandom(NONCE_BYTES)


def _of_arguments(queue: str, task: str, tenant: str) -> tuple[str, ...]:
    return ("arguments", queue, task, tenant)
