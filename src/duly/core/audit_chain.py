"""The chain over the record of acts: digests of batches, each over the one before, and what does not fit.

Whoever changes an entry must change every later digest, too; one of them noted elsewhere shows it. Reads nothing.
"""

from collections.abc import Sequence
from datetime import UTC
from hashlib import sha256
from typing import Final

import msgspec

from duly.core.operating import AuditEntry, AuditSeal

GENESIS: Final = bytes(32)
"""What stands before the first seal."""


def digest_of(previous: bytes, entries: Sequence[AuditEntry]) -> bytes:
    """SHA-256 over the digest before and the entries, in the order of their ids."""
    chain = sha256(previous)
    for entry in entries:
        data = msgspec.json.encode(
            (
                entry.id,
                entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
                entry.actor,
                entry.verb,
                entry.target,
                entry.reason,
                entry.detail,
            )
        )
        # With its length, so that no two lists of entries read the same.
        chain.update(len(data).to_bytes(8, "big"))
        chain.update(data)
    return chain.digest()


def faults_of(before: AuditSeal | None, seal: AuditSeal, entries: Sequence[AuditEntry]) -> list[str]:
    """What does not fit of one seal, its entries, and the seal before it; [] when all does."""
    faults = []
    previous, number = (GENESIS, 0) if before is None else (before.digest, before.id)
    if seal.id != number + 1:
        faults.append(f"seal {seal.id} follows seal {number}: seals between them are gone")
    if seal.previous != previous:
        faults.append(f"seal {seal.id} does not follow from the one before it")
    if len(entries) != seal.count:
        faults.append(f"seal {seal.id} is of {seal.count} entries, and {len(entries)} are there")
    elif digest_of(seal.previous, entries) != seal.digest:
        faults.append(f"an entry from {seal.first} to {seal.last} under seal {seal.id} was changed")
    return faults
