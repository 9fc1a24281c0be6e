"""The duties' thread: what is due runs, and nothing turns in circles."""

from datetime import timedelta
from typing import Any

from duly.telemetry.hub import Hub
from duly.worker.duties import Duties
from duly.worker.promote import Promote


class Often:
    """A duty that is due again after three seconds."""

    name = "often"

    def __init__(self) -> None:
        self.runs: list[float] = []

    def run(self, now: float) -> float:
        self.runs.append(now)
        return 3.0

    def failed(self) -> None:
        raise AssertionError("it never fails")


def test_a_thread_without_duties_waits() -> None:
    idle = Duties([], Hub(), clock=lambda: 1_000_000.0)

    assert idle.round() == 60.0


def test_a_duty_runs_when_it_is_due_and_not_before() -> None:
    now = [1_000_000.0]
    duty = Often()
    duties = Duties([duty], Hub(), clock=lambda: now[0])

    pauses = []
    for step in (0.0, 1.0, 2.0):
        now[0] += step
        pauses.append(duties.round())

    assert duty.runs == [1_000_000.0, 1_000_003.0]
    assert pauses == [3.0, 2.0, 3.0]


class Due:
    """An upkeep store with jobs that come due; answers in turn how many became ready and the seconds to the next."""

    def __init__(self, *answers: tuple[int, float | None]) -> None:
        self._answers = list(answers)

    def promote(self) -> tuple[int, timedelta | None]:
        moved, seconds = self._answers.pop(0)
        return moved, None if seconds is None else timedelta(seconds=seconds)


def test_promote_runs_again_when_the_next_job_is_due_and_not_before() -> None:
    rung: list[int] = []
    upkeep: Any = Due((3, 0.25), (1000, 0.0), (1, None), (0, 0.4), (0, 60.0))
    promote = Promote(upkeep, 1.0, lambda: rung.append(1))

    pauses = [promote.run(float(number)) for number in range(5)]

    assert pauses == [0.25, 0.001, 1.0, 0.4, 1.0]
    assert len(rung) == 3
    assert (promote.moved_at, promote.quiet_at) == (2.0, 4.0)
