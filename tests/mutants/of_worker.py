"""Mutants of the worker's fences: the simulation must meet what they let through."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "worker/floor.py",
        "if stale or attempt.why is not None or not fence.may_start(now):",
        "if attempt.why is not None:",
        "a process whose lease is over starts nothing",
        ("171",),
    ),
    Mutant(
        "worker/rescue.py",
        "self._watch.overdue(beats, now, 3 * self._every)",
        "beats",
        "only who was watched for a whole lease is reaped",
        ("6",),
    ),
    Mutant(
        "worker/heartbeat.py",
        "return not (self.gone or self._own.must_stop(now))",
        "return not self.gone",
        "a process that could not renew ends its handlers",
        ("324",),
    ),
]
