"""Mutants of what is kept for those who operate a store: tokens, answers, marks, the audit, alerts, tallies."""

from tests.mutants.mutant import Mutant

SQL = "stores/sqlite/queries/"
FUNCTIONS = "stores/postgres/functions/"

MUTANTS = [
    Mutant(
        "stores/sqlite/tokens.py",
        "expires_at is not None and expires_at <= now",
        "expires_at is not None and expires_at < now",
        "a token lives until it expires, and not at that moment",
        ("admitting",),
    ),
    Mutant(
        SQL + "upsert_reply.sql",
        "where expires_at <= excluded.at",
        "where answer is null",
        "a key in flight is taken by one request",
        ("answering",),
    ),
    Mutant(
        FUNCTIONS + "fill_answers_1.sql",
        " and a.answer is null",
        "",
        "an answer is never replaced",
        ("answering",),
    ),
    Mutant(
        SQL + "select_dead_mark.sql",
        "d.died_at > g.at",
        "d.died_at >= g.at - 3600000000",
        "a fixed group stays fixed while its old letters lie there",
        ("triaging",),
    ),
    Mutant(
        FUNCTIONS + "regress_dead_1.sql",
        "set state = 'new', regressed_at",
        "set regressed_at",
        "a regression is told once",
        ("triaging",),
    ),
    Mutant(
        FUNCTIONS + "seal_audit_1.sql",
        "values (p_after + 1, p_ids, p_digest, p_previous, v_now)\n        on conflict do nothing;",
        "values ((select coalesce(max(id), 0) + 1 from audit_seal), p_ids, p_digest, p_previous, v_now);",
        "many who seal at once make one chain",
        ("auditing",),
    ),
    Mutant(
        "stores/audits.py",
        "            wrong = faults_of(before, seal, found)\n",
        "            wrong = faults_of(before, seal, found)[1:]\n",
        "an entry that was changed is found",
        ("auditing",),
    ),
    Mutant(
        FUNCTIONS + "change_alert_1.sql",
        "v_was.change_id is distinct from p_expected or ",
        "",
        "a change is decided by the one who knows the last",
        ("alerting",),
    ),
    Mutant(
        SQL + "update_delivery_taken.sql",
        "next_at = :next_at",
        "next_at = next_at",
        "a delivery is given to one at a time",
        ("alerting",),
    ),
    Mutant(
        "stores/sqlite/tallies.py",
        'if session.run("upsert_sweep", name=_NAME, now=until, position=0, seen=seen) == 0:',
        'if session.run("upsert_sweep", name=_NAME, now=until, position=0, seen=seen) == 9:',
        "a minute is counted once, whoever does it",
        ("tallying",),
    ),
    Mutant(
        FUNCTIONS + "due_beside_1.sql",
        "then 'answers' end",
        "then null end",
        "a sweep forgets expired answers",
        ("answering",),
    ),
    Mutant(
        FUNCTIONS + "due_beside_1.sql",
        "then 'audited' end",
        "then null end",
        "a sweep writes how audited jobs have ended",
        ("auditing",),
    ),
    Mutant(
        FUNCTIONS + "due_beside_1.sql",
        "then 'unsealed' end",
        "then null end",
        "a sweep seals what was entered",
        ("sealing",),
    ),
    Mutant(
        FUNCTIONS + "due_beside_1.sql",
        "else 'tally' end",
        "else null end",
        "a sweep counts the minutes that are over",
        ("tallying",),
    ),
    Mutant(
        FUNCTIONS + "tally_parts_1.sql",
        "(a.event = 'interrupt' and a.started_at is not null)",
        "a.event = 'interrupt'",
        "an attempt that never began is no second run",
        ("tallying",),
    ),
]
