"""What the alert rules look at beside the queues, and where the alerts stand. The alert part of `inspect`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from duly.client.control_reads import ControlReads
from duly.client.options import whole_number
from duly.client.twins import blocking, twin
from duly.core.budget import Budget, described, fill, time_to_full
from duly.core.defaults import ALERT_LOST_WITHIN, PURGE_NOTICE
from duly.core.operating import TALLY_LAG, AlertChange, AlertDelivery, AlertRecord, Silence

POLICY: Final = "policy"
"""Stands in place of a rule where a store keeps what an App has said of one queue's alerts."""
_HISTORY: Final = timedelta(minutes=30)
_MINUTE: Final = timedelta(minutes=1)


class Purge(msgspec.Struct, frozen=True):
    """Dead letters that will be deleted."""

    queue: str
    count: int
    since: datetime
    """From when on."""


class Storage(msgspec.Struct, frozen=True):
    """The room of the store."""

    text: str
    filled: float
    """1.0: the budget (settings max_bytes, min_free_disk) is spent; 0 without one."""
    full_in: timedelta | None
    """At the pace of the last half hour: until the budget is spent or, without one, the disk of an SQLite file is full.
    None: it does not fill, or nobody can know."""


class AlertReads(ControlReads):
    """Base of `Inspect`."""

    @blocking
    def alerts(self) -> tuple[AlertRecord, ...]:
        """Every alert that fires, is about to fire, or has fired, by rule and target."""
        return tuple(record for record in self._client.store.alerts.records() if record.rule != POLICY)

    @blocking
    def alert_changes(self, *, before: int | None = None, limit: int = 50) -> tuple[AlertChange, ...]:
        """What has fired and ended, the newest first; go on with `before` the id of the last. Kept for 90 days."""
        return tuple(self._client.store.alerts.changes(before, whole_number(limit, "limit")))

    @blocking
    def alert_deliveries(self, change: int) -> tuple[AlertDelivery, ...]:
        """To whom one change was sent, by sink."""
        return tuple(self._client.store.alerts.deliveries(change))

    @blocking
    def silences(self) -> tuple[Silence, ...]:
        """Those in force, the newest first."""
        return tuple(self._client.store.alerts.silences())

    @blocking
    def purges(self) -> tuple[Purge, ...]:
        """Dead letters that will be deleted within a week, by queue. They count as announced from then on."""
        client = self._client
        kept = {
            name: queue.keep_dead
            for name, queue in client.registry.queues.items()
            if queue.keep_dead is not None
        }
        found = client.store.upkeep.announce_dead(kept, client.settings.keep_dead, PURGE_NOTICE)
        return tuple(Purge(queue, count, since) for queue, count, since in found)

    @blocking
    def losses(self) -> dict[str, int]:
        """Queue -> attempts whose worker vanished within about ten minutes, as far as they are counted."""
        store = self._client.store
        since = store.inspection.now() - ALERT_LOST_WITHIN - TALLY_LAG - _MINUTE
        found: dict[str, int] = {}
        for tally in store.tallies.read("minute", since):
            if tally.lost:
                found[tally.queue] = found.get(tally.queue, 0) + tally.lost
        return found

    @blocking
    def storage(self) -> Storage | None:
        """How full the store is and when it will be; None while nobody can know."""
        client = self._client
        use = client.store.pressing.use()
        if use is None:
            return None
        # Without a budget the disk itself is one.
        budget = client.settings.budget or Budget(min_free_disk=0 if use.free_disk is not None else None)
        if not budget:
            return None
        history = [(at.timestamp(), past) for at, past in client.store.pressing.uses(_HISTORY)]
        now = client.store.inspection.now().timestamp()
        text = described(client.settings.budget, use)
        return Storage(text, fill(budget, use), time_to_full(budget, [*history, (now, use)]))

    aalerts = twin(alerts)
    aalert_changes = twin(alert_changes)
    aalert_deliveries = twin(alert_deliveries)
    asilences = twin(silences)
    apurges = twin(purges)
    alosses = twin(losses)
    astorage = twin(storage)


def firing(records: Iterable[AlertRecord]) -> list[AlertRecord]:
    """Those that fire, the latest change first."""
    return sorted(
        (record for record in records if record.state == "firing"),
        key=lambda record: (record.changed_at is None, record.change),
        reverse=True,
    )
