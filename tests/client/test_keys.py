"""Keys from a caller's side: duplicates, reused keys, and results that outlive their jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duly import App, JobDead, JobSkipped, KeyReused, NotFound, Outcome, Skip, State, Unique
from duly.core.backoff import Backoff
from duly.core.decide import Policy, raised
from duly.core.endings import Dead
from duly.core.fingerprint import describe
from duly.core.job import ClaimedJob
from tests.client.conftest import Hands

POLICY = Policy(10, Backoff(), 10)


def end_with(hands: Hands, job: ClaimedJob, ending: Skip | Dead) -> None:
    hands.end(raised(job, ending, POLICY, 0.5, describe(ending), timedelta(seconds=1)))


def forget_finished(app: App) -> None:
    """Retention, as if the time were over."""
    while app.store.upkeep.retain({}, {}, timedelta(0), timedelta(days=30)):
        pass


def test_a_repeated_request_is_answered_with_the_first_job(both: App) -> None:
    @both.task
    def send(order_id: int) -> str:
        return "sent"

    keyed = send.using(idempotency_key="receipt:7")
    hands = Hands(both.store, "send")

    first, second = keyed.enqueue(7), keyed.enqueue(order_id=7)
    hands.complete(hands.claim()[0], b'"sent"')
    third = keyed.enqueue(7)

    assert (first.outcome, second.outcome, third.outcome) == (
        Outcome.created,
        Outcome.duplicate,
        Outcome.duplicate,
    )
    assert first.id == second.id == third.id
    assert third.result(timeout="10s") == "sent"
    assert hands.claim() == ()


def test_a_key_with_other_arguments_is_an_error_that_names_the_key_and_the_first_job(both: App) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    keyed = send.using(idempotency_key="receipt:7")
    first = keyed.enqueue(7)

    with pytest.raises(KeyReused) as caught:
        keyed.enqueue(8)
    with pytest.raises(KeyReused) as among_many:
        both.enqueue_many([send.draft(1), keyed.draft(7), keyed.draft(9)])

    assert caught.value.job_id == among_many.value.job_id == first.id
    assert among_many.value.position == 2
    assert str(caught.value).startswith(f"send: idempotency_key='receipt:7' belongs to job {first.id}, which")
    assert str(among_many.value) == str(caught.value)
    assert both.inspect.queue("default").counts.ready == 1


def test_a_default_that_is_written_out_is_another_argument(both: App) -> None:
    @both.task
    def resize(photo: str, width: int = 800) -> None: ...

    keyed = resize.using(idempotency_key="a.jpg")
    first = keyed.enqueue("a.jpg")

    with pytest.raises(KeyReused):
        keyed.enqueue("a.jpg", width=800)

    assert keyed.enqueue(photo="a.jpg").id == first.id
    assert both.inspect.job(first.id).job.args == b'{"photo":"a.jpg"}'


def test_the_same_key_for_another_task_or_tenant_is_another_key(both: App) -> None:
    @both.task
    def one() -> None: ...

    @both.task
    def two() -> None: ...

    answers = [
        one.using(idempotency_key="k").enqueue(),
        two.using(idempotency_key="k").enqueue(),
        one.using(idempotency_key="k", tenant="acme").enqueue(),
    ]

    assert [answer.outcome for answer in answers] == [Outcome.created] * 3


def test_a_result_is_answered_after_its_job_is_no_longer_kept(both: App) -> None:
    @both.task
    def send(order_id: int) -> dict[str, int]:
        return {"order": order_id}

    keyed = send.using(idempotency_key="receipt:7")
    hands = Hands(both.store, "send")
    first = keyed.enqueue(7)
    hands.complete(hands.claim()[0], b'{"order":7}')
    forget_finished(both)

    again = keyed.enqueue(7)

    assert both.store.inspection.lookup([first.id]) == [None]
    assert (again.outcome, again.id) == (Outcome.duplicate, first.id)
    assert again.result(timeout="10s") == first.result(timeout="10s") == {"order": 7}


@pytest.mark.asyncio
async def test_an_async_caller_gets_that_result_as_well(both: App) -> None:
    @both.task
    async def send(order_id: int) -> str:
        return "sent"

    hands = Hands(both.store, "send")
    first = await send.using(idempotency_key="receipt:7").aenqueue(7)
    hands.complete(hands.claim()[0], b'"sent"')
    forget_finished(both)

    assert await first.aresult(timeout="10s") == "sent"


def test_how_a_job_ended_is_answered_after_it_is_no_longer_kept(both: App) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    hands = Hands(both.store, "send")
    skipped = send.using(idempotency_key="a").enqueue(1)
    end_with(hands, hands.claim()[0], Skip("refunded"))
    dead = send.using(idempotency_key="b").enqueue(2)
    end_with(hands, hands.claim()[0], Dead("no use"))
    forget_finished(both)
    both.operate.purge(dead, reason="old")

    with pytest.raises(JobSkipped, match="refunded") as skip:
        skipped.result(timeout="10s")
    with pytest.raises(JobDead, match="no use") as death:
        dead.result(timeout="10s")

    assert (skip.value.state, death.value.state) == (State.skipped, State.dead)
    assert str(skip.value) == f"job {skipped.id} (send) is skipped: refunded"


def test_a_result_too_large_to_outlive_its_job_is_said_to_be_gone(both: App) -> None:
    @both.task
    def send() -> str:
        return "x" * 10_000

    hands = Hands(both.store, "send")
    enqueued = send.using(idempotency_key="k").enqueue()
    hands.complete(hands.claim()[0], b'"' + b"x" * 10_000 + b'"')
    forget_finished(both)

    with pytest.raises(NotFound, match=r"completed at .* larger than the 8 KiB"):
        enqueued.result(timeout="10s")


def test_nothing_returned_is_none_after_its_job_is_no_longer_kept(both: App) -> None:
    @both.task
    def send() -> None: ...

    hands = Hands(both.store, "send")
    enqueued = send.using(idempotency_key="k").enqueue()
    hands.complete(hands.claim()[0])
    forget_finished(both)

    result: object = enqueued.result(timeout="10s")
    assert result is None


def test_one_job_waits_per_unique_key_of_a_task(both: App) -> None:
    @both.task(unique="order:{order_id}")
    def sync(order_id: int, note: str = "") -> None: ...

    hands = Hands(both.store, "sync")

    first, twin, other = sync.enqueue(7), sync.enqueue(7, note="again"), sync.enqueue(8)
    hands.claim(1)
    after = sync.enqueue(7)

    assert [answer.outcome for answer in (first, twin, other, after)] == [
        Outcome.created,
        Outcome.duplicate,
        Outcome.created,
        Outcome.created,
    ]
    assert twin.id == first.id != after.id


def test_scope_live_holds_the_key_until_the_job_has_ended(both: App) -> None:
    @both.task(unique=Unique("order:{order_id}", scope="live"))
    def sync(order_id: int) -> int:
        return order_id

    hands = Hands(both.store, "sync")
    first = sync.enqueue(7)
    (job,) = hands.claim()

    while_running = sync.enqueue(7)
    hands.complete(job, b"7")
    afterwards = sync.enqueue(7)

    assert (while_running.outcome, while_running.id) == (Outcome.duplicate, first.id)
    assert while_running.result(timeout="10s") == 7
    assert afterwards.outcome is Outcome.created


def test_debounce_replaces_the_waiting_job(both: App) -> None:
    @both.task(unique=Unique("{page}", on_conflict="replace"))
    def render(page: str, text: str) -> None: ...

    later = render.using(delay="5s")

    first, second = later.enqueue("home", "a"), later.enqueue("home", "ab")

    assert (first.outcome, second.outcome) == (Outcome.created, Outcome.created)
    with pytest.raises(JobSkipped, match=f"replaced by job {second.id}"):
        first.result(timeout="10s")


def test_keys_hold_within_one_call_and_answers_keep_their_order(both: App) -> None:
    @both.task
    def send(n: int) -> None: ...

    drafts = [send.using(idempotency_key=f"k{n}").draft(n) for n in (5, 3, 5, 1, 3)]

    answers = both.enqueue_many(drafts)

    assert [answer.outcome for answer in answers] == [
        Outcome.created,
        Outcome.created,
        Outcome.duplicate,
        Outcome.created,
        Outcome.duplicate,
    ]
    assert (answers[2].id, answers[4].id) == (answers[0].id, answers[1].id)


def test_a_duplicate_inside_a_transaction_is_no_reason_to_roll_back(both: App) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    first = send.using(idempotency_key="k").enqueue(7)

    with both.transaction() as connection:
        joined = send.using(connection=connection)
        second = joined.using(idempotency_key="k").enqueue(7)
        with pytest.raises(KeyReused):
            joined.using(idempotency_key="k").enqueue(8)
        third = joined.enqueue(9)

    assert (second.outcome, second.id) == (Outcome.duplicate, first.id)
    assert both.store.inspection.lookup([third.id])[0] is not None


def test_a_key_of_a_transaction_that_was_rolled_back_is_free(both: App) -> None:
    @both.task
    def send(order_id: int) -> None: ...

    keyed = send.using(idempotency_key="k", unique_key="k")

    with pytest.raises(ZeroDivisionError), both.transaction() as connection:
        keyed.using(connection=connection).enqueue(7)
        raise ZeroDivisionError

    assert keyed.enqueue(8).outcome is Outcome.created


def test_a_job_older_than_the_newest_completed_of_its_key_is_stale(both: App) -> None:
    @both.task
    def sync(order_id: int) -> None: ...

    def at(version: int) -> Any:
        return sync.using(unique_key="order:7", version=version)

    hands = Hands(both.store, "sync")
    at(5).enqueue(7)
    hands.complete(hands.claim()[0])
    older = at(4).enqueue(7)

    assert hands.claim() == ()
    with pytest.raises(JobSkipped, match="stale"):
        older.result(timeout="10s")
