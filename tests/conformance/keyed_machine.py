"""The machine with keys, versions, follow-ups, steps and schedules: commands of its own beside those of machine.py.

What follows a job names its cause by a number that is given once, and has a priority of its own: no promise says in
which order the jobs of one transaction stand that nobody asked for in one call.
"""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from msgspec.structs import replace

from duly.core.errors import KeyReused, UsageError
from duly.core.job import RESULT_MARK, FinishedStep, JobId, KeptAnswer, NewJob, Stored, UniqueKey
from duly.core.keys import idempotency_digest, once_digest, unique_digest
from duly.core.lifecycle import Event, Outcome, State
from duly.core.registration import QueuePolicy, Registration, Schedule, ScheduleRecord, TaskPolicy
from tests.conformance.machine import JUST_PAST, NUMBERS, QUEUES, SPANS, TASKS, StoreAgainstModel

KEYS = ("a", "b")
UNIQUE = st.builds(
    UniqueKey,
    digest=st.sampled_from([unique_digest("ok", "", key) for key in KEYS]),
    live=st.booleans(),
    replace=st.booleans(),
)
REQUESTS = st.sampled_from([idempotency_digest("ok", "", key) for key in KEYS])
ARGS = st.sampled_from([b'{"n":1}', b'{"n":1}', b'{"n":2}'])
JOBS = st.builds(
    NewJob,
    queue=st.sampled_from(QUEUES),
    task=st.sampled_from(TASKS),
    args=ARGS,
    delay=st.none() | SPANS,
    expires=st.none() | st.none() | SPANS.filter(bool),
    idempotency=st.none() | st.none() | REQUESTS,
    unique=st.none() | UNIQUE | UNIQUE,
    version=st.none() | st.integers(1, 4),
)
# How many follow on a completion and on a death, and whether another one follows those.
FAMILIES = st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans())
WELL = ((Event.complete, State.completed),)
WORSE = ((Event.bury, State.dead), (Event.fail, State.scheduled), (Event.interrupt, State.ready))
SCHEDULES = ("s1", "s2")


class KeyedStoreAgainstModel(StoreAgainstModel):
    """One store and one model, moved in step, with everything that jobs may bring along."""

    def __init__(self) -> None:
        super().__init__()
        self.causes = 0

    def teardown(self) -> None:
        try:
            for number in range(len(self.jobs)):
                self.answers(number)
        finally:
            super().teardown()

    def _follow_up(self, *then: NewJob) -> NewJob:
        self.causes += 1
        args = b'{"of":' + RESULT_MARK + b"}"
        cause, priority = f"cause {self.causes:04}", 1_000 + self.causes
        return NewJob("default", "ok", args, priority=priority, trigger=cause, then=then)

    def _with_family(self, job: NewJob, family: tuple[int, int, bool]) -> NewJob:
        after, on_dead, more = family
        self.following = self.following or after + on_dead > 0
        return replace(
            job,
            then=tuple(self._follow_up(*([self._follow_up()] if more else [])) for _ in range(after)),
            on_dead=tuple(self._follow_up() for _ in range(on_dead)),
            version=job.version if job.unique is not None else None,
        )

    def _meet(self, seen: list[Stored], expected: list[Stored]) -> None:
        """Answers of both sides to one call."""
        for mine, theirs in zip(seen, expected, strict=True):
            assert mine.outcome == theirs.outcome
            if mine.outcome is Outcome.created:
                assert mine.run_at == theirs.run_at
                self.jobs.append((mine.id, theirs.id))
            else:
                self._agree([mine.id], [theirs.id])

    @rule(
        asked=st.lists(st.tuples(JOBS, FAMILIES), min_size=1, max_size=4),
        way=st.sampled_from(["call", "call", "transaction", "in vain"]),
    )
    def enqueue_keyed(self, asked: list[tuple[NewJob, tuple[int, int, bool]]], way: str) -> None:
        jobs = [self._with_family(job, family) for job, family in asked]
        seen, mine = _answered(lambda: self._enqueue(jobs, way))
        if way == "in vain":
            return
        expected, theirs = _answered(lambda: self.model.enqueue(jobs))
        assert (mine and mine.position) == (theirs and theirs.position)
        if mine and theirs and theirs.job_id is not None:
            assert self._places([mine.job_id], 0) == self._places([theirs.job_id], 1)
        elif mine:
            assert mine.job_id is None, "the key belongs to a job of the same call, which was not stored"
        self._meet(seen, expected)

    @rule(
        jobs=st.lists(st.tuples(JOBS, FAMILIES), min_size=1, max_size=3),
        worker=NUMBERS,
        how=st.sampled_from([*WELL, *WELL, *WORSE]),
        suspects=st.sampled_from([False, False, False, True]),
    )
    def work_off(
        self,
        jobs: list[tuple[NewJob, tuple[int, int, bool]]],
        worker: int,
        how: tuple[Event, State],
        suspects: bool,
    ) -> None:
        """What single commands seldom come to: jobs enqueued, claimed and ended in a row."""
        self.enqueue_keyed([(replace(job, delay=None, task="ok"), family) for job, family in jobs], "call")
        live = [at for at, (_, theirs) in enumerate(self.workers) if theirs in self.model.tables.workers]
        if not live:
            self.workers.clear()
            self.someone_is_there()
            live = [0]
        before = len(self.claims)
        self.claim(live[worker % len(live)], 5, list(QUEUES), 5, suspects, True)
        taken = [*range(before, len(self.claims))]
        if taken:
            self.both_tell_the_same()
            self.keep_step(taken[0], "charge", b"1")
            self.end(taken, how, timedelta(seconds=5), True, 3)

    def _enqueue(self, jobs: list[NewJob], way: str) -> list[Stored]:
        if way == "call":
            return self.store.jobs.enqueue(jobs)
        stored: list[Stored] = []
        try:
            with self.store.transaction() as connection:
                stored = self.store.enqueue_on(connection, jobs)
                if way == "in vain":
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        return stored

    @precondition(lambda self: self.claims)
    @rule(number=NUMBERS, name=st.sampled_from(["charge", "mail"]), value=st.sampled_from([b"1", b"2"]))
    def keep_step(self, number: int, name: str, value: bytes) -> None:
        mine, job, theirs, twin = self.claims[number % len(self.claims)]

        seen = self.store.steps.keep_steps(mine, [FinishedStep(job.id, job.run, name, value)])

        assert seen == self.model.steps.keep_steps(theirs, [FinishedStep(twin.id, twin.run, name, value)])
        self.touched.update(self._places([job.id], 0))

    @precondition(lambda self: self.jobs)
    @rule(number=NUMBERS)
    def answers(self, number: int) -> None:
        mine, theirs = self._job(number)

        seen, expected = self.store.keys.answer(mine), self.model.answer(theirs)

        assert _comparable_answer(seen) == _comparable_answer(expected)

    @rule(key=st.sampled_from(KEYS), keep=SPANS.filter(bool))
    def once(self, key: str, keep: timedelta) -> None:
        assert self.store.keys.once(once_digest(key), keep) == self.model.once(once_digest(key), keep)

    @rule(
        name=st.sampled_from([*SCHEDULES, "d1"]),
        every=st.sampled_from([timedelta(minutes=1), timedelta(hours=1)]),
        first=SPANS,
        job=st.none() | JOBS,
    )
    def put_schedule(self, name: str, every: timedelta, first: timedelta, job: NewJob | None) -> None:
        schedule, at = Schedule(name, every=every, job=job), self.clock() + first

        seen, expected = (_put(side.schedules, schedule, at) for side in (self.store, self.model))

        self._same_schedules(seen, expected)

    @rule(
        release=st.sampled_from("abc"),
        names=st.lists(st.sampled_from(["d1", "d2"]), unique=True),
        every=st.sampled_from([timedelta(minutes=1), timedelta(hours=1)]),
        first=SPANS,
    )
    def declare(self, release: str, names: list[str], every: timedelta, first: timedelta) -> None:
        self.clock.advance(JUST_PAST)
        schedules = tuple((Schedule(name, every=every), self.clock() + first) for name in names)
        registration = Registration(
            "app", release, (QueuePolicy("mail", release),), (TaskPolicy("ok", release, 1),), schedules
        )

        assert self.store.schema.declare(registration) == self.model.declare(registration)
        assert self.store.schema.declared() == self.model.declared()

    @precondition(lambda self: self.model.schedules.all())
    @rule(
        number=NUMBERS,
        late=st.sampled_from([False, False, True]),
        ahead=SPANS.filter(bool),
        jobs=st.lists(JOBS, max_size=2),
        missed=st.integers(0, 2),
    )
    def fire(self, number: int, late: bool, ahead: timedelta, jobs: list[NewJob], missed: int) -> None:
        known = self.model.schedules.all()
        name, expected = known[number % len(known)].schedule.name, known[number % len(known)].next_at
        stale = expected - timedelta(seconds=1) if late else expected
        jobs = [replace(job, version=None) for job in jobs]

        def by(schedules: Any) -> Any:
            return lambda: schedules.fire(name, stale, stale + ahead, stale, jobs, missed)

        seen, mine = _answered(by(self.store.schedules))
        told, theirs = _answered(by(self.model.schedules))

        assert (mine is None) == (theirs is None)
        assert (seen is None) == (told is None)
        if seen is not None and told is not None:
            self._meet(seen, told)

    @precondition(lambda self: self.model.schedules.all())
    @rule(
        number=NUMBERS,
        verb=st.sampled_from(["pause", "resume", "resume", "remove", "advance", "fail"]),
        after=SPANS,
    )
    def act_on_schedule(self, number: int, verb: str, after: timedelta) -> None:
        known = self.model.schedules.all()
        record = known[number % len(known)]
        name, later = record.schedule.name, max(record.next_at, self.clock()) + after
        sides = (self.store.schedules, self.model.schedules)
        if verb == "advance":
            answers = [
                self._advance(side, name, record.next_at, later + JUST_PAST)
                for side in (self.store, self.model)
            ]
        elif verb == "fail":
            answers = [side.fail(name, record.next_at, "no") for side in sides]
        elif verb == "remove":
            answers = [side.remove(name, "ann", "r") for side in sides]
        elif record.paused:
            answers = [side.resume(name, later, "ann", "r") for side in sides]
        else:
            answers = [side.pause(name, "ann", "r") for side in sides]
        assert answers[0] == answers[1]

    def _advance(self, store: Any, name: str, expected: Any, later: Any) -> bool:
        with store.transaction() as connection:
            return bool(store.advance_on(connection, name, expected, later, expected, 1))

    @rule()
    def look_at_schedules(self) -> None:
        self._same_schedules(self.store.schedules.all(), self.model.schedules.all())
        now, due, following = self.store.schedules.due()
        expected_now, expected, expected_following = self.model.schedules.due()
        assert (now, following) == (expected_now, expected_following)
        by_name = [sorted(some, key=lambda one: one.schedule.name) for some in (due, expected)]
        self._same_schedules(*by_name)

    def _same_schedules(self, seen: list[ScheduleRecord], expected: list[ScheduleRecord]) -> None:
        assert [replace(one, last_id=None) for one in seen] == [
            replace(one, last_id=None) for one in expected
        ]
        for mine, theirs in zip(seen, expected, strict=True):
            assert (mine.last_id is None) == (theirs.last_id is None)
            if mine.last_id is not None:
                assert self._places([mine.last_id], 0) == self._places([theirs.last_id], 1)


def _put(schedules: Any, schedule: Schedule, at: datetime) -> list[ScheduleRecord]:
    """Nothing where an App declares one of this name."""
    try:
        return [schedules.put(schedule, at)]
    except UsageError:
        return []


def _answered(call: Any) -> tuple[Any, KeyReused | None]:
    """What a call answered, or the refusal that it raised."""
    try:
        return call(), None
    except KeyReused as error:
        return [], error


def _comparable_answer(answer: KeptAnswer | None) -> KeptAnswer | None:
    """Without the words of a store, which may name a job by its number."""
    if answer is None:
        return None
    return replace(answer, id=JobId(0), reason=None if answer.reason is None else "told")
