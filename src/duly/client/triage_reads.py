"""Dead letters as a work list: groups by error, with whose they are and what was said of them. Part of `inspect`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from duly.client.control_reads import ControlReads
from duly.client.twins import blocking, twin
from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from duly.core.operating import DeadMark, RedriveOutlook, TriageState
from duly.stores.protocol import DeadGroup, Store

ALL: Final = Filter()
NO_ERROR: Final = "-"
FORESEEN: Final = 10_000
"""Letters of one error that are looked at for their priorities and twins; a dry run looks at all."""
"""How the fingerprint of letters without an error is written."""
_MARKS: Final = 10_000


class TriagedGroup(msgspec.Struct, frozen=True):
    """Dead letters of one error, queue and task, and what people say of them."""

    fingerprint: str
    """"" for those without an error."""
    queue: str
    task: str
    count: int
    """Without those in whose place an edited job runs."""
    first: datetime
    last: datetime
    error: str
    """Type and message of the latest."""
    owner: str | None = None
    """To whom the group was assigned, else the queue's owner."""
    state: TriageState = "new"
    note: str = ""
    by: str | None = None
    """Who marked it last; None: nobody yet."""
    at: datetime | None = None
    regressed_at: datetime | None = None
    """When one died although the group was fixed; only while it has not been marked again."""
    edited: int = 0
    """Letters beside `count` in whose place an edited job runs."""


class GroupDetail(msgspec.Struct, frozen=True):
    """One fingerprint: its groups, and the letter that died last."""

    fingerprint: str
    groups: tuple[TriagedGroup, ...]
    """One per queue and task, the largest first."""
    outlook: RedriveOutlook
    """What a redrive of all of them would meet; a server may tell priority and twins of the `FORESEEN` latest."""
    latest: JobRecord | None
    """None for letters without an error, which no filter finds by their fingerprint."""


class TriageReads(ControlReads):
    """Part of `Inspect`."""

    @blocking
    def dead_groups(
        self, filter: Filter = ALL, *, state: TriageState | None = None, owner: str | None = None
    ) -> tuple[TriagedGroup, ...]:
        """Dead letters by fingerprint, the largest group first; `where` is refused: list the jobs instead.

        `state` and `owner` keep the groups that stand so, and that are theirs.
        """
        if filter.where is not None:
            raise UsageError(
                "groups are counted by the store, which knows no `where`; list the jobs of a group instead"
            )
        found = self._triaged(filter)
        return tuple(
            group
            for group in found
            if group.count
            and (state is None or group.state == state)
            and (owner is None or group.owner == owner)
        )

    @blocking
    def dead_group(
        self, fingerprint: str, *, queue: str | None = None, task: str | None = None
    ) -> GroupDetail:
        """One error, by its fingerprint or the first four digits of it. NotFound where no letter has it; UsageError
        where several errors begin so."""
        store = self._client.store
        filter = group_filter(fingerprint, queue, task)
        groups = one_error(self._triaged(filter), fingerprint)
        latest: JobRecord | None = None
        if groups[0].fingerprint:
            jobs = store.inspection.page(_dead(filter), limit=1).jobs
            latest = jobs[0] if jobs else None
            outlook = store.triage.outlook(filter, FORESEEN)
        else:
            count = sum(group.count for group in groups)
            outlook = RedriveOutlook(count, min(group.first for group in groups))
        return GroupDetail(groups[0].fingerprint, groups, outlook, latest)

    adead_groups = twin(dead_groups)
    adead_group = twin(dead_group)

    def _triaged(self, filter: Filter) -> tuple[TriagedGroup, ...]:
        groups = self._client.store.inspection.dead_groups(filter)
        if not groups:
            return ()
        registry = self._client.registry
        declared, _ = self._client.store.schema.declared()
        owners = {
            **declared,
            **{name: queue.owner for name, queue in registry.queues.items() if queue.owner},
        }
        return triaged(groups, marks_of(self._client.store, groups), owners)


def triaged(
    groups: Iterable[DeadGroup], marks: Iterable[DeadMark], owners: Mapping[str, str]
) -> tuple[TriagedGroup, ...]:
    """The groups with their marks, the largest first."""
    said = {(mark.fingerprint, mark.queue, mark.task): mark for mark in marks}
    found = [
        _with_mark(
            group, said.get((group.fingerprint, group.queue, group.task)), owners.get(group.queue) or None
        )
        for group in groups
    ]
    return tuple(sorted(found, key=lambda group: (-group.count, group.fingerprint, group.queue, group.task)))


def marks_of(store: Store, groups: Iterable[DeadGroup]) -> list[DeadMark]:
    return store.triage.marks(sorted({group.fingerprint for group in groups}), most=_MARKS)


def group_filter(fingerprint: str, queue: str | None, task: str | None) -> Filter:
    """The letters of an error. UsageError for what is no fingerprint."""
    if fingerprint in {"", NO_ERROR}:
        return Filter(queue=queue, task=task)
    return Filter(fingerprint=fingerprint, queue=queue, task=task)


def one_error(groups: Iterable[TriagedGroup], fingerprint: str) -> tuple[TriagedGroup, ...]:
    """Those that a fingerprint means. NotFound for none, UsageError where several errors begin so."""
    bare = fingerprint in {"", NO_ERROR}
    found = tuple(group for group in groups if not (bare and group.fingerprint))
    if not found:
        raise NotFound(
            "no dead letter is without an error"
            if bare
            else f"no dead letter has the fingerprint {fingerprint}; `duly dead groups` shows them",
            kind="fingerprint",
            name=fingerprint,
        )
    different = sorted({group.fingerprint for group in found})
    if len(different) > 1:
        raise UsageError(
            f"{fingerprint} begins several fingerprints: {', '.join(different)}; write one of them"
        )
    return found


def _with_mark(group: DeadGroup, mark: DeadMark | None, owner: str | None) -> TriagedGroup:
    return TriagedGroup(
        fingerprint=group.fingerprint,
        queue=group.queue,
        task=group.task,
        count=group.count - group.edited,
        first=group.first,
        last=group.last,
        error=group.error,
        owner=owner if mark is None else mark.owner or owner,
        state="new" if mark is None else mark.state,
        note="" if mark is None else mark.note,
        by=None if mark is None else mark.by,
        at=None if mark is None else mark.at,
        regressed_at=None if mark is None else mark.regressed_at,
        edited=group.edited,
    )


def _dead(filter: Filter) -> Filter:
    return msgspec.structs.replace(filter, state=State.dead)
