"""Mutants around what bounds jobs: chains, guards and uses in the worker, batches, shedding, what is told of a queue.

Those of the worker are caught by tests that stand still between two steps, so that none of them depends on a race.
"""

from tests.mutants.mutant import Mutant

SQLITE = "stores/sqlite/"
QUERIES = "stores/sqlite/queries/"
FUNCTIONS = "stores/postgres/functions/"
CHAINS = ("tests/worker/test_chains.py",)
GUARDS = ("tests/client/test_guards.py",)
USAGE = ("tests/worker/test_usage.py",)

WORKER = [
    Mutant(
        "worker/floor.py",
        "if chain is None or slot.abandoned or not attempt.is_complete:",
        "if chain is None or slot.abandoned:",
        "nothing follows in a slot what did not complete",
        tests=CHAINS,
    ),
    Mutant(
        "worker/floor.py",
        "if chain is None or slot.abandoned or not attempt.is_complete:",
        "if chain is None or not attempt.is_complete:",
        "a slot that was given up takes no follower",
        tests=CHAINS,
    ),
    Mutant(
        "worker/floor.py",
        "if found.card.kind == attempt.card.kind and not must_be_read(found):",
        "if not must_be_read(found):",
        "a follower of another kind runs in a slot of its own kind",
        tests=CHAINS,
    ),
    Mutant(
        "worker/fetch.py",
        "if chain is not None and chain.left:",
        "if chain is not None:",
        "the last of a chain gives its slot free",
        tests=CHAINS,
    ),
    Mutant(
        "worker/fetch.py",
        "if before is None or before.card.ack_first or attempt.card.ack_first:",
        "if before is None or attempt.card.ack_first:",
        "nothing follows what is acknowledged first",
        tests=CHAINS,
    ),
    Mutant(
        "worker/fetch.py",
        "return max(1, min((queue.ahead for queue in seen if queue.rate), default=1))",
        "return 100",
        "chains are asked for only while jobs take next to nothing",
        tests=CHAINS,
    ),
    Mutant(
        "worker/pump.py",
        "            if attempt.chain is not None and not attempt.is_complete:\n",
        "            if attempt.chain is not None and attempt.is_complete:\n",
        "what stands behind a failure goes back",
        tests=CHAINS,
    ),
    Mutant(
        "worker/watch.py",
        "chain.waiting and now - attempt.started_at >= self._plan.unstarted:",
        "chain.waiting and now - attempt.started_at >= self._plan.unstarted * 1_000:",
        "what stands behind a long job goes back",
        tests=CHAINS,
    ),
    Mutant(
        "worker/run.py",
        "            guard.ask(job, kwargs)\n",
        "            pass\n",
        "guards stand before a plain handler",
        tests=GUARDS,
    ),
    Mutant(
        "worker/run.py",
        "            await guard.aask(job, kwargs)\n",
        "            pass\n",
        "guards stand before an async handler",
        tests=GUARDS,
    ),
    Mutant(
        "worker/usage.py",
        "if ended.event is Event.complete:",
        "if ended.event is Event.snooze:",
        "a completion is a good call",
        tests=USAGE,
    ),
    Mutant(
        "worker/usage.py",
        "return ended.transient if ended.event is Event.fail and ended.elapsed is not None else None",
        "return True if ended.event is Event.fail and ended.elapsed is not None else None",
        "a permanent failure is an answer",
        tests=USAGE,
    ),
    Mutant(
        "worker/usage.py",
        "            if resource not in said:\n",
        "            if resource in said:\n",
        "a block that spoke of a resource stands for its attempt",
        tests=USAGE,
    ),
    Mutant(
        "worker/usage.py",
        'return True if why == "timeout" else None',
        "return True",
        "a block cut short by a shutdown says nothing",
        tests=USAGE,
    ),
    Mutant(
        "worker/usage.py",
        "self._usage.note(one.resource, one.calls, one.failures)",
        "pass",
        "calls that could not be told are told the next time",
        tests=USAGE,
    ),
    Mutant(
        "worker/usage.py",
        "first, self._paused = self._paused, False",
        "first, self._paused = False, False",
        "the first call after a pause is told at once",
        tests=USAGE,
    ),
]

BATCHES = [
    Mutant(
        SQLITE + "batches.py",
        "if batch.counts.dead and not mourned and batch.state is not BatchState.cancelled:",
        "if batch.counts.dead and batch.state is not BatchState.cancelled:",
        "a batch is mourned once",
        ("batching", "nesting"),
    ),
    Mutant(
        SQLITE + "batches.py",
        "if state is BatchState.completed and batch.state is not state:",
        "if state is BatchState.completed:",
        "then comes once",
        ("batching", "nesting"),
    ),
    Mutant(
        SQLITE + "batches.py",
        "if batch.parent is not None and told is not batch.told:",
        "if batch.parent is not None and told is batch.told:",
        "a batch inside counts as one member",
        ("nesting",),
    ),
    Mutant(
        SQLITE + "batches.py",
        "    if batch.state not in ACCEPTING:\n",
        "    if batch.state in ACCEPTING:\n",
        "nothing is added to a batch that has ended",
        ("batching",),
    ),
    Mutant(
        SQLITE + "batches.py",
        "_count(session, id, {status: -count})",
        "_count(session, id, {status: 0})",
        "a redriven member is left again",
        ("batching",),
    ),
    Mutant(
        SQLITE + "followups.py",
        "joined = batch.id if batch.state in ACCEPTING else None",
        "joined = None",
        "a follow-up joins the batch of its parent",
        ("batching", "following"),
    ),
    Mutant(
        FUNCTIONS + "settle_batch_1.sql",
        "and not v_batch.mourned and v_before",
        "and v_before",
        "a batch is mourned once",
        ("batching", "nesting"),
    ),
    Mutant(
        FUNCTIONS + "settle_batch_1.sql",
        "if v_batch.state = 'completed' and v_before <> 'completed' then",
        "if v_batch.state = 'completed' then",
        "then comes once",
        ("batching", "nesting"),
    ),
    Mutant(
        FUNCTIONS + "settle_batch_1.sql",
        "when v_batch.dead > 0 then 'dead' else 'completed' end;",
        "else 'completed' end;",
        "a dead member holds then back",
        ("batching",),
    ),
    Mutant(
        FUNCTIONS + "settle_batch_1.sql",
        "if v_before in ('running', 'dead') then",
        "if v_before in ('running', 'dead', 'open') then",
        "an open batch does not end",
        ("batching",),
    ),
    Mutant(
        FUNCTIONS + "count_batch_1.sql",
        "where u.state not in ('ready', 'scheduled') and j.batch is not null",
        "where j.batch is not null and false",
        "an end counts in its batch",
        ("batching",),
    ),
]

PRESSURE = [
    Mutant(
        FUNCTIONS + "shed_queue_1.sql",
        "order by r.priority desc, r.pos desc limit p_most",
        "order by r.priority, r.pos desc limit p_most",
        "the least urgent are shed first",
        ("pressing",),
    ),
    Mutant(
        FUNCTIONS + "shed_1.sql",
        "where q.when_full = 'shed' and q.max_depth is not null",
        "where q.max_depth is not null",
        "only a queue that sheds loses jobs",
        ("pressing",),
    ),
    Mutant(
        FUNCTIONS + "shed_1.sql",
        "continue when v_over <= 0;",
        "continue when v_over <= 1;",
        "a queue is shed down to its bound",
        ("pressing",),
    ),
    Mutant(
        QUERIES + "select_fill.sql",
        "limit :most + 1",
        "limit :most",
        "a full queue is told from one that is too full",
        ("pressing",),
    ),
]

TOLD = [
    Mutant(
        QUERIES + "select_facts.sql",
        "(o.priority, o.pos) < (r.priority, r.pos)",
        "(o.priority, o.pos) <= (r.priority, r.pos)",
        "a job is not ahead of itself",
        ("telling",),
    ),
    Mutant(
        QUERIES + "select_facts.sql",
        "and exists (select 1 from json_each(w.tasks) as t where t.key = :task)",
        "",
        "a worker that does not know the task is no help",
        ("telling",),
    ),
    Mutant(
        FUNCTIONS + "facts_1.sql",
        "count(*) filter (where w.known ? v_job.task_key::text)",
        "count(*)",
        "a worker that does not know the task is no help",
        ("telling",),
    ),
    Mutant(
        FUNCTIONS + "facts_1.sql",
        "(r.priority, r.pos) < (v_lane.priority, v_lane.pos)",
        "(r.priority, r.pos) <= (v_lane.priority, v_lane.pos)",
        "a job is not ahead of itself",
        ("telling",),
    ),
    Mutant(
        QUERIES + "select_outcomes.sql",
        "and f.status = 'completed'",
        "",
        "what was skipped is no success of a queue",
        ("telling",),
    ),
    Mutant(
        QUERIES + "select_outcomes.sql",
        "d.died_at > since.at limit :most",
        "d.died_at > 0 limit :most",
        "deaths of long ago stop no queue",
        ("telling",),
    ),
]

CHANGES = [
    Mutant(
        SQLITE + "admission.py",
        "return self._block(row) or self._limited(row)",
        "return self._limited(row) or self._block(row)",
        "a block is told before a limit",
        ("changing", "permitting"),
    ),
    Mutant(
        SQLITE + "limiting.py",
        "reserved - {use.key for use in uses if use.counts}",
        "reserved - {use.key for use in uses}",
        "a cap that is removed leaves nothing reserved",
        ("changing",),
    ),
    Mutant(
        SQLITE + "healing.py",
        'elif not dead or (policy == "skip_dead" and not paused):',
        "elif not dead:",
        "a dead head frees its key once its queue skips the dead",
        ("changing",),
    ),
    Mutant(
        FUNCTIONS + "heal_keys_1.sql",
        "and not k.paused and k.id = any(v_dead);",
        "and k.id = any(v_dead);",
        "a key that was paused waits for a person",
        ("changing",),
    ),
    Mutant(
        FUNCTIONS + "finish_taking_1.sql",
        "if taking.kept_ids && p_run then",
        "if false then",
        "what a job takes no more is free when it starts",
        ("changing",),
    ),
    Mutant(
        FUNCTIONS + "limits_of_1.sql",
        "(not o.value ? 'tenant' or o.value ->> 'tenant' = j.tenant)",
        "true",
        "a block looks at all that it names",
        ("changing",),
    ),
]

MUTANTS = [*WORKER, *BATCHES, *PRESSURE, *TOLD, *CHANGES]
