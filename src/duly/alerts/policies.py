"""Which thresholds hold for which queue, whoever evaluates: what this App declares, else what another one has stored.

Knows no rule.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from duly.client.alert_reads import POLICY
from duly.client.registry import Registry
from duly.core.alerting import Policies, Thresholds
from duly.core.operating import AlertRecord
from duly.stores.alerts import AlertStore

ALL = "*"
"""The target of what is said for all queues."""


def keep(store: AlertStore, registry: Registry, records: list[AlertRecord]) -> None:
    """Store what this App says, where it says something else than is stored: others evaluate its queues, too."""
    stored = {record.target: record.value for record in records if record.rule == POLICY}
    said: dict[str, Thresholds] = {
        f"queue:{name}": registry.thresholds(name)
        for name, queue in registry.queues.items()
        if queue.alert is not None or f"queue:{name}" in stored
    }
    if registry.alert is not None:
        said[ALL] = registry.thresholds(None)
    for target, thresholds in said.items():
        value = _document(thresholds)
        if stored.get(target) != value:
            store.watch(POLICY, target, None, value)


def stored(registry: Registry, records: list[AlertRecord]) -> Policies:
    """The thresholds by queue. What was stored by a release with other fields counts as nothing said."""
    kept = {record.target: _read(record.value) for record in records if record.rule == POLICY}

    def of(queue: str | None) -> Thresholds:
        if queue is not None:
            if queue in registry.queues:
                return registry.thresholds(queue)
            found = kept.get(f"queue:{queue}")
            if found is not None:
                return found
        if registry.alert is not None:
            return registry.thresholds(queue)
        return kept.get(ALL) or Thresholds()

    return of


def _document(thresholds: Thresholds) -> Mapping[str, object]:
    built = msgspec.json.decode(msgspec.json.encode(thresholds, order="sorted"))
    return {str(name): value for name, value in built.items()}


def _read(value: Mapping[str, object]) -> Thresholds | None:
    try:
        return msgspec.json.decode(msgspec.json.encode(dict(value)), type=Thresholds)
    except msgspec.MsgspecError:
        return None
