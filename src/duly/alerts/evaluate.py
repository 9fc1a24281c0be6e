"""Looks at the rules and decides: what fires, what is over, what is not told for now. Sends nothing.

A change is decided once, by whoever is first: the store takes state, change and deliveries in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import msgspec

from duly.alerts import policies
from duly.alerts.snapshot import Looker
from duly.client.alert_reads import POLICY
from duly.client.client import Client
from duly.client.inspect import Inspect
from duly.core.alerting import RULES, Finding, Policies, Snapshot, judge, step
from duly.core.operating import AlertRecord, Silence

_NONE = timedelta(0)


class Verdict(msgspec.Struct, frozen=True):
    """What one look has found and changed."""

    holds: tuple[Finding, ...] = ()
    """Conditions that hold now, whether they fire yet or not."""
    fired: tuple[str, ...] = ()
    """As "late queue:mail"."""
    cleared: tuple[str, ...] = ()
    silenced: tuple[str, ...] = ()
    """Would fire; told when the silence ends and they still hold."""


class Evaluator:
    """Of one process. `look` may be called by any number of processes; each change is decided by one of them."""

    def __init__(self, client: Client, sinks: Iterable[str]) -> None:
        self._client = client
        self._sinks = tuple(sinks)
        self._looker = Looker(Inspect(client))
        self._told = False

    def look(self, now: float) -> Verdict:
        """Read everything, decide every rule; blocks. `now`: seconds of a clock that only goes forward."""
        store, registry = self._client.store.alerts, self._client.registry
        records = store.records()
        if not self._told:
            policies.keep(store, registry, records)
            self._told = True
        seen = self._looker.look(now)
        of = policies.stored(registry, records)
        known = {(record.rule, record.target): record for record in records if record.rule != POLICY}
        found: dict[tuple[str, str], Finding] = {
            (finding.rule, finding.target): finding for finding in judge(seen, of)
        }
        return self._decide(seen, of, known, found)

    def _decide(
        self,
        seen: Snapshot,
        of: Policies,
        known: Mapping[tuple[str, str], AlertRecord],
        found: Mapping[tuple[str, str], Finding],
    ) -> Verdict:
        store = self._client.store.alerts
        silences = store.silences()
        owners = {f"queue:{queue.name}": queue.owner for queue in seen.queues}
        fired: list[str] = []
        cleared: list[str] = []
        silenced: list[str] = []
        for pair in sorted({*known, *found}):
            rule, target = pair
            record, finding = known.get(pair), found.get(pair)
            decided = step(record, finding, seen.now, _clear_after(rule, target, of))
            value: dict[str, object] = {"owner": owners.get(target)}
            value["text"] = finding.text if finding is not None else _over(record)
            if decided.doing == "wait":
                store.watch(rule, target, decided.since, value)
            elif decided.doing == "fire" and _is_silenced(silences, rule, target):
                silenced.append(f"{rule} {target}")
            elif decided.doing in {"fire", "clear"}:
                firing = decided.doing == "fire"
                change = store.change(
                    rule,
                    target,
                    0 if record is None else record.change,
                    "firing" if firing else "clear",
                    value,
                    self._receivers(of, finding, target),
                )
                if change is not None:
                    (fired if firing else cleared).append(f"{rule} {target}")
            elif finding is None and record is not None and _is_gone(record, seen):
                store.drop(rule, target)
        return Verdict(tuple(found.values()), tuple(fired), tuple(cleared), tuple(silenced))

    def _receivers(self, of: Policies, finding: Finding | None, target: str) -> tuple[str, ...]:
        chosen = finding.sinks if finding is not None else of(_queue_of(target)).sinks
        return self._sinks if chosen is None else chosen


def _clear_after(rule: str, target: str, of: Policies) -> timedelta:
    # Its window is its hysteresis.
    return _NONE if rule == "dead-letter" else of(_queue_of(target)).clear_after


def _queue_of(target: str) -> str | None:
    kind, _, name = target.partition(":")
    return name if kind == "queue" else None


def _over(record: AlertRecord | None) -> str:
    said = "" if record is None else str(record.value.get("text", ""))
    return f"is over. It was: {said}" if said else "is over"


def _is_silenced(silences: Iterable[Silence], rule: str, target: str) -> bool:
    return any(one.rule in {"*", rule} and one.target in {"*", target} for one in silences)


def _is_gone(record: AlertRecord, seen: Snapshot) -> bool:
    """A clear alert of a worker that is no more, or of a rule that this release does not know."""
    if record.state != "clear" or record.since is not None:
        return False
    if record.rule not in RULES:
        return False
    kind, _, name = record.target.partition(":")
    return kind == "worker" and all(str(worker.id) != name for worker in seen.workers)
