"""The steps of a shutdown, on a clock that stands still."""

from duly.telemetry.events import GraceOver, Happening
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase, Why
from duly.worker.shutdown import WRITE, Shutdown, Stage
from tests.worker.doubles import an_app, an_attempt, cards


class Crew:
    def __init__(self, *running: Attempt) -> None:
        self.alive = list(running)
        self.unsent: list[Attempt] = []
        self.claiming = True
        self.held = True
        self.stopped: list[tuple[int, Why]] = []

    def stop_claiming(self) -> None:
        self.claiming = False

    def running(self) -> list[Attempt]:
        return self.alive

    def stop(self, attempt: Attempt, why: Why, reason: str) -> None:
        self.stopped.append((attempt.job.id, why))

    def unwritten(self) -> list[Attempt]:
        return self.unsent

    def holds_nothing(self) -> bool:
        return not self.held


def a_running(id: int) -> Attempt:
    attempt = an_attempt(cards(an_app())["on_loop"], id)
    attempt.begin(0.0)
    return attempt


def a_shutdown(crew: Crew) -> tuple[Shutdown, list[Happening]]:
    hub, heard = Hub(), list[Happening]()
    hub.listen(heard.append)
    return Shutdown(crew, cut=2.0, hub=hub), heard


def test_it_stops_claiming_at_once() -> None:
    crew = Crew()
    shutdown, _ = a_shutdown(crew)

    shutdown.ask("SIGTERM", 25.0, 0.0)

    assert not crew.claiming


def test_running_handlers_have_the_grace_and_are_then_stopped() -> None:
    crew = Crew(a_running(1), a_running(2))
    shutdown, heard = a_shutdown(crew)
    shutdown.ask("SIGTERM", 25.0, 0.0)

    shutdown.step(24.9)
    within = list(crew.stopped)
    shutdown.step(25.0)

    assert within == []
    assert crew.stopped == [(1, "shutdown"), (2, "shutdown")]
    assert [event.jobs for event in heard if isinstance(event, GraceOver)] == [(1, 2)]


def test_it_is_over_when_everything_is_written() -> None:
    attempt = a_running(1)
    crew = Crew(attempt)
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 25.0, 0.0)

    crew.alive, crew.unsent = [], [attempt]
    waiting = shutdown.step(1.0)
    crew.unsent, crew.held = [], False

    assert not waiting
    assert shutdown.step(1.1)


def test_a_second_request_cuts_the_grace() -> None:
    crew = Crew(a_running(1))
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 25.0, 0.0)

    shutdown.ask("SIGTERM", 0.0, 1.0)
    shutdown.step(1.0)

    assert crew.stopped == [(1, "shutdown")]


def test_a_later_request_never_gives_more_time() -> None:
    crew = Crew(a_running(1))
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 1.0, 0.0)

    shutdown.ask("recycled", 3600.0, 0.5)
    shutdown.step(1.0)

    assert crew.stopped == [(1, "shutdown")]


def test_a_request_while_the_ends_are_written_changes_nothing() -> None:
    crew = Crew(a_running(1))
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 1.0, 0.0)
    shutdown.step(1.0)
    crew.alive, crew.unsent = [], [a_running(1)]
    shutdown.step(1.1)

    shutdown.ask("SIGTERM", 0.0, 1.2)

    assert not shutdown.step(1.3)
    assert shutdown.stage is Stage.writing


def test_handlers_that_were_given_up_are_not_waited_for() -> None:
    stuck = a_running(1)
    stuck.phase = Phase.given_up
    crew = Crew(stuck)
    shutdown, _ = a_shutdown(crew)

    shutdown.ask("a stuck handler", 25.0, 0.0)

    assert shutdown.step(0.0)


def test_handlers_that_ignore_the_end_of_the_grace_do_not_hold_it_up_for_long() -> None:
    crew = Crew(a_running(1))
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 1.0, 0.0)
    shutdown.step(1.0)

    early = shutdown.step(2.9)

    assert not early
    assert shutdown.step(3.0)


def test_a_store_that_stays_away_holds_it_up_for_a_bounded_time() -> None:
    crew = Crew()
    crew.unsent = [a_running(1)]
    shutdown, _ = a_shutdown(crew)
    shutdown.ask("SIGTERM", 0.0, 0.0)
    shutdown.step(0.0)

    early = shutdown.step(WRITE - 0.1)

    assert not early
    assert shutdown.step(WRITE)
