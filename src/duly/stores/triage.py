"""What a store promises of what people say about dead letters. Each sentence has a test on every store."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import json
from msgspec.structs import replace

from duly.core.operating import DeadMark, TriageState


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
