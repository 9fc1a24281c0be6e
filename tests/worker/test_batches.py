"""Batches with a real worker on both stores: what follows comes once, handlers add, blocks close or cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from duly import App, Dead, Job, NotFound, Skip, UsageError
from duly.core.batch import BatchState
from duly.core.lifecycle import State
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


def work(app: App, batch: int, state: BatchState = BatchState.completed) -> None:
    """Until the batch stands there and no job waits or runs."""

    def done() -> bool:
        # What follows is stored together with the state: looked at afterwards, it cannot be missed.
        stands = app.inspect.batch(batch).state is state
        counts = app.store.inspection.counts()
        left = sum(one.ready + one.scheduled + one.blocked + one.running for one in counts)
        return stands and left == 0

    with Embedded(app, WorkerOptions()):
        wait_until(done, what=f"{state}, and nothing left", timeout=50)


def test_then_runs_once_after_every_job_of_the_batch(app: App) -> None:
    said: list[Any] = []

    @app.task
    async def resize(number: int) -> None:
        said.append(number)

    @app.task
    async def report(job: Job, day: str) -> None:
        said.append((day, job.trigger))

    with app.batch("nightly", then=[report.draft("monday")]) as batch:
        batch.add(*(resize.draft(number) for number in range(30)))
    work(app, batch.id)

    assert sorted(said[:30]) == list(range(30))
    assert said[30:] == [("monday", f"batch:{batch.id}")]
    record = app.inspect.batch(batch.id)
    assert (record.name, record.progress, record.counts.completed) == ("nightly", 1.0, 30)
    assert [one.id for one in app.inspect.batches()] == [batch.id]


def test_jobs_that_add_to_their_own_batch_are_waited_for(app: App) -> None:
    said: list[Any] = []

    @app.task
    async def leaf(number: int) -> None:
        said.append(number)

    @app.task
    async def split(job: Job) -> None:
        await app.batch_of(job).aadd(*(leaf.draft(number) for number in range(5)))

    @app.task
    async def report() -> None:
        said.append("report")

    with app.batch(then=[report.draft()]) as batch:
        batch.add(split.draft())
    work(app, batch.id)

    assert (sorted(said[:5]), said[5:]) == ([0, 1, 2, 3, 4], ["report"])
    assert app.inspect.batch(batch.id).counts.total == 6


def test_a_dead_job_holds_then_back_until_it_is_redriven(app: App) -> None:
    said: list[str] = []
    broken = [True]

    @app.task(attempts=1)
    async def fragile(number: int) -> None:
        if number == 0 and broken[0]:
            raise Dead("no")
        if number == 1:
            raise Skip("nothing to do")

    @app.task
    async def tell(what: str) -> None:
        said.append(what)

    with app.batch(then=[tell.draft("done")], on_dead=[tell.draft("dead")]) as batch:
        stored = batch.add(*(fragile.draft(number) for number in range(3)))
    work(app, batch.id, BatchState.dead)
    first = list(said)
    broken[0] = False
    app.operate.redrive(stored[0], reason="fixed")
    work(app, batch.id)

    assert first == ["dead"]
    assert said == ["dead", "done"]


def test_a_chain_of_drafts_belongs_to_the_batch_whole(app: App) -> None:
    said: list[str] = []

    @app.task
    async def say(what: str) -> None:
        said.append(what)

    with app.batch(then=[say.draft("end")]) as batch:
        batch.add(say.using(then=[say.draft("second")]).draft("first"))
    work(app, batch.id)

    assert said == ["first", "second", "end"]


def test_a_batch_inside_is_one_member(app: App) -> None:
    said: list[str] = []

    @app.task
    async def say(what: str) -> None:
        said.append(what)

    with (
        app.batch("outer", then=[say.draft("outer")]) as outer,
        outer.batch("inner", then=[say.draft("inner")]) as inner,
    ):
        inner.add(say.draft("leaf"))
    work(app, outer.id)

    assert said[0] == "leaf"
    assert sorted(said[1:]) == ["inner", "outer"]
    assert app.inspect.batch(inner.id).parent == outer.id


def test_an_exception_inside_the_block_cancels_what_was_added(app: App) -> None:
    @app.task
    async def job() -> None: ...

    with pytest.raises(ZeroDivisionError), app.batch(then=[job.draft()]) as batch:
        stored = batch.add(job.draft(), job.draft())
        raise ZeroDivisionError

    states = [record.state for record in app.store.inspection.lookup([one.id for one in stored]) if record]
    assert states == [State.cancelled] * 2
    record = app.inspect.batch(batch.id)
    assert (record.state, record.reason) == (
        BatchState.cancelled,
        "ZeroDivisionError inside the block that made it",
    )


def test_a_batch_can_be_made_in_an_async_block(app: App) -> None:
    said: list[str] = []

    @app.task
    async def say(what: str) -> None:
        said.append(what)

    async def make() -> int:
        async with app.batch(then=[say.draft("then")]) as batch:
            await batch.aadd(say.draft("leaf"))
            return batch.id

    id = asyncio.run(make())
    work(app, id)

    assert said == ["leaf", "then"]
    assert app.inspect.batch(id).state is BatchState.completed


def test_a_batch_in_a_transaction_that_rolls_back_was_never_there(app: App) -> None:
    @app.task
    async def job() -> None: ...

    with pytest.raises(ZeroDivisionError), app.transaction() as connection:
        with app.batch("gone", connection=connection) as batch:
            batch.add(job.draft())
        raise ZeroDivisionError

    with pytest.raises(NotFound):
        app.inspect.batch(batch.id)
    assert app.inspect.batches() == ()


def test_a_batch_in_a_transaction_comes_with_its_commit(app: App) -> None:
    said: list[str] = []

    @app.task
    async def say(what: str) -> None:
        said.append(what)

    with app.transaction() as connection, app.batch(then=[say.draft("then")], connection=connection) as batch:
        batch.add(say.draft("leaf"))
    work(app, batch.id)

    assert said == ["leaf", "then"]


def test_an_operator_cancels_a_batch(app: App) -> None:
    @app.task
    async def job() -> None: ...

    with app.batch(then=[job.draft()]) as batch:
        batch.add(job.draft())
    record = app.operate.cancel_batch(batch.id, reason="wrong day")

    assert (record.state, record.reason, record.counts.cancelled) == (BatchState.cancelled, "wrong day", 1)


def test_misuse_says_what_to_write(app: App) -> None:
    @app.task
    async def job() -> None: ...

    with app.batch() as batch:
        pass

    enter: Callable[[], object] = batch.__enter__
    misuses: list[tuple[Callable[[], object], str]] = [
        (lambda: batch.add(job.draft()), "batch_of"),
        (enter, "anew"),
        (lambda: app.batch().id, "with jobs.batch"),
        (lambda: app.batch(""), "leave it out"),
        (lambda: app.batch(then=job.draft()), r"then=\["),  # type: ignore[arg-type]
    ]
    for act, text in misuses:
        with pytest.raises(UsageError, match=text):
            act()
