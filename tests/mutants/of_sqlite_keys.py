"""Mutants of the SQLite store: keys, versions, follow-ups, steps, schedules, releases."""

from tests.mutants.mutant import Mutant

QUERIES = "stores/sqlite/queries/"
STORE = "stores/sqlite/"

KEYS = [
    Mutant(
        STORE + "enqueueing.py",
        "if args_hash != arguments_digest(job.args):",
        "if args_hash == b'':",
        "other arguments under a key are refused",
        ("keying",),
    ),
    Mutant(
        STORE + "enqueueing.py",
        "if before != at and jobs[before].args != job.args:",
        "if before > at:",
        "two requests under one key in one call are equal",
        ("keying",),
    ),
    Mutant(
        QUERIES + "select_idempotency.sql",
        "where key = :key and until > :now",
        "where key = :key",
        "an idempotency key is free when its time is over",
        ("keying",),
    ),
    Mutant(
        STORE + "enqueueing.py",
        "self._record(job.idempotency, job, id if holder is None else holder)",
        "self._record(job.idempotency, job, id) if holder is None else None",
        "a request answered with another job is so answered again",
        ("uniqueness",),
    ),
    Mutant(
        QUERIES + "update_idempotency_answers.sql",
        "case when length(f.result) <= :most then f.result end",
        "case when length(f.result) < :most then f.result end",
        "a small result outlives its job",
        ("keying",),
    ),
    Mutant(
        STORE + "retention.py",
        'session.run("update_idempotency_answers", ids=text, most=KEPT_RESULT)',
        "pass",
        "how a job ended outlives it under its key",
        ("keying",),
    ),
    Mutant(
        QUERIES + "upsert_once.sql",
        "where {prefix}_once.until <= :now",
        "where {prefix}_once.until > 0",
        "once is once",
        ("keying",),
    ),
    Mutant(
        QUERIES + "select_key_holder.sql",
        "9223372036854775807) > :now",
        "9223372036854775807) > 0",
        "an expired job holds no key",
        ("uniqueness",),
    ),
    Mutant(
        QUERIES + "delete_claimed_keys.sql",
        " and live = 0",
        "",
        "a key of scope live outlasts the claim",
        ("uniqueness",),
    ),
    Mutant(
        STORE + "claims.py",
        'self._session.run("delete_claimed_keys", ids=ids_text(keyed))',
        "pass",
        "a claim frees a key of scope queued",
        ("uniqueness",),
    ),
    Mutant(
        STORE + "enqueueing.py",
        "if holder.running or not takes_place(version, theirs, unique.replace):",
        "if not takes_place(version, theirs, unique.replace):",
        "a running job is not replaced",
        ("replacing",),
    ),
    Mutant(
        STORE + "enqueueing.py",
        "waiting = take(session, [old], READY, SCHEDULED, BLOCKED)",
        "waiting = take(session, [old], READY, SCHEDULED)",
        "a blocked job is replaced too",
        ("replacing",),
    ),
]

VERSIONS_AND_FOLLOWUPS = [
    Mutant(
        QUERIES + "select_stale.sql",
        "j.version < n.version",
        "j.version <= n.version",
        "an equal version runs",
        ("replacing",),
    ),
    Mutant(
        QUERIES + "select_stale.sql",
        " and n.until > :now",
        "",
        "the newest version is forgotten in time",
        ("replacing",),
    ),
    Mutant(
        QUERIES + "upsert_newest.sql",
        "max({prefix}_newest.version, excluded.version)",
        "excluded.version",
        "an older completion does not bring the newest back",
        ("replacing",),
    ),
    Mutant(
        STORE + "moves.py",
        "if job.extras & VERSION and status is State.completed:",
        "if job.extras & VERSION:",
        "only a completion makes others stale",
        ("replacing",),
    ),
    Mutant(
        STORE + "claims.py",
        "                room[row[1]] += 1\n",
        "",
        "a stale job is not counted into the claim",
        ("replacing",),
    ),
    Mutant(
        STORE + "followups.py",
        "args=follow.args.replace(RESULT_MARK, parent.result or _NO_RESULT),",
        "args=follow.args,",
        "a follow-up gets its parent's result",
        ("following",),
    ),
    Mutant(
        STORE + "followups.py",
        "parent.correlation_id or str(parent.id)",
        "str(parent.id)",
        "a follow-up inherits the correlation",
        ("following",),
    ),
    Mutant(
        QUERIES + "select_follows.sql",
        " and kind = :kind",
        "",
        "a death is followed by what follows a death only",
        ("following",),
    ),
    Mutant(
        STORE + "leases.py",
        "ends.release(session, held)\n            settle(session, moves)",
        "ends.release(session, held)\n            moves.flush()",
        "a supervisor who buries a job enqueues what follows",
        ("following",),
    ),
]

STEPS_AND_SCHEDULES = [
    Mutant(
        QUERIES + "upsert_step.sql",
        " and c.run = :run",
        "",
        "a former run keeps no step",
        ("stepping",),
    ),
    Mutant(
        QUERIES + "upsert_step.sql",
        "coalesce({prefix}_step.value, excluded.value)",
        "excluded.value",
        "the first value of a step stays",
        ("stepping",),
    ),
    Mutant(
        QUERIES + "upsert_cursor.sql",
        "where c.incarnation = :incarnation and c.id",
        "where c.id",
        "a stranger moves no cursor",
        ("stepping",),
    ),
    Mutant(
        STORE + "steps.py",
        "if end.cursors and end.to is not State.completed",
        "if end.cursors and end.to is State.scheduled",
        "a redriven job goes on where it was",
        ("stepping",),
    ),
    Mutant(
        STORE + "retention.py",
        '        "delete_steps",\n',
        "",
        "steps go with their job",
        ("stepping",),
    ),
    Mutant(
        STORE + "schedules.py",
        "and not found[0].paused and found[0].next_at == expected",
        "and not found[0].paused",
        "a due time fires once",
        ("scheduling",),
    ),
    Mutant(
        STORE + "schedules.py",
        "and not found[0].paused and found[0].next_at == expected",
        "and found[0].next_at == expected",
        "a paused schedule does not fire",
        ("scheduling",),
    ),
    Mutant(
        QUERIES + "update_schedule_failed.sql",
        "where name = :name and next_at = :expected and paused = 0",
        "where name = :name and paused = 0",
        "who was slower than a success keeps no failure",
        ("scheduling",),
    ),
    Mutant(
        QUERIES + "update_schedule_fired.sql",
        "where name = :name and next_at = :expected and paused = 0",
        "where name = :name and paused = 0",
        "a tick moves on once",
        ("scheduling",),
    ),
    Mutant(
        STORE + "schedules.py",
        "if known and known[0].origin != _AT_RUN_TIME:",
        "if known and not known:",
        "what an App declares is not replaced at run time",
        ("registering",),
    ),
    Mutant(
        STORE + "schedules.py",
        "if known and known[0].schedule == schedule:",
        "if known:",
        "an edit takes effect",
        ("scheduling", "registering"),
    ),
    Mutant(
        STORE + "schedules.py",
        "if known and known[0].schedule == schedule:",
        "if known and known[0].schedule is schedule:",
        "the same definition again changes nothing",
        ("scheduling", "registering"),
    ),
    Mutant(
        STORE + "schedules.py",
        "if record.origin == origin != _AT_RUN_TIME and record.schedule.name not in names:",
        "if record.schedule.name not in names:",
        "a release removes schedules of its own origin only",
        ("registering",),
    ),
    Mutant(
        QUERIES + "update_schedule_resumed.sql",
        "next_at = max(next_at, :next_at)",
        "next_at = next_at",
        "what was due while paused does not fire",
        ("scheduling",),
    ),
    Mutant(
        STORE + "schema.py",
        "return None if own is None else own == latest",
        "return None if own is None else True",
        "a release that another one followed never wins back",
        ("registering",),
    ),
]

MUTANTS = KEYS + VERSIONS_AND_FOLLOWUPS + STEPS_AND_SCHEDULES
