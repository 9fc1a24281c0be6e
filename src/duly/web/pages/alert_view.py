"""Alerts, silences and their history as the page shows them: records in, rows out. Pure; `alerts.py` reads and acts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from duly.client.alert_acts import ANY
from duly.core.operating import AlertChange, AlertDelivery, AlertRecord, Silence
from duly.web.pages.control_view import Allowed, Tone, sees

Word = Literal["firing", "about to fire", "about to clear", "over"]

_ORDER: Final[dict[Word, int]] = {"firing": 0, "about to clear": 1, "about to fire": 2, "over": 3}
_TONES: Final[dict[Word, Tone]] = {
    "firing": "bad", "about to clear": "warn", "about to fire": "warn", "over": "good",
}  # fmt: skip


class AlertRow(Struct, frozen=True):
    """One rule for one target."""

    rule: str
    target: str
    queue: str | None
    word: Word
    tone: Tone
    since: datetime | None
    """When it last changed; of what is about to fire, since when the condition holds."""
    text: str
    silence: int | None
    """Nobody is told of it because of this silence."""


class SilenceRow(Struct, frozen=True):
    """One silence in force."""

    id: int
    rule: str
    """In words."""
    target: str
    queue: str | None
    by: str
    reason: str
    at: datetime
    until: datetime


class DeliveryRow(Struct, frozen=True):
    """One change on its way to one sink."""

    sink: str
    word: str
    tone: Tone
    error: str


class ChangeRow(Struct, frozen=True):
    """Something that began or ended."""

    id: int
    rule: str
    target: str
    word: str
    tone: Tone
    at: datetime
    text: str
    deliveries: tuple[DeliveryRow, ...]


class AlertsView(Struct, frozen=True):
    """All of the page."""

    alerts: tuple[AlertRow, ...]
    """What fires first; what is over and nobody waits for is left out."""
    silences: tuple[SilenceRow, ...]
    history: tuple[ChangeRow, ...]
    older: int | None
    """Go on with what is before this change."""

    @property
    def firing(self) -> int:
        return sum(1 for row in self.alerts if row.word in {"firing", "about to clear"})


def alerts_view(
    records: Iterable[AlertRecord],
    silences: Sequence[Silence],
    changes: Sequence[AlertChange],
    deliveries: Mapping[int, Sequence[AlertDelivery]],
    *,
    allowed: Allowed = None,
    page: int = 20,
) -> AlertsView:
    """`deliveries` by the number of their change; `page`: so many changes were asked for."""
    rows = [row for row in (alert_row(record, silences) for record in records) if sees(allowed, row.queue)]
    rows = [row for row in rows if row.word != "over"]
    rows.sort(key=lambda row: (_ORDER[row.word], row.silence is not None, row.rule, row.target))
    return AlertsView(
        tuple(rows),
        tuple(row for row in map(silence_row, silences) if sees(allowed, row.queue)),
        tuple(
            _change(change, deliveries.get(change.id, ()))
            for change in changes
            if sees(allowed, queue_of(change.target))
        ),
        changes[-1].id if len(changes) >= page else None,
    )


def alert_row(record: AlertRecord, silences: Iterable[Silence]) -> AlertRow:
    word: Word
    if record.state == "firing":
        word = "firing" if record.since is None else "about to clear"
    else:
        word = "over" if record.since is None else "about to fire"
    silence = next((one.id for one in silences if _covers(one, record.rule, record.target)), None)
    return AlertRow(
        rule=record.rule,
        target=record.target,
        queue=queue_of(record.target),
        word=word,
        tone=_TONES[word],
        since=record.since if word == "about to fire" else record.changed_at,
        text=_text(record.value),
        silence=silence,
    )


def silence_row(one: Silence) -> SilenceRow:
    return SilenceRow(
        id=one.id,
        rule="every rule" if one.rule == ANY else one.rule,
        target="everything" if one.target == ANY else one.target,
        queue=queue_of(one.target),
        by=one.by,
        reason=one.reason,
        at=one.at,
        until=one.until,
    )


def queue_of(target: str) -> str | None:
    """The queue that a target of an alert is; None for what is none."""
    kind, _, name = target.partition(":")
    return name if kind == "queue" and name else None


def _change(change: AlertChange, deliveries: Iterable[AlertDelivery]) -> ChangeRow:
    began = change.state == "firing"
    return ChangeRow(
        id=change.id,
        rule=change.rule,
        target=change.target,
        word="began" if began else "ended",
        tone="bad" if began else "good",
        at=change.at,
        text=_text(change.value),
        deliveries=tuple(map(_delivery, deliveries)),
    )


def _delivery(one: AlertDelivery) -> DeliveryRow:
    tries = "1 try" if one.tries == 1 else f"{one.tries:,} tries"
    error = one.last_error or ""
    match one.state:
        case "sent":
            return DeliveryRow(one.sink, "sent" if one.tries <= 1 else f"sent after {tries}", "good", "")
        case "given_up":
            return DeliveryRow(one.sink, f"given up after {tries}", "bad", error)
        case "due":
            return DeliveryRow(
                one.sink, f"not sent yet, {tries}" if one.tries else "on its way", "warn", error
            )


def _covers(silence: Silence, rule: str, target: str) -> bool:
    return silence.rule in {ANY, rule} and silence.target in {ANY, target}


def _text(value: Mapping[str, object]) -> str:
    return str(value.get("text", ""))
