"""What `every`, `cron`, `tick` and `schedule` take, refuse and store."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from duly import App, Blob, Job, UsageError
from duly.core.registration import Schedule
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import ScheduleTakenOver
from duly.testing.clock import FakeClock
from duly.worker.embedded import Embedded
from duly.worker.registration import declare, registration_of
from tests.schedules.conftest import app_on
from tests.waiting import wait_until

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def digest() -> None:
    pass


def send(order_id: int, how: str = "mail") -> None:
    pass


def stored(app: App) -> list[Schedule]:
    declare(app)
    return [record.schedule for record in app.inspect.schedules()]


def test_the_task_stays_a_task_and_its_schedule_is_stored_under_its_name(filed: App) -> None:
    task = filed.cron("0 9 * * 1-5", tz="Europe/Berlin", jitter="5m", overlap="queue")(filed.task(digest))

    (schedule,) = stored(filed)
    enqueued = task.enqueue()

    assert (schedule.name, schedule.cron, schedule.tz) == ("digest", "0 9 * * 1-5", "Europe/Berlin")
    assert (schedule.jitter, schedule.catch_up, schedule.overlap) == (timedelta(minutes=5), "last", "queue")
    assert schedule.job is not None
    assert (schedule.job.task, schedule.job.args) == ("digest", b"{}")
    assert enqueued.outcome == "created"


def test_one_task_may_have_several_schedules_with_names_of_their_own(filed: App) -> None:
    task = filed.task(digest)

    filed.every("1h")(filed.every("1d", name="daily")(task))

    assert [schedule.name for schedule in stored(filed)] == ["daily", "digest"]


def test_a_task_with_a_job_and_defaults_needs_no_argument(filed: App) -> None:
    @filed.every("1h")
    @filed.task
    def report(job: Job, days: int = 7) -> None:
        pass

    (schedule,) = stored(filed)

    assert schedule.job is not None
    assert schedule.job.args == b"{}"


def test_two_schedules_of_one_name_are_refused_with_both_places(filed: App) -> None:
    filed.every("1h", name="nightly")(filed.task(digest))

    with pytest.raises(
        UsageError, match=r"(?s)two schedules are named 'nightly'.*test_declaring.py.*name='…'"
    ):
        filed.every("1h", name="nightly")(filed.task(another))
    with pytest.raises(UsageError, match="two schedules named 'nightly'"):
        filed.every("2h", name="nightly")(filed.tasks["digest"])


def another() -> None:
    pass


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda app: app.every("1h")(digest), "write @jobs.task directly above"),
        (lambda app: app.every("1h")(app.task(send)), "needs order_id"),
        (lambda app: app.every("300ms"), "at least '1s'"),
        (lambda app: app.every(60), "no unit; write '60s'"),
        (lambda app: app.every("1h", jitter="2h"), "shorter than every"),
        (lambda app: app.every("1h", overlap="both"), '"skip", "queue" or "allow"'),
        (lambda app: app.every("1h", catch_up="each"), '"last", "skip" or "all"'),
        (lambda app: app.cron("0 9 * *", tz="UTC"), "not five fields"),
        (lambda app: app.cron("0 9 * * *", tz="Mars/Base"), "no time zone"),
        (lambda app: app.cron("0 9 * * *", tz=None), "write tz='Europe/Berlin'"),
        (lambda app: app.every("1h", name="a b")(app.task(digest)), "separates names"),
        (lambda app: app.tick("10s", source="select 1", key="o:{order_id}")(send), "is no task"),
        (lambda app: app.tick("10s", source="select 1", key="order")(app.task(send)), "same for every row"),
        (lambda app: app.tick("10s", source="select 1", key="o:{oder_id}")(app.task(send)), "did you mean 'order_id'"),
        (lambda app: app.tick("10s", source="select 1", key="o:{")(app.task(send)), "no template"),
        (lambda app: app.tick("10s", source=" ", key="o:{order_id}")(app.task(send)), "source is empty"),
        (lambda app: app.tick("10s", source=7, key="o:{order_id}")(app.task(send)), "neither SQL nor a function"),
        (lambda app: app.tick("10s", source=asynchronous, key="o:{order_id}")(app.task(send)), "source is async"),
        (lambda app: app.schedule("s", send, every="1h"), "write task.draft"),
        (lambda app: app.schedule("s", app.task(digest).draft()), "give either"),
        (lambda app: app.schedule("s", app.task(digest).draft(), cron="0 9 * * *"), "needs its time zone"),
        (lambda app: app.schedule("s", app.task(digest).draft(), every="1h", tz="Asia/Tokyo"), "has no time zone"),
        (lambda app: app.schedule("s", app.task(digest).using(delay="1h").draft(), every="1h"), "leave out delay"),
        (lambda app: app.schedule("s", app.task(digest).using(connection=1).draft(), every="1h"), "goes elsewhere"),
        (
            lambda app: app.schedule("s", app.task(digest).using(idempotency_key="k").draft(), every="1h"),
            "use unique_key",
        ),
        (lambda app: app.schedule("s", App().task(digest).draft(), every="1h"), "belongs to another App"),
    ],
)  # fmt: skip
def test_what_could_not_work_is_refused_with_what_to_write(
    filed: App, act: Callable[[Any], object], words: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        act(filed)

    assert words in str(refusal.value)
    assert filed.inspect.schedules() == ()


async def asynchronous(connection: object) -> list[tuple[int]]:
    return []


def test_a_schedule_stored_at_run_time_goes_on_until_it_is_changed(jobs: App, clock: FakeClock) -> None:
    task = jobs.task(send)

    first = jobs.schedule("customer-7", task.using(tenant="acme").draft(7), every="1h")
    clock.advance(timedelta(minutes=30))
    same = jobs.schedule("customer-7", task.using(tenant="acme").draft(7), every="1h")
    changed = jobs.schedule("customer-7", task.draft(7), cron="0 9 * * *", tz="UTC")

    assert (first.next_at, same.next_at) == (NOON + DAY / 24, NOON + DAY / 24)
    assert changed.next_at == NOON + DAY - timedelta(hours=3)
    assert changed.schedule.job is not None
    assert (changed.origin, changed.schedule.job.args) == ("", b'{"order_id":7}')
    assert len(jobs.inspect.schedules()) == 1


def test_the_record_of_a_schedule_has_its_name(filed: App) -> None:
    record = filed.schedule("nightly", filed.task(digest).draft(), every="1h")

    assert record.name == record.schedule.name == "nightly"


@pytest.mark.asyncio
async def test_async_code_schedules_too(filed: App) -> None:
    record = await filed.aschedule("nightly", filed.task(digest).draft(), cron="@daily", tz="UTC")

    assert record == (await filed.inspect.aschedules())[0]


def test_beside_an_open_transaction_of_this_thread_on_the_same_file_it_does_not_wait_for_itself(
    filed: App, file_url: str
) -> None:
    task = filed.task(digest)
    filed.inspect.schedules()

    with filed.transaction(), pytest.raises(UsageError, match="would wait for it"):
        filed.schedule("nightly", task.draft(), every="1h")

    assert filed.inspect.schedules() == ()


def test_a_declared_schedule_is_not_replaced_at_run_time(filed: App) -> None:
    task = filed.every("1h")(filed.task(digest))

    with pytest.raises(UsageError, match="declared in code"):
        filed.schedule("digest", task.draft(), every="2h")


def test_a_schedule_that_another_process_declares_is_not_replaced_at_run_time(
    jobs: App, url: str, clock: FakeClock
) -> None:
    jobs.every("1h")(jobs.task(digest))
    declare(jobs)
    stranger = app_on(url, clock)
    task = stranger.task(digest)

    with pytest.raises(
        UsageError, match=r"declared in code by .*; take another name, .* duly schedules remove digest"
    ):
        stranger.schedule("digest", task.draft(), every="2h")
    stranger.operate.remove_schedule("digest")
    after = stranger.schedule("digest", task.draft(), every="2h")
    stranger.close()

    assert (after.origin, after.schedule.every) == ("", DAY / 12)


def test_a_worker_that_takes_a_schedule_over_says_so_once(jobs: App, url: str, clock: FakeClock) -> None:
    said: list[Happening] = []
    hub = Hub()
    hub.listen(said.append)
    task = jobs.task(digest)
    jobs.schedule("nightly", task.draft(), every="2h")
    later = app_on(url, clock)
    later.every("1h", name="nightly")(later.task(digest))
    later.every("1h", name="other")(later.tasks["digest"])

    for _ in range(2):
        assert declare(later, hub)
    later.close()

    (taken,) = [event for event in said if isinstance(event, ScheduleTakenOver)]
    assert (taken.schedule, taken.before, taken.level) == ("nightly", "", "warning")
    assert taken.sentence().startswith("schedule nightly was stored at run time and is from now on what ")
    assert jobs.inspect.schedule("nightly").origin == taken.origin


def test_a_draft_with_a_blob_is_refused(filed: App, tmp_path: Path, file_url: str) -> None:
    (tmp_path / "content").write_bytes(b"x")
    app = App(file_url, blobs=f"file://{tmp_path}/blobs")

    def look(content: Blob) -> None:
        pass

    with pytest.raises(UsageError, match="holds a Blob"):
        app.schedule("s", app.task(look).draft(Blob.of(tmp_path / "content")), every="1h")
    app.close()


def test_a_registration_holds_all_that_is_declared_and_only_changes_change_its_release(filed: App) -> None:
    filed.queue("mail", owner="growth@shop", keep="2h")
    filed.every("1h")(filed.task(queue="mail", priority=5, expires="1d")(digest))

    before = registration_of(filed, NOON)
    later = registration_of(filed, NOON + DAY)
    filed.task(another)
    changed = registration_of(filed, NOON)

    assert before.release == later.release != changed.release
    assert before.queues[0].keep == timedelta(hours=2)
    assert (before.tasks[0].priority, before.tasks[0].expires) == (5, DAY)
    assert [first for _, first in before.schedules] == [NOON + DAY / 24]
    assert before.origin


def test_a_worker_stores_what_its_app_declares(filed: App) -> None:
    filed.every("1h")(filed.task(digest))

    with Embedded(filed):
        wait_until(filed.inspect.schedules)


def test_a_task_of_another_app_is_not_scheduled() -> None:
    task, stranger = App("sqlite:///other.db").task(digest), App("sqlite:///mine.db")

    with pytest.raises(UsageError, match=r"task 'digest' .* belongs to another App"):
        stranger.every("1h")(task)
    with pytest.raises(UsageError, match="belongs to another App"):
        stranger.tick("10s", source="select 1", key="k")(task)


def test_an_empty_time_zone_is_not_taken_for_utc() -> None:
    with pytest.raises(UsageError, match="tz='' is no time zone; write one such as"):
        App("sqlite:///mine.db").cron("0 9 * * *", tz="")
