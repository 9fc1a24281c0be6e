"""Claims of many keys and limits at once: what they read grows with the number of jobs, not with its square."""

from typing import Any

import pytest

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.core.registration import Registration
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import worker
from tests.stores.postgres.explained import Explained

KEYS = 320
PER_KEY = 5
JOBS = KEYS * PER_KEY
PER_CUSTOMER = LimitPolicy("task:limited#customer", max_running=2)

pytestmark = pytest.mark.slow


def _rows_read(node: dict[str, Any]) -> float:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
    return float((node.get("Actual Rows", 0) + removed) * node.get("Actual Loops", 1))


@pytest.mark.parametrize("task", ["ok", "limited"])
def test_no_part_of_a_claim_of_many_keys_reads_more_than_twice_the_jobs_that_are_there(
    url: str, task: str
) -> None:
    store = PostgresStore(url)
    takes = (TaskLimit("limited", PER_CUSTOMER.name, "customer"),)
    store.schema.declare(Registration("suite", "1", limits=(PER_CUSTOMER,), task_limits=takes))
    me = worker(store, "ok", "limited")
    for _ in range(PER_KEY):
        store.jobs.enqueue(
            [NewJob("default", task, b'{"customer":%d}' % key, ordering_key=f"{key}") for key in range(KEYS)]
        )
    database = Database(url, "duly", None, 1)
    jobs, explained = PostgresJobs(database), Explained(database)
    request = ClaimRequest((QueueClaim("default", 2 * KEYS),), 2 * KEYS, chain=2 * KEYS)

    nodes = explained.of(lambda: jobs.exchange(me, (), request))
    store.close()
    database.close()

    # By the square it would be a hundred thousand.
    assert max(map(_rows_read, nodes)) <= 2 * JOBS
