"""`duly top`: the queues and what runs, redrawn every second, with keys to pause and resume the chosen queue."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click
import msgspec

from duly.app import App
from duly.client.inspect import Status
from duly.core.errors import DulyError, StoreUnreachable
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State

from .jobs import begun
from .options import common, filters
from .output import Column, Json, Out, plain, printable
from .session import session_of
from .status import lines
from .top_frame import View, frame, order, progress_of, running_for

if TYPE_CHECKING:
    from .screen import Screen

_EVERY: Final = 1.0
_RUNNING: Final = 15
_MOST_RUNNING: Final = 100

RUNNING = (
    Column("RUNNING", "right"),
    Column("QUEUE"),
    Column("TASK"),
    Column("ATTEMPTS", "right"),
    Column("FOR", "right"),
    Column("PROGRESS", wide=True),
)


@click.command()
@common
@filters
@click.pass_context
def top(context: click.Context, filter: Filter, everything: bool) -> None:
    """The queues and the running jobs, live, those that need somebody first; q or Ctrl-C ends it.

    Up and down choose a queue, p pauses it and r lets it go on, each with a reason that you type. A filter chooses
    which running jobs are shown. Without a terminal, or for programs, it looks once and prints what `duly status` has.

    \b
      duly top
      duly top --queue mail
    """
    del everything
    session = session_of(context)
    app, out = session.data(), session.out
    if not out.for_people:
        out.answer(_document(app, filter), list)
    elif sys.stdout.isatty():
        from .screen import Screen

        # The first look is outside: what cannot be reached at all is told on the terminal as it is.
        live = Live(app, filter)
        with Screen() as screen:
            live.run(screen)
    else:
        click.echo("\n".join(_text(app, filter, out)))


class Live:
    """What is on the screen, and what a person does there."""

    def __init__(self, app: App, filter: Filter) -> None:
        self._app = app
        self._filter = filter
        self._status = app.inspect.status()
        self._jobs = _running(app, filter, _MOST_RUNNING)
        self._chosen: str | None = None
        self._said = ""
        self._typing: tuple[str, str] | None = None
        """(the verb, the reason as far as it is typed)."""

    def run(self, screen: Screen) -> None:
        """Until q."""
        looked_at = time.monotonic()
        while True:
            columns, rows = screen.size
            screen.show(frame(self._status, self._jobs, View(columns, rows, self._chosen, self._line())))
            key = screen.key(max(0.0, looked_at + _EVERY - time.monotonic()))
            if key is not None:
                if not self.press(key):
                    return
                continue
            self.look()
            looked_at = time.monotonic()

    def look(self) -> None:
        """Read the store again; when it does not answer, say so and keep what is known."""
        try:
            self._status = self._app.inspect.status()
            self._jobs = _running(self._app, self._filter, _MOST_RUNNING)
        except StoreUnreachable as error:
            self._said = f"as of {self._status.now:%H:%M:%S}: {error}"
            return
        if self._said.startswith("as of"):
            self._said = ""

    def press(self, key: str) -> bool:
        """One key; False to leave."""
        if self._typing is not None:
            self._type(key, *self._typing)
            return True
        if key == "q":
            return False
        if key in ("up", "k", "down", "j"):
            self._choose(-1 if key in ("up", "k") else 1)
        elif key in ("p", "r"):
            self._ask("pause" if key == "p" else "resume")
        return True

    def _choose(self, step: int) -> None:
        names = [queue.counts.queue for queue in order(self._status.queues)]
        if not names:
            return
        at = names.index(self._chosen) + step if self._chosen in names else 0 if step > 0 else len(names) - 1
        self._chosen, self._said = names[max(0, min(at, len(names) - 1))], ""

    def _ask(self, verb: str) -> None:
        if self._chosen is None:
            self._said = f"choose a queue with up and down, then {verb} it"
            return
        self._typing = (verb, "")

    def _type(self, key: str, verb: str, reason: str) -> None:
        if key == "escape":
            self._typing, self._said = None, ""
        elif key == "enter":
            if reason.strip():
                self._typing = None
                self._act(verb, reason.strip())
        elif key == "backspace":
            self._typing = (verb, reason[:-1])
        elif len(key) == 1 and key.isprintable():
            self._typing = (verb, reason + key)

    def _act(self, verb: str, reason: str) -> None:
        queue = self._chosen or ""
        try:
            if verb == "pause":
                self._app.operate.pause(queue, reason=reason)
                self._said = f"{queue} is paused"
            else:
                resumed = self._app.operate.resume(queue, reason=reason)
                self._said = f"{queue} goes on" if resumed else f"{queue} was not paused"
        except DulyError as error:
            self._said = str(error)
            return
        self.look()

    def _line(self) -> str:
        if self._typing is None:
            return printable(self._said)
        verb, reason = self._typing
        return (
            f"why {verb} {printable(self._chosen or '')}? {printable(reason)}_  (Enter does it, Esc does not)"
        )


def _running(app: App, filter: Filter, most: int) -> tuple[JobRecord, ...]:
    wanted = msgspec.structs.replace(filter, state=State.running, fingerprint=None)
    return app.inspect.jobs(wanted, limit=most).jobs


def _document(app: App, filter: Filter) -> Json:
    return {"status": plain(app.inspect.status()), "running": plain(_running(app, filter, _RUNNING))}


def _text(app: App, filter: Filter, out: Out) -> list[str]:
    status: Status = app.inspect.status()
    jobs = _running(app, filter, _RUNNING)
    text = lines(status, out)
    if jobs:
        text += ["", *out.table(RUNNING, (_row(job, status.now) for job in jobs))]
    return text


def _row(job: JobRecord, now: datetime) -> list[str]:
    return [str(job.id), job.queue, job.task, str(begun(job)), running_for(job, now), progress_of(job)]
