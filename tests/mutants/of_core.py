"""Mutants of the pure rules: the table, the leases, the decisions."""

from tests.mutants.mutant import Mutant

LIFECYCLE, LEASES, DECIDE, SHARE = "core/lifecycle.py", "core/leases.py", "core/decide.py", "core/share.py"

MUTANTS = [
    Mutant(
        LIFECYCLE,
        "(_S.ready, _E.claim): frozenset({_S.running}),",
        "(_S.scheduled, _E.claim): frozenset({_S.running}),",
        "only a ready job is claimed",
    ),
    Mutant(
        LIFECYCLE,
        "(_S.skipped, _E.redrive): frozenset({_S.ready}),",
        "(_S.completed, _E.redrive): frozenset({_S.ready}),",
        "what was completed never runs again",
    ),
    Mutant(
        LIFECYCLE,
        "(_S.running, _E.lose): frozenset({_S.ready, _S.dead, _S.cancelled}),",
        "(_S.running, _E.lose): frozenset({_S.ready, _S.dead}),",
        "a wished cancel is granted when an attempt is lost",
    ),
    Mutant(
        LIFECYCLE,
        "(_S.blocked, _E.abandon): frozenset({_S.dead}),",
        "(_S.ready, _E.abandon): frozenset({_S.dead}),",
        "only a parked job is abandoned",
    ),
    Mutant(
        LIFECYCLE,
        "LIVE = frozenset(State) - FINAL",
        "LIVE = frozenset(State) - FINAL - {State.blocked}",
        "a blocked job is live",
    ),
    Mutant(
        LEASES,
        "if now - since >= row.lease or row.age",
        "if now - since >= row.lease / 2 or row.age",
        "a reaper watches for a whole lease",
    ),
    Mutant(
        LEASES,
        "row.age >= 10 * row.lease",
        "row.age >= row.lease",
        "one late beat by the wall clock reaps nobody",
    ),
    Mutant(
        LEASES,
        "if beat != row.beat:",
        "if beat > row.beat:",
        "a beat in between starts the watch anew",
    ),
    Mutant(
        LEASES,
        "now - self._last_round > most_gap:",
        "now - self._last_round > 1e9:",
        "a reaper that slept has seen nothing",
    ),
    Mutant(
        LEASES,
        "        self._seen.clear()\n        self._last_round = None",
        "        self._last_round = None",
        "after a failed round the watch begins anew",
    ),
    Mutant(LEASES, "self._seen = seen", "self._seen.update(seen)", "a worker that vanished is forgotten"),
    Mutant(
        LEASES,
        "self._renewed + self._lease - self._heartbeat\n",
        "self._renewed + self._lease\n",
        "a holder stops one heartbeat before its lease lapses",
    ),
    Mutant(
        LEASES,
        "max(self._renewed, sent_at)",
        "sent_at",
        "a late confirmation never shortens a lease",
    ),
    Mutant(
        LEASES,
        "self._lease - self._heartbeat) + self._heartbeat / 2",
        "self._lease - self._heartbeat) + self._lease",
        "a holder that missed two beats claims nothing",
    ),
    Mutant(
        LEASES,
        "sorted(strange & suspected)",
        "sorted(strange)",
        "a claim goes back only when unknown in two rounds",
    ),
    Mutant(
        DECIDE,
        "snoozed=job.counters.snoozed + 1)",
        "snoozed=job.counters.snoozed + 1, failed=job.counters.failed + 1)",
        "a snooze costs no attempt",
    ),
    Mutant(DECIDE, "if failures >= limit:", "if failures > limit:", "the last attempt is the last"),
    Mutant(
        DECIDE,
        "limit = job.attempts if job.attempts is not None else policy.attempts",
        "limit = policy.attempts",
        "a job's own limit goes before its task's",
    ),
    Mutant(
        DECIDE,
        "if elapsed is not None and counters.interrupted + 1",
        "if counters.interrupted + 1",
        "an attempt that never started is not interrupted too often",
    ),
    Mutant(
        DECIDE,
        "counters.interrupted + 1 > policy.max_interrupts",
        "counters.interrupted > policy.max_interrupts",
        "interrupts in a row are bounded",
    ),
    Mutant(DECIDE, ">= poison and alone else", ">= poison else", "only a job that ran alone is poison"),
    Mutant(
        DECIDE,
        "max(backoff, wait or timedelta(0))",
        "wait if wait is not None else backoff",
        "a Retry-After never shortens the backoff",
    ),
    Mutant(
        DECIDE,
        "        counters.lost,\n        0,\n",
        "        counters.lost,\n        counters.interrupted,\n",
        "any other ending ends a row of interrupts",
    ),
    Mutant(
        DECIDE,
        'if verdict.kind == "permanent":',
        "if False:",
        "a permanent error is not tried again",
    ),
    Mutant(
        SHARE,
        "            first = place\n",
        "            first = 0\n",
        "what was counted before statistics were reset is no rate",
    ),
    Mutant(
        SHARE,
        "own >= much and part >= MOSTLY",
        "part >= MOSTLY",
        "a queue alone in a quiet database needs no other",
    ),
]
