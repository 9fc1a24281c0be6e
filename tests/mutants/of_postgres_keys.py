"""Mutants of the PostgreSQL store's functions: keys, versions, follow-ups, steps, schedules, releases."""

from tests.mutants.mutant import Mutant

FUNCTIONS = "stores/postgres/functions/"

KEYS = [
    Mutant(
        FUNCTIONS + "take_idempotency_1.sql",
        "if v_had.until <= p_now then",
        "if v_had.until <= p_now - interval '1 year' then",
        "an idempotency key is free when its time is over",
        ("keying",),
    ),
    Mutant(
        FUNCTIONS + "enqueue_3.sql",
        "if v_reused is not null then",
        "if v_reused < 0 then",
        "other arguments under a key store nothing",
        ("keying",),
    ),
    Mutant(
        FUNCTIONS + "store_jobs_2.sql",
        "update idempotency i set id = v_told.holder where i.id = v_mine[v_key.place];",
        "null;",
        "a request answered with another job is so answered again",
        ("uniqueness",),
    ),
    Mutant(
        FUNCTIONS + "take_unique_1.sql",
        "then p_replace else p_version > v_theirs end;",
        "then p_replace else p_replace end;",
        "the newer of two waiting versions stays",
        ("replacing",),
    ),
    Mutant(
        FUNCTIONS + "take_unique_1.sql",
        "if v_at.taken and not (v_replace and v_at.place < 4) then",
        "if v_at.taken and not v_replace then",
        "a running job is not replaced",
        ("replacing",),
    ),
    Mutant(
        FUNCTIONS + "key_holder_1.sql",
        "and (x.expires_at <= p_now) is not true",
        "",
        "an expired job holds no key",
        ("uniqueness",),
    ),
    Mutant(
        FUNCTIONS + "take_unique_1.sql",
        "continue when p_lock and v_at.place between 1 and 3 and not hold_waiting_1(v_had.id, v_at.place, false);",
        "null;",
        "a duplicate in a transaction keeps its job from running before the commit",
        ("contending",),
    ),
    Mutant(
        FUNCTIONS + "key_holder_1.sql",
        "(p_live or x.place < 4 and x.run = p_run)",
        "(x.place < 4 and x.run = p_run)",
        "a running job holds a key of scope live",
        ("uniqueness",),
    ),
    Mutant(
        FUNCTIONS + "redrive_4.sql",
        "v_ids := array_remove(v_ids, v_job.id);",
        "null;",
        "a job whose key is taken is not redriven",
        ("uniqueness",),
    ),
    Mutant(
        FUNCTIONS + "once_1.sql",
        "if v_had > v_now then",
        "if v_had > v_until then",
        "once is once",
        ("keying",),
    ),
]

ENDS = [
    Mutant(
        FUNCTIONS + "exchange_3.sql",
        "(t.passed is not null or not t.unique_live)",
        "true",
        "a claim keeps a live key",
        ("uniqueness",),
    ),
    Mutant(
        FUNCTIONS + "exchange_3.sql",
        "n.version > j.version and n.until > v_now",
        "n.version >= j.version and n.until > v_now",
        "an equal version runs",
        ("replacing",),
    ),
    Mutant(
        FUNCTIONS + "settle_ends_2.sql",
        "where u.state = 'completed' and j.id = u.id",
        "where j.id = u.id",
        "only a completion makes others stale",
        ("replacing",),
    ),
    Mutant(
        FUNCTIONS + "settle_ends_2.sql",
        "perform follow_up_2(p_ids, p_states, p_own, p_now);",
        "null;",
        "an end is followed",
        ("following",),
    ),
    Mutant(
        FUNCTIONS + "abandon_unknown_3.sql",
        "if v_rich is not null then",
        "if false then",
        "an abandoned job is followed",
        ("following",),
    ),
    Mutant(
        FUNCTIONS + "apply_completions_3.sql",
        "array_agg(h.id) filter (where h.extras <> 0)",
        "array_agg(h.id) filter (where h.extras & 254 <> 0)",
        "the usual completion is followed, too",
        ("following",),
    ),
    Mutant(
        FUNCTIONS + "follow_spec_2.sql",
        "coalesce(convert_from(v_result, 'UTF8'), 'null')",
        "'null'",
        "a follow-up gets its parent's result",
        ("following",),
    ),
    Mutant(
        FUNCTIONS + "follow_spec_2.sql",
        "coalesce(j.correlation_id, j.id::text)",
        "j.id::text",
        "a follow-up inherits the correlation",
        ("following",),
    ),
    Mutant(
        FUNCTIONS + "follow_keyed_2.sql",
        "if v_told.outcome = 'reused' then",
        "if v_told.outcome = 'never' then",
        "a parent says that its follow-up was left out",
        ("following",),
    ),
]

STEPS_AND_SCHEDULES = [
    Mutant(
        FUNCTIONS + "keep_steps_1.sql",
        "and c.id = l.id and c.run = l.run\n",
        "and c.id = l.id\n",
        "a former run keeps no step",
        ("stepping",),
    ),
    Mutant(
        FUNCTIONS + "keep_steps_1.sql",
        " where s.value is null",
        "",
        "the first value of a step stays",
        ("stepping",),
    ),
    Mutant(
        FUNCTIONS + "keep_steps_1.sql",
        "v_all or u.place = any(v_live)",
        "cardinality(v_live) > 0",
        "of several steps only those of live attempts are kept",
        ("stepping",),
    ),
    Mutant(
        FUNCTIONS + "keep_steps_1.sql",
        "u.id, u.name, u.place\n        on",
        "u.id, u.name, u.place desc\n        on",
        "of two values in one call the first stays",
        ("stepping",),
    ),
    Mutant(
        FUNCTIONS + "forget_jobs_3.sql",
        "    delete from step where id = any(p_ids);\n",
        "",
        "steps go with their job",
        ("stepping",),
    ),
    Mutant(
        FUNCTIONS + "fire_schedule_1.sql",
        "s.name = p_name and s.next_at = p_expected and not s.paused for update",
        "s.name = p_name and not s.paused for update",
        "a due time fires once",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "fire_schedule_1.sql",
        "s.name = p_name and s.next_at = p_expected and not s.paused for update",
        "s.name = p_name and s.next_at = p_expected for update",
        "a paused schedule does not fire",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "fail_schedule_1.sql",
        "where s.name = p_name and s.next_at = p_expected and not s.paused",
        "where s.name = p_name and not s.paused",
        "who was slower than a success keeps no failure",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "advance_schedule_1.sql",
        "where s.name = p_name and s.next_at = p_expected and not s.paused",
        "where s.name = p_name and not s.paused",
        "a tick moves on once",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "resume_schedule_1.sql",
        "next_at = greatest(s.next_at, p_next_at)",
        "next_at = s.next_at",
        "what was due while paused does not fire",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "put_schedule_1.sql",
        "where s.origin = '' and s.definition <> excluded.definition",
        "where s.definition <> excluded.definition",
        "what an App declares is not replaced at run time",
        ("registering",),
    ),
    Mutant(
        FUNCTIONS + "put_schedule_1.sql",
        "definition = excluded.definition, next_at = excluded.next_at,",
        "definition = excluded.definition,",
        "an edit takes effect",
        ("scheduling",),
    ),
    Mutant(
        FUNCTIONS + "declare_2.sql",
        "delete from schedule s where s.origin = p_origin and s.origin <> '' and",
        "delete from schedule s where s.origin <> '' and",
        "a release removes schedules of its own origin only",
        ("registering",),
    ),
    Mutant(
        FUNCTIONS + "declare_2.sql",
        "        return false;\n",
        "        null;\n",
        "a release that another one followed never wins back",
        ("registering",),
    ),
]

MUTANTS = KEYS + ENDS + STEPS_AND_SCHEDULES
