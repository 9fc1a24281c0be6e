"""Random commands about keys, limits and batches: a store leads, the model follows, and says whether it was allowed to.

Which of the jobs that may start a claim gives first is compared by machine.py; here it is that it gives no other, and,
when it is asked until it has no more, that it leaves none behind.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from duly.core.batch import ACCEPTING, CloseBatch, OpenBatch
from duly.core.control import LimitPolicy, Ordering, Rate, TaskLimit
from duly.core.filters import Filter
from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, JobId, NewJob, QueueClaim, WorkerInfo
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.protocol import Store
from duly.testing import FakeClock
from duly.testing.conformance import Database
from duly.testing.conformance.bench import ended
from duly.testing.conformance.model import Entry
from duly.testing.conformance.model_store import ModelStore
from tests.conformance.machine import ENDS, JUST_PAST, NUMBERS, SPANS

QUEUES = ("default", "mail")
# What a task takes; the other one takes nothing.
TAKES = {
    "api": ("resource:api",),
    "db": ("resource:db",),
    "both": ("resource:api", "resource:db"),
    "free": (),
}
NAMES = ("resource:api", "resource:db")
# A limit that comes and goes is a matter of the cases: those that started without it hold nothing.
CAPS = st.sampled_from([1, 1, 2, 3])
RATES = st.sampled_from([None, None, None, Rate(5, 2)])
JOBS = st.builds(
    NewJob,
    queue=st.sampled_from(QUEUES),
    task=st.sampled_from(sorted(TAKES)),
    args=st.just(b"{}"),
    priority=st.sampled_from([1, 100, 100]),
    delay=st.none() | st.none() | SPANS,
    ordering_key=st.none() | st.sampled_from("ab"),
)
ROUNDS = 60
FOLLOWING = "follows a batch"
THEN = NewJob("default", "free", b"{}", tags=(FOLLOWING,))
ON_DEAD = NewJob("mail", "free", b"{}", tags=(FOLLOWING,))


class ControlledStoreAgainstModel(RuleBasedStateMachine):
    """One store and one model with the same jobs."""

    place: Callable[[], AbstractContextManager[Database]]

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.place_now = type(self).place()
        self.database = self.place_now.__enter__()
        self.store: Store = self.database.open(self.clock)
        self.model = ModelStore(self.clock)
        self.jobs: dict[JobId, JobId] = {}
        """The model's number of each of the store's jobs."""
        self.batches: dict[int, int] = {}
        """The model's number of each of the store's batches."""
        self.workers: list[tuple[Incarnation, Incarnation]] = []
        self.running: dict[JobId, tuple[Incarnation, ClaimedJob]] = {}
        self.releases = 0
        self.ordering: Ordering = "wait"

    def teardown(self) -> None:
        self.store.close()
        self.place_now.__exit__(None, None, None)

    # Commands

    @initialize(
        caps=st.tuples(CAPS, CAPS), rate=RATES, ordering=st.sampled_from(["wait", "skip_dead", "pause_key"])
    )
    def begin(self, caps: tuple[int, int], rate: Rate | None, ordering: Ordering) -> None:
        self.ordering = ordering
        self.declare(caps, rate)
        self.register()

    @rule(caps=st.tuples(CAPS, CAPS), rate=RATES)
    def declare(self, caps: tuple[int, int], rate: Rate | None) -> None:
        self.releases += 1
        release = Registration(
            "app",
            f"release {self.releases}",
            tuple(QueuePolicy(queue, ordering=self.ordering) for queue in QUEUES),
            limits=tuple(
                LimitPolicy(name, cap, rate if name == NAMES[0] else None)
                for name, cap in zip(NAMES, caps, strict=True)
            ),
            task_limits=tuple(TaskLimit(task, name) for task, names in TAKES.items() for name in names),
        )
        assert self.store.schema.declare(release)
        assert self.model.declare(release)
        self._sweep()

    @rule()
    def register(self) -> None:
        if len(self.workers) >= 4:
            return
        info = WorkerInfo(
            host="h",
            pid=1,
            supervisor="s",
            queues=QUEUES,
            tasks=dict.fromkeys(TAKES, timedelta(days=30)),
            lease=timedelta(seconds=30),
            heartbeat=timedelta(seconds=5),
            slots=4,
            version="1",
        )
        self.workers.append((self.store.leases.register(info), self.model.register(info)))

    @rule(nested=st.booleans(), number=NUMBERS)
    def open_batch(self, nested: bool, number: int) -> None:
        around = self._accepting(number) if nested else None
        mine, theirs = (None, None) if around is None else (around, self.batches[around])
        made = self.store.batches.apply(OpenBatch("all", (THEN,), (ON_DEAD,), mine))
        self.batches[made] = self.model.batches.apply(OpenBatch("all", (THEN,), (ON_DEAD,), theirs))

    @precondition(lambda self: self.batches)
    @rule(number=NUMBERS)
    def close_batch(self, number: int) -> None:
        mine = sorted(self.batches)[number % len(self.batches)]
        assert self.store.batches.apply(CloseBatch(mine)) == mine
        self.model.batches.apply(CloseBatch(self.batches[mine]))

    @rule(
        jobs=st.lists(JOBS, min_size=1, max_size=6),
        way=st.sampled_from(["call", "transaction", "in vain"]),
        number=NUMBERS,
    )
    def enqueue(self, jobs: list[NewJob], way: str, number: int) -> None:
        mine = self._accepting(number)
        theirs = jobs
        if mine is not None:
            # Every other one is counted.
            jobs = [replace(job, batch=mine if at % 2 else None) for at, job in enumerate(jobs)]
            theirs = [
                replace(job, batch=self.batches[mine] if at % 2 else None) for at, job in enumerate(jobs)
            ]
        if way == "call":
            stored = self.store.jobs.enqueue(jobs)
        else:
            try:
                with self.store.transaction() as connection:
                    stored = self.store.enqueue_on(connection, jobs)
                    if way == "in vain":
                        raise ZeroDivisionError
            except ZeroDivisionError:
                return
        expected = self.model.enqueue(theirs)
        self.jobs |= {mine.id: theirs.id for mine, theirs in zip(stored, expected, strict=True)}

    @rule(worker=NUMBERS, most=st.integers(1, 6), chain=st.integers(1, 3), suspects=st.booleans())
    def claim(self, worker: int, most: int, chain: int, suspects: bool) -> None:
        self._claim(*self._worker(worker), most, chain, suspects)

    @rule(worker=NUMBERS)
    def claim_all(self, worker: int) -> None:
        """Nothing that might start is left behind."""
        mine, theirs = self._worker(worker)
        self.promote()
        for suspects in (False, True, False):
            self._claim(mine, theirs, 1_000, 1, suspects)
        left = [entry for entry in self._waiting() if self._may_surely_start(entry)]
        assert not left, f"nothing holds back {[(entry.id, entry.new.task, entry.key) for entry in left]}"

    @precondition(lambda self: self.running)
    @rule(number=NUMBERS, how=ENDS, delay=SPANS, way=st.sampled_from(["call", "transaction", "in vain"]))
    def end(self, number: int, how: tuple[Event, State], delay: timedelta, way: str) -> None:
        chosen = self._first_of_its_chain(number)
        mine, job = self.running[chosen]
        twin = self.model.tables.entries[self.jobs[chosen]]
        event, to = how
        end = ended(job, event, to, delay=delay if to is State.scheduled else None)
        if way == "call":
            assert self.store.jobs.exchange(mine, [end], None).acked
        else:
            try:
                with self.store.transaction() as connection:
                    assert self.store.complete_on(connection, mine, end)
                    if way == "in vain":
                        raise ZeroDivisionError
            except ZeroDivisionError:
                return
        del self.running[chosen]
        assert twin.incarnation is not None
        theirs = ended(_claimed(job, twin), event, to, delay=end.delay)
        assert self.model.end(twin.incarnation, theirs, again=False)

    @rule(worker=NUMBERS, how=st.sampled_from(["reap", "retire", "forget"]))
    def lose(self, worker: int, how: str) -> None:
        mine, theirs = self._worker(worker)
        if how == "retire":
            assert self.store.leases.retire(mine) == self.model.retire(theirs)
        elif how == "reap":
            seen = [beat for beat in self.store.leases.beats() if beat.incarnation == mine]
            expected = [beat for beat in self.model.beats() if beat.incarnation == theirs]
            assert self.store.leases.reap(seen, 99) == self.model.reap(expected, 99)
        else:
            self.database.forget_worker(mine)
            del self.model.tables.workers[theirs]
        self.workers.remove((mine, theirs))
        self.running = {id: (held, job) for id, (held, job) in self.running.items() if held != mine}
        if how == "forget":
            self._sweep()
        if not self.workers:
            self.register()

    @precondition(lambda self: self.jobs)
    @rule(
        numbers=st.lists(NUMBERS, min_size=1, max_size=3),
        verb=st.sampled_from(["cancel", "cancel", "redrive", "purge", "run_now", "reprioritise"]),
    )
    def act(self, numbers: list[int], verb: str) -> None:
        ids = sorted({sorted(self.jobs)[number % len(self.jobs)] for number in numbers})
        more: dict[str, Any] = {"priority": 50} if verb == "reprioritise" else {}
        if verb in {"reprioritise", "run_now"}:
            # A person may move what is ready and not what is blocked; sides may differ in which it is.
            ids = [id for id in ids if self.model.tables.entries[self.jobs[id]].state is State.scheduled]
        seen = getattr(self.store.operator, verb)(ids, by="ann", reason="r", **more)
        expected = getattr(self.model, verb)([self.jobs[id] for id in ids], by="ann", reason="r", **more)
        assert sorted(self.jobs[id] for id in seen) == sorted(expected)
        if verb == "purge":
            for id in seen:
                del self.jobs[id]

    @rule(queue=st.sampled_from(QUEUES), key=st.sampled_from("ab"))
    def resume_key(self, queue: str, key: str) -> None:
        seen = self.store.control.resume_key(queue, "", key, "ann", "go on")
        assert seen == self.model.control.resume_key(queue, "", key, "ann", "go on")

    @rule(by=SPANS)
    def time_passes(self, by: timedelta) -> None:
        self.clock.advance(by + JUST_PAST)

    @rule()
    def promote(self) -> None:
        self.store.upkeep.promote()
        self.model.promote()

    @rule()
    def sweep(self) -> None:
        self._sweep()

    # How they are done

    def _accepting(self, number: int) -> int | None:
        """A batch that takes more, for the store and for the model."""
        self._meet_followers()
        states = self.model.tables.batches
        found = [mine for mine, theirs in sorted(self.batches.items()) if states[theirs].state in ACCEPTING]
        return found[number % len(found)] if found else None

    def _meet_followers(self) -> None:
        """What follows batches is the same on both sides, each job once; from now on it is one of the jobs."""
        self.store.batches.finish()
        page = self.store.inspection.page(Filter(tag=FOLLOWING), after=0, limit=10_000)
        triggers = {f"batch:{theirs}": f"batch:{mine}" for mine, theirs in self.batches.items()}
        entries = [one for one in self.model.tables.entries.values() if FOLLOWING in one.new.tags]
        mine = {(row.trigger or "", row.queue): row.id for row in page.jobs}
        theirs = {(triggers[one.new.trigger or ""], one.new.queue): one.id for one in entries}
        assert len(mine) == len(page.jobs), "a batch was followed twice"
        assert mine.keys() == theirs.keys(), (
            f"followed {sorted(map(str, mine))}, not {sorted(map(str, theirs))}"
        )
        self.jobs |= {id: theirs[what] for what, id in mine.items()}

    def _worker(self, number: int) -> tuple[Incarnation, Incarnation]:
        return self.workers[number % len(self.workers)]

    def _sweep(self) -> None:
        for _ in range(3):
            self.clock.advance(timedelta(minutes=2) + JUST_PAST)
            if self.store.upkeep.sweep(timedelta(days=1), 99, timedelta(0)).ran:
                self.model.sweep(timedelta(days=1), 99, timedelta(0))
                return
        raise AssertionError("no sweep ran")

    def _claim(self, mine: Incarnation, theirs: Incarnation, most: int, chain: int, suspects: bool) -> None:
        asked = ClaimRequest(
            tuple(QueueClaim(queue, most) for queue in QUEUES), most, suspects=suspects, chain=chain
        )
        for _ in range(ROUNDS):
            answer = self.store.jobs.exchange(mine, [], asked)
            for job in answer.claimed:
                self._follow(theirs, job)
                self.running[job.id] = (mine, job)
            if answer.again != timedelta(0):
                return
            if most < 1_000:
                return
        raise AssertionError("the store asks to come again at once, for ever")

    def _follow(self, theirs: Incarnation, job: ClaimedJob) -> None:
        """Let the model run what the store runs, if it may."""
        entry = self.model.tables.entries[self.jobs[job.id]]
        told = f"job {entry.id}, {entry.new.task}, {entry.key}"
        assert entry.state in {State.ready, State.blocked}, f"{told} is {entry.state}"
        key = entry.key
        if key is not None:
            assert key not in self.model.tables.paused_keys, f"{told} starts, and its key is paused"
            others = [one for one in self.model.members(key) if one.state is State.running]
            assert bool(others) == job.follows, f"{told} starts beside {[one.id for one in others]}"
            assert all(one.id < entry.id for one in others), f"{told} starts before its turn"
            members = self.model.members(key)
            if job.follows:
                between = [one for one in members if one.id < entry.id and one.state is not State.running]
                assert not between, f"{told} jumps over {[one.id for one in between]}"
            else:
                owner = self.model.tables.heads.get(key)
                assert entry.id in {owner, members[0].id}, f"{told} starts before its turn"
                self.model.tables.heads[key] = entry.id
        limits = self.model.limits_of(entry)
        for limit in limits:
            policy = self.model.policy_of(limit)
            running = self._holding(limit.name)
            assert policy.max_running is None or running < policy.max_running, f"{told}: {limit.name} is full"
            opens = self.model._opens_at(policy.rate, self.model.state_of(limit.name), 0)
            assert opens is None or opens <= self.clock(), f"{told}: the rate of {limit.name} is used up"
        held = self.model.start([*self.model.lane_limits(entry, False), *limits])
        self.model._run(entry, theirs, timedelta(days=30), held, job.follows)
        assert job.run == entry.run

    def _holding(self, name: str) -> int:
        return sum(
            name in entry.holds
            for entry in self.model.tables.entries.values()
            if entry.state is State.running
        )

    def _waiting(self) -> list[Entry]:
        return [
            entry
            for entry in self.model.tables.entries.values()
            if entry.state in {State.ready, State.blocked}
        ]

    def _may_surely_start(self, entry: Entry) -> bool:
        """Whatever a store may have chosen where it has a choice."""
        key = entry.key
        if key is not None:
            members = self.model.members(key)
            owner = self.model.tables.heads.get(key, entry.id)
            if key in self.model.tables.paused_keys:
                return False
            if any(one.state is State.running for one in members) or members[0] is not entry:
                return False
            if owner != entry.id:
                return False
        impatient = [
            one for one in self._waiting() if one is not entry and len(self.model.limits_of(one)) > 1
        ]
        for limit in self.model.limits_of(entry):
            if self.model.refused(limit, but=entry) is not None:
                return False
            # Another one may have reserved it.
            if any(limit in self.model.limits_of(one) for one in impatient):
                return False
        return True

    def _first_of_its_chain(self, number: int) -> JobId:
        """A worker ends the jobs of a chain in order."""
        chosen = sorted(self.running)[number % len(self.running)]
        key = self.running[chosen][1].ordering_key
        if key is None:
            return chosen
        queue = self.running[chosen][1].queue
        return min(
            id for id, (_, job) in self.running.items() if (job.queue, job.ordering_key) == (queue, key)
        )

    # What must always be so

    @invariant()
    def both_tell_the_same(self) -> None:
        ids = sorted(self.jobs)
        for id, row in zip(ids, self.store.inspection.lookup(ids), strict=True):
            entry = self.model.tables.entries[self.jobs[id]]
            assert row is not None, f"job {entry.id} is lost"
            assert _place(row.state) == _place(entry.state), (
                f"job {entry.id} is {row.state}, not {entry.state}"
            )
            assert (row.run, row.counters) == (entry.run, entry.counters)
            if row.state is State.blocked:
                names = {limit.name for limit in self.model.limits_of(entry)}
                assert row.waits_for in names | ({"key"} if entry.key else set())

    @invariant()
    def batches_count_the_same(self) -> None:
        self._meet_followers()
        ids = sorted(self.batches)
        for id, record in zip(ids, self.store.batches.lookup(ids), strict=True):
            twin = self.model.tables.batches[self.batches[id]]
            assert record is not None, f"batch {twin.id} is lost"
            assert (record.state, record.counts) == (twin.state, twin.counts), f"batch {twin.id}"

    @invariant()
    def what_is_held_is_what_runs(self) -> None:
        held = {record.name: record.running for record in self.store.control.limits(NAMES)}
        for name in NAMES:
            reserved = sum(len(self.model.limits_of(one)) > 1 for one in self._waiting())
            mine, theirs = held.get(name, 0), self._holding(name)
            assert theirs <= mine <= theirs + reserved, f"{name} is held by {mine}, and {theirs} run"

    @invariant()
    def one_of_a_key_runs(self) -> None:
        keys: Sequence[Any] = [
            (job.queue, job.ordering_key)
            for _, job in self.running.values()
            if job.ordering_key and not job.follows
        ]
        assert all(count == 1 for count in Counter(keys).values()), "two chains of one key run at once"


def _claimed(job: ClaimedJob, entry: Entry) -> ClaimedJob:
    """What the model gave instead."""
    return ClaimedJob(
        entry.id,
        entry.run,
        job.queue,
        job.task,
        job.args,
        job.priority,
        job.tenant,
        job.tags,
        str(entry.id),
        entry.counters,
        job.attempts,
        job.timeout,
        job.enqueued_at,
        job.claimed_at,
    )


def _place(state: State) -> State:
    """Ready and blocked are told apart by who has looked last."""
    return State.ready if state is State.blocked else state
