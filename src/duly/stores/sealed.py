"""What a store promises of encrypted payloads when their keys change. Each sentence has a test on every store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

from duly.core.job import JobId

Part = Literal["arguments", "results", "large results", "steps"]
"""Where encrypted payloads stand that can be encrypted anew."""
PARTS: Final[tuple[Part, ...]] = get_args(Part)


class SealedRow(Struct, frozen=True):
    """One encrypted payload, and what it belongs to."""

    id: JobId
    name: str
    """Of a step; else ""."""
    queue: str
    task: str
    tenant: str
    data: bytes


class SealedPage(Struct, frozen=True):
    """What was found among some of the rows of a part."""

    rows: tuple[SealedRow, ...]
    after: tuple[int, str] | None
    """Pass it to go on; None: that was all."""


class Resealed(Struct, frozen=True):
    """A payload in other words; written only where the old ones still stand."""

    id: JobId
    name: str
    old: bytes
    new: bytes


class SealedStore(Protocol):
    """Payloads that begin as core.envelope has it. What they say is nobody's business here."""

    def page(self, part: Part, after: tuple[int, str] = (0, ""), most: int = 1000) -> SealedPage:
        """Look at the next so many rows of a part, by id and name."""

    def replace(self, part: Part, rows: Sequence[Resealed]) -> int:
        """Put new words in the place of old ones, all in one transaction; how many still stood there."""

    def elsewhere(self, key: str) -> dict[str, int]:
        """Payloads of a key where they stay as they are: "follow-ups", "schedules" and "kept answers" -> how many."""
