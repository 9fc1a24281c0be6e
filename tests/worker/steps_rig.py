"""Attempts of one job, one after the other, without a worker: what they write stays on a desk."""

from collections.abc import Callable
from typing import Any

from duly import Job
from duly.core.job import Steps
from duly.worker.attempt import Attempt
from duly.worker.card import Card
from duly.worker.run import handle_of
from tests.worker.doubles import Desk, an_app, an_attempt, cards


class Rig:
    """One attempt after the other of one job; the desk keeps what they write."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.card: Card = cards(an_app())["on_loop"]
        self.ran: list[object] = []
        self.attempt = self._begun(1)
        self.job: Job = handle_of(self.attempt)

    def again(self) -> Job:
        """The next attempt, with what the earlier ones left."""
        self.attempt = self._begun(self.attempt.job.run + 1)
        self.attempt.left = Steps(dict(self.desk.steps), dict(self.desk.cursors))
        self.job = handle_of(self.attempt)
        return self.job

    def does(self, value: Any) -> Callable[[], Any]:
        """A function that notes its run."""

        def act() -> Any:
            self.ran.append(value)
            return value

        return act

    def _begun(self, run: int) -> Attempt:
        attempt = an_attempt(self.card, desk=self.desk, run=run)
        attempt.begin(attempt.now())
        return attempt
