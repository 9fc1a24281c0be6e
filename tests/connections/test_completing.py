"""`job.complete(connection=)` in a worker: the handler's rows and the end of its job commit together or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duly import App, Job, JobDead


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url" if request.param == "postgres" else "file_url"))


async def orders(jobs: App, order: int) -> int:
    async with jobs.atransaction() as connection:
        found = connection.execute(f"select count(*) from orders where id = {order}")
        cursor = await found if hasattr(found, "__await__") else found
        row = cursor.fetchone()
        return int((await row if hasattr(row, "__await__") else row)[0])


@pytest.mark.asyncio
async def test_an_async_session_commits_rows_and_completion_together(jobs: App, url: str) -> None:
    engine = create_async_engine(
        url.replace("postgresql:", "postgresql+asyncpg:").replace("sqlite:", "sqlite+aiosqlite:"),
        poolclass=NullPool,
    )

    @jobs.task(attempts=1)
    async def settle(job: Job, order: int, keep: bool) -> str:
        async with AsyncSession(engine) as session:
            await session.execute(text(f"insert into orders values ({order})"))
            await job.acomplete("sent", connection=session)
            await (session.commit() if keep else session.rollback())
        return "not stored: it was completed before"

    async with jobs.working():
        kept = await settle.aenqueue(101, True)
        gone = await settle.aenqueue(102, False)
        result = await kept.aresult(timeout="60s")
        with pytest.raises(JobDead, match="rolled back"):
            await gone.aresult(timeout="60s")

    assert result == "sent"
    assert (await orders(jobs, 101), await orders(jobs, 102)) == (1, 0)
    await engine.dispose()


@pytest.mark.asyncio
async def test_a_blocking_session_commits_rows_and_completion_together(jobs: App, url: str) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)

    @jobs.task(attempts=1)
    def settle(job: Job, order: int, keep: bool) -> str:
        with Session(engine) as session:
            session.execute(text(f"insert into orders values ({order})"))
            job.complete("sent", connection=session)
            if keep:
                session.commit()
        return "not stored: it was completed before"

    async with jobs.working():
        kept = await settle.aenqueue(201, True)
        gone = await settle.aenqueue(202, False)
        result = await kept.aresult(timeout="60s")
        with pytest.raises(JobDead, match="rolled back"):
            await gone.aresult(timeout="60s")

    assert result == "sent"
    assert (await orders(jobs, 201), await orders(jobs, 202)) == (1, 0)
    engine.dispose()


@pytest.mark.asyncio
async def test_a_follow_up_in_the_same_commit_joins_the_session_of_the_provider(url: str, jobs: App) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    sessions: list[Any] = []
    app = App(url, connection=lambda: sessions[-1] if sessions else None)

    @app.task
    def archive(order: int) -> int:
        return order

    @app.task(attempts=1)
    def settle(job: Job, order: int) -> None:
        with Session(engine) as session, session.begin():
            sessions.append(session)
            archive.enqueue(order)
            job.complete(connection=session)
            sessions.pop()

    async with app.working():
        done = await settle.aenqueue(301)
        await done.aresult(timeout="60s")
        (follower,) = [one for one in (await app.inspect.ajobs()).jobs if one.task == "archive"][:1]

    assert follower.args == b'{"order":301}'
    await app.client.aclose()
    engine.dispose()
