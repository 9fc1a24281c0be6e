"""A small App with a handler for each thing that a test of the kit needs. Each instance is an App of its own."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from duly import App, Backoff, Job


class Shop:
    """`seen` is what its handlers saw."""

    def __init__(self, url: str | None = None) -> None:
        self.jobs = jobs = App(url)
        self.mail = jobs.queue("mail")
        self.seen: list[Any] = []
        self.ending: BaseException | None = None
        self.call: Callable[[], Any] = lambda: None
        self._plain()
        self._running()
        self._storing()

    def _plain(self) -> None:
        jobs, seen = self.jobs, self.seen

        @jobs.task
        def double(number: int) -> int:
            return 2 * number

        @jobs.task
        def note(text: str) -> None:
            seen.append(text)

        @jobs.task(queue=self.mail)
        def mailed() -> None: ...

        @jobs.task(attempts=2, backoff=Backoff("30s", factor=1, jitter=False))
        def breaks() -> None:
            raise ZeroDivisionError

        @jobs.task
        def ends() -> None:
            if self.ending is not None:
                raise self.ending

        @jobs.task
        def hourly() -> None: ...

        self.double, self.note, self.mailed, self.breaks, self.ends = double, note, mailed, breaks, ends
        self.hourly = hourly

    def _running(self) -> None:
        jobs, seen = self.jobs, self.seen

        @jobs.task
        async def where() -> None:
            seen.append(asyncio.get_running_loop())

        @jobs.task
        def thread() -> None:
            seen.append(threading.get_ident())

        @jobs.task(isolation="process")
        def isolated() -> None:
            seen.append(threading.get_ident())

        @jobs.task
        def calls() -> None:
            self.call()

        @jobs.task
        def steps(job: Job, text: str) -> None:
            job.step("once", lambda: seen.append("step"))
            if job.attempt == 1:
                raise ZeroDivisionError
            seen.append(len(text))

        self.where, self.thread, self.isolated, self.calls, self.steps = where, thread, isolated, calls, steps

    def _storing(self) -> None:
        jobs, double = self.jobs, self.double

        @jobs.task
        def mother(children: int) -> None:
            for number in range(children):
                double.enqueue(number)

        @jobs.task
        def urgent_mother() -> None:
            double.using(priority=1).enqueue(1)

        @jobs.task
        def forever() -> None:
            forever.enqueue()

        @jobs.task
        def in_transaction(job: Job, commit: bool) -> None:
            try:
                with jobs.transaction() as connection:
                    job.complete(connection=connection)
                    if not commit:
                        raise KeyError
            except KeyError:
                pass

        self.mother, self.urgent_mother, self.forever = mother, urgent_mother, forever
        self.in_transaction = in_transaction
