"""The model's upkeep and operator verbs: what some worker must do from time to time, and the acts of a person."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from duly.core.bounds import SAMPLE_AGE, TURNED_AWAY, Fill, Pressure, bound_of
from duly.core.budget import Rank, StoreUse
from duly.core.defaults import PURGE_NOTICE
from duly.core.job import Counters, Incarnation, JobId
from duly.core.lateness import Crossing, is_late
from duly.core.lifecycle import FINAL, WAITING, State
from duly.core.pressure import QUEUE_FULL
from duly.core.registration import QueuePolicy
from duly.stores.protocol import Pause, Swept

from .model import PAUSED, UNKNOWN, Entry
from .model_leases import LeasedModel

SWEEP_EVERY = timedelta(seconds=1)
_JOB_SIZE = 1000
_KEEP_BATCHES = timedelta(days=30)


class UpkeepModel(LeasedModel):
    """What some worker must do from time to time, and the acts of a person."""

    def promote(self, most: int = 1000) -> tuple[int, timedelta | None]:
        with self.act():
            now = self.clock()
            due = [entry for entry in self._scheduled() if entry.run_at and entry.run_at <= now][:most]
            for entry in due:
                if entry.wish is not None:
                    self.to_final(entry, State.cancelled, entry.wish)
                elif not self.expire(entry):
                    self.to_ready(entry)
            times = [entry.run_at for entry in self._scheduled() if entry.run_at is not None]
            self.let_go()
            behind = [self.behind(entry) for entry in self.tables.entries.values() if entry.bounded]
            times += [one.until for one in behind if one is not None and one.until is not None]
            return len(due), max(min(times) - now, timedelta(0)) if times else None

    def _scheduled(self) -> list[Entry]:
        found = [entry for entry in self.tables.entries.values() if entry.state is State.scheduled]
        return sorted(found, key=lambda entry: (entry.run_at, entry.id))

    def sweep(self, unknown_after: timedelta, poison: int, grace: timedelta) -> Swept:
        with self.act():
            now = self.clock()
            if self.tables.swept_at is not None and now - self.tables.swept_at < SWEEP_EVERY:
                return Swept(ran=False)
            self.tables.swept_at = now
            known = {task for worker in self.tables.workers.values() for task in worker.info.tasks}
            found = [
                self._upkeep(entry, known, unknown_after, poison, grace)
                for entry in sorted(self.tables.entries.values(), key=lambda entry: entry.pos)
            ]
            shed = self._shed()
            self.skip_dead()
            self.tables.uses.append((now, StoreUse(_JOB_SIZE * len(self.tables.entries))))
            for entry in self.tables.entries.values():
                # Perhaps nobody comes for what was let go: another one may use what is free.
                entry.let_go = False
                if entry.state is State.ready:
                    entry.reserved = frozenset()
                if entry.lane and not self._is_fair(entry.new.queue):
                    entry.lane = ""
                elif (
                    entry.state is State.ready and not entry.counters.lost and self._is_fair(entry.new.queue)
                ):
                    entry.lane = entry.new.tenant
            self._forget_batches()
            self.duties()
            permits = self.tables.permits.items()
            self.tables.permits = {at: one for at, one in permits if one.until is None or one.until > now}
            return Swept(
                orphans=found.count("orphan"),
                overdue=found.count("overdue"),
                expired=found.count("expired"),
                abandoned=found.count("abandoned"),
                unparked=found.count("unparked"),
                shed=shed,
            )

    def _forget_batches(self) -> None:
        before = self.clock() - _KEEP_BATCHES
        of_use = {entry.new.batch for entry in self.tables.entries.values()}
        of_use |= {batch.made.parent for batch in self.tables.batches.values()}
        for id, batch in [*self.tables.batches.items()]:
            ended_at = batch.finished_at or (before if id in of_use else batch.created_at)
            if ended_at < before:
                del self.tables.batches[id]

    def _upkeep(
        self, entry: Entry, known: set[str], unknown_after: timedelta, poison: int, grace: timedelta
    ) -> str | None:
        now = self.clock()
        if entry.state is State.running:
            if entry.incarnation not in self.tables.workers:
                self.lose(entry, "its worker's row is gone", poison)
                return "orphan"
            if entry.deadline is not None and entry.deadline + grace <= now:
                self.lose(entry, "past its deadline", poison)
                return "overdue"
            return None
        if entry.state not in WAITING:
            return None
        if self.expire(entry):
            return "expired"
        if entry.state is not State.blocked or entry.waiting_since is None:
            return None
        if entry.parked == PAUSED and not self.is_paused(f"task:{entry.new.task}"):
            self.to_ready(entry)
            return "unparked"
        old = now - entry.waiting_since >= unknown_after
        if entry.parked == UNKNOWN and entry.new.task not in known and old:
            self.to_final(entry, State.dead, f"no worker has known the task {entry.new.task!r}")
            return "abandoned"
        return None

    def _is_fair(self, queue: str) -> bool:
        policy = self.tables.policies.get(queue)
        return policy is not None and policy.fair

    def _shed(self) -> int:
        """The least urgent of what a queue has too much of, the last first."""
        shed = 0
        for policy in self.tables.policies.values():
            if policy.max_depth is None or policy.when_full != "shed":
                continue
            for entry in self._ready_of(policy.name)[policy.max_depth :]:
                self.to_final(entry, State.shed, QUEUE_FULL)
                self._turn_away(policy.name, "shed", 1)
                shed += 1
        return shed

    def _ready_of(self, queue: str) -> list[Entry]:
        """The most urgent first."""
        ready = [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.ready and entry.new.queue == queue
        ]
        return sorted(ready, key=lambda entry: (entry.priority, entry.pos))

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        with self.tables.lock:
            return {name: self._fill(name, most) for name, most in queues.items()}

    def turned_away(self, refused: Mapping[str, int]) -> None:
        with self.act():
            for queue, jobs in refused.items():
                self._turn_away(queue, "refused", jobs)

    def _turn_away(self, queue: str, how: str, jobs: int) -> None:
        before, at = self.tables.turned_away.get((queue, how), (0, self.clock()))
        if at < self.clock() - TURNED_AWAY:
            before = 0
        self.tables.turned_away[queue, how] = (before + jobs, self.clock())

    def pressures(self, queues: Sequence[str]) -> dict[str, Pressure]:
        with self.tables.lock:
            return {queue: self._pressure(queue) for queue in queues}

    def _pressure(self, queue: str) -> Pressure:
        policy = self.tables.policies.get(queue, QueuePolicy(queue))
        bound = bound_of(policy.max_depth, policy.max_age, policy.when_full)
        found: list[tuple[int, datetime | None]] = []
        for how in ("refused", "shed"):
            jobs, at = self.tables.turned_away.get((queue, how), (0, self.clock()))
            fresh = jobs and at > self.clock() - TURNED_AWAY
            found.append((jobs, at) if fresh else (0, None))
        return Pressure(bound, policy.importance, policy.wait_target, *found[0], *found[1])

    def crossings(self) -> list[Crossing]:
        with self.act():
            now, crossed = self.clock(), []
            for name, policy in sorted(self.tables.policies.items()):
                waits = [
                    now - entry.waiting_since
                    for entry in self.tables.entries.values()
                    if entry.new.queue == name and entry.state is State.ready and entry.waiting_since
                ]
                oldest = max(waits, default=None)
                late = is_late(policy.wait_target, oldest)
                if late != (name in self.tables.late):
                    (self.tables.late.add if late else self.tables.late.discard)(name)
                    crossed.append(Crossing(name, late, policy.wait_target, oldest))
            return crossed

    def use(self, age: timedelta = SAMPLE_AGE) -> StoreUse:
        with self.tables.lock:
            ranks = tuple(
                Rank(name, policy.importance, policy.when_full == "shed")
                for name, policy in sorted(self.tables.policies.items())
            )
            now = self.clock()
            if self.tables.measured is None or now - self.tables.measured[0] >= age:
                self.tables.measured = (now, _JOB_SIZE * len(self.tables.entries))
            return StoreUse(self.tables.measured[1], ranks=ranks)

    def uses(self, within: timedelta) -> list[tuple[datetime, StoreUse]]:
        with self.tables.lock:
            return [(at, use) for at, use in self.tables.uses if at >= self.clock() - within]

    def shed(self, queues: Sequence[str], most: int, reason: str) -> int:
        with self.act():
            going: list[Entry] = []
            for queue in queues:
                going += reversed(self._ready_of(queue))
            for entry in going[:most]:
                self.to_final(entry, State.shed, reason)
                self._turn_away(entry.new.queue, "shed", 1)
            return len(going[:most])

    def _fill(self, queue: str, most: int) -> Fill:
        since = [
            entry.waiting_since or entry.enqueued_at
            for entry in self.tables.entries.values()
            if entry.state is State.ready and entry.new.queue == queue
        ]
        return Fill(min(len(since), most + 1), self.clock() - min(since) if since else None)

    def parked_tasks(self) -> tuple[str, ...]:
        with self.tables.lock:
            return tuple(
                {entry.new.task for entry in self.tables.entries.values() if entry.parked == UNKNOWN}
            )

    def retain(
        self,
        keep: Mapping[str, timedelta],
        keep_dead: Mapping[str, timedelta],
        default: timedelta,
        default_dead: timedelta,
        most: int = 2000,
    ) -> int:
        with self.act():
            now = self.clock()
            gone = []
            for entry in self.tables.entries.values():
                if entry.state not in FINAL or entry.finished_at is None:
                    continue
                dead = entry.state is State.dead
                times, usual = (keep_dead, default_dead) if dead else (keep, default)
                if entry.finished_at + times.get(entry.new.queue, usual) > now:
                    continue
                if not dead or (entry.announced_at and entry.announced_at + PURGE_NOTICE <= now):
                    gone.append(entry)
            gone.sort(key=lambda entry: (entry.finished_at, entry.id))
            for entry in gone[:most]:
                self.forget(entry)
            self.forget_keys()
            return len(gone[:most])

    def announce_dead(
        self, keep_dead: Mapping[str, timedelta], default_dead: timedelta, ahead: timedelta
    ) -> list[tuple[str, int, datetime]]:
        with self.tables.lock:
            now = self.clock()
            told: dict[str, list[datetime]] = {}
            for entry in self.tables.entries.values():
                if entry.state is not State.dead or entry.finished_at is None:
                    continue
                due = entry.finished_at + keep_dead.get(entry.new.queue, default_dead)
                if due - ahead > now:
                    continue
                entry.announced_at = entry.announced_at or now
                told.setdefault(entry.new.queue, []).append(max(due, entry.announced_at + PURGE_NOTICE))
            return [(queue, len(times), min(times)) for queue, times in sorted(told.items())]

    def cancel(self, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        with self.act():
            answer = {}
            for entry in self._among(ids, *WAITING, State.running):
                if entry.state is State.running:
                    entry.wish = entry.wish or reason
                else:
                    self.to_final(entry, State.cancelled, reason)
                    entry.note = f"cancelled by {by}"
                answer[entry.id] = entry.state
            self.note_jobs("cancel", ids, by, reason)
            return answer

    def _among(self, ids: Sequence[JobId], *states: State) -> list[Entry]:
        found = [self.tables.entries[id] for id in sorted(set(ids)) if id in self.tables.entries]
        return [entry for entry in found if entry.state in states]

    def redrive(self, ids: Sequence[JobId], by: str, reason: str, priority: int | None = None) -> list[JobId]:
        with self.act():
            moved = []
            for entry in self._among(ids, State.dead, State.cancelled, State.skipped):
                if self.holder_of(entry.new) is not None or entry.successor is not None:
                    continue
                self.take(entry)
                self.count(entry, entry.state, -1)
                moved.append(entry)
                entry.counters, entry.expires_at, entry.wish = Counters(), None, None
                entry.keeps_key = False
                entry.lane = entry.new.tenant if self._is_fair(entry.new.queue) else ""
                entry.priority = entry.priority if priority is None else priority
                self.to_ready(entry)
            self.note_jobs("redrive", [entry.id for entry in moved], by, reason)
            return [entry.id for entry in moved]

    def purge(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        with self.act():
            purged = self._among(ids, State.dead)
            for entry in purged:
                self.forget(entry)
            self.note_jobs("purge", [entry.id for entry in purged], by, reason)
            return [entry.id for entry in purged]

    def run_now(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        with self.act():
            self.note_jobs("run_now", ids, by, reason)
            moved = self._among(ids, State.scheduled, State.ready)
            for entry in moved:
                if entry.state is State.scheduled:
                    self.to_ready(entry)
            return [entry.id for entry in moved]

    def run_at(self, ids: Sequence[JobId], at: datetime, by: str, reason: str) -> list[JobId]:
        with self.act():
            self.note_jobs("run_at", ids, by, reason)
            moved = self._among(ids, State.scheduled, State.ready)
            for entry in moved:
                self.to_scheduled(entry, at)
            return [entry.id for entry in moved]

    def reprioritise(self, ids: Sequence[JobId], priority: int, by: str, reason: str) -> list[JobId]:
        with self.act():
            self.note_jobs("reprioritise", ids, by, reason)
            moved = self._among(ids, *WAITING)
            for entry in moved:
                entry.priority = priority
                if entry.state is State.ready:
                    # To the tail of its new lane: nobody looks behind there for what has come late.
                    entry.pos = self.number()
            return [entry.id for entry in moved]

    def pause(self, target: str, lasting: timedelta | None, by: str, reason: str) -> Pause:
        with self.tables.lock:
            now = self.clock()
            self.note("pause", target, by, reason)
            self.tables.paused[target] = Pause(
                target, None if lasting is None else now + lasting, by, reason, now
            )
            return self.tables.paused[target]

    def resume(self, target: str, by: str, reason: str) -> bool:
        with self.tables.lock:
            was = self.is_paused(target)
            self.tables.paused.pop(target, None)
            if was:
                self.note("resume", target, by, reason)
            return was

    def drain_worker(self, incarnation: Incarnation, by: str, reason: str) -> bool:
        with self.tables.lock:
            worker = self.tables.workers.get(incarnation)
            if worker is not None:
                worker.draining = True
                self.note("drain", f"worker:{incarnation}", by, reason)
            return worker is not None

    def draining(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        with self.tables.lock:
            known = self.tables.workers
            return frozenset(one for one in incarnations if one in known and known[one].draining)
