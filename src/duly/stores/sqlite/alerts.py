"""Alerts, what is sent of them, and silences: the AlertStore on SQLite. Judges no rule and sends nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

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
from duly.stores.sqlite import sampling
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.operator import note_act
from duly.stores.sqlite.session import Row, Session, Value
from duly.stores.sqlite.times import from_micros, maybe_from_micros, span, to_micros

_TURN: Final = "alerts"
_LAST: Final = 2**63 - 1


class SQLiteAlerts:
    """See duly.stores.alerts.AlertStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def turn(self, every: timedelta) -> bool:
        with self._database.read() as session:
            row = session.row("select_sweep", name=_TURN)
        last_at = None if row is None else row[0]
        # A time to come was written under another clock.
        if last_at is not None and 0 <= session.now - last_at < span(every):
            return False
        # Whoever looks wants to see what there is now, also where no worker keeps samples.
        sampling.sample(self._database)
        with self._database.write() as session:
            return session.run("upsert_sweep", name=_TURN, now=session.now, position=0, seen=last_at) == 1

    def records(self) -> list[AlertRecord]:
        with self._database.read() as session:
            return [_record(row) for row in session.rows("select_alerts")]

    def watch(self, rule: str, target: str, since: datetime | None, value: Mapping[str, object]) -> None:
        with self._database.write() as session:
            session.run(
                "upsert_alert_watch",
                rule=rule,
                target=target,
                since=None if since is None else to_micros(since),
                value=_text(value),
            )

    def change(
        self,
        rule: str,
        target: str,
        expected: int,
        state: AlertStateName,
        value: Mapping[str, object],
        sinks: Sequence[str],
    ) -> int | None:
        with self._database.write() as session:
            if (session.row("select_alert", rule=rule, target=target) or ("clear", 0)) != (
                _other(state),
                expected,
            ):
                return None
            said: dict[str, Value] = {
                "rule": rule,
                "target": target,
                "state": state,
                "now": session.now,
                "value": _text(value),
            }
            change = int(session.value("insert_alert_change", **said))
            session.run("upsert_alert_changed", change=change, **said)
            session.many(
                "insert_alert_delivery",
                [{"change": change, "sink": sink, "now": session.now} for sink in dict.fromkeys(sinks)],
            )
            before = session.now - span(CHANGES_KEPT)
            session.run("delete_old_deliveries", before=before)
            session.run("delete_old_changes", before=before)
            return change

    def drop(self, rule: str, target: str) -> bool:
        with self._database.write() as session:
            return session.run("delete_alert", rule=rule, target=target) == 1

    def due(
        self, sinks: Sequence[str], lasting: timedelta = timedelta(minutes=1), most: int = 100
    ) -> list[AlertDelivery]:
        asked = json.encode([*sinks]).decode()
        # Looked for without a lock first: nearly every call finds nothing.
        with self._database.read() as session:
            if not session.rows("select_due_deliveries", now=session.now, sinks=asked, most=1):
                return []
        with self._database.write() as session:
            rows = session.rows("select_due_deliveries", now=session.now, sinks=asked, most=most)
            next_at = session.now + span(lasting)
            session.many(
                "update_delivery_taken",
                [{"change": row[0], "sink": row[6], "next_at": next_at} for row in rows],
            )
            return [_delivery((*row[:8], row[8] + 1, next_at, row[10])) for row in rows]

    def sent(self, change: int, sink: str) -> bool:
        with self._database.write() as session:
            return _settle(session, change, sink, "sent", session.now, None)

    def unsent(self, change: int, sink: str, error: str, wait: timedelta | None) -> bool:
        with self._database.write() as session:
            if wait is None:
                return _settle(session, change, sink, "given_up", session.now, error)
            return _settle(session, change, sink, "due", session.now + span(wait), error)

    def changes(self, before: int | None = None, limit: int = 50) -> list[AlertChange]:
        with self._database.read() as session:
            rows = session.rows(
                "select_alert_changes", before=_LAST if before is None else before, most=limit
            )
        return [_change(row) for row in rows]

    def deliveries(self, change: int) -> list[AlertDelivery]:
        with self._database.read() as session:
            return [_delivery(row) for row in session.rows("select_deliveries", change=change)]

    def silence(self, rule: str, target: str, lasting: timedelta, by: str, reason: str) -> Silence:
        with self._database.write() as session:
            now, until = session.now, session.now + span(lasting)
            said: dict[str, Value] = {
                "rule": rule,
                "target": target,
                "by": by,
                "reason": reason,
                "now": now,
                "until": until,
            }
            id = session.value("insert_silence", **said)
            note_act(session, f"silence {silenced(rule, target)}", by, reason)
            return Silence(id, rule, target, by, reason, from_micros(now), from_micros(until))

    def unsilence(self, id: int, by: str, reason: str) -> bool:
        with self._database.write() as session:
            row = session.row("update_silence_over", id=id, now=session.now)
            if row is not None:
                note_act(session, f"unsilence {silenced(*row)}", by, reason)
            return row is not None

    def silences(self) -> list[Silence]:
        with self._database.read() as session:
            rows = session.rows("select_silences", now=session.now)
        return [
            Silence(id, rule, target, by, reason, from_micros(at), from_micros(until))
            for id, rule, target, by, reason, at, until in rows
        ]


def _settle(
    session: Session, change: int, sink: str, state: DeliveryState, next_at: int, error: str | None
) -> bool:
    values: dict[str, Value] = {
        "change": change,
        "sink": sink,
        "state": state,
        "next_at": next_at,
        "error": error,
    }
    return session.run("update_delivery", **values) == 1


def _other(state: AlertStateName) -> AlertStateName:
    return "clear" if state == "firing" else "firing"


def _text(value: Mapping[str, object]) -> str:
    return json.encode(value).decode()


def _record(row: Row) -> AlertRecord:
    rule, target, state, change, since, changed_at, value = row
    seen = json.decode(value)
    return AlertRecord(
        rule, target, state, change, maybe_from_micros(since), maybe_from_micros(changed_at), seen
    )


def _change(row: Row) -> AlertChange:
    id, rule, target, state, at, value = row
    return AlertChange(id, rule, target, state, from_micros(at), json.decode(value))


def _delivery(row: Row) -> AlertDelivery:
    sink, state, tries, next_at, last_error = row[6:]
    return AlertDelivery(_change(row[:6]), sink, state, tries, from_micros(next_at), last_error)
