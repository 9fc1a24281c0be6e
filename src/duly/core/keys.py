"""Keys that people give to jobs: their digests, their scopes, and the digest of arguments.

A digest is 16 bytes of SHA-256, so that SQL can make the same one. Knows no store.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, Literal, get_args

from msgspec import Struct

from duly.core.errors import UsageError
from duly.core.names import check_name

Scope = Literal["queued", "live"]
OnConflict = Literal["return", "replace"]

# Refused in every name, so that two different sets of names never make one text.
_BETWEEN: Final = "\x1f"


class Unique(Struct, frozen=True):
    """At most one live job per key.

    Scope "queued" frees the key when the job is claimed, "live" when it has ended. A second enqueue returns the
    first job, or with on_conflict="replace" takes the place of one that has not started.
    """

    key: str
    scope: Scope = "queued"
    on_conflict: OnConflict = "return"

    def checked(self) -> Unique:
        """This, if every part may be stored; UsageError with what to write else."""
        check_name("key", self.key)
        if self.scope not in get_args(Scope):
            raise UsageError(f'Unique(scope={self.scope!r}): write "queued" or "live"')
        if self.on_conflict not in get_args(OnConflict):
            raise UsageError(f'Unique(on_conflict={self.on_conflict!r}): write "return" or "replace"')
        return self


def takes_place(version: int | None, other: int | None, replace: bool) -> bool:
    """Whether a new job of a unique key takes the place of one that waits. The newer of two versions stays."""
    if version is None or other is None or version == other:
        return replace
    return version > other


def unique_digest(task: str, tenant: str, key: str) -> bytes:
    """What a store keeps of a unique key; its scope is (task, tenant)."""
    return _digest("unique", task, tenant, key)


def idempotency_digest(task: str, tenant: str, key: str) -> bytes:
    """What a store keeps of an idempotency key; its scope is (task, tenant)."""
    return _digest("idempotency", task, tenant, key)


def once_digest(key: str) -> bytes:
    """What a store keeps of a key of `App.once`."""
    return _digest("once", key)


def arguments_digest(args: bytes) -> bytes:
    """Tells a repeated request from another one under the same key."""
    return sha256(args).digest()[:16]


def _digest(*parts: str) -> bytes:
    return sha256(_BETWEEN.join(parts).encode("utf-8", "surrogatepass")).digest()[:16]
