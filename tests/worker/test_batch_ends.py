"""What follows a batch comes by itself whatever its last end was, on both stores, though nobody sweeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App, Dead, Job, Skip, Unique
from duly.stores.protocol import Swept
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.waiting import wait_until


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    url = request.getfixturevalue(f"{request.param}_url")
    app = App(url)
    if request.param == "postgres":
        app.store.schema.migrate()
    yield app
    app.close()


class Followed:
    """An App with a batch whose follow-ups run in the same worker, which never sweeps."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = app
        self.said: list[str] = []
        self.heard = asyncio.Event()
        said, heard = self.said, self.heard

        @app.task
        async def tell(what: str) -> None:
            said.append(what)
            heard.set()

        self.tell = tell
        monkeypatch.setattr(app.store.upkeep, "sweep", lambda *_: Swept(ran=False))

    def expect(self, *what: str) -> None:
        wait_until(lambda: len(self.said) >= len(what), what=f"{what}; so far {self.said}", timeout=50)
        assert self.said == list(what)


@pytest.fixture
def followed(app: App, monkeypatch: pytest.MonkeyPatch) -> Followed:
    return Followed(app, monkeypatch)


def at_work(app: App) -> Embedded:
    return Embedded(app, WorkerOptions())


def is_idle(worker: Embedded, app: App) -> None:
    """Until it has nothing at hand, so that it must be woken."""
    wait_until(
        lambda: all(one.running + one.ready == 0 for one in app.store.inspection.counts()), what="idle"
    )


def test_an_end_in_a_worker(app: App, followed: Followed) -> None:
    @app.task(attempts=1)
    async def work(how: str) -> None:
        if how == "skip":
            raise Skip("nothing to do")
        if how == "bury":
            raise Dead("hopeless")

    with at_work(app):
        for how in ("complete", "skip", "bury"):
            tell = followed.tell
            with app.batch(then=[tell.draft(how)], on_dead=[tell.draft(f"{how}: dead")]) as batch:
                batch.add(work.draft(how))
            wait_until(lambda: len(followed.said) > 0, what=f"what follows {how}", timeout=50)
            assert followed.said.pop() == ("bury: dead" if how == "bury" else how)


def test_a_cancel_of_a_waiting_job(app: App, followed: Followed) -> None:
    @app.task
    async def work() -> None: ...

    with at_work(app) as worker:
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            (stored,) = batch.add(work.using(delay="1h").draft())
        is_idle(worker, app)
        app.operate.cancel(stored, reason="not needed")
        followed.expect("then")


def test_a_cancel_of_a_running_job(app: App, followed: Followed) -> None:
    started = asyncio.Event()

    @app.task
    async def work(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    with at_work(app):
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            (stored,) = batch.add(work.draft())
        wait_until(started.is_set, what="a start")
        app.operate.cancel(stored, reason="not needed")
        followed.expect("then")


def test_a_cancel_in_a_transaction_of_the_caller(app: App, followed: Followed) -> None:
    @app.task
    async def work() -> None: ...

    with at_work(app) as worker:
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            (stored,) = batch.add(work.using(delay="1h").draft())
        is_idle(worker, app)
        with app.transaction() as connection:
            app.store.cancel_on(connection, [stored.id], "ann", "not needed")
        followed.expect("then")


def test_a_job_that_expired_before_it_was_claimed_or_due(app: App, followed: Followed) -> None:
    @app.task
    async def work() -> None: ...

    batches = []
    for delay in (None, "10ms"):
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            batch.add(work.using(delay=delay, expires="1ms").draft())
        batches.append(batch.id)
    until = app.store.inspection.now() + timedelta(milliseconds=50)
    wait_until(lambda: app.store.inspection.now() > until, what="the expiry")

    with at_work(app):
        followed.expect("then", "then")

    assert [app.inspect.batch(id).counts.skipped for id in batches] == [1, 1]


def test_a_completion_in_a_transaction_of_the_caller_counts_with_its_commit(
    app: App, followed: Followed
) -> None:
    release = asyncio.Event()

    @app.task
    async def work(job: Job) -> None:
        async with app.atransaction() as connection:
            await job.acomplete("done", connection=connection)
        # What it does after that is none of the batch's business.
        await followed.heard.wait()
        release.set()

    with at_work(app):
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            batch.add(work.draft())
        followed.expect("then")
        wait_until(release.is_set, what="the handler's end")


def test_a_job_that_another_one_replaces(app: App, followed: Followed) -> None:
    @app.task(unique=Unique("work:{number}", on_conflict="replace"))
    async def work(number: int) -> None: ...

    with at_work(app) as worker:
        with app.batch(then=[followed.tell.draft("then")]) as batch:
            batch.add(work.using(delay="1h").draft(1))
        is_idle(worker, app)
        work.using(delay="1h").enqueue(1)
        followed.expect("then")


def test_a_close_in_a_transaction_of_the_caller_after_all_has_ended(app: App, followed: Followed) -> None:
    @app.task
    async def work() -> None: ...

    with at_work(app) as worker:
        is_idle(worker, app)
        with (
            app.transaction() as connection,
            app.batch(then=[followed.tell.draft("then")], connection=connection),
        ):
            pass
        followed.expect("then")
