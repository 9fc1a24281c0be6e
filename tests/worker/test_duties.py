"""The duties' thread: what is due runs, and nothing turns in circles."""

from duly.telemetry.hub import Hub
from duly.worker.duties import Duties


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
