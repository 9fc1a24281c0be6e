"""Mutants of what meets producers and waiting jobs where too much comes: bounds of queues, the store's budget.

Those outside the stores are caught by tests on SQLite whose clock or hands stand still between two steps.
"""

from tests.mutants.mutant import Mutant

BOUNDS, BUDGET = "core/bounds.py", "core/budget.py"
PRESSING = "client/pressing.py"
ROOM = "worker/budget.py"
SQLITE = "stores/sqlite/"
QUERIES = "stores/sqlite/queries/"
FUNCTIONS = "stores/postgres/functions/"
PRODUCERS = ("tests/client/test_pressing.py", "-k", "not postgres")
PLACES = ("tests/client/test_places.py",)
SPENT = ("tests/client/test_budget.py", "-k", "not postgres")
SWEEPS = ("tests/worker/test_budget.py", "-k", "not postgres")

RULES = [
    Mutant(
        BOUNDS,
        "fill.depth + more > bound.max_depth:",
        "fill.depth >= bound.max_depth:",
        "what is brought together fits as a whole or not at all",
    ),
    Mutant(
        BOUNDS,
        "max(0, fill.depth + more - bound.max_depth)",
        "max(0, more)",
        "who is refused waits as long as its room takes",
    ),
    Mutant(
        BOUNDS,
        "excess = 1.0 if bound.max_depth is None else max(1.0, (fill.depth + more) / bound.max_depth)",
        "excess = 1.0",
        "the fuller a queue the slower its producers",
    ),
    Mutant(
        BOUNDS,
        "left = arrived - int((self.out_per_s or 0.0) * seconds)",
        "left = arrived",
        "what has ended since a queue was counted is room",
    ),
    Mutant(
        BUDGET,
        "less = levels[:-1]",
        "less = levels",
        "the most important queues are never refused",
    ),
    Mutant(
        BUDGET,
        "if filled >= (start - RECOVERY if level in before else start)",
        "if filled >= start",
        "who was refused is let in again some way below",
    ),
    Mutant(
        BUDGET,
        "return max(_of_bytes(budget, use), _of_disk(budget, use))",
        "return _of_bytes(budget, use)",
        "the nearer of two bounds counts",
    ),
    Mutant(
        BUDGET,
        "return filled >= (LAST if before else FULL)",
        "return filled >= FULL",
        "room is made until there is some",
    ),
    Mutant(
        BUDGET,
        "(rank for rank in known if rank.importance > most)",
        "(rank for rank in known if rank.importance >= most)",
        "the most important queues give nothing up",
    ),
    Mutant(
        BUDGET,
        "seconds = min(seconds, (min(ahead) - filled) / per_second / 4)",
        "pass",
        "a store that fills fast is looked at more often",
    ),
]

PRODUCING = [
    Mutant(
        PRESSING,
        "if one.queue in strict or (one.refuses and not joined):",
        "if one.queue in strict or one.refuses:",
        "a caller's transaction is not broken by a full queue",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "if one.queue in strict or (one.refuses and not joined):",
        "if one.refuses and not joined:",
        "who is strict is refused in any transaction",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "pause = _NO_TIME if joined else max(one.pause for one in over)",
        "pause = max(one.pause for one in over)",
        "a caller's transaction does not wait for room",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "            wanted[job.queue] -= 1\n",
        "            pass\n",
        "a job that is due later needs no room",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "            if sample.arrived >= sample.room:\n",
        "            if sample.arrived > sample.room:\n",
        "the last place is one",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "self._refused[queue] = self._refused.get(queue, 0) + jobs",
        "pass",
        "refusals that the store did not take are told the next time",
        tests=PLACES,
    ),
    Mutant(
        PRESSING,
        "self._told_at.get(key, -_TOLD_EVERY) < _TOLD_EVERY",
        "self._told_at.get(key, -_TOLD_EVERY) < 0",
        "refusals are told once a minute",
        tests=PRODUCERS,
    ),
    Mutant(
        PRESSING,
        "self._importance(queue) > self._floor.importance:",
        "self._importance(queue) < self._floor.importance:",
        "the less important give way near the budget",
        tests=SPENT,
    ),
    Mutant(
        "client/budget.py",
        "            self._pressing.refuse_below(None)\n",
        "            pass\n",
        "who gave way to the budget is let in again",
        tests=PLACES,
    ),
    Mutant(
        "client/budget.py",
        "self._refused = refused(levels, filled, self._refused)",
        "self._refused = refused(levels, filled)",
        "who gave way to the budget waits until there is some room",
        tests=PLACES,
    ),
    Mutant(
        PRESSING,
        "self._admitted[queue] = self._admitted.get(queue, 0) + 1",
        "pass",
        "the place that a loop waited for is its own",
        tests=PLACES,
    ),
    Mutant(
        PRESSING,
        "            self._take(queue, 1)\n",
        "            pass\n",
        "a place that a loop has left is free again",
        tests=PLACES,
    ),
]

SWEEPING = [
    Mutant(
        ROOM,
        "if self._making_room and not made:",
        "if self._making_room:",
        "no job is lost for the budget while records are left",
        tests=SWEEPS,
    ),
    Mutant(
        ROOM,
        "for rank in giving_way(use.ranks) if rank.sheds])",
        "for rank in giving_way(use.ranks)])",
        "a queue that does not shed loses nothing to the budget",
        tests=SWEEPS,
    ),
    Mutant(
        ROOM,
        "if not queues or self._clock() < self._sheds_from:",
        "if not queues:",
        "no more is shed for the budget before what was shed made room",
        tests=SWEEPS,
    ),
    Mutant(
        ROOM,
        "min(LEAST_KEPT, self._keep.get(queue, self._default))",
        "min(LEAST_KEPT * 0, self._keep.get(queue, self._default))",
        "a record is kept for a moment whatever the budget says",
        tests=SWEEPS,
    ),
]

STORES = [
    Mutant(
        QUERIES + "select_least_urgent.sql",
        "order by priority desc, pos desc",
        "order by priority desc, pos",
        "the latest are shed first",
        ("pressing",),
    ),
    Mutant(
        QUERIES + "select_overfull.sql",
        "where q.when_full = 'shed' and q.max_depth is not null",
        "where q.max_depth is not null",
        "only a queue that sheds loses jobs",
        ("pressing",),
    ),
    Mutant(
        SQLITE + "pressing.py",
        "found = _shed(session, lane_of(queue, False), min(most - shed, _CHUNK), reason)",
        "found = _shed(session, lane_of(queue, False), _CHUNK, reason)",
        "no more is shed than was asked",
        ("budgeting",),
    ),
    Mutant(
        SQLITE + "pressing.py",
        "if self._measured is not None and 0 <= now",
        "if self._measured is not None and now < 0 <= now",
        "the store is not measured again within a second",
        ("budgeting",),
    ),
    Mutant(
        SQLITE + "pressing.py",
        "    _turned_away(session, queue, _SHED, len(waiting))\n",
        "",
        "what is shed is counted",
        ("pressing",),
    ),
    Mutant(
        QUERIES + "upsert_turned_away.sql",
        "then 0 else jobs end + excluded.jobs",
        "then jobs else jobs end + excluded.jobs",
        "what was turned away is counted anew after an hour",
        ("pressing",),
    ),
    Mutant(
        QUERIES + "select_queue_ranks.sql",
        "when_full = 'shed'",
        "when_full = 'reject'",
        "the store says which queues shed",
        ("budgeting",),
    ),
    Mutant(
        FUNCTIONS + "shed_queues_1.sql",
        "shed_queue_1(v_queue, p_most - v_shed, p_reason,",
        "shed_queue_1(v_queue, p_most, p_reason,",
        "no more is shed than was asked",
        ("budgeting",),
    ),
    Mutant(
        FUNCTIONS + "turn_away_1.sql",
        "then 0 else t.jobs end + excluded.jobs",
        "then t.jobs else t.jobs end + excluded.jobs",
        "what was turned away is counted anew after an hour",
        ("pressing",),
    ),
    Mutant(
        FUNCTIONS + "fills_1.sql",
        "limit u.most + 1) x",
        "limit u.most) x",
        "a full queue is told from one that is too full",
        ("pressing",),
    ),
    Mutant(
        FUNCTIONS + "fills_1.sql",
        "and f.at > v_now - interval '1 second' * greatest(",
        "and f.at > v_now - interval '1 hour' * greatest(",
        "how full a queue is is counted anew",
        ("pressing",),
    ),
    Mutant(
        FUNCTIONS + "measure_use_1.sql",
        "if exists (select 1 from store_use s where s.at > p_now - p_age and s.at <= p_now)",
        "if exists (select 1 from store_use s where s.at > p_now - p_age - interval '1 minute')",
        "the store is measured again as soon as it is asked so",
        ("budgeting",),
    ),
]

MUTANTS = [*RULES, *PRODUCING, *SWEEPING, *STORES]
