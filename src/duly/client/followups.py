"""Drafts that follow a job: `then=` when it has completed, `on_dead=` when it went dead.

Says which drafts may follow; turning one into a stored job is enqueue's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from duly.client.draft import Draft
from duly.core.errors import UsageError

MOST: Final = 100
"""Follow-ups of one job, those of follow-ups included: each is written with it in one transaction."""


def read_follow_ups(drafts: Iterable[Draft[Any]], name: str) -> tuple[Draft[Any], ...]:
    """The drafts that a caller wrote. UsageError with the text to write for anything else."""
    if isinstance(drafts, Draft):
        raise UsageError(f"{name}={drafts} is one draft; write {name}=[{drafts}]")
    try:
        found = tuple(drafts)
    except TypeError:
        raise UsageError(
            f"{name}={drafts!r:.80} is no list of drafts; write {name}=[task.draft(…)]"
        ) from None
    for position, draft in enumerate(found):
        if not isinstance(draft, Draft):
            raise UsageError(f"{name}[{position}] is {draft!r:.80}; write task.draft(…)")
        if draft.options.connection is not None:
            raise UsageError(
                f"{name}[{position}], {draft}, brings a connection; it is stored in the transaction that ends the job "
                "before it: leave connection= out"
            )
    if sum(map(_size, found)) > MOST:
        raise UsageError(
            f"{name}= holds {sum(map(_size, found))} follow-ups, nested ones included; at most {MOST} fit: let one of "
            "them enqueue the rest"
        )
    return found


def _size(draft: Draft[Any]) -> int:
    return 1 + sum(map(_size, (*(draft.options.then or ()), *(draft.options.on_dead or ()))))
