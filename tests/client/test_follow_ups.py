"""Follow-ups: which drafts may follow, how they are written, and that they run with the result of the job before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from duly import RESULT, App, Blob, Dead, Job, PayloadError, State, UsageError
from duly.client.enqueue import new_job
from duly.client.followups import MOST
from duly.client.job import LocalPort, current
from duly.core.job import RESULT_MARK, JobRecord, Token
from tests.client.conftest import Hands
from tests.waiting import await_until

MARK = RESULT_MARK.decode()
HOUR = timedelta(hours=1)


def test_drafts_become_jobs_with_all_their_options_and_followers(jobs: App) -> None:
    jobs.queue("slow")

    @jobs.task
    def fetch(day: str) -> list[int]:
        return [1]

    @jobs.task(queue="slow", unique="{day}")
    def store(day: str, rows: list[int]) -> int:
        return len(rows)

    @jobs.task
    def tell(text: str, count: int | None = None) -> None: ...

    draft = fetch.using(
        then=[
            store.using(delay="1h", tenant="acme", then=[tell.draft("stored", count=RESULT)]).draft(
                "mon", RESULT
            )
        ],
        on_dead=[tell.using(priority=1, idempotency_key="k").draft("failed")],
    ).draft("mon")

    job = new_job(draft, None)

    (then,), (dead,) = job.then, job.on_dead
    (nested,) = then.then
    assert (then.queue, then.task, then.args) == ("slow", "store", f'{{"day":"mon","rows":{MARK}}}'.encode())
    assert (then.tenant, then.delay, then.unique is not None) == ("acme", HOUR, True)
    assert nested.args == f'{{"text":"stored","count":{MARK}}}'.encode()
    assert (dead.task, dead.priority, dead.idempotency is not None) == ("tell", 1, True)
    assert {each.correlation_id for each in (then, dead, nested)} == {None}


def test_follow_ups_of_a_handlers_enqueue_carry_no_token_of_its_attempt(jobs: App) -> None:
    @jobs.task
    def parent() -> None: ...

    hands = Hands(jobs.store, "parent")
    parent.enqueue()
    (claimed,) = hands.claim()
    inside = Job(
        id=claimed.id,
        task="parent",
        queue="default",
        port=LocalPort("test", HOUR),
        encode=lambda _: (None, None),
        correlation_id="r-1",
        token=Token(hands.incarnation, claimed.id, claimed.run),
    )

    job = new_job(parent.using(then=[parent.draft()]).draft(), inside)

    assert (job.holder, job.correlation_id) == (inside.token, "r-1")
    assert (job.then[0].holder, job.then[0].correlation_id) == (None, None)
    assert current.get() is None


def test_a_later_using_replaces_the_follow_ups(jobs: App) -> None:
    @jobs.task
    def handler() -> None: ...

    both = handler.using(then=[handler.draft()], on_dead=[handler.draft()])

    assert len(new_job(both.using(then=[]).draft(), None).then) == 0
    assert len(new_job(both.using(priority=1).draft(), None).then) == 1
    assert len(new_job(both.using(then=(handler.draft() for _ in range(3))).draft(), None).then) == 3


def test_the_result_in_on_dead_is_refused(jobs: App) -> None:
    @jobs.task
    def handler(value: int = 0) -> int:
        return value

    with pytest.raises(UsageError, match=r"on_dead\[1\], handler\(RESULT\): RESULT stands for the result"):
        handler.using(on_dead=[handler.draft(), handler.draft(RESULT)]).enqueue()
    with pytest.raises(UsageError, match="RESULT stands for the result of the job before"):
        handler.enqueue(RESULT)

    nested = handler.using(on_dead=[handler.using(then=[handler.draft(RESULT)]).draft()])
    assert new_job(nested.draft(), None).on_dead[0].then[0].args == f'{{"value":{MARK}}}'.encode()


def test_a_follow_up_that_cannot_be_stored_is_named_with_its_place(jobs: App) -> None:
    @jobs.task
    def handler(value: Any = 0) -> int:
        return 1

    with pytest.raises(
        PayloadError, match=r"then\[0\], handler\(\): then\[1\], handler\(.*'value\[1\]'"
    ) as caught:
        handler.using(
            then=[handler.using(then=[handler.draft(), handler.draft([RESULT, float("nan")])]).draft()]
        ).enqueue()

    assert caught.value.path == "value[1]"
    assert jobs.inspect.jobs().jobs == ()


def test_what_may_not_follow_is_refused_with_what_to_write(jobs: App, sqlite_url: str) -> None:
    other = App(sqlite_url)

    @other.task
    def foreign() -> None: ...

    @jobs.task
    def handler() -> None: ...

    eu = jobs.at(sqlite_url + "2")
    wrong: list[tuple[Any, str]] = [
        ([handler], r"then\[0\] is <Task handler.*write task\.draft"),
        (handler.draft(), r"then=handler\(\) is one draft; write then=\[handler\(\)\]"),
        ([handler.using(connection=object()).draft()], "brings a connection.*leave connection= out"),
        ([handler.draft()] * (MOST + 1), f"holds {MOST + 1} follow-ups.*at most {MOST}"),
    ]
    wrong_when_enqueued: list[tuple[Any, str]] = [
        ([foreign.draft()], r"then\[0\], foreign\(\), belongs to another App"),
        ([handler.using(app=eu).draft()], r"then\[0\], handler\(\), is for another store"),
        ([handler.using(queue="nowhere").draft()], r"then\[0\].*'nowhere', which is not declared"),
    ]

    for then, told in wrong:
        with pytest.raises(UsageError, match=told):
            handler.using(then=then)
    for then, told in wrong_when_enqueued:
        with pytest.raises(UsageError, match=told):
            handler.using(then=then).enqueue()
    assert jobs.inspect.jobs().jobs == ()


def test_the_blobs_of_a_follow_up_last_as_long_as_the_job_before_it(jobs: App, tmp_path: Any) -> None:
    app = App(jobs.settings.url, blobs=f"file://{tmp_path}/blobs")
    file = tmp_path / "big"
    file.write_bytes(b"content")

    @app.task
    def load(blob: Blob) -> None: ...

    @app.task
    def handler() -> None: ...

    blob = Blob.of(file)
    deep = handler.using(then=[handler.using(on_dead=[load.draft(blob)]).draft()]).draft()

    first, again = new_job(deep, None), new_job(deep, None)
    beside = new_job(load.using(then=[load.draft(blob)]).draft(blob), None)
    app.close()

    assert first == again
    assert len(first.blobs) == 1
    assert first.blobs == first.then[0].blobs == first.then[0].on_dead[0].blobs
    assert beside.blobs == beside.then[0].blobs == first.blobs


@pytest.mark.asyncio
async def test_a_chain_runs_and_each_job_gets_the_result_of_the_one_before(both: App) -> None:
    seen: list[Any] = []

    @both.task
    async def fetch() -> list[int]:
        return [1, 2, 3]

    @both.task
    def total(rows: list[int], scale: dict[str, list[int]]) -> int:
        return sum(rows) + sum(scale["by"])

    @both.task
    async def tell(number: int) -> str:
        seen.append(number)
        return "told"

    chain = fetch.using(
        correlation_id="order-7",
        then=[total.using(then=[tell.draft(RESULT)]).draft(RESULT, {"by": RESULT})],
    )

    async with both.working():
        await (await chain.aenqueue()).aresult(timeout="30s")
        (told,) = await until_ended(both, "tell")

    assert seen == [12]
    assert (told.state, told.correlation_id) == (State.completed, "order-7")


@pytest.mark.asyncio
async def test_a_dead_job_enqueues_what_was_meant_for_that(both: App) -> None:
    @both.task(attempts=1)
    async def fail() -> None:
        raise Dead("no use")

    @both.task
    async def tell(text: str) -> str:
        return text

    async with both.working():
        failed = await fail.using(then=[tell.draft("never")], on_dead=[tell.draft("it failed")]).aenqueue()
        (told,) = await until_ended(both, "tell")

    assert msgspec.json.decode(told.args) == {"text": "it failed"}
    assert told.correlation_id == str(failed.id)


async def until_ended(app: App, task: str) -> list[JobRecord]:
    async def ended() -> list[JobRecord]:
        page = await app.inspect.ajobs()
        found = [job for job in page.jobs if job.task == task]
        return found if found and all(job.state is State.completed for job in found) else []

    return await await_until(ended, timeout=30)
