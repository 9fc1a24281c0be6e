"""The states of a job, the events that move it, and the one table of legal transitions.

Everything that changes a job's state (stores, worker, operator verbs) is checked against TRANSITIONS by the
conformance suite; the diagram in docs/job-lifecycle.md is generated from it. Knows nothing of how a store keeps
a state.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a job stands. In a store the state is the table that holds the job."""

    ready = "ready"
    scheduled = "scheduled"
    blocked = "blocked"
    running = "running"
    completed = "completed"
    skipped = "skipped"
    dead = "dead"
    cancelled = "cancelled"
    shed = "shed"


FINAL = frozenset({State.completed, State.skipped, State.dead, State.cancelled, State.shed})
LIVE = frozenset(State) - FINAL
WAITING = frozenset({State.ready, State.scheduled, State.blocked})


class Event(StrEnum):
    """What happened to a job. One word each, the same in code, SQL, logs and attempt records."""

    enqueue = "enqueue"
    promote = "promote"
    claim = "claim"
    park = "park"
    unblock = "unblock"
    complete = "complete"
    fail = "fail"
    snooze = "snooze"
    skip = "skip"
    bury = "bury"
    interrupt = "interrupt"
    lose = "lose"
    cancel = "cancel"
    redrive = "redrive"
    run_now = "run_now"
    run_at = "run_at"
    reprioritise = "reprioritise"
    abandon = "abandon"
    shed = "shed"


class Outcome(StrEnum):
    """What an enqueue did."""

    created = "created"
    duplicate = "duplicate"
    """Another job stands for this one: its key was taken. The id is the other job's."""


_S = State
_E = Event

# (state before, event) -> states that may follow. A pair that is absent is illegal: it changes nothing and says so.
# `None` is "does not exist yet". A cancel of a running job is a wish: the job stays running until its attempt ends.
TRANSITIONS: dict[tuple[State | None, Event], frozenset[State]] = {
    (None, _E.enqueue): frozenset({_S.ready, _S.scheduled}),
    (_S.scheduled, _E.promote): frozenset({_S.ready, _S.cancelled}),
    (_S.ready, _E.claim): frozenset({_S.running}),
    # The claimer does not know the task, the task is paused, or the job is behind its key or a limit: set aside once.
    (_S.ready, _E.park): frozenset({_S.blocked}),
    (_S.blocked, _E.unblock): frozenset({_S.ready, _S.running}),
    (_S.running, _E.complete): frozenset({_S.completed}),
    (_S.running, _E.fail): frozenset({_S.scheduled, _S.dead, _S.cancelled}),
    (_S.running, _E.snooze): frozenset({_S.scheduled, _S.cancelled}),
    (_S.running, _E.skip): frozenset({_S.skipped}),
    (_S.running, _E.bury): frozenset({_S.dead}),
    (_S.running, _E.interrupt): frozenset({_S.ready, _S.cancelled}),
    (_S.running, _E.lose): frozenset({_S.ready, _S.dead, _S.cancelled}),
    (_S.running, _E.cancel): frozenset({_S.running, _S.cancelled}),
    # Expiry is a skip with the reason "expired"; it is noticed at the claim, at promotion or by the sweep.
    (_S.ready, _E.skip): frozenset({_S.skipped}),
    (_S.scheduled, _E.skip): frozenset({_S.skipped}),
    (_S.blocked, _E.skip): frozenset({_S.skipped}),
    (_S.ready, _E.cancel): frozenset({_S.cancelled}),
    (_S.scheduled, _E.cancel): frozenset({_S.cancelled}),
    (_S.blocked, _E.cancel): frozenset({_S.cancelled}),
    # Back pressure: the least urgent first.
    (_S.ready, _E.shed): frozenset({_S.shed}),
    # No worker has known the task for `unknown_after`.
    (_S.blocked, _E.abandon): frozenset({_S.dead}),
    (_S.dead, _E.redrive): frozenset({_S.ready}),
    (_S.cancelled, _E.redrive): frozenset({_S.ready}),
    (_S.skipped, _E.redrive): frozenset({_S.ready}),
    (_S.scheduled, _E.run_now): frozenset({_S.ready}),
    (_S.ready, _E.run_now): frozenset({_S.ready}),
    (_S.ready, _E.run_at): frozenset({_S.scheduled}),
    (_S.scheduled, _E.run_at): frozenset({_S.scheduled}),
    (_S.ready, _E.reprioritise): frozenset({_S.ready}),
    (_S.scheduled, _E.reprioritise): frozenset({_S.scheduled}),
    (_S.blocked, _E.reprioritise): frozenset({_S.blocked}),
}


def followers(state: State | None, event: Event) -> frozenset[State]:
    """The states that may follow; empty when the event is illegal in that state."""
    return TRANSITIONS.get((state, event), frozenset())
