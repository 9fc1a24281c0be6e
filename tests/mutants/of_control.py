"""Mutants of what bounds jobs, in both stores: ordering keys, chains, limits, rates, permits, breakers, turns."""

from tests.mutants.mutant import Mutant

SQLITE = "stores/sqlite/"
FUNCTIONS = "stores/postgres/functions/"

ORDER = [
    Mutant(
        SQLITE + "ordering.py",
        "return bool(self._heads[key] == row[0])",
        "return True",
        "one job of a key runs at a time",
        ("ordering",),
    ),
    Mutant(
        SQLITE + "ordering.py",
        "return None if paused else id",
        "return id",
        "nobody of a paused key starts",
        ("leaving",),
    ),
    Mutant(
        SQLITE + "ordering.py",
        "if not rows or rows[0][0] != row[0]:",
        "if not rows:",
        "a chain jumps over nobody",
        ("chaining",),
    ),
    Mutant(
        SQLITE + "releasing.py",
        'if id not in dead or policy == "skip_dead":',
        "if True:",
        "a dead head holds its key",
        ("leaving",),
    ),
    Mutant(
        SQLITE + "releasing.py",
        'elif policy == "pause_key":',
        "elif False:",
        "a key waits for a person after a death, if its queue says so",
        ("leaving",),
    ),
    Mutant(
        SQLITE + "releasing.py",
        "if head is not None and head[0] == id:",
        "if head is not None and head[0] != id:",
        "a key goes on when its head has ended, and not when another leaves",
        ("leaving", "ordering"),
    ),
    Mutant(
        SQLITE + "admission.py",
        "return self._block(row) is None and self._limited(row) is None",
        "return self._block(row) is None",
        "a chain stops at a limit",
        ("limiting",),
    ),
    Mutant(
        FUNCTIONS + "admitted_order_1.sql",
        "b.follower or coalesce(b.head, false)",
        "true",
        "one job of a key runs at a time",
        ("ordering",),
    ),
    Mutant(
        FUNCTIONS + "key_heads_1.sql",
        "select h.key, h.id, h.id = h.first from heads h where not h.paused;",
        "select h.key, h.id, h.id = h.first from heads h;",
        "nobody of a paused key starts",
        ("leaving",),
    ),
    Mutant(
        FUNCTIONS + "key_heads_1.sql",
        "select h.key, h.id, h.id = h.first from heads h where not h.paused;",
        "select h.key, h.id, true from heads h where not h.paused;",
        "a chain jumps over nobody",
        ("chaining",),
    ),
    Mutant(
        FUNCTIONS + "key_heads_1.sql",
        "coalesce(o.id, l.id) as id,",
        "coalesce(l.id, o.id) as id,",
        "who owns a key keeps it until the end",
        ("leaving", "chaining"),
    ),
    Mutant(
        FUNCTIONS + "call_followers_1.sql",
        "and w.lost = 0 and (w.expires_at <= p_now) is not true and p_known ? w.task::text",
        "and w.lost = 0 and (w.expires_at <= p_now) is not true",
        "a chain stops before a job that its worker does not know",
        ("chaining",),
    ),
    Mutant(
        FUNCTIONS + "resume_key_1.sql",
        "delete from keyed k where k.key = v_key and k.id = v_head.id;",
        "null;",
        "a resumed key goes on without its dead head",
        ("leaving",),
    ),
]

LIMITS = [
    Mutant(
        SQLITE + "usage.py",
        "if cap is not None and self.running - reserved >= cap:",
        "if cap is not None and self.running - reserved > cap:",
        "no more run than a limit allows",
        ("limiting",),
    ),
    Mutant(
        SQLITE + "limiting.py",
        "self._holds.append((use.key, id, self._incarnation, None))",
        "pass",
        "what runs holds its limit",
        ("limiting",),
    ),
    Mutant(
        SQLITE + "limiting.py",
        "now - waits_since >= span(PATIENCE) and len(uses) > 1",
        "now - waits_since < 0 and len(uses) > 1",
        "a job with two limits is not starved by those with one",
        ("limiting",),
    ),
    Mutant(
        SQLITE + "limiting.py",
        'if raw == b"null":',
        'if raw == b"":',
        "an argument that is missing is not limited",
        ("limiting",),
    ),
    Mutant(
        SQLITE + "releasing.py",
        'session.run("delete_holds", ids=ids, incarnation=incarnation)',
        "pass",
        "nothing is held by what has ended",
        ("releasing",),
    ),
    Mutant(
        SQLITE + "healing.py",
        "        self._drop_stray_holds()\n        self._heal_heads()",
        "        self._heal_heads()",
        "a hold of nobody is swept away",
        ("releasing", "permitting"),
    ),
    Mutant(
        SQLITE + "healing.py",
        "        self._heal_heads()\n        self._drop_gone()",
        "        self._drop_gone()",
        "a key that belongs to nobody goes on after a sweep",
        ("chaining",),
    ),
    Mutant(
        SQLITE + "permits.py",
        "refusal = use.refusal(now)\n        if refusal is not None:",
        "refusal = use.refusal(now)\n        if refusal is not None and refusal.at is not None:",
        "a lock is held by one",
        ("permitting",),
    ),
    Mutant(
        SQLITE + "usage.py",
        "self._tat = round(max(self._tat, now) + self.bound.interval)",
        "self._tat = round(now + self.bound.interval)",
        "a burst is paid for",
        ("pacing",),
    ),
    Mutant(
        SQLITE + "breaking.py",
        "_set(session, use.name, seen.failures > 0, now + span(breaker.cool_down))",
        "_set(session, use.name, False, now + span(breaker.cool_down))",
        "a bad probe opens the breaker again",
        ("pacing",),
    ),
    Mutant(
        SQLITE + "usage.py",
        'return 1 if self.breaker(now) == "half-open" else cap',
        "return cap",
        "one job tries after the cool-down",
        ("pacing",),
    ),
    Mutant(
        FUNCTIONS + "take_1.sql",
        "taking.free[v_place] := taking.free[v_place] - 1;",
        "null;",
        "no more run than a limit allows, within one claim too",
        ("limiting",),
    ),
    Mutant(
        FUNCTIONS + "limit_terms_1.sql",
        "select case when u.name like 'lock:%' then 1",
        "select case when u.name like 'lock:%' then 2",
        "a lock is held by one",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "take_1.sql",
        "if not v_taken and not (p_impatient and cardinality(p_limits) > 1) then",
        "if not v_taken then",
        "a job with two limits is not starved by those with one",
        ("limiting",),
    ),
    Mutant(
        FUNCTIONS + "take_1.sql",
        "taking.tat[v_place] := greatest(taking.tat[v_place], p_now) + taking.pace[v_place];",
        "null;",
        "a start is counted into the rate",
        ("pacing",),
    ),
    Mutant(
        FUNCTIONS + "limit_terms_1.sql",
        "when b.state = 'half-open' then least(1, v.most)",
        "when b.state = 'half-open' then v.most",
        "one job tries after the cool-down",
        ("pacing",),
    ),
    Mutant(
        FUNCTIONS + "observe_1.sql",
        "v_seen.failures > 0 as tripped",
        "false as tripped",
        "a bad probe opens the breaker again",
        ("pacing",),
    ),
    Mutant(
        FUNCTIONS + "give_back_1.sql",
        "where h.key = key_of_1(u.name) and h.id = p_id and h.incarnation = p_incarnation",
        "where h.key = key_of_1(u.name)",
        "only its holder gives a lock back",
        ("permitting",),
    ),
    Mutant(
        FUNCTIONS + "hold_limit_1.sql",
        "held_until = greatest(s.held_until, excluded.held_until)",
        "held_until = excluded.held_until",
        "a longer hold stays",
        ("pacing",),
    ),
]

TURNS = [
    Mutant(
        SQLITE + "fairness.py",
        "after = last.tenant - 1 if last.left else last.tenant",
        "after = _FIRST",
        "tenants are served in turn",
        ("fairness",),
    ),
    Mutant(
        SQLITE + "fairness.py",
        "share * tenant.weight",
        "share",
        "tenants are served by their weight",
        ("fairness",),
    ),
    Mutant(
        FUNCTIONS + "turn_1.sql",
        "else share * v_row.weight end;",
        "else share end;",
        "tenants are served by their weight",
        ("fairness",),
    ),
    Mutant(
        FUNCTIONS + "turn_1.sql",
        "else least(u.most - u.held,",
        "else least(u.most,",
        "a tenant runs no more than its limit allows",
        ("fairness",),
    ),
    Mutant(
        FUNCTIONS + "aged_1.sql",
        "v_aged := v_aged + 1;",
        "null;",
        "the oldest is served beside a stream of urgent ones",
        ("fairness",),
    ),
]

WORDS = [
    Mutant(
        FUNCTIONS + "count_batch_1.sql",
        "    if found and not p_seen then",
        "    if false then",
        "what ends a batch's last job is told to the next claim",
        ("minding",),
    ),
    Mutant(
        FUNCTIONS + "exchange_3.sql",
        "case when p.expires_at <= v_now and j.extras & 192 = 0 then 'expired'",
        "case when p.expires_at <= v_now and j.extras & 64 = 0 then 'expired'",
        "a member that a claim finds expired is counted",
        ("minding",),
    ),
    Mutant(
        FUNCTIONS + "part_lanes_1.sql",
        "update job j set tenant_key = t.tenant from",
        "update job j set tenant_key = null from",
        "a job that came into its turn late counts with its tenant",
        ("fairness",),
    ),
    Mutant(
        FUNCTIONS + "crossings_1.sql",
        "        if late <> (v_queue.late_since is not null) then",
        "        if late then",
        "each crossing is told once",
        ("lateness",),
    ),
    Mutant(
        SQLITE + "pressing.py",
        "            if late != (since is not None):",
        "            if late:",
        "each crossing is told once",
        ("lateness",),
    ),
]

MUTANTS = [*ORDER, *LIMITS, *TURNS, *WORDS]
