"""Mutants of the pure code behind keys and schedules."""

from tests.mutants.mutant import Mutant

KEYS, SCHEDULE = "core/keys.py", "core/schedule.py"

MUTANTS = [
    Mutant(
        KEYS,
        "return version > other",
        "return version < other",
        "the newer of two waiting versions stays",
    ),
    Mutant(
        KEYS,
        'return _digest("unique", task, tenant, key)',
        'return _digest("unique", task, key)',
        "unique keys of two tenants never meet",
    ),
    Mutant(
        KEYS,
        'return _digest("idempotency", task, tenant, key)',
        'return _digest("idempotency", tenant, key)',
        "idempotency keys of two tasks never meet",
    ),
    Mutant(
        KEYS,
        'return _digest("idempotency", task, tenant, key)',
        'return _digest("unique", task, tenant, key)',
        "an idempotency key is no unique key",
    ),
    Mutant(KEYS, '_BETWEEN: Final = "\\x1f"', '_BETWEEN: Final = ""', "two names never run into one"),
    Mutant(
        KEYS,
        "return sha256(args).digest()[:16]",
        "return sha256(args[:1_000]).digest()[:16]",
        "other arguments are told apart to their last byte",
    ),
    Mutant(
        SCHEDULE,
        "if record.next_at > now or (busy and",
        "if (busy and",
        "nothing fires before it is due",
        ("schedule_plan",),
    ),
    Mutant(
        SCHEDULE,
        'if busy and schedule.overlap == "skip":',
        'if schedule.overlap == "skip" and not busy:',
        "a due time is skipped while the last job goes on",
        ("schedule_plan",),
    ),
    Mutant(
        SCHEDULE,
        "return Plan(chosen, next_at, leapt + len(passed) - len(chosen))",
        "return Plan(chosen, next_at, leapt)",
        "a due time without a job is counted",
        ("schedule_plan",),
    ),
    Mutant(
        SCHEDULE,
        "behind = (now - record.next_at) // schedule.every + 1",
        "behind = (now - record.next_at) // schedule.every",
        "what was due while it was paused does not fire",
        ("schedule_plan",),
    ),
    Mutant(
        SCHEDULE,
        'digest = sha256(f"{name}\\x1f{due',
        'digest = sha256(f"{due',
        "two schedules have a jitter each",
        ("schedule_plan",),
    ),
]
