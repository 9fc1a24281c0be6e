"""Queues of one worker by weight, with the claims of both stores: shares of one slot, and nobody left out."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from duly.client.queue import Queue
from duly.core.decide import completed
from duly.core.job import Incarnation, NewJob, WorkerInfo
from duly.stores.open import open_store
from duly.worker.fetch import Fetch
from tests.worker.doubles import a_plan, an_app, cards

QUEUES = ("mail", "reports", "idle")


@pytest.mark.parametrize("url", ["sqlite_url", "postgres_url"])
def test_a_slot_goes_to_waiting_queues_by_their_weight(url: str, request: pytest.FixtureRequest) -> None:
    store = open_store(request.getfixturevalue(url))
    store.schema.migrate()
    info = WorkerInfo(
        "h",
        1,
        "h:1",
        QUEUES,
        {"on_loop": timedelta(minutes=15)},
        timedelta(seconds=30),
        timedelta(seconds=5),
        1,
        "1",
    )
    me: Incarnation = store.leases.register(info)
    store.jobs.enqueue([NewJob(queue, "on_loop", b"{}") for queue in ("mail", "reports") for _ in range(40)])
    declared = {"mail": Queue("mail", weight=3), "idle": Queue("idle", weight=4)}
    plan = a_plan(queues=dict.fromkeys(QUEUES), concurrency=1, threads=1)
    fetch = Fetch(plan, cards(an_app()), 1.0, declared)

    ran: Counter[str] = Counter()
    for _ in range(40):
        wanted = fetch.request(0.0, riding=True)
        assert wanted is not None
        (job,) = store.jobs.exchange(me, [], wanted).claimed
        store.jobs.exchange(me, [completed(job, None, timedelta(0))], None)
        ran[job.queue] += 1
    store.close()

    # The turns of the empty one pass to whoever is next in the circle.
    assert set(ran) == {"mail", "reports"}
    assert ran["mail"] >= 15
    assert ran["reports"] >= 5
