"""What queues, tenants and batches say of themselves, on both stores."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duly import App, NotFound, UsageError
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import describe
from duly.core.job import NewJob
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from tests.client.conftest import Hands
from tests.client.why.conftest import Noon, told


def test_a_queue_tells_its_numbers_its_bounds_and_its_health(jobs: App, send: Any, hands: Hands) -> None:
    send.enqueue()
    jobs.operate.pause("default")
    jobs.operate.limit("default", max_running=5, lasting="1h")

    reasons = told(jobs, "default")

    assert [kind for kind, _, _ in reasons] == ["numbers", "queue paused", "numbers", "health"]
    assert reasons[0][1] == "1 ready, 0 running, 0 scheduled, 0 blocked, 0 dead; 1 worker"
    assert reasons[2][1:] == ("queue:default: 0 of 5 run, by override 1", "duly overrides lift 1")
    assert reasons[3][1] == "paused: 1 job waits, the oldest for 0s until `duly resume default`"


def test_a_tenant_tells_what_waits_and_for_how_long(jobs: App, send: Any, noon: Noon) -> None:
    registration = Registration(
        "app", "1", (QueuePolicy("default", fair=True),), (TaskPolicy("send", "default", 100),)
    )
    jobs.store.schema.declare(registration)
    for tenant in ("acme", "acme", "zeta"):
        jobs.store.jobs.enqueue([NewJob("default", "send", b"{}", tenant=tenant, fair=True)])
        noon.now += timedelta(seconds=30)

    acme, zeta = jobs.inspect.tenants()

    assert [(one.name, one.ready, one.oldest) for one in (acme, zeta)] == [
        ("acme", 2, timedelta(seconds=90)), ("zeta", 1, timedelta(seconds=30)),
    ]  # fmt: skip
    assert jobs.inspect.tenant("acme").waits == acme.waits
    assert told(jobs, "tenant:acme")[1][:2] == (
        "numbers",
        "2 jobs are ready in default, the oldest for 1m 30s",
    )
    assert told(jobs, "tenant:nobody")[-1][1] == "nothing holds its jobs back but its turn"


def test_a_tenant_tells_its_plan(jobs: App) -> None:
    jobs.operate.tenant("acme", weight=5, max_running=20)

    assert told(jobs, "tenant:acme")[0][1] == "its plan: weight 5, 20 may run in each queue"
    assert told(jobs, "tenant:other")[0][1] == "it has no plan: each queue's own values hold"


@pytest.mark.parametrize("target", [4711, "4711", "nowhere", "resource:stripe", "batch:4711"])
def test_what_is_not_there_is_not_found(jobs: App, target: Any) -> None:
    with pytest.raises(NotFound):
        jobs.inspect.why(target)


@pytest.mark.parametrize("target", ["lock:x", "batch:nightly", "batch:"])
def test_a_target_of_no_kind_is_refused(jobs: App, target: str) -> None:
    with pytest.raises(UsageError, match=r"tenant:NAME or resource:NAME|no batch's number"):
        jobs.inspect.why(target)


def test_a_batch_says_what_its_follow_up_waits_for(jobs: App, send: Any, hands: Hands) -> None:
    with jobs.batch("nightly", then=[send.draft()]) as batch:
        batch.add(send.draft(1), send.draft(2))
        inside = told(jobs, f"batch:{batch.id}")
    first, second = hands.claim()
    hands.complete(first)
    waits = told(jobs, f"batch:{batch.id}")
    error = describe(ConnectionError("no route"))
    once = Policy(1, Backoff(), 10)
    hands.end(failed(second, Verdict("transient"), once, 0.5, error, timedelta(seconds=1)))
    jobs.store.batches.finish()
    dead = told(jobs, f"batch:{batch.id}")
    jobs.operate.redrive(second.id)
    hands.complete(hands.claim()[0])
    jobs.store.batches.finish()

    cancel = f"jobs.operate.cancel_batch({batch.id})"
    assert inside[-1] == (
        "state",
        "it is open: the block that made it has not ended, or was killed inside",
        cancel,
    )
    assert waits == [
        ("numbers", f"batch {batch.id} (nightly): 1 of 2 done (1 completed)", None),
        ("state", "its then waits: 1 job has not ended", cancel),
    ]
    assert [kind for kind, _, _ in dead] == ["numbers", "dead", "state"]
    assert dead[1][1].startswith("1 job has died: its then waits")
    assert told(jobs, f"batch:{batch.id}")[-1][1] == "it has ended: its then was enqueued 0s ago"


def test_a_cancelled_batch_says_who_made_it_so(jobs: App, send: Any) -> None:
    with jobs.batch("nightly") as batch:
        batch.add(send.draft())
    jobs.operate.cancel_batch(batch.id, reason="wrong day")

    assert told(jobs, f"batch:{batch.id}")[-1][1] == "it was cancelled (wrong day): nothing follows it"
