"""Jobs under test: as functions, in the test's transaction, by the clock, and through what they must survive."""

import pytest
from background import embed, report, send_receipt
from sqlalchemy import text
from sqlalchemy.orm import Session

from duly import Snooze
from duly.testing import DulyTest, job


def test_a_handler_is_a_function() -> None:
    with pytest.raises(Snooze):
        embed.fn(job(time_left="1s"), ["a.jpg"], "out")


def test_an_order_owes_a_receipt(duly_test: DulyTest, session: Session) -> None:
    send_receipt.using(connection=session, delay="2d").enqueue(order_id=7)
    duly_test.assert_enqueued(
        send_receipt.draft(order_id=7), times=1, connection=session
    )  # before the commit
    session.commit()

    assert duly_test.drain().completed == 0
    duly_test.clock.advance("2d")
    assert duly_test.drain().completed == 1  # raises what a handler raised
    assert duly_test.ran(send_receipt)[0].result == "receipt of order 7"


def test_without_a_commit_there_is_no_job(duly_test: DulyTest, session: Session) -> None:
    send_receipt.using(connection=session).enqueue(order_id=7)
    session.rollback()

    duly_test.refute_enqueued(send_receipt)


async def test_async_handlers_run_on_the_loop_of_the_test(duly_test: DulyTest) -> None:
    await send_receipt.aenqueue(order_id=7)

    assert (await duly_test.adrain()).completed == 1


def rows(session: Session) -> int:
    return len(session.execute(text("select day from report")).all())


def test_a_report_may_be_delivered_twice(duly_test: DulyTest, session: Session) -> None:
    with duly_test.deliver_twice():
        report.enqueue("mon")
        duly_test.drain()

    duly_test.refute_enqueued(report)
    assert rows(session) == 1


def test_a_report_survives_a_death_at_every_step(duly_test: DulyTest, session: Session) -> None:
    def forget() -> None:
        session.execute(text("delete from report"))
        session.commit()

    def at_most_once() -> bool:
        count = rows(session)
        session.rollback()
        return count <= 1

    steps = duly_test.kill_at_every_step(report.draft("mon"), invariant=at_most_once, before=forget)

    assert steps > 3
