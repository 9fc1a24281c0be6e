"""Stops queues whose jobs die, and lets one job at a time try whether it is over. Every worker looks; one acts.

What was decided stands in the store alone: a pause, and an override that lets through one job per cool-down.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from duly.core.control import Override, queue_limit
from duly.core.dead_breaker import (
    AUTHOR,
    DeadBreakerPolicy,
    Outcomes,
    Step,
    Trial,
    counted_from,
    decide,
    longer,
)
from duly.stores.protocol import Pause, Store
from duly.telemetry.events import QueueGoesOn, QueueStopped
from duly.telemetry.hub import Hub

_EVERY: Final = 2.0


class DeadBreakers:
    """Looks every other second at the ends of the queues that have a policy."""

    name = "dead-letter breakers"

    def __init__(self, store: Store, policies: Mapping[str, DeadBreakerPolicy], hub: Hub) -> None:
        self._store = store
        self._policies = policies
        self._hub = hub

    def run(self, now: float) -> float:
        moment = self._store.inspection.now()
        overrides = self._store.control.overrides()
        pauses = {pause.target: pause for pause in self._store.inspection.pauses()}
        for queue, policy in self._policies.items():
            self._look(queue, policy, overrides, pauses.get(queue_limit(queue)), moment)
        return _EVERY

    def failed(self) -> None:
        """Nothing to forget."""

    def _look(
        self,
        queue: str,
        policy: DeadBreakerPolicy,
        overrides: list[Override],
        pause: Pause | None,
        now: datetime,
    ) -> None:
        own = self._own(queue, overrides)
        trial = None if own is None else _trial(own, policy)
        if pause is not None and (own is None or pause.by != AUTHOR):
            # A person's: nothing starts, and nothing is to be learnt.
            return
        since = counted_from(policy, trial, now, paused=pause is not None)
        if since is None:
            return
        seen = self._store.inspection.outcomes(queue, since, policy.min_ends, policy.share)
        match decide(policy, trial, seen):
            case Step.stop:
                self._stop(queue, policy.cool_down, _told(seen), now, None)
            case Step.stop_longer if trial is not None:
                self._stop(queue, longer(trial.cool_down), "the job that tried died, too", now, own)
            case Step.go_on if own is not None:
                if self._store.control.lift(own.id, AUTHOR, "a job completed"):
                    self._hub.emit(QueueGoesOn(queue))

    @staticmethod
    def _own(queue: str, overrides: list[Override]) -> Override | None:
        """The oldest of ours: two workers may have made one at once."""
        target = queue_limit(queue)
        found = [
            one for one in overrides if one.by == AUTHOR and one.target == target and one.kind == "limit"
        ]
        return min(found, key=lambda one: one.id, default=None)

    def _stop(
        self, queue: str, cool_down: timedelta, why: str, now: datetime, before: Override | None
    ) -> None:
        store, target = self._store, queue_limit(queue)
        reason = f"dead-letter breaker: {why}; one job tries after that"
        # The pause comes first, and a second one changes nothing: whoever dies in between has stopped the queue.
        store.operator.pause(target, cool_down, AUTHOR, reason)
        if before is not None and not store.control.lift(before.id, AUTHOR, why):
            return
        one_each = {"max_running": 1, "interval": cool_down.total_seconds(), "burst": 1}
        made = store.control.override(target, "limit", one_each, None, AUTHOR, reason)
        oldest = self._own(queue, store.control.overrides())
        if oldest is not None and oldest.id != made.id:
            store.control.lift(made.id, AUTHOR, "another worker was faster")
            return
        self._hub.emit(QueueStopped(queue, why, now + cool_down))


def _trial(own: Override, policy: DeadBreakerPolicy) -> Trial:
    interval = own.value.get("interval")
    if not isinstance(interval, int | float):
        return Trial(own.at, policy.cool_down)
    return Trial(own.at, timedelta(seconds=interval))


def _told(seen: Outcomes) -> str:
    return f"{seen.dead:,} of its last {seen.dead + seen.completed:,} jobs died"
