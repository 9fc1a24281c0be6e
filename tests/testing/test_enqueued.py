"""What waits: drafts, tasks with some arguments, options, transactions that are open, and the words of a failure."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from duly import UsageError
from duly.testing import DulyTest, standing
from tests.testing.shop import Shop


@pytest.fixture
def own(duly_test: DulyTest) -> Iterator[sqlite3.Connection]:
    """A connection of the test's own on the same file."""
    with closing(sqlite3.connect(duly_test.url.removeprefix("sqlite:///"), isolation_level=None)) as made:
        yield made


def test_a_draft_must_have_the_same_arguments(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)

    duly_test.assert_enqueued(shop.double.draft(1))
    duly_test.assert_enqueued(shop.double.draft(number=1), times=1)
    duly_test.refute_enqueued(shop.double.draft(2))


def test_a_task_may_be_asked_for_with_some_of_its_arguments(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)
    shop.double.enqueue(2)

    duly_test.assert_enqueued(shop.double, times=2)
    duly_test.assert_enqueued(shop.double, {"number": 2}, times=1)
    duly_test.refute_enqueued(shop.double, {"number": 3})
    duly_test.refute_enqueued(shop.note)
    with pytest.raises(UsageError, match="takes no nummer; its arguments: number"):
        duly_test.refute_enqueued(shop.double, {"nummer": 3})


def test_options_of_a_draft_matter_where_it_says_some(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.using(delay="2d", tenant="acme", priority=5, tags=["a"]).enqueue(1)

    duly_test.assert_enqueued(shop.double.draft(1))
    duly_test.assert_enqueued(shop.double.using(delay="2d", tenant="acme").draft(1))
    for other in (
        shop.double.using(delay="1d"),
        shop.double.using(tenant="other"),
        shop.double.using(priority=6),
        shop.double.using(queue="mail"),
        shop.double.using(tags=["b"]),
        shop.double.using(run_at=duly_test.clock()),
    ):
        duly_test.refute_enqueued(other.draft(1))


def test_a_failure_says_what_waits_instead(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.using(delay="2d").enqueue(1)

    with pytest.raises(
        AssertionError,
        match=r"0 jobs double\(2\) wait, expected at least one; these wait:\n  double\(number=1\)",
    ):
        duly_test.assert_enqueued(shop.double.draft(2))
    with pytest.raises(AssertionError, match=r"1 jobs .* expected none"):
        duly_test.refute_enqueued(shop.double)
    with pytest.raises(AssertionError, match=r"1 jobs .* expected 3"):
        duly_test.assert_enqueued(shop.double, times=3)


def test_nothing_at_all_is_said_so(duly_test: DulyTest, shop: Shop) -> None:
    with pytest.raises(AssertionError, match="nothing waits"):
        duly_test.assert_enqueued(shop.double)


def test_what_has_ended_does_not_wait(duly_test: DulyTest, shop: Shop) -> None:
    shop.double.enqueue(1)
    duly_test.drain()

    duly_test.refute_enqueued(shop.double)


def test_an_open_transaction_is_looked_into_with_its_connection(
    duly_test: DulyTest, shop: Shop, own: sqlite3.Connection
) -> None:
    own.execute("begin")
    shop.double.using(connection=own).enqueue(1)

    duly_test.assert_enqueued(shop.double.draft(1), times=1, connection=own)
    duly_test.refute_enqueued(shop.double)
    own.execute("rollback")

    duly_test.refute_enqueued(shop.double, connection=own)
    assert duly_test.drain().ran == 0


def test_a_commit_lets_the_job_run(duly_test: DulyTest, shop: Shop, own: sqlite3.Connection) -> None:
    own.execute("begin")
    shop.double.using(connection=own).enqueue(1)
    with pytest.raises(UsageError, match="commit first"):
        duly_test.drain()
    own.execute("commit")

    assert duly_test.drain().completed == 1
    duly_test.refute_enqueued(shop.double, connection=own)


def test_the_async_twins_look_through_an_async_transaction(duly_test: DulyTest, shop: Shop) -> None:
    async def main() -> None:
        async with shop.jobs.atransaction() as connection:
            await shop.double.using(connection=connection).aenqueue(1)
            await duly_test.aassert_enqueued(shop.double, times=1, connection=connection)
        await duly_test.aassert_enqueued(shop.double.draft(1), times=1)
        await duly_test.arefute_enqueued(shop.note)
        (job,) = await duly_test.aenqueued(shop.double)
        assert job.arguments == {"number": 1}

    asyncio.run(main())


def test_a_project_may_say_where_the_jobs_are(tmp_path: Path, shop: Shop) -> None:
    with standing(shop.jobs, f"sqlite:///{tmp_path}/shop.db") as kit:
        shop.double.enqueue(1)

        assert kit.url == f"sqlite:///{tmp_path}/shop.db"
        assert (tmp_path / "shop.db").exists()


def test_another_store_of_the_app_is_refused_until_it_stands_on_one_of_the_test(
    duly_test: DulyTest, shop: Shop, tmp_path: Path
) -> None:
    eu = shop.jobs.at(f"sqlite:///{tmp_path}/production.db")
    with pytest.raises(UsageError, match="let that stand on one, too"):
        shop.double.using(app=eu).enqueue(1)

    with standing(eu, f"sqlite:///{tmp_path}/eu.db") as eu_test:
        shop.double.using(app=eu).enqueue(1)

        duly_test.refute_enqueued(shop.double)
        eu_test.assert_enqueued(shop.double, times=1)
        assert eu_test.drain().completed == 1
    assert not (tmp_path / "production.db").exists()
