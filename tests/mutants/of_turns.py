"""Mutants of who starts when, and of what a person or the fleet changes for a time.

Turns behind limits, age, reserves, permits and locks, overrides, guards, late queues, the dead-letter breaker.
"""

from tests.mutants.mutant import Mutant

SQLITE = "stores/sqlite/"
QUERIES = "stores/sqlite/queries/"
FUNCTIONS = "stores/postgres/functions/"
STOPS = ("tests/worker/test_dead_breaker.py", "-k", "not postgres")
GUARDS = ("tests/client/test_guards.py",)
LATE = ("tests/worker/test_lateness.py", "-k", "not postgres")

DEATHS = [
    Mutant(
        "core/dead_breaker.py",
        "ends >= policy.min_ends and ",
        "",
        "a few deaths stop no queue",
    ),
    Mutant(
        "core/dead_breaker.py",
        "return Step.go_on if seen.completed else Step.nothing",
        "return Step.go_on",
        "a stopped queue goes on after a job completed, and not before",
    ),
    Mutant(
        "core/dead_breaker.py",
        "    if seen.dead:\n",
        "    if seen.dead > 1:\n",
        "a try that dies stops the queue again",
    ),
    Mutant(
        "core/dead_breaker.py",
        "        return opens\n",
        "        return trial.at\n",
        "what ran when the queue stopped is no try",
    ),
    Mutant(
        "core/dead_breaker.py",
        "return max(cool_down, min(2 * cool_down, LONGEST))",
        "return cool_down",
        "a queue whose try died is stopped for longer",
    ),
    Mutant(
        "worker/dead_breaker.py",
        "if pause is not None and (own is None or pause.by != AUTHOR):",
        "if False:",
        "a queue that a person has paused is left alone",
        tests=STOPS,
    ),
    Mutant(
        "worker/dead_breaker.py",
        'one_each = {"max_running": 1, ',
        'one_each = {"max_running": 100, ',
        "one job tries",
        tests=STOPS,
    ),
    Mutant(
        "worker/dead_breaker.py",
        "if oldest is not None and oldest.id != made.id:",
        "if False:",
        "of two workers one stops the queue",
        tests=STOPS,
    ),
]

TURNS = [
    Mutant(
        SQLITE + "releasing.py",
        "    if ids and len({one.tenant for one in waiting}) > 1:\n",
        "    if False:\n",
        "tenants go on in turn behind a limit that they share",
        ("sharing",),
    ),
    Mutant(
        QUERIES + "select_gated_of.sql",
        "order by priority, pos",
        "order by pos",
        "priority chooses within a tenant behind a limit, too",
        ("sharing",),
    ),
    Mutant(
        FUNCTIONS + "take_2.sql",
        "coalesce(taking.free[v_place] + v_kept::int > 0, true)",
        "(coalesce(taking.free[v_place] > 0, true) or v_kept)",
        "a place that was kept counts against a cap that was lowered",
        ("changing",),
    ),
    Mutant(
        FUNCTIONS + "claim_freed_1.sql",
        "where h.key = o.key and h.incarnation = 0 order by",
        "where h.key = o.key and h.incarnation = -1 order by",
        "who has kept a place at a full limit goes on when another leaves",
        ("changing",),
    ),
    Mutant(
        FUNCTIONS + "admitted_order_2.sql",
        "b.id not in (select w.id from unnest(p_waited) as w (id)) as fresh",
        "true as fresh",
        "whom a limit has let go on comes before those that have just come",
        ("sharing",),
    ),
    Mutant(
        FUNCTIONS + "next_in_turn_1.sql",
        "turn := v_whose[cardinality(v_whose)];",
        "null;",
        "tenants go on in turn behind a limit that they share",
        ("sharing",),
    ),
    Mutant(
        FUNCTIONS + "next_in_turn_1.sql",
        "order by b.gate, b.tenant, b.priority, b.pos limit v_share for update skip locked) x",
        "order by b.pos limit v_share for update skip locked) x",
        "priority chooses within a tenant behind a limit, too",
        ("sharing",),
    ),
    Mutant(
        SQLITE + "fairness.py",
        "self._shared = claim.most - claim.reserved",
        "self._shared = claim.most",
        "reserved slots are for tenants of which nothing runs",
        ("fairness",),
    ),
    Mutant(
        FUNCTIONS + "turn_1.sql",
        "when p_reserved then v_shared + case when v_row.held = 0 then 1 else 0 end end);",
        "when p_reserved then v_shared + 1 end);",
        "reserved slots are for tenants of which nothing runs",
        ("fairness",),
    ),
    Mutant(
        SQLITE + "ageing.py",
        "self._given[lane] = self._given.get(lane, 0) + count",
        "pass",
        "the oldest is served beside a stream of urgent ones",
        ("fairness",),
    ),
    Mutant(
        "core/ageing.py",
        "sum(number * _STEP % _ALL >= bound for number",
        "sum(number % AGED_SHARE == 7 for number",
        "no number of tenants stays in step with the age",
    ),
    Mutant(
        "core/ageing.py",
        "        return wanted // AGED_SHARE\n",
        "        return wanted\n",
        "most go by priority",
    ),
    Mutant(
        "worker/fetch.py",
        "self._turns[queue.name] += queue.weight",
        "self._turns[queue.name] += 1",
        "queues of one worker are first by their weight",
        tests=("tests/worker/test_fetch.py",),
    ),
]

PERMITS = [
    Mutant(
        QUERIES + "select_permit.sql",
        "and h.id = :id and h.incarnation = :incarnation",
        "",
        "only its holder gives a lock back",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "permits.py",
        "until = None if holder is not None or ttl is None else now + span(ttl)",
        "until = None",
        "a lock runs out after its time",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "permits.py",
        "return all(until is None or until > session.now for _, until in found)",
        "return True",
        "a lock that ran out cannot be given back",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "permits.py",
        'if session.row("select_token", **token) is None:',
        "if False:",
        "who lost its job gets no lock for it",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "permits.py",
        "        use.start(now)\n",
        "        pass\n",
        "a permit counts like a job",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "acquire_1.sql",
        "until := case when p_id is null then v_now + p_ttl * interval '1 second' end;",
        "until := null;",
        "a lock runs out after its time",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "acquire_1.sql",
        "        if not found then\n",
        "        if false then\n",
        "who lost its job gets no lock for it",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "acquire_1.sql",
        "where u.name like 'lock:%' or p_id is null",
        "where p_id is null",
        "a job does not get its own lock twice",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "give_back_1.sql",
        "bool_and(g.until is null or g.until > v_now)",
        "true",
        "a lock that ran out cannot be given back",
        ("permitting",),
    ),
]

CHANGES = [
    Mutant(
        QUERIES + "update_lifted.sql",
        " and lifted_at is null and (until is null or until > :now)",
        "",
        "what is over is not lifted again",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "overriding.py",
        "    _look_again(session, str(target))\n",
        "",
        "a lifted override lets jobs go",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "bounds.py",
        "                if override.until is None or override.until > now:\n",
        "                if True:\n",
        "an override ends by itself",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "lift_1.sql",
        "where o.id = p_id and o.lifted_at is null and (o.until is null or o.until > v_now)",
        "where o.id = p_id",
        "what is over is not lifted again",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "lift_1.sql",
        "perform let_on_1(v_was.key);",
        "null;",
        "a lifted override lets jobs go",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "limit_terms_1.sql",
        "where o.key = c.key and o.kind = 'limit' and o.lifted_at is null and (o.until is null or o.until > p_now)",
        "where o.key = c.key and o.kind = 'limit' and o.lifted_at is null",
        "an override ends by itself",
        ("permitting",),
    ),
]

GUARDED = [
    Mutant(
        "client/guards.py",
        "if answer is None or answer is True:",
        "if answer is None or answer:",
        "a guard's text is a no",
        tests=GUARDS,
    ),
    Mutant(
        "client/guards.py",
        'return Snooze(ending.wait, f"guard {self.name}{said}")',
        "return ending",
        "a guard that puts a job off is named",
        tests=GUARDS,
    ),
    Mutant(
        "client/guards.py",
        "arguments = {**self._defaults, **given}",
        "arguments = {**given}",
        "a guard gets the defaults of its task",
        tests=GUARDS,
    ),
]

LATENESS = [
    Mutant(
        "core/lateness.py",
        "if wait_target is None or oldest is None or oldest <= wait_target:",
        "if wait_target is None or oldest is None:",
        "a queue in time is not called late",
        tests=LATE,
    ),
    Mutant(
        "worker/lateness.py",
        "if one.late and one.wait_target",
        "if one.wait_target",
        "it is told when a late queue is in time again",
        tests=LATE,
    ),
    Mutant(
        QUERIES + "select_oldest_head.sql",
        "(r.tenant, r.priority) > (h.tenant, h.priority)",
        "r.tenant > h.tenant",
        "a late job is found at any priority",
        ("lateness",),
    ),
    Mutant(
        FUNCTIONS + "crossings_1.sql",
        "(r.tenant, r.priority) > (v_head.tenant, v_head.priority)",
        "r.tenant > v_head.tenant",
        "a late job is found at any priority",
        ("lateness",),
    ),
]

MUTANTS = [*DEATHS, *TURNS, *PERMITS, *CHANGES, *GUARDED, *LATENESS]
