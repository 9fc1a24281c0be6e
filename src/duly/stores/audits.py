"""What a store promises of the record of acts. Each sentence has a test on every store."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from msgspec import Raw, json

from duly.core.audit_chain import GENESIS, faults_of
from duly.core.filters import Filter
from duly.core.operating import AuditEntry, AuditSeal, AuditVerdict

OPERATION_VERBS: Final = {"paused": "pause", "running": "resume", "cancelled": "cancel"}
"""What the audit calls the act that brings a bulk act to a state."""

AUDITED: Final = "audit"
"""The tag of a job that the audit follows; "audit:" and a name, where it is known who enqueued it."""

FOLLOWER: Final = "duly"
"""Who writes the end of a job into the audit."""
NOT_KEPT: Final = "its record was deleted before its end was seen"


def end_detail(state: str, run: int | None, queue: str | None, task: str | None, tenant: str | None) -> str:
    """What the audit keeps of a job's end."""
    return json.encode({"state": state, "run": run, "queue": queue, "task": task, "tenant": tenant}).decode()


def operation_detail(verb: str, filter: Filter, total: int) -> str:
    """What the audit keeps of a bulk act that starts."""
    return json.encode({"verb": verb, "total": total, "filter": Raw(filter.to_json())}).decode()


class AuditStore(Protocol):
    """Who did what, and why. Every act of the store's own verbs writes its entry in its own transaction."""

    def append(
        self,
        verb: str,
        target: str,
        by: str,
        reason: str,
        detail: Mapping[str, object] | None = None,
        connection: Any = None,
    ) -> int:
        """Write an entry about something else; with a `connection` of the store's own (`Store.transaction`), or of the
        caller's as in `enqueue_on`, in its transaction. The entry's id."""

    def page(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[AuditEntry]:
        """The newest first; pass the last id as `before` to go on."""

    def seal(self, most: int = 1000) -> AuditSeal | None:
        """Chain committed entries that no seal covers, at most so many; None when there are none, or another caller is
        at it. Whoever writes entries waits for nobody. The sweep does it, too."""

    def seals(self, before: int | None = None, limit: int = 50) -> list[AuditSeal]:
        """The newest first."""

    def follow(self, most: int = 500) -> int:
        """Look at the next so many jobs whose tags have AUDITED or begin with it and a colon: their enqueue has left an
        entry in its own transaction, and here their ends and deaths are written, once each. How many were; the sweep
        does it, too."""

    def verify(self) -> AuditVerdict:
        """Read all of it again: entries that were changed, removed or slipped in under a seal, and seals that do not
        follow from one another, are named."""


class AuditReader(Protocol):
    """What `verified` reads, in the order of ids."""

    def seals_after(self, id: int) -> Sequence[AuditSeal]:
        """Some of the next seals; none at the end."""

    def sealed(self, seal: AuditSeal) -> Sequence[AuditEntry]: ...

    def totals(self) -> tuple[int, int, int]:
        """At one moment: (entries, entries that the seals count, entries that wait for a seal)."""


def verified(reader: AuditReader) -> AuditVerdict:
    """Read the whole audit again."""
    before: AuditSeal | None = None
    entries = seals = 0
    faults: list[str] = []
    while more := reader.seals_after(0 if before is None else before.id):
        for seal in more:
            found = reader.sealed(seal)
            wrong = faults_of(before, seal, found)
            faults += wrong
            entries += 0 if wrong else len(found)
            seals, before = seals + 1, seal
    total, counted, waiting = reader.totals()
    if total != counted + waiting:
        faults.append(
            f"{total} entries are there, and seals count {counted} with {waiting} to come: "
            "entries were removed or slipped in"
        )
    return AuditVerdict(entries, seals, waiting, GENESIS if before is None else before.digest, tuple(faults))
