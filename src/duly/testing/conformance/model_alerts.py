"""The model's alerts, what is owed of them, and silences."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from duly.core.operating import (
    AlertChange,
    AlertDelivery,
    AlertRecord,
    AlertStateName,
    DeliveryState,
    Silence,
)
from duly.stores.alerts import CHANGES_KEPT, silenced

from .model import Model


class ModelAlerts:
    """See duly.stores.alerts.AlertStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def turn(self, every: timedelta) -> bool:
        with self._model.tables.lock:
            now, last = self._model.clock(), self._model.tables.looked_at
            if last is not None and timedelta(0) <= now - last < every:
                return False
            self._model.tables.looked_at = now
            return True

    def records(self) -> list[AlertRecord]:
        with self._model.tables.lock:
            return [record for _, record in sorted(self._model.tables.alerts.items())]

    def watch(self, rule: str, target: str, since: datetime | None, value: Mapping[str, object]) -> None:
        with self._model.tables.lock:
            was = self._record(rule, target)
            self._model.tables.alerts[rule, target] = replace(was, since=since, value=dict(value))

    def change(
        self,
        rule: str,
        target: str,
        expected: int,
        state: AlertStateName,
        value: Mapping[str, object],
        sinks: Sequence[str],
    ) -> int | None:
        with self._model.tables.lock:
            tables, now, was = self._model.tables, self._model.clock(), self._record(rule, target)
            if was.change != expected or was.state == state:
                return None
            change = AlertChange(self._model.number(), rule, target, state, now, dict(value))
            tables.alerts[rule, target] = AlertRecord(rule, target, state, change.id, None, now, dict(value))
            tables.changes[change.id] = change
            for sink in sinks:
                tables.deliveries[change.id, sink] = AlertDelivery(change, sink, "due", 0, now)
            tables.changes = {id: one for id, one in tables.changes.items() if one.at >= now - CHANGES_KEPT}
            tables.deliveries = {
                key: one for key, one in tables.deliveries.items() if one.change.id in tables.changes
            }
            return change.id

    def _record(self, rule: str, target: str) -> AlertRecord:
        kept = self._model.tables.alerts.get((rule, target))
        return kept or AlertRecord(rule, target, "clear", 0)

    def drop(self, rule: str, target: str) -> bool:
        with self._model.tables.lock:
            return self._model.tables.alerts.pop((rule, target), None) is not None

    def due(
        self, sinks: Sequence[str], lasting: timedelta = timedelta(minutes=1), most: int = 100
    ) -> list[AlertDelivery]:
        with self._model.tables.lock:
            now, kept = self._model.clock(), self._model.tables.deliveries
            owed = [
                key
                for key, one in sorted(kept.items())
                if one.state == "due" and one.next_at <= now and one.sink in sinks
            ]
            for key in owed[:most]:
                kept[key] = replace(kept[key], tries=kept[key].tries + 1, next_at=now + lasting)
            return [kept[key] for key in owed[:most]]

    def sent(self, change: int, sink: str) -> bool:
        return self._settle(change, sink, "sent", timedelta(0), None)

    def unsent(self, change: int, sink: str, error: str, wait: timedelta | None) -> bool:
        if wait is None:
            return self._settle(change, sink, "given_up", timedelta(0), error)
        return self._settle(change, sink, "due", wait, error)

    def _settle(
        self, change: int, sink: str, state: DeliveryState, wait: timedelta, error: str | None
    ) -> bool:
        with self._model.tables.lock:
            kept = self._model.tables.deliveries
            was = kept.get((change, sink))
            if was is None or was.state != "due":
                return False
            next_at = self._model.clock() + wait
            kept[change, sink] = replace(
                was, state=state, next_at=next_at, last_error=error or was.last_error
            )
            return True

    def changes(self, before: int | None = None, limit: int = 50) -> list[AlertChange]:
        with self._model.tables.lock:
            newest = sorted(self._model.tables.changes.items(), reverse=True)
            return [change for id, change in newest if before is None or id < before][:limit]

    def deliveries(self, change: int) -> list[AlertDelivery]:
        with self._model.tables.lock:
            kept = sorted(self._model.tables.deliveries.items())
            return [one for _, one in kept if one.change.id == change]

    def silence(self, rule: str, target: str, lasting: timedelta, by: str, reason: str) -> Silence:
        with self._model.tables.lock:
            now, id = self._model.clock(), self._model.number()
            self._model.note("silence", silenced(rule, target), by, reason)
            self._model.tables.silences[id] = Silence(id, rule, target, by, reason, now, now + lasting)
            return self._model.tables.silences[id]

    def unsilence(self, id: int, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            now, found = self._model.clock(), self._model.tables.silences.get(id)
            if found is None or found.until <= now:
                return False
            self._model.note("unsilence", silenced(found.rule, found.target), by, reason)
            self._model.tables.silences[id] = replace(found, until=now)
            return True

    def silences(self) -> list[Silence]:
        with self._model.tables.lock:
            newest = sorted(self._model.tables.silences.items(), reverse=True)
            return [one for _, one in newest if one.until > self._model.clock()]
