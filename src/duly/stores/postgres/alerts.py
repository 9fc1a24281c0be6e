"""Alerts, what is sent of them, and silences: the AlertStore on PostgreSQL. Judges no rule and sends nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import json

from duly.core.operating import (
    AlertChange,
    AlertDelivery,
    AlertRecord,
    AlertStateName,
    DeliveryState,
    Silence,
)
from duly.stores.alerts import CHANGES_KEPT, silenced
from duly.stores.postgres.columns import seconds, utc, utc_or_none
from duly.stores.postgres.database import Database, Row


class PostgresAlerts:
    """See duly.stores.alerts.AlertStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def turn(self, every: timedelta) -> bool:
        parameters = {"every": seconds(every), "now": self._database.now()}
        return bool(self._database.call("take_alert_turn", parameters)[0][0])

    def records(self) -> list[AlertRecord]:
        return [
            AlertRecord(
                rule, target, state, change, utc_or_none(since), utc_or_none(changed_at), json.decode(value)
            )
            for rule, target, state, change, since, changed_at, value in self._database.call("read_alerts")
        ]

    def watch(self, rule: str, target: str, since: datetime | None, value: Mapping[str, object]) -> None:
        parameters = {"rule": rule, "target": target, "since": since, "value": json.encode(value).decode()}
        self._database.call("watch_alert", parameters)

    def change(
        self,
        rule: str,
        target: str,
        expected: int,
        state: AlertStateName,
        value: Mapping[str, object],
        sinks: Sequence[str],
    ) -> int | None:
        parameters = {
            "rule": rule,
            "target": target,
            "expected": expected,
            "state": state,
            "value": json.encode(value).decode(),
            "sinks": [*sinks],
            "kept": seconds(CHANGES_KEPT),
            "now": self._database.now(),
        }
        change: int | None = self._database.call("change_alert", parameters)[0][0]
        return change

    def drop(self, rule: str, target: str) -> bool:
        return bool(self._database.call("drop_alert", {"rule": rule, "target": target})[0][0])

    def due(
        self, sinks: Sequence[str], lasting: timedelta = timedelta(minutes=1), most: int = 100
    ) -> list[AlertDelivery]:
        parameters = {
            "sinks": [*sinks],
            "lasting": seconds(lasting),
            "most": most,
            "now": self._database.now(),
        }
        return [_delivery(row) for row in self._database.call("take_deliveries", parameters)]

    def sent(self, change: int, sink: str) -> bool:
        return self._settle(change, sink, "sent", timedelta(0), None)

    def unsent(self, change: int, sink: str, error: str, wait: timedelta | None) -> bool:
        if wait is None:
            return self._settle(change, sink, "given_up", timedelta(0), error)
        return self._settle(change, sink, "due", wait, error)

    def changes(self, before: int | None = None, limit: int = 50) -> list[AlertChange]:
        rows = self._database.call("read_alert_changes", {"before": before, "most": limit})
        return [_change(row) for row in rows]

    def deliveries(self, change: int) -> list[AlertDelivery]:
        return [_delivery(row) for row in self._database.call("read_deliveries", {"change": change})]

    def silence(self, rule: str, target: str, lasting: timedelta, by: str, reason: str) -> Silence:
        parameters = {
            "rule": rule,
            "target": target,
            "name": silenced(rule, target),
            "lasting": seconds(lasting),
            "by": by,
            "reason": reason,
            "now": self._database.now(),
        }
        return _silence(self._database.call("silence_alert", parameters)[0])

    def unsilence(self, id: int, by: str, reason: str) -> bool:
        parameters = {"id": id, "by": by, "reason": reason, "now": self._database.now()}
        return bool(self._database.call("end_silence", parameters)[0][0])

    def silences(self) -> list[Silence]:
        rows = self._database.call("read_silences", {"now": self._database.now()})
        return [_silence(row) for row in rows]

    def _settle(
        self, change: int, sink: str, state: DeliveryState, wait: timedelta, error: str | None
    ) -> bool:
        parameters = {
            "change": change,
            "sink": sink,
            "state": state,
            "wait": seconds(wait),
            "error": error,
            "now": self._database.now(),
        }
        return bool(self._database.call("settle_delivery", parameters)[0][0])


def _change(row: Row) -> AlertChange:
    id, rule, target, state, at, value = row
    return AlertChange(id, rule, target, state, utc(at), json.decode(value))


def _delivery(row: Row) -> AlertDelivery:
    sink, state, tries, next_at, last_error = row[6:]
    return AlertDelivery(_change(row[:6]), sink, state, tries, utc(next_at), last_error)


def _silence(row: Row) -> Silence:
    id, rule, target, by, reason, at, until = row
    return Silence(id, rule, target, by, reason, utc(at), utc(until))
