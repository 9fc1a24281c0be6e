"""A page that is made fresh in place: what somebody does on it meanwhile, and what it said to them, stay."""

from playwright.sync_api import Page, expect

from tests.browser import shop_app
from tests.browser.scene import Scene
from tests.browser.watched import Watched

FRESH = """() => new Promise((done) => {
  document.addEventListener("duly:fresh", () => done(null), { once: true });
  document.dispatchEvent(new Event("visibilitychange"));
})"""


def make_fresh(page: Page, times: int = 1) -> None:
    """The page has looked at the server once more, and is as the server has it."""
    for _ in range(times):
        page.evaluate(FRESH)


def test_a_form_stays_open_on_a_page_that_has_just_told_of_an_act(shop: Scene, admin: Watched) -> None:
    admin.goto(f"/ui/dead/{shop.fingerprint(shop.jobs.misspelt[0])}")
    page = admin.page
    page.locator("#ack-1 summary").click()
    page.locator("#ack-1").get_by_label("Reason").fill("seen at ten")
    page.locator("#ack-1 form").get_by_role("button").click()
    expect(page.locator("[data-said]")).to_be_visible()

    page.locator("#rest-1 summary").click()
    page.locator("#rest-1").get_by_label("Reason").fill("half of a")
    make_fresh(page, 3)

    page.keyboard.type(" sentence")
    expect(page.locator("#rest-1").get_by_label("Reason")).to_have_value("half of a sentence")
    expect(page.locator("#rest-1").get_by_role("button", name="Begin")).to_be_visible()
    expect(page.locator("[data-said]")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    admin.fine()


def test_a_banner_that_stands_is_neither_doubled_nor_kept_when_it_goes(shop: Scene, admin: Watched) -> None:
    shop.app.operate.pause("billing", reason="stock-taking")
    admin.goto("/ui/queues/billing")
    page = admin.page
    banner = page.locator("#main .flash").filter(has_text="stock-taking")
    expect(banner).to_have_count(1)

    make_fresh(page, 3)
    expect(banner).to_have_count(1)

    shop.app.operate.resume("billing", reason="counted")
    make_fresh(page)
    expect(banner).to_have_count(0)
    admin.fine()


def test_rows_come_and_go_around_a_form_that_is_open(shop: Scene, admin: Watched) -> None:
    remind = shop_app.remind.using(app=shop.app, delay="7d", tags=["coming"])
    first = remind.enqueue(1).id
    admin.goto(f"/ui/jobs/{first}")
    page = admin.page
    page.locator("#act-cancel summary").click()
    page.locator("#act-cancel").get_by_label("Reason").fill("not")

    shop.app.operate.reprioritise(first, 7, reason="sooner")
    make_fresh(page, 2)

    page.keyboard.type(" needed")
    expect(page.locator("#act-cancel").get_by_label("Reason")).to_have_value("not needed")
    admin.fine()
