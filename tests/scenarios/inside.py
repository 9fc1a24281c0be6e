"""A worker inside this process, for tests that need real attempts and no real process."""

import asyncio
from collections.abc import Iterable

from duly import App
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL
from duly.worker.options import WorkerOptions
from tests.waiting import await_until


def record_of(app: App, id: JobId) -> JobRecord:
    """The job as it stands, which must exist."""
    (found,) = app.store.inspection.lookup([id])
    assert found is not None, f"job {id} has vanished"
    return found


def final(app: App, ids: Iterable[JobId]) -> list[JobRecord] | None:
    """The jobs, once all of them have ended for good."""
    records = [record_of(app, id) for id in ids]
    return records if all(record.state in FINAL for record in records) else None


def run_until_final(
    app: App, *ids: JobId, options: WorkerOptions | None = None, timeout: float = 20.0
) -> list[JobRecord]:
    """Work on the App's queues until these jobs are final; their records in the order asked."""

    from duly.worker.embedded import Embedded

    async def work() -> list[JobRecord]:
        async with Embedded(app, options or WorkerOptions()):
            found = await await_until(
                lambda: asyncio.to_thread(final, app, ids), timeout=timeout, what=f"the end of {ids}"
            )
            assert found is not None
            return found

    return asyncio.run(work())
