"""Random commands given to a store and to the model at once: after each, both must tell the same of every job.

Jobs and workers are known by their place in this machine's lists; each side has numbers of its own for them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from duly.core.errors import LeaseLost
from duly.core.filters import Filter
from duly.core.job import (
    AttemptRecord,
    ClaimedJob,
    ClaimRequest,
    Cursor,
    Ended,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    Progress,
    QueueClaim,
    Token,
    WorkerInfo,
)
from duly.core.lifecycle import FINAL, Event, State
from duly.stores.protocol import InspectionStore, Store
from duly.testing import FakeClock
from duly.testing.conformance import Database
from duly.testing.conformance.bench import BOOM, ended
from duly.testing.conformance.model_store import ModelStore

QUEUES = ("default", "mail")
TASKS = ("ok", "slow", "mystery")
SPANS = st.sampled_from([timedelta(0), *(timedelta(seconds=s) for s in (1, 5, 30, 90, 600, 7200))])
# No promise says on which side of a limit the limit itself lies.
JUST_PAST = timedelta(milliseconds=1)
NUMBERS = st.integers(0, 1_000)
PRIORITIES = st.sampled_from([1, 100, 100, 100, 200])
TO = {
    Event.fail: (State.scheduled, State.dead),
    Event.snooze: (State.scheduled,),
    Event.complete: (State.completed,),
    Event.skip: (State.skipped,),
    Event.bury: (State.dead,),
    Event.interrupt: (State.ready,),
    Event.lose: (State.ready, State.dead),
    Event.cancel: (State.cancelled,),
}
ENDS = st.sampled_from([(event, to) for event, states in TO.items() for to in states])

GIVEN = {"gone", "not needed", "expired", "stale", *(f"{event} it" for event in Event)}

REPLACED = "replaced by job "


class StoreAgainstModel(RuleBasedStateMachine):
    """One store and one model, moved in step."""

    place: Callable[[], AbstractContextManager[Database]]

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.place_now = type(self).place()
        self.database = self.place_now.__enter__()
        self.store: Store = self.database.open(self.clock)
        self.model = ModelStore(self.clock)
        self.jobs: list[tuple[JobId, JobId]] = []
        self.workers: list[tuple[Incarnation, Incarnation]] = []
        self.claims: list[tuple[Incarnation, ClaimedJob, Incarnation, ClaimedJob]] = []
        self.touched: set[int] = set()
        self.following = False
        """Something may have been enqueued by the stores themselves."""

    def teardown(self) -> None:
        try:
            for number in range(len(self.jobs)):
                self._compare_history(number)
        finally:
            self.store.close()
            self.place_now.__exit__(None, None, None)

    # Naming

    def _job(self, number: int) -> tuple[JobId, JobId]:
        self.touched.add(number % len(self.jobs))
        return self.jobs[number % len(self.jobs)]

    def _worker(self, number: int) -> tuple[Incarnation, Incarnation]:
        return self.workers[number % len(self.workers)]

    def _places(self, ids: Any, side: int) -> list[int]:
        """The places of jobs in this machine's list."""
        known = {pair[side]: number for number, pair in enumerate(self.jobs)}
        return [known[id] for id in ids]

    def _agree(self, seen: Any, expected: Any) -> None:
        """Two answers that name jobs, in this order."""
        places = self._places(seen, 0), self._places(expected, 1)
        assert places[0] == places[1], f"store {places[0]}, model {places[1]}"
        self.touched.update(self._places(seen, 0))

    def _meet_followers(self) -> None:
        """Put jobs that the stores have enqueued of themselves into the list: each says what caused it, once a step."""
        seen, expected = (_unknown(side, [pair[at] for pair in self.jobs]) for at, side in self._sides())
        assert [row.trigger for row in seen] == [row.trigger for row in expected]
        self.jobs += [(mine.id, theirs.id) for mine, theirs in zip(seen, expected, strict=True)]

    def _sides(self) -> list[tuple[int, InspectionStore]]:
        return [(0, self.store.inspection), (1, self.model.inspection)]

    # Commands

    @initialize()
    def someone_is_there(self) -> None:
        self.register(frozenset({"ok", "slow"}), timedelta(seconds=600))

    @rule(tasks=st.frozensets(st.sampled_from(TASKS), min_size=1), timeout=SPANS.filter(bool))
    def register(self, tasks: frozenset[str], timeout: timedelta) -> None:
        info = WorkerInfo(
            host="h",
            pid=1,
            supervisor="s",
            queues=QUEUES,
            tasks=dict.fromkeys(sorted(tasks), timeout),
            lease=timedelta(seconds=30),
            heartbeat=timedelta(seconds=5),
            slots=4,
            version="1",
        )
        if len(self.workers) < 6:
            self.workers.append((self.store.leases.register(info), self.model.register(info)))

    @rule(
        count=st.integers(1, 4),
        queue=st.sampled_from(QUEUES),
        task=st.sampled_from(TASKS),
        priority=PRIORITIES,
        delay=st.none() | SPANS,
        expires=st.none() | SPANS.filter(bool),
        timeout=st.none() | SPANS.filter(bool),
        rolled_back=st.booleans(),
    )
    def enqueue(self, count: int, rolled_back: bool, **options: Any) -> None:
        jobs = [NewJob(args=b'{"n":1}', **options)] * count
        if rolled_back:
            self._enqueue_in_vain(jobs)
            return
        pairs = zip(self.store.jobs.enqueue(jobs), self.model.enqueue(jobs), strict=True)
        for seen, expected in pairs:
            assert (seen.outcome, seen.run_at) == (expected.outcome, expected.run_at)
            self.jobs.append((seen.id, expected.id))

    def _enqueue_in_vain(self, jobs: list[NewJob]) -> None:
        try:
            with self.store.transaction() as connection:
                self.store.enqueue_on(connection, jobs)
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass

    @precondition(lambda self: self.claims)
    @rule(number=NUMBERS, task=st.sampled_from(TASKS))
    def enqueue_as_holder(self, number: int, task: str) -> None:
        mine, job, theirs, twin = self.claims[number % len(self.claims)]
        new = NewJob("default", task, b"{}")
        answers: list[JobId | None] = []
        for side, token in (
            (self.store.jobs, Token(mine, job.id, job.run)),
            (self.model, Token(theirs, twin.id, twin.run)),
        ):
            try:
                answers.append(side.enqueue([replace(new, holder=token)])[0].id)
            except LeaseLost:
                answers.append(None)
        first, second = answers
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            self.jobs.append((first, second))

    @rule(
        worker=NUMBERS,
        most=st.integers(0, 5),
        queues=st.permutations(QUEUES),
        share=st.integers(1, 5),
        suspects=st.booleans(),
        unparked=st.booleans(),
    )
    def claim(
        self, worker: int, most: int, queues: list[str], share: int, suspects: bool, unparked: bool
    ) -> None:
        mine, theirs = self._worker(worker)
        tasks = tuple(sorted(self.model.parked_tasks())) if unparked else ()
        asked = ClaimRequest(tuple(QueueClaim(queue, share) for queue in queues), most, suspects, tasks)

        seen = self.store.jobs.exchange(mine, [], asked)
        expected = self.model.exchange(theirs, [], asked)

        self._agree([job.id for job in seen.claimed], [job.id for job in expected.claimed])
        self._agree(sorted(seen.wishes), sorted(expected.wishes))
        for job, twin in zip(seen.claimed, expected.claimed, strict=True):
            assert _comparable_claim(job) == _comparable_claim(twin)
            self.claims.append((mine, job, theirs, twin))

    @precondition(lambda self: self.claims)
    @rule(
        numbers=st.lists(NUMBERS, min_size=1, max_size=4),
        how=ENDS,
        delay=SPANS,
        started=st.booleans(),
        cursor=st.none() | st.integers(0, 9),
    )
    def end(
        self,
        numbers: list[int],
        how: tuple[Event, State],
        delay: timedelta,
        started: bool,
        cursor: int | None,
    ) -> None:
        """Live, stale and repeated tokens alike: whatever was claimed once may be ended at any time."""
        mine, _, theirs, _ = self.claims[numbers[0] % len(self.claims)]
        chosen = {number % len(self.claims) for number in numbers}
        seen_ends: list[Ended] = []
        expected_ends: list[Ended] = []
        # In the order of their ids, as far as it is the same on both sides: no promise says in which other order
        # what ends together becomes ready, or what follows is enqueued.
        claims = sorted((self.claims[at] for at in chosen), key=lambda one: (one[1].id, one[1].run))
        last = 0
        for _, job, _, twin in claims:
            if twin.id < last:
                continue
            last = twin.id
            # What a completed job has done is no promise any more.
            cursors = () if cursor is None or how[1] is State.completed else (("rows", cursor),)
            seen_ends.append(replace(_ended(job, how, delay, started), cursors=cursors))
            expected_ends.append(replace(_ended(twin, how, delay, started), cursors=cursors))

        seen = self.store.jobs.exchange(mine, _once(seen_ends), None)
        expected = self.model.exchange(theirs, _once(expected_ends), None)

        assert {(place, run) for (id, run) in seen.acked for place in self._places([id], 0)} == {
            (place, run) for (id, run) in expected.acked for place in self._places([id], 1)
        }
        self.touched.update(self._places([id for id, _ in seen.acked], 0))

    @precondition(lambda self: self.claims)
    @rule(number=NUMBERS, how=ENDS, commit=st.booleans())
    def end_in_a_transaction(self, number: int, how: tuple[Event, State], commit: bool) -> None:
        mine, job, theirs, twin = self.claims[number % len(self.claims)]
        try:
            with self.store.transaction() as connection:
                seen = self.store.complete_on(connection, mine, _ended(job, how, timedelta(0), True))
                if not commit:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            return
        assert seen == self.model.end(theirs, _ended(twin, how, timedelta(0), True), again=False)

    @precondition(lambda self: self.claims)
    @rule(number=NUMBERS, by=SPANS, done=st.integers(0, 9))
    def extend_and_report(self, number: int, by: timedelta, done: int) -> None:
        mine, job, theirs, twin = self.claims[number % len(self.claims)]

        assert self.store.jobs.extend(mine, job.id, job.run, by) == self.model.extend(
            theirs, twin.id, twin.run, by
        )
        held, wishes = self.store.jobs.report(
            mine, [Progress(job.id, job.run, done)], [Cursor(job.id, job.run, "files", done)]
        )
        expected, wished = self.model.report(
            theirs, [Progress(twin.id, twin.run, done)], [Cursor(twin.id, twin.run, "files", done)]
        )
        self._agree([id for id, _ in sorted(held)], [id for id, _ in sorted(expected)])
        self._agree(sorted(wishes), sorted(wished))

    @rule(workers=st.lists(NUMBERS, max_size=3))
    def beat(self, workers: list[int]) -> None:
        pairs = [self._worker(number) for number in workers]

        seen = self.store.leases.beat([mine for mine, _ in pairs])
        expected = self.model.beat([theirs for _, theirs in pairs])

        assert {mine for mine, theirs in pairs if theirs in expected} == seen

    @rule(worker=NUMBERS, beaten=st.booleans(), poison=st.integers(1, 3))
    def reap(self, worker: int, beaten: bool, poison: int) -> None:
        mine, theirs = self._worker(worker)
        seen = [beat for beat in self.store.leases.beats() if beat.incarnation == mine]
        expected = [beat for beat in self.model.beats() if beat.incarnation == theirs]
        assert [beat[2:] for beat in seen] == [beat[2:] for beat in expected]
        if beaten:
            self.beat([worker])
        assert self.store.leases.reap(seen, poison) == self.model.reap(expected, poison)

    @rule(worker=NUMBERS, started=st.lists(NUMBERS, max_size=3), poison=st.integers(1, 3))
    def disown(self, worker: int, started: list[int], poison: int) -> None:
        mine, theirs = self._worker(worker)
        claims = [self.claims[number % len(self.claims)] for number in started] if self.claims else []

        seen = self.store.leases.disown(mine, [(job.id, job.run) for _, job, _, _ in claims], "gone", poison)
        expected = self.model.disown(
            theirs, [(twin.id, twin.run) for _, _, _, twin in claims], "gone", poison
        )

        assert seen == expected

    @rule(worker=NUMBERS)
    def retire(self, worker: int) -> None:
        mine, theirs = self._worker(worker)

        assert self.store.leases.retire(mine) == self.model.retire(theirs)
        self.workers.remove((mine, theirs))
        if not self.workers:
            self.someone_is_there()

    @rule(by=SPANS)
    def time_passes(self, by: timedelta) -> None:
        self.clock.advance(by + JUST_PAST)

    @rule()
    def promote(self) -> None:
        assert self.store.upkeep.promote() == self.model.promote()

    @rule(grace=SPANS, unknown_after=SPANS, poison=st.integers(1, 3))
    def sweep(self, grace: timedelta, unknown_after: timedelta, poison: int) -> None:
        # A sweep that took long by the machine's clock puts off the next one by the jobs' clock.
        for wait in (timedelta(minutes=2), timedelta(hours=1)):
            self.clock.advance(wait + JUST_PAST)
            seen = self.store.upkeep.sweep(unknown_after, poison, grace)
            if seen.ran:
                break
        expected = self.model.sweep(unknown_after, poison, grace)

        seen = replace(seen, promoted=0, stragglers=0)
        assert seen == expected, f"\nstore {seen}\nmodel {expected}"
        assert sorted(self.store.upkeep.parked_tasks()) == sorted(self.model.parked_tasks())

    @precondition(lambda self: self.jobs)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=3))
    def cancel(self, numbers: list[int]) -> None:
        pairs = list(dict.fromkeys(self._job(number) for number in numbers))

        seen = self.store.operator.cancel([mine for mine, _ in pairs], "ann", "not needed")
        expected = self.model.cancel([theirs for _, theirs in pairs], "ann", "not needed")

        assert {mine: expected[theirs] for mine, theirs in pairs if theirs in expected} == seen

    @precondition(lambda self: self.jobs)
    @rule(
        numbers=st.lists(NUMBERS, min_size=1, max_size=3),
        verb=st.sampled_from(["redrive", "purge", "run_now", "run_at", "reprioritise"]),
        priority=PRIORITIES,
        after=SPANS,
    )
    def act(self, numbers: list[int], verb: str, priority: int, after: timedelta) -> None:
        # Given in the order of their ids: no promise says in which other order they become ready.
        places = sorted({number % len(self.jobs) for number in numbers})
        pairs = [self._job(place) for place in places]
        options: dict[str, dict[str, Any]] = {
            "redrive": {"priority": priority},
            "run_at": {"at": self.clock() + after},
            "reprioritise": {"priority": priority},
        }
        more = options.get(verb, {})

        seen = getattr(self.store.operator, verb)([pair[0] for pair in pairs], by="ann", reason="r", **more)
        expected = getattr(self.model, verb)([pair[1] for pair in pairs], by="ann", reason="r", **more)

        assert sorted(self._places(seen, 0)) == sorted(self._places(expected, 1))

    @rule(paused=st.sampled_from(["queue:mail", "task:slow", "task:ok"]), lasting=st.none() | SPANS)
    def pause(self, paused: str, lasting: timedelta | None) -> None:
        seen = self.store.operator.pause(paused, lasting, "ann", "r")

        assert seen == self.model.pause(paused, lasting, "ann", "r")
        assert sorted(p.target for p in self.store.inspection.pauses()) == sorted(
            p.target for p in self.model.pauses()
        )

    @rule(paused=st.sampled_from(["queue:mail", "task:slow", "task:ok"]))
    def resume(self, paused: str) -> None:
        assert self.store.operator.resume(paused, "ann", "r") == self.model.resume(paused, "ann", "r")

    @rule(keep=SPANS, announce=st.booleans())
    def retain(self, keep: timedelta, announce: bool) -> None:
        self.clock.advance(JUST_PAST)
        dead = 10 * keep + timedelta(days=1)
        if announce:
            notice = timedelta(days=7)
            seen = self.store.upkeep.announce_dead({}, dead, notice)
            assert sorted(seen) == sorted(self.model.announce_dead({}, dead, notice))

        deleted = self.store.upkeep.retain({}, {"mail": 2 * dead}, keep, dead)
        assert deleted == self.model.retain({}, {"mail": 2 * dead}, keep, dead)

    # What must always be so

    @invariant()
    def both_tell_the_same(self) -> None:
        if self.following:
            self._meet_followers()
        seen = self.store.inspection.lookup([mine for mine, _ in self.jobs])
        expected = self.model.lookup([theirs for _, theirs in self.jobs])
        places = [{str(pair[side]): f"job {at}" for at, pair in enumerate(self.jobs)} for side in (0, 1)]
        for number, (mine, theirs) in enumerate(zip(seen, expected, strict=True)):
            seen_row, expected_row = _comparable(mine, places[0]), _comparable(theirs, places[1])
            assert seen_row == expected_row, f"job {number}\nstore {seen_row}\nmodel {expected_row}"
        for number in sorted(self.touched):
            self._compare_history(number)
        self.touched.clear()

    @invariant()
    def both_count_the_same(self) -> None:
        seen = {count.queue: count for count in self.store.inspection.counts()}
        for expected in self.model.counts():
            count = seen.pop(expected.queue)
            count = replace(count, in_per_s=None, out_per_s=None, slope_per_s=None)
            assert count == expected, f"\nstore {count}\nmodel {expected}"
        for count in seen.values():
            assert count.ready + count.scheduled + count.blocked + count.running + count.dead == 0

    def _compare_history(self, number: int) -> None:
        mine, theirs = self.jobs[number]
        seen, expected = self.store.inspection.attempts(mine), self.model.attempts(theirs)
        assert [_comparable_attempt(at) for at in seen] == [_comparable_attempt(at) for at in expected]
        assert self.store.steps.steps(mine) == self.model.steps.steps(theirs)


def _ended(job: ClaimedJob, how: tuple[Event, State], delay: timedelta, started: bool) -> Ended:
    event, to = how
    return ended(
        job,
        event,
        to,
        delay=delay if to is State.scheduled else None,
        reason=f"{event} it",
        result=b"7" if to is State.completed else None,
        error=BOOM if event is Event.fail else None,
        elapsed=timedelta(seconds=1) if started else None,
    )


def _once(ends: list[Ended]) -> list[Ended]:
    """At most one end per token, as a worker sends them."""
    return list({(end.id, end.run): end for end in ends}.values())


def _comparable_claim(job: ClaimedJob) -> ClaimedJob:
    return replace(job, id=JobId(0), correlation_id="")


def _unknown(side: InspectionStore, known: list[JobId]) -> list[JobRecord]:
    """Jobs of one side that are in no list yet, in the order of their causes."""
    found: list[JobRecord] = []
    after: int | None = 0
    while after is not None:
        page = side.page(Filter(), after=after, limit=200)
        found += page.jobs
        after = page.next
    return sorted((row for row in found if row.id not in known), key=lambda row: row.trigger or "")


def _comparable(row: JobRecord | None, places: dict[str, str]) -> JobRecord | None:
    """A row without the numbers of its side, and without the words of the store itself."""
    if row is None:
        return None
    reason = _told(row.reason)
    if row.reason is not None and row.reason.startswith(REPLACED):
        reason = REPLACED + places[row.reason.removeprefix(REPLACED)]
    return replace(
        row,
        id=JobId(0),
        correlation_id=places.get(row.correlation_id, row.correlation_id),
        incarnation=None if row.incarnation is None else Incarnation(0),
        # Of a job that has ended it tells what was once asked for.
        expires_at=None if row.state in FINAL else row.expires_at,
        reason=reason,
        note=None,
        progress=None if row.progress is None else replace(row.progress, id=JobId(0)),
    )


def _comparable_attempt(attempt: AttemptRecord) -> AttemptRecord:
    return replace(attempt, incarnation=Incarnation(0), reason=_told(attempt.reason))


def _told(reason: str | None) -> str | None:
    """A reason that a command gave, as it is; one in the store's own words only as such."""
    if reason is None or reason in GIVEN or reason.startswith("poison: "):
        return reason
    return "in the store's own words"
