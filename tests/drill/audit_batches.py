"""After the drill: whether each batch was followed as it should be, once."""

import json
from collections import Counter, defaultdict

from duly.core.batch import BatchRecord, BatchState
from duly.core.job import JobId, JobRecord
from duly.stores.protocol import Store
from tests.drill.audit_controls import Bounded
from tests.drill.ledger import BATCHED, Line

FOLLOWERS = ("after_all", "after_a_death")
ENDED = frozenset({BatchState.completed, BatchState.cancelled, BatchState.open})
"""A batch whose producer was killed inside its block stays open."""


def all_batches(store: Store) -> dict[int, BatchRecord]:
    """Every batch of the store, by its id."""
    found: dict[int, BatchRecord] = {}
    before: int | None = None
    while page := store.batches.page(before, limit=500):
        found.update((batch.id, batch) for batch in page)
        before = page[-1].id
    return found


def members_of(store: Store, records: dict[JobId, JobRecord]) -> dict[int, int]:
    """The batch of each job that has one."""
    ids, members = list(records), {}
    for start in range(0, len(ids), 500):
        members.update(store.batches.of(ids[start : start + 500]))
    return {int(id): batch for id, batch in members.items()}


def audit(
    bounded: Bounded, store: Store, records: dict[JobId, JobRecord], lines: list[Line], died: set[int]
) -> None:
    """`died`: jobs that were dead at some time."""
    batches, members = all_batches(store), members_of(store, records)
    bounded.batches = dict(Counter(batch.state.value for batch in batches.values()))
    followed = Counter(
        (record.task, str(json.loads(record.args)["batch"]))
        for record in records.values()
        if record.task in FOLLOWERS
    )
    # A batch inside whose own member died is a death for the one around it.
    deadly = {members[id] for id in died if id in members}
    inside: dict[int, set[int]] = defaultdict(set)
    for batch in batches.values():
        if batch.parent is not None:
            inside[batch.parent].add(batch.id)
    for batch in batches.values():
        then, mourned = (followed[task, batch.name] for task in FOLLOWERS)
        if batch.state not in ENDED or batch.counts.left < 0:
            bounded.broken.append(f"batch {batch.id} is {batch.state} at the end: {batch.counts}")
        if then != (batch.state is BatchState.completed):
            bounded.broken.append(f"batch {batch.id} is {batch.state} and was followed {then} times")
        owed = batch.id in deadly and batch.state is not BatchState.cancelled
        may = owed or bool(deadly & ({batch.id} | inside[batch.id]))
        if not owed <= mourned <= may:
            bounded.broken.append(f"batch {batch.id} ({batch.state}) was mourned {mourned} times")
    closed = {line.job for line in lines if line.kind == BATCHED}
    bounded.broken += [
        f"batch {id} was closed and is {batches[id].state if id in batches else 'nowhere'}"
        for id in closed
        if id not in batches or batches[id].state is not BatchState.completed
    ]
