"""The transition table walked whole: a real job in each state, each event fired at it through the protocol.

A legal pair must lead exactly where the table says, by every way there is; an illegal one must change nothing that can
be read of the job, and must not name it in its answer.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NamedTuple

from duly.core.job import ClaimedJob, Counters, Ended, Incarnation, JobId
from duly.core.lifecycle import TRANSITIONS, Event, State, followers
from duly.core.registration import QueuePolicy, Registration

from .bench import DAY, HOUR, NO_SUCH_JOB, POISON, SECOND, USUAL, Bench, ended, new_job

STATES: tuple[State | None, ...] = (None, *State)
FAR = 30 * DAY


class Standing(NamedTuple):
    """A job in a known state. `worker` holds it, or held it last; `claimed` is that attempt; `aim` is its goal."""

    id: JobId
    worker: Incarnation
    claimed: ClaimedJob | None = None
    aim: State | None = None


def stand(
    bench: Bench, state: State | None, *, expires: timedelta | None = None, paused: bool = False
) -> Standing:
    """Put a job of the task "ok" in `state`; blocked as unknown, or by a pause of its task."""
    worker = bench.worker("ok", timeout=FAR)
    if state is None:
        return Standing(NO_SUCH_JOB, worker)
    if state is State.scheduled:
        return Standing(bench.put(delay=HOUR, expires=expires), worker)
    id = bench.put(expires=expires)
    if state is State.ready:
        return Standing(id, worker)
    if state is State.blocked:
        if paused:
            bench.store.operator.pause("task:ok", None, "suite", "walk")
        bench.claim(worker if paused else bench.worker("other"), 1)
        return Standing(id, worker)
    if state is State.shed:
        _overfill(bench)
        for more in bench.claim(worker, 10):
            bench.end(worker, ended(more, Event.complete))
        return Standing(id, worker)
    claimed = bench.claim_one(worker)
    endings = {
        State.completed: Event.complete,
        State.skipped: Event.skip,
        State.dead: Event.bury,
        State.cancelled: Event.cancel,
    }
    if state in endings:
        bench.end(worker, ended(claimed, endings[state]))
    return Standing(id, worker, claimed)


def _token_end(bench: Bench, at: Standing, event: Event, to: State) -> bool:
    """End the attempt with its live token; without one, with the best forgery: another worker and the next run."""
    if at.claimed is not None and bench.states([at.id]) == [State.running]:
        end = ended(at.claimed, event, to)
        return bench.end(at.worker, end) == {(at.id, end.run)}
    forger = bench.worker("ok")
    runs = (0, 1, 2)
    forged = [Ended(at.id, run, event, to, Counters(), delay=SECOND) for run in runs]
    return any(bench.end(forger, end) for end in forged)


def _promote(bench: Bench, at: Standing) -> bool:
    if at.aim is State.cancelled:
        bench.database.wish_cancel(at.id, "suite", "walk")
    bench.clock.advance(2 * HOUR)
    return bench.store.upkeep.promote()[0] > 0


def _claim(bench: Bench, at: Standing) -> bool:
    return at.id in [job.id for job in bench.claim(at.worker, 10)]


def _park(bench: Bench, at: Standing) -> bool:
    before = bench.states([at.id])
    bench.claim(bench.worker("other"), 10)
    return before != [State.blocked] == bench.states([at.id])


def _unblock(bench: Bench, at: Standing) -> bool:
    if at.aim is State.running:
        return at.id in [job.id for job in bench.claim(at.worker, 10, unparked=("ok",))]
    bench.store.operator.resume("task:ok", "suite", "walk")
    return bench.sweep(unknown_after=FAR).unparked > 0


def _skip(bench: Bench, at: Standing) -> bool:
    if at.claimed is not None:
        return _token_end(bench, at, Event.skip, State.skipped)
    if _token_end(bench, at, Event.skip, State.skipped):
        return False
    bench.clock.advance(3 * HOUR)
    promoted = bench.store.upkeep.promote()[0] if bench.states([at.id]) == [State.scheduled] else 0
    return bench.sweep(unknown_after=FAR).expired + promoted > 0


def _lose(bench: Bench, at: Standing) -> bool:
    if at.claimed is not None and at.aim is State.dead:
        return bench.store.leases.disown(at.worker, [(at.id, at.claimed.run)], "killed", 1) == 1
    lost = _token_end(bench, at, Event.lose, State.ready)
    return bench.reap(at.worker, POISON) > 0 or lost


def _interrupt(bench: Bench, at: Standing) -> bool:
    ended_now = _token_end(bench, at, Event.interrupt, State.ready)
    return bench.store.leases.retire(at.worker) > 0 or ended_now


def _cancel(bench: Bench, at: Standing) -> bool:
    if at.claimed is not None and at.aim is State.cancelled:
        return _token_end(bench, at, Event.cancel, State.cancelled)
    if at.claimed is None and _token_end(bench, at, Event.cancel, State.cancelled):
        return False
    return at.id in bench.store.operator.cancel([at.id], "suite", "walk")


def _enqueue(bench: Bench, at: Standing) -> bool:
    delay = HOUR if at.aim is State.scheduled else None
    (stored,) = bench.store.jobs.enqueue([new_job(delay=delay)])
    return stored.id == at.id or (at.id == NO_SUCH_JOB and bench.state(stored.id) is at.aim)


def _abandon(bench: Bench, at: Standing) -> bool:
    for beat in bench.store.leases.beats():
        if beat.incarnation != at.worker or at.claimed is None:
            bench.store.leases.retire(beat.incarnation)
    bench.clock.advance(2 * HOUR)
    return bench.sweep(unknown_after=HOUR).abandoned > 0


def _overfill(bench: Bench) -> None:
    """More than its queue may hold, each more urgent than the job that is looked at."""
    queue = QueuePolicy("default", max_depth=3, when_full="shed")
    bench.store.schema.declare(Registration("suite", "walk", (queue,)))
    bench.put_many(3, priority=1)
    bench.sweep(unknown_after=FAR)


def _shed(bench: Bench, at: Standing) -> bool:
    before = bench.states([at.id])
    _overfill(bench)
    return before != [State.shed] == bench.states([at.id])


def _ends(event: Event) -> Callable[[Bench, Standing], bool]:
    return lambda bench, at: _token_end(
        bench, at, event, USUAL[event] if at.aim in {None, State.cancelled} else at.aim
    )


def _acts(verb: str) -> Callable[[Bench, Standing], bool]:
    def act(bench: Bench, at: Standing) -> bool:
        operator = bench.store.operator
        if verb == "redrive":
            return at.id in operator.redrive([at.id], "suite", "walk")
        if verb == "run_now":
            return at.id in operator.run_now([at.id], "suite", "walk")
        if verb == "run_at":
            return at.id in operator.run_at([at.id], bench.clock() + DAY, "suite", "walk")
        return at.id in operator.reprioritise([at.id], 5, "suite", "walk")

    return act


FIRE: dict[Event, Callable[[Bench, Standing], bool]] = {
    Event.enqueue: _enqueue,
    Event.promote: _promote,
    Event.claim: _claim,
    Event.park: _park,
    Event.unblock: _unblock,
    Event.complete: _ends(Event.complete),
    Event.fail: _ends(Event.fail),
    Event.snooze: _ends(Event.snooze),
    Event.skip: _skip,
    Event.bury: _ends(Event.bury),
    Event.interrupt: _interrupt,
    Event.lose: _lose,
    Event.cancel: _cancel,
    Event.redrive: _acts("redrive"),
    Event.run_now: _acts("run_now"),
    Event.run_at: _acts("run_at"),
    Event.reprioritise: _acts("reprioritise"),
    Event.abandon: _abandon,
    Event.shed: _shed,
}


def walk_legal(bench: Bench, before: State | None, event: Event, after: State) -> None:
    """Fire a legal event at a job in `before`: it says so, and the job stands in `after`."""
    expiring = event is Event.skip and before is not State.running
    at = stand(
        bench,
        before,
        expires=SECOND if expiring else None,
        paused=event is Event.unblock and after is State.ready,
    )
    returning = {Event.fail, Event.snooze, Event.interrupt, Event.lose}
    if before is State.running and after is State.cancelled and event in returning:
        bench.store.operator.cancel([at.id], "suite", "walk")

    moved = FIRE[event](bench, at._replace(aim=after))

    assert moved, f"{event} was not reported"
    if before is not None:
        assert bench.state(at.id) is after


def walk_illegal(bench: Bench, before: State | None, event: Event) -> None:
    """Fire an illegal event at a job in `before`: nothing that can be read of it changes, nobody claims it did."""
    at = stand(bench, before)
    picture = bench.picture(at.id)

    moved = FIRE[event](bench, at)

    assert not moved, f"{event} was reported for a job that is {before}"
    assert bench.picture(at.id) == picture


def pairs() -> Iterator[tuple[str, Callable[[Bench], None]]]:
    """One case for each (state, event, state after) of the table, and one for each pair that is not in it."""
    for before in STATES:
        for event in Event:
            afters = sorted(followers(before, event))
            for after in afters:
                name = f"{before or 'nothing'}_{event}_leads_to_{after}"
                yield name, _legal(before, event, after)
            if not afters:
                yield f"{before or 'nothing'}_{event}_changes_nothing", _illegal(before, event)


def _legal(before: State | None, event: Event, after: State) -> Callable[[Bench], None]:
    return lambda bench: walk_legal(bench, before, event, after)


def _illegal(before: State | None, event: Event) -> Callable[[Bench], None]:
    return lambda bench: walk_illegal(bench, before, event)


__all__ = ["FIRE", "STATES", "TRANSITIONS", "pairs"]
