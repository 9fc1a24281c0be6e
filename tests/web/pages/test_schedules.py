"""Schedules: when they are due in plain words, what failed, and what a person does about them."""

from duly import App
from duly.worker.registration import declare
from tests.web.pages.conftest import Browser, browser_of
from tests.web.pages.forms import forms_of
from tests.web.pages.scene import HOSTILE, Night, clean


def form(visitor: Browser, act: str, at: int = 0) -> dict[str, str]:
    return forms_of(visitor.get("/schedules").text, f"/schedules/act/{act}")[at]


def test_what_is_due_is_told_in_plain_words_and_its_own_zone(nights: Night) -> None:
    record = nights.app.inspect.schedule("refresh")
    assert nights.app.store.schedules.fail("refresh", record.next_at, "no room left")
    visitor = browser_of(nights, "read")

    page = visitor.get("/schedules").text

    assert "every weekday at 07:30 Europe/Lisbon" in page
    assert "every 10m" in page
    assert page.count(", 07:30 ") == 3
    assert "failed 1 time" in page
    assert "no room left" in page
    assert page.index("refresh") < page.index("digest")
    assert "digest" not in visitor.get("/schedules", q="refr").text


def test_a_schedule_is_run_now_paused_and_resumed(nights: Night) -> None:
    visitor = browser_of(nights, "read", "operate:mail")
    due = nights.app.inspect.schedule("digest").next_at

    run = visitor.followed(
        visitor.post("/schedules/act/run", "/schedules", **form(visitor, "run"), reason="INC-311")
    )
    pausing = form(visitor, "pause")
    paused = visitor.followed(visitor.post("/schedules/act/pause", "/schedules", **pausing, reason="INC-311"))
    again = visitor.post("/schedules/act/pause", "/schedules", **pausing, reason="INC-311")
    stands = nights.app.inspect.schedule("digest").paused
    resumed = visitor.followed(
        visitor.post("/schedules/act/resume", "/schedules", **form(visitor, "resume"), reason="over")
    )

    (job,) = nights.app.inspect.jobs().jobs
    assert (job.task, job.trigger is not None and job.trigger.startswith("schedule:digest@")) == (
        "digest",
        True,
    )
    assert f"digest enqueued job {job.id}" in run
    assert "digest is paused" in paused
    assert (again.status_code, stands) == (409, True)
    assert "digest fires again" in resumed
    assert nights.app.inspect.schedule("digest").next_at == due
    assert nights.acts() == [
        ("test-", "schedule:digest", "over"),
        ("test-", "schedule:digest", "INC-311"),
        ("test-", "schedule:digest", "INC-311"),
    ]


def test_only_the_schedules_of_the_visitors_queues_are_shown_and_run(one_night: Night) -> None:
    admin = browser_of(one_night, "admin")
    (of_refresh,) = forms_of(admin.get("/schedules", q="refresh").text, "/schedules/act/run")
    reader = browser_of(one_night, "read:mail", "operate:mail")
    other = browser_of(one_night, "read", "operate:mail")

    page = reader.get("/schedules").text
    answers = [
        one.post("/schedules/act/run", "/schedules", **of_refresh, reason="x").status_code
        for one in (reader, other)
    ]

    assert "digest" in page
    assert "refresh" not in page
    assert answers == [403, 403]
    assert one_night.app.inspect.jobs().jobs == ()


def test_a_tick_of_another_app_cannot_be_run_from_here(one_night: Night) -> None:
    other = App(one_night.app.settings.url)
    other.queue("mail")

    @other.tick("1m", source="select 1 as order_id where 0", key="ship:{order_id}")
    @other.task(queue="mail")
    async def ship(order_id: int) -> None: ...

    declare(other)
    other.close()
    visitor = browser_of(one_night, "admin")

    page = visitor.get("/schedules", q="ship").text

    assert "a tick" in page
    assert "its rows are read by code of" in page
    assert forms_of(page, "/schedules/act/run") == []


def test_names_and_failures_are_harmless(nights: Night) -> None:
    name = HOSTILE.replace(" ", "")
    app = nights.app
    app.schedule(name, app.find_task("digest").draft(), cron="*/7 1,2,3 L * *", tz="UTC")
    record = app.inspect.schedule(name)
    app.store.schedules.fail(name, record.next_at, HOSTILE * 50)
    visitor = browser_of(nights, "admin")

    page = visitor.get("/schedules", q="<script>")
    done = visitor.post(
        "/schedules/act/run", "/schedules", **forms_of(page.text, "/schedules/act/run")[0], reason=HOSTILE
    )

    assert page.status_code == 200
    assert clean(page.text)
    assert "last day" in page.text
    assert clean(visitor.client.get(done.headers["location"]).text)
