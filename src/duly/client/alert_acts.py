"""What a person does about alerts: have them silent for a while. The alert part of `operate`."""

from __future__ import annotations

from duly.client.authorship import reason_given
from duly.client.control_acts import ControlActs
from duly.client.twins import blocking, twin
from duly.core.alerting import RULES, STORE
from duly.core.durations import Duration, parse_duration
from duly.core.errors import NotFound, UsageError
from duly.core.operating import Silence

ANY = "*"
_KINDS = ("queue", "worker", "resource")


class AlertActs(ControlActs):
    """Base of `Operate`."""

    @blocking
    def silence(self, target: str, *, lasting: Duration, rule: str = ANY, reason: str = "") -> Silence:
        """Tell nobody for a while of what fires for a target: "queue:mail", "resource:smtp", "store", or "*" for any.

        What begins meanwhile and still holds at the end is told then; that something is over is told at once.
        """
        said = parse_duration(lasting, "lasting", positive=True)
        if rule != ANY and rule not in RULES:
            raise UsageError(f"rule={rule!r:.40} is none of {', '.join(RULES)}")
        kind, colon, name = target.partition(":")
        if target not in {ANY, STORE} and not (colon and name and kind in _KINDS):
            raise UsageError(
                f"{target!r:.60} is no target of alerts; write queue:NAME, worker:ID, resource:NAME, store or *"
            )
        return self._client.store.alerts.silence(rule, target, said, self.actor(), reason_given(reason))

    @blocking
    def unsilence(self, id: int, *, reason: str = "") -> None:
        """End a silence before its time. NotFound when there is none of this number any more."""
        if not self._client.store.alerts.unsilence(id, self.actor(), reason_given(reason)):
            raise NotFound(
                f"no silence {id} is in force; `duly alerts list` shows them", kind="silence", name=str(id)
            )

    asilence = twin(silence)
    aunsilence = twin(unsilence)
