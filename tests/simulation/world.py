"""One seed's world: producers, operators, processes that come, freeze, die and are replaced, a store that goes away;
and what must be so after every event.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from duly import App, Backoff
from duly.core.errors import LeaseLost
from duly.core.job import AttemptRecord, Counters, JobId, JobRecord, NewJob, Token
from duly.core.lifecycle import FINAL, Event, Outcome, State
from duly.stores.faults import Transient
from duly.stores.protocol import Clock, Store
from duly.worker.attempt import Attempt
from duly.worker.card import cards_of
from duly.worker.options import Plan
from tests.simulation.batched import Batched
from tests.simulation.bounded import Bounded
from tests.simulation.rich import Rich
from tests.simulation.timeline import Timeline
from tests.simulation.wire import Books, Wire
from tests.simulation.worker import Process

QUEUES: Final = ("default", "mail")
CHAOS: Final = 24.0
LONGEST: Final = 2_000.0
DAY: Final = timedelta(days=1)
SECOND: Final = timedelta(seconds=1)


def _registrations() -> App:
    app = App("sqlite:///never-opened.db")

    @app.task(timeout="5s", attempts=3, backoff=Backoff("1s", factor=2, cap="3s"))
    def work() -> None: ...

    @app.task(timeout="8s", attempts=2, backoff=Backoff("1s", factor=2, cap="3s"))
    def slow() -> None: ...

    return app


CARDS: Final = cards_of(_registrations().tasks)


def _plan(draw: random.Random) -> Plan:
    lease = draw.choice([3.0, 4.5, 6.0])
    return Plan(
        queues=dict.fromkeys(QUEUES),
        concurrency=1,
        threads=draw.choice([1, 3, 8]),
        isolated=1,
        processes=1,
        grace=draw.choice([0.0, 5.0]),
        lease=lease,
        heartbeat=lease / draw.choice([3, 5]),
        poll=1.0,
        poison=3,
        keep=DAY,
        keep_dead=30 * DAY,
        max_jobs=None,
        max_memory=None,
        until_idle=False,
        patience=1.0,
        unstarted=1.0,
    )


class World:
    """Everything of one seed. `run` goes to the end, where nothing waits any more."""

    def __init__(self, seed: int, open_store: Callable[[Clock], Store]) -> None:
        self.draw = random.Random(seed)
        # The worker's own jitter draws from the module's generator.
        random.seed(seed)
        self.timeline = Timeline(self.draw)
        self.store = open_store(self.timeline.date)
        self.plan = _plan(self.draw)
        self.cards = CARDS
        self.books = Books()
        self.fault_rate = self.draw.choice([0.0, 0.02, 0.1])
        self.processes: list[Process] = []
        self.overlaps = 0
        """Times that two processes ran one job at once, the older of them frozen."""
        self.kills = 0
        self._numbers = iter(range(1, 1_000_000))
        self._running: dict[JobId, list[tuple[Process, Attempt]]] = {}
        self._seen: dict[JobId, JobRecord] = {}
        self._changes_seen = -1
        self._producer = Wire(self.store, self.books, self.draw, self.fault_rate, self.timeline.note)
        # In one world of three: plain jobs must hold their promises without them, too.
        self.rich = Rich(self, self._producer, seed) if seed % 3 == 1 else None
        self.scheduled = self.rich is not None
        self.bounded = Bounded(self.store, self.draw, QUEUES, sheds=seed % 6 == 2) if seed % 3 == 2 else None
        self.batched = Batched(self, self._producer, seed) if seed % 6 == 5 else None

    def run(self) -> None:
        """Chaos first, then calm until every job has come to its end."""
        timeline = self.timeline
        for _ in range(self.draw.randint(1, 2)):
            self._spawn()
        for name, every, act in (
            ("enqueue", 3.0, self._enqueue),
            ("operator", 3.0, self._operate),
            ("calamity", 2.5, self._calamity),
            ("late commit", 7.0, self._enqueue_late),
        ):
            self._again_and_again(name, every, act)
        if self.rich is not None:
            self._again_and_again("enqueue with keys", 3.0, self.rich.enqueue)
            self._again_and_again("pause or resume", 6.0, self.rich.operate)
        if self.batched is not None:
            self._again_and_again("batch", 4.0, self.batched.begin)
        timeline.after(CHAOS, "calm", self._calm)
        while not self._over():
            assert timeline.step(), "nothing happens any more"
            assert timeline.now < LONGEST, f"still unfinished: {self._unfinished()}"
            self._check()
        self._check_ends()

    # What happens

    def _again_and_again(self, name: str, every: float, act: Callable[[], None]) -> None:
        def run() -> None:
            if self.timeline.now < 1_000.0 + CHAOS:
                act()
                self.timeline.after(self.draw.expovariate(1 / every), name, run)

        self.timeline.after(self.draw.uniform(0, every), name, run)

    def _spawn(self) -> None:
        wire = Wire(self.store, self.books, self.draw, self.fault_rate, self.timeline.note)
        try:
            self.processes.append(Process(self, wire, next(self._numbers)))
        except Transient:
            self.timeline.after(1.0, "spawn", self._spawn)

    def _enqueue(self) -> None:
        delay = self.draw.choice([None, None, timedelta(seconds=2), timedelta(seconds=6)])
        expires = self.draw.choice([None, None, None, timedelta(seconds=6)])
        jobs = [
            NewJob(
                self.draw.choice(QUEUES),
                self.draw.choice(("work", "slow")),
                b"{}",
                delay=delay,
                expires=expires,
            )
            for _ in range(self.draw.randint(1, 2))
        ]
        if self.bounded is not None:
            jobs = [self.bounded.bind(job) for job in jobs]
        try:
            self._producer.jobs.enqueue(jobs)
        except Transient as fault:
            self.timeline.note(f"producer: {fault}")

    def _enqueue_late(self) -> None:
        """In a transaction that stays open meanwhile; where one writer would keep all others out, at once."""
        block = self.store.transaction()
        connection = block.__enter__()
        jobs = [NewJob(self.draw.choice(QUEUES), "work", b"{}", delay=self.draw.choice([None, SECOND]))]
        key = ""
        if self.rich is not None:
            jobs[0], key = self.rich.late_job(jobs[0])
        stored = self.store.enqueue_on(connection, jobs)
        assert stored[0].outcome is Outcome.created, f"the key {key!r} was not free"
        commit = self.draw.random() < 0.7

        def end() -> None:
            if commit:
                block.__exit__(None, None, None)
                self.books.jobs.update(answer.id for answer in stored)
                self.books.new.update({answer.id: job for job, answer in zip(jobs, stored, strict=True)})
                self.books.changes += 1
                return
            if self.rich is not None:
                self.rich.roll_back(key)
            with suppress(ZeroDivisionError):
                error = ZeroDivisionError("rolled back")
                block.__exit__(ZeroDivisionError, error, None)

        if not self.store.capabilities.shared_by_machines:
            end()
        else:
            self.timeline.after(self.draw.choice([0.0, 0.5, 4.0]), "commit" if commit else "roll back", end)

    def child_of(self, process: Process, attempt: Attempt) -> None:
        token = Token(process.incarnation, attempt.job.id, attempt.job.run)
        row = self.store.inspection.lookup([attempt.job.id])[0]
        live = row is not None and row.state is State.running
        live = live and row is not None and (row.incarnation, row.run) == (token.incarnation, token.run)
        try:
            process.wire.jobs.enqueue([NewJob("default", "work", b"{}", holder=token)])
            accepted = True
        except LeaseLost:
            accepted = False
        except Transient:
            return
        assert accepted == live, f"an enqueue of {token} was {'accepted' if accepted else 'refused'}"

    def _operate(self) -> None:
        ids = sorted(self.books.jobs)
        if not ids:
            return
        chosen = self.draw.sample(ids, min(len(ids), 3))
        operator = self.store.operator
        match self.draw.choice(["cancel", "redrive", "run_now", "reprioritise", "pause", "progress"]):
            case "cancel":
                operator.cancel(chosen, "ann", "not needed")
            case "redrive":
                operator.redrive(chosen, "ann", "again")
            case "run_now":
                operator.run_now(chosen, "ann", "now")
            case "reprioritise":
                operator.reprioritise(chosen, self.draw.choice([1, 200]), "ann", "urgent")
            case "pause":
                target = self.draw.choice(["queue:mail", "task:slow"])
                operator.pause(target, timedelta(seconds=self.draw.choice([2, 15])), "ann", "incident")
            case _:
                for process in self._awake():
                    process.report_progress()
        self.books.changes += 1

    def _calamity(self) -> None:
        awake = self._awake()
        if not awake:
            self._spawn()
            return
        victim = self.draw.choice(awake)
        match self.draw.choice(
            ["child dies", "machine dies", "freezes", "freezes", "freezes", "store away", "deploy"]
        ):
            case "child dies":
                self._kill(victim, witnessed=True)
            case "machine dies":
                self._kill(victim, witnessed=False)
            case "freezes":
                victim.freeze()
                self.timeline.note(f"{victim} freezes")
                lasting = self.plan.lease * self.draw.choice([0.4, 1.3, 1.8, 2.5])
                self.timeline.after(lasting, f"{victim} thaws", victim.thaw)
            case "store away":
                self._store_away(self.plan.lease * self.draw.choice([0.3, 1.2, 2.2]))
            case _:
                self._retire(victim)
        if self.draw.random() < 0.7:
            self.timeline.after(self.draw.uniform(0, 5), "spawn", self._spawn)

    def _kill(self, victim: Process, *, witnessed: bool) -> None:
        self.kills += 1
        self.timeline.note(f"{victim} is killed{', and its supervisor sees it' if witnessed else ''}")
        started = victim.die()
        if witnessed:
            self.timeline.after(self.draw.uniform(0, 1), "disown", lambda: self._disown(victim, started))

    def _disown(self, victim: Process, started: list[tuple[int, int]]) -> None:
        """A supervisor tries until the store answers."""
        pairs = [(JobId(id), run) for id, run in started]
        try:
            victim.wire.leases.disown(victim.incarnation, pairs, "killed by signal 9", self.plan.poison)
        except Transient:
            self.timeline.after(1.0, "disown again", lambda: self._disown(victim, started))

    def _retire(self, victim: Process) -> None:
        """A deploy without any grace: what runs is interrupted, what waits goes back with the worker's row."""
        self.timeline.note(f"{victim} retires")
        victim.die()
        self._disown(victim, [])

    def _store_away(self, lasting: float) -> None:
        wires = [process.wire for process in self.processes if process.alive] + [self._producer]
        for wire in wires:
            wire.away = True

        def back() -> None:
            for wire in wires:
                wire.away = False

        self.timeline.note(f"the store is away for {lasting:g} s")
        self.timeline.after(lasting, "the store is back", back)

    def _calm(self) -> None:
        self.fault_rate = 0.0
        if self.rich is not None:
            self.rich.calm()
        for process in self.processes:
            if process.frozen:
                process.thaw()
        for target in ("queue:mail", "task:slow"):
            self.store.operator.resume(target, "ann", "calm")
        self._spawn()
        self.timeline.after(5.0, "look after the workers", self._look_after)

    def _look_after(self) -> None:
        # A claim that found nothing may have set expired jobs aside.
        self.books.changes += 1
        if not self._awake():
            self._spawn()
        self.timeline.after(5.0, "look after the workers", self._look_after)

    def _awake(self) -> list[Process]:
        return [process for process in self.processes if process.alive and not process.frozen]

    # What must be so

    def began(self, process: Process, attempt: Attempt) -> None:
        others = self._running.setdefault(attempt.job.id, [])
        for other, older in others:
            # Frozen, or just asked to stop: it knows, or cannot know.
            excused = other.unaware or older.why is not None
            assert excused or not other.fence.refresh(self.timeline.now), (
                f"{process} starts run {attempt.job.run} of job {attempt.job.id} while {other} runs {older.job.run}"
            )
            self.overlaps += 1
        others.append((process, attempt))

    def ended(self, process: Process, attempt: Attempt) -> None:
        running = self._running.get(attempt.job.id, [])
        if (process, attempt) in running:
            running.remove((process, attempt))

    def _over(self) -> bool:
        if self.timeline.now < 1_000.0 + CHAOS or self._changes_seen != self.books.changes:
            return False
        if self._unfinished() or not all(process.idle for process in self._awake()):
            return False
        return self.batched is None or self.batched.over()

    def _unfinished(self) -> list[tuple[JobId, State]]:
        return [(id, row.state) for id, row in self._seen.items() if row.state not in FINAL]

    def _check(self) -> None:
        if self._changes_seen == self.books.changes:
            return
        if self.batched is not None:
            self.batched.meet_followers()
        self._changes_seen = self.books.changes
        ids = sorted(self.books.jobs)
        rows = self.store.inspection.lookup(ids)
        if self.rich is not None:
            known = [row for row in rows if row is not None]
            self.rich.check(known)
            if self.rich.meet_followers(known, self._seen):
                ids = sorted(self.books.jobs)
                rows = self.store.inspection.lookup(ids)
        if self.bounded is not None:
            self.bounded.check(rows)
        if self.batched is not None:
            self.batched.check(rows)
        leases = {beat.incarnation for beat in self.store.leases.beats()}
        for id, row in zip(ids, rows, strict=True):
            assert row is not None, f"job {id} is lost"
            if row.state is State.running:
                assert row.deadline is not None, f"job {id} runs without a deadline"
                assert row.incarnation in leases, f"job {id} runs under a lease that is gone"
                token = (row.incarnation, id, row.run)
                assert self.books.claimed.get(token) is False, f"{token} runs and was never given out"
            before = self._seen.get(id)
            assert before is None or row.run >= before.run, f"the run of job {id} went back"
            if row != before:
                self._check_history(row)
                self._seen[id] = row
        counts = self.store.inspection.counts()
        live = sum(count.ready + count.scheduled + count.blocked + count.running for count in counts)
        assert live == sum(row is not None and row.state not in FINAL for row in rows), (
            "a job stands in two tables"
        )

    def _check_history(self, row: JobRecord) -> None:
        attempts = self.store.inspection.attempts(row.id)
        runs = [attempt.run for attempt in attempts]
        assert len(set(runs)) == len(runs), f"job {row.id} has two records of one run"
        assert all(run <= row.run for run in runs)
        expected = _count(attempts)
        assert row.counters in expected, f"job {row.id} counts {row.counters}, its attempts say {expected}"

    def _check_ends(self) -> None:
        if self.rich is not None:
            self.rich.check_ends([*self._seen.values()])
        if self.bounded is not None:
            self.bounded.check_ends([*self._seen.values()])
        if self.batched is not None:
            self.batched.check_ends()
        for id, row in self._seen.items():
            attempts = self.store.inspection.attempts(id)
            done = row.run - (row.state is State.completed and row.run == 1)
            assert len(attempts) == done, (
                f"job {id} was claimed {row.run} times and has {len(attempts)} records"
            )
        for token, ended in self.books.claimed.items():
            row = self._seen[token[1]]
            assert ended or row.run > token[2] or row.state in FINAL, f"{token} was forgotten"


def _count(attempts: list[AttemptRecord]) -> list[Counters]:
    """The counters that a history allows: of all of it, or of what follows any end, where a redrive began anew."""
    allowed = [Counters()]
    for start in range(len(attempts)):
        events = [attempt.event for attempt in attempts[start:]]
        trailing = 0
        for event in reversed(events):
            if event is not Event.interrupt:
                break
            trailing += 1
        allowed.append(
            Counters(events.count(Event.fail), events.count(Event.lose), trailing, events.count(Event.snooze))
        )
    return allowed
