"""What a person or a program is told of an alert, and what takes it there. Plain data; sends nothing itself."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from duly.core.errors import DulyError
from duly.core.operating import AlertStateName


class Notification(Struct, frozen=True):
    """One change of an alert. A repeated delivery has the same id."""

    id: str
    """Such as "alert-17-4c1f…"; never another change's, nor another store's."""
    rule: str
    target: str
    state: AlertStateName
    at: datetime
    text: str
    """What is so, and what to do."""
    owner: str | None = None
    store: str = ""
    """Where, without password."""
    test: bool = False

    def title(self) -> str:
        """One line: "FIRING late queue:mail", "over: late queue:mail"."""
        word = "TEST" if self.test else "FIRING" if self.state == "firing" else "over:"
        return f"{word} {self.rule} {self.target}"

    def lines(self) -> list[str]:
        """The whole for a person."""
        owner = [f"owner: {self.owner}"] if self.owner else []
        return [
            self.title(),
            self.text,
            *owner,
            f"{self.store} · {self.at:%Y-%m-%d %H:%M:%S} UTC · {self.id}",
        ]


class SinkFailed(DulyError):
    """A sink did not take a notification; it is tried again later."""


class Sink(Protocol):
    """Takes notifications to somebody."""

    def send(self, note: Notification) -> None:
        """Hand it over; blocks, for a bounded time. SinkFailed, whose text shows no secret, when it was not taken."""
