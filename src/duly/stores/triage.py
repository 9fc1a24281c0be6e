"""What a store promises of what people say about dead letters. Each sentence has a test on every store."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import json
from msgspec.structs import replace

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob, Stored
from duly.core.operating import DeadMark, RedriveOutlook, TriageState


def marked(was: DeadMark, state: TriageState | None, owner: str | None, note: str | None) -> DeadMark:
    """What a mark says after this was said, too. A state that was said again has not regressed."""
    return replace(
        was,
        state=was.state if state is None else state,
        owner=was.owner if owner is None else owner or None,
        note=was.note if note is None else note,
        regressed_at=was.regressed_at if state is None else None,
    )


def mark_detail(queue: str, task: str, state: TriageState | None, owner: str | None, note: str | None) -> str:
    """What the audit keeps of a mark beside its fingerprint."""
    said = {"state": state, "owner": owner, "note": note}
    given = {name: value for name, value in said.items() if value is not None}
    return json.encode({"queue": queue, "task": task, **given}).decode()


def edit_detail(successor: JobId) -> str:
    """What the audit keeps of an edit beside the old job."""
    return json.encode({"successor": successor}).decode()


class TriageStore(Protocol):
    """A mark per group of dead letters, that is per (fingerprint, queue, task). A group without one is new."""

    def mark(
        self,
        fingerprint: str,
        queue: str,
        task: str,
        *,
        by: str,
        reason: str,
        state: TriageState | None = None,
        owner: str | None = None,
        note: str | None = None,
    ) -> DeadMark:
        """Say something of a group; what is None stays as it is, and an empty `owner` is none."""

    def marks(self, fingerprints: Sequence[str] | None = None, most: int = 1000) -> list[DeadMark]:
        """All, or those of these fingerprints, the latest first. A group that was fixed is new again as soon as another
        of its jobs has died since: nothing needs to run for that."""

    def regressions(self, most: int = 100) -> list[DeadMark]:
        """Make fixed groups in which a job has died since new for good, each told to one caller only."""

    def outlook(self, filter: Filter, most: int | None = None) -> RedriveOutlook:
        """What a redrive of the dead letters that fit would meet; `where` is not looked at.

        With `most` a store may tell priority and twins of so many that died last."""

    def asked(self, id: JobId) -> NewJob | None:
        """A dead letter as it was asked for, with its keys and follow-ups, to be enqueued anew: due at once, without
        the idempotency key, the batch and the expiry of old. None when it is none, or an edited job runs in its place
        already."""

    def edit(self, id: JobId, job: NewJob, by: str, reason: str) -> Stored | None:
        """- -> ready for a job that runs in the place of a dead letter, which stays, notes where it went, and is not
        redriven any more; one transaction. A `duplicate` has changed nothing: another job holds the unique key. None
        when it is no dead letter, or an edited job runs in its place already."""
