"""What the end user sees who waits for a job: the ticket's page, alive, without a session."""

from playwright.sync_api import expect

from tests.browser import shop_app
from tests.browser.scene import Scene
from tests.browser.watched import Watched, look


def test_a_ticket_follows_its_job_to_the_end(shop: Scene, stranger: Watched) -> None:
    resize = shop_app.resize.using(app=shop.app)
    job = resize.enqueue("harbour.jpg", go="harbour")
    page = stranger.page

    stranger.goto(f"/t/{job.ticket(title='Your album', link='/photos/harbour.jpg')}")

    expect(page.get_by_role("heading", name="Your album")).to_be_visible()
    expect(page.get_by_text("2 of 5: harbour.jpg: drawing")).to_be_visible()
    look(stranger, "ticket-running")
    shop.let("harbour")
    expect(page.locator("#status").get_by_text("Done", exact=True)).to_be_visible()
    look(stranger, "ticket-done")


def test_a_ticket_without_scripts_says_the_same(shop: Scene, without_scripts: Watched) -> None:
    job = shop_app.remind.using(app=shop.app, delay="2h").enqueue(9)

    without_scripts.goto(f"/t/{job.ticket(title='Your reminder')}")

    expect(without_scripts.page.locator("#status").get_by_text("Planned", exact=True)).to_be_visible()
    without_scripts.fine()


def test_a_text_that_is_no_ticket_is_told_plainly(shop: Scene, stranger: Watched) -> None:
    stranger.expects(404)

    stranger.goto("/t/2Zm9yZ2Vk")

    look(stranger, "ticket-unknown")
