"""When a process looks for jobs with a loss behind them, and whether it runs them."""

from duly.worker.held import Held
from duly.worker.suspects import Suspects
from tests.worker.doubles import an_app, an_attempt, cards


class Scene:
    covered = False

    def __init__(self) -> None:
        self.reports = 0

    def report(self) -> None:
        self.reports += 1

    def is_covered(self) -> bool:
        return self.covered


def test_a_busy_process_looks_now_and_then_and_reports_what_it_finds() -> None:
    scene = Scene()
    suspects = Suspects("report", 5.0, scene.report, scene.is_covered)
    due = suspects.due(0.0, outstanding=40)

    suspects.answered(1, 0.0, 0.0)
    taken = suspects.take(an_attempt(cards(an_app())["on_loop"]))

    assert due
    assert not taken
    assert scene.reports == 1
    assert not suspects.due(4.9, outstanding=40)
    assert suspects.due(5.0, outstanding=40)


def test_nobody_looks_while_a_quarantine_process_works_on_them() -> None:
    scene = Scene()
    scene.covered = True
    suspects = Suspects("report", 5.0, scene.report, scene.is_covered)

    assert not suspects.due(0.0, outstanding=0)
    scene.covered = False
    assert not suspects.due(1.0, outstanding=0)
    assert suspects.due(5.0, outstanding=0)


def test_without_a_supervisor_one_runs_when_nothing_else_does() -> None:
    scene, held = Scene(), Held()
    suspects = Suspects("alone", 5.0, scene.report, scene.is_covered)
    attempt = an_attempt(cards(an_app())["on_loop"])

    busy = suspects.due(0.0, outstanding=1)
    idle = suspects.due(0.0, outstanding=0)
    held.add(attempt)
    taken = suspects.take(attempt)
    alone = suspects.running_alone(held)
    held.drop(attempt)

    assert (busy, idle, taken, alone) == (False, True, True, True)
    assert not suspects.running_alone(held)


def test_an_attempt_lost_here_is_looked_for_at_once() -> None:
    scene = Scene()
    suspects = Suspects("report", 5.0, scene.report, scene.is_covered)
    suspects.answered(0, 0.0, 0.0)

    suspects.made(1.0)

    assert suspects.due(1.0, outstanding=0)
    assert scene.reports == 1
