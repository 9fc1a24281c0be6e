"""What people do with jobs on the pages: find them by keyboard, look at one while it runs, act on them and say why."""

import re

from playwright.sync_api import expect

from duly.core.lifecycle import State
from tests.browser import shop_app
from tests.browser.scene import Scene
from tests.browser.watched import Watched, look
from tests.waiting import wait_until


def test_a_filter_is_completed_and_sent_by_keyboard_alone(shop: Scene, admin: Watched) -> None:
    admin.goto("/ui")
    page = admin.page
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("/ui/jobs$"))

    page.keyboard.press("/")
    page.keyboard.type("state=de")
    expect(page.get_by_role("option", name="dead")).to_be_visible()
    look(admin, "jobs-completion")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("queue=bill")
    expect(page.get_by_role("option", name="billing")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"q=state%3Ddead\+queue%3Dbilling"))
    expect(page.get_by_role("row").filter(has_text="charge")).to_have_count(len(shop.jobs.broken))
    admin.fine()


def test_a_filter_that_means_nothing_says_what_to_write(shop: Scene, admin: Watched) -> None:
    admin.expects(422)

    admin.goto("/ui/jobs?q=stat%3Ddead")

    expect(admin.page.get_by_role("alert")).to_be_visible()
    look(admin, "jobs-wrong-filter")


def test_a_job_is_followed_without_a_reload(shop: Scene, admin: Watched) -> None:
    job = shop_app.resize.using(app=shop.app).enqueue("lake.jpg", go="lake").id
    admin.goto(f"/ui/jobs/{job}")
    expect(admin.page.get_by_text("lake.jpg: drawing")).to_be_visible()

    shop.let("lake")

    expect(admin.page.locator(".page-head .state")).to_have_text("completed")
    expect(admin.page.get_by_text('"/photos/lake.jpg"')).to_be_visible()
    admin.fine()


def test_a_job_is_cancelled_for_a_reason_that_is_kept(shop: Scene, admin: Watched) -> None:
    job = shop_app.remind.using(app=shop.app, delay="5d").enqueue(9).id
    admin.goto(f"/ui/jobs/{job}")
    page = admin.page

    page.locator("#act-cancel summary").click()
    look(admin, "job-act")
    page.locator("#act-cancel").get_by_label("Reason").fill("the customer called")
    page.keyboard.press("Enter")

    expect(page.locator(".flash")).to_be_visible()
    expect(page.locator(".page-head .state")).to_have_text("cancelled")
    assert shop.state(job) is State.cancelled
    assert ("cancel", "the customer called") in [
        (entry.verb, entry.reason) for entry in shop.app.store.audits.page(limit=20)
    ]
    admin.fine()


def test_those_that_are_ticked_are_acted_on_and_no_other(shop: Scene, admin: Watched) -> None:
    remind = shop_app.remind.using(app=shop.app, delay="6d", tags=["recall"])
    first, second, third = (remind.enqueue(number).id for number in range(3))
    admin.goto("/ui/jobs?q=tag%3Drecall")
    page = admin.page

    page.get_by_label(f"Select job {first}").check()
    page.get_by_label(f"Select job {third}").check()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.get_by_label("Reason").fill("recalled by mistake")
    page.get_by_role("button", name="Cancel selected").click()

    expect(page.locator(".flash")).to_be_visible()
    wait_until(lambda: shop.state(first) is State.cancelled, what="the first is cancelled")
    assert [shop.state(id) for id in (first, second, third)] == [
        State.cancelled,
        State.scheduled,
        State.cancelled,
    ]
    admin.fine()


def test_keys_are_listed_and_the_theme_is_kept(shop: Scene, admin: Watched) -> None:
    admin.goto("/ui")
    page = admin.page

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    look(admin, "keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.emulate_media(color_scheme="light")
    admin.goto("/ui")
    page.get_by_role("button", name="Dark").click()
    admin.goto("/ui/workers")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    admin.fine()
