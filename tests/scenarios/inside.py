"""A worker inside this process, for tests that need real attempts and no real process; short looks at a store."""

from collections.abc import Sequence
from contextlib import suppress

from duly import App
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL
from duly.stores.protocol import Store
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.waiting import wait_until


def answers(store: Store) -> bool:
    """Whether it can be reached again."""
    with suppress(Exception):
        store.inspection.now()
        return True
    return False


def record_of(app: App, id: JobId) -> JobRecord:
    """The job as it stands, which must exist."""
    (found,) = app.store.inspection.lookup([id])
    assert found is not None, f"job {id} has vanished"
    return found


def final(app: App, ids: Sequence[JobId]) -> list[JobRecord] | None:
    """The jobs, once all of them have ended for good."""
    records = [record for record in app.store.inspection.lookup(ids) if record is not None]
    assert len(records) == len(ids), f"some of {ids} have vanished"
    return records if all(record.state in FINAL for record in records) else None


def run_until_final(
    app: App, *ids: JobId, options: WorkerOptions | None = None, timeout: float = 60.0
) -> list[JobRecord]:
    """Work on the App's queues until these jobs are final; their records in the order asked."""
    with Embedded(app, options):
        found = wait_until(lambda: final(app, ids), timeout=timeout, what=f"the end of {ids}")
    assert found is not None
    return found
