"""`job(...)`: a Job of a test's own making, for calling bare functions. Stores nothing; keeps what it is told."""

from __future__ import annotations

from datetime import timedelta

from duly.client.job import Job, LocalPort
from duly.core.durations import Duration, parse_duration
from duly.core.job import JobId, Steps


class MadePort(LocalPort):
    """An attempt as a test wants it to be. What the handler says to it can be looked at."""

    def __init__(self, name: str, time_left: timedelta, should_stop: bool, steps: Steps) -> None:
        super().__init__(name, time_left)
        self._should_stop = should_stop
        self._steps = steps

    def should_stop(self) -> bool:
        return self._should_stop or super().should_stop()

    def steps(self) -> Steps:
        return self._steps


def job(
    *,
    time_left: Duration = "15m",
    should_stop: bool | None = None,
    id: int | str = "local-test",
    task: str = "test",
    queue: str = "default",
    attempt: int = 1,
    tenant: str = "",
    tags: tuple[str, ...] = (),
    correlation_id: str = "test",
    trigger: str | None = None,
    cursors: dict[str, int] | None = None,
) -> Job:
    """A Job for `task.fn(job(time_left="1s"), …)`: no store, no lease, and steps that run their functions.

    Args:
        time_left: of its time to run. With a second or less `should_stop` is true, as for a handler about to be
            stopped, unless should_stop says otherwise.
        should_stop: whether a shutdown, a cancel or the deadline asks the handler to end.
        id: of the job.
        task: its task's name.
        queue: its queue.
        attempt: which attempt this is.
        tenant: whose work it is.
        tags: its tags.
        correlation_id: which work it belongs to.
        trigger: what caused it, as "schedule:NAME@2030-05-01T09:00:00Z".
        cursors: where an earlier attempt left the loops of `job.each`, by name.

    """
    left = parse_duration(time_left, "time_left")
    stop = left <= timedelta(seconds=1) if should_stop is None else should_stop
    port = MadePort(str(id), left, stop, Steps(cursors=dict(cursors or {})))
    return Job(
        id=id if isinstance(id, str) else JobId(id),
        task=task,
        queue=queue,
        port=port,
        encode=_unstored,
        attempt=attempt,
        tenant=tenant,
        tags=tags,
        correlation_id=correlation_id,
        trigger=trigger,
    )


def _unstored(_: object) -> tuple[bytes | None, str | None]:
    return None, None
