"""What a store promises of alerts, what is sent of them, and silences. Each sentence has a test on every store."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from duly.core.operating import AlertChange, AlertDelivery, AlertRecord, AlertStateName, Silence

CHANGES_KEPT: Final = timedelta(days=90)


def silenced(rule: str, target: str) -> str:
    """What the audit calls a rule and its target."""
    return f"alert:{rule}:{target}"


class AlertStore(Protocol):
    """Each change is decided once, together with what is to be sent of it; each delivery is made at least once."""

    def turn(self, every: timedelta) -> bool:
        """Whether it is this caller's turn to look at the rules: one caller's in so long a time."""

    def records(self) -> list[AlertRecord]:
        """Every rule and target that was ever looked at, by rule and target."""

    def watch(self, rule: str, target: str, since: datetime | None, value: Mapping[str, object]) -> None:
        """Keep since when the condition disagrees with the state, and what was seen; changes no state."""

    def change(
        self,
        rule: str,
        target: str,
        expected: int,
        state: AlertStateName,
        value: Mapping[str, object],
        sinks: Sequence[str],
    ) -> int | None:
        """If its last change still is `expected` (0: none) and its state another: change it, with one delivery for each
        sink, in one transaction. The id of the change; None when another caller was faster."""

    def drop(self, rule: str, target: str) -> bool:
        """Forget a rule that is no longer looked at for this target; its changes stay."""

    def due(
        self, sinks: Sequence[str], lasting: timedelta = timedelta(minutes=1), most: int = 100
    ) -> list[AlertDelivery]:
        """Take deliveries to these sinks whose time has come, the oldest change first; each counts a try, and is given
        to nobody else for `lasting`."""

    def sent(self, change: int, sink: str) -> bool:
        """False when it is settled already, or unknown."""

    def unsent(self, change: int, sink: str, error: str, wait: timedelta | None) -> bool:
        """It failed: due again after `wait`, None: given up. False when it is settled already, or unknown."""

    def changes(self, before: int | None = None, limit: int = 50) -> list[AlertChange]:
        """The newest first. Kept for 90 days."""

    def deliveries(self, change: int) -> list[AlertDelivery]:
        """Of one change, by sink."""

    def silence(self, rule: str, target: str, lasting: timedelta, by: str, reason: str) -> Silence:
        """Of a rule for a target; "*" for any."""

    def unsilence(self, id: int, by: str, reason: str) -> bool:
        """False when it is over already, or unknown."""

    def silences(self) -> list[Silence]:
        """Those in force, the newest first."""
