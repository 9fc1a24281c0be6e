"""Dead letters as a list of work: seen, one edited, one tried and watched, and then the rest."""

import re

from playwright.sync_api import expect

from duly.core.lifecycle import State
from tests.browser import shop_app
from tests.browser.scene import Scene
from tests.browser.watched import Watched, look
from tests.waiting import wait_until


def test_a_group_is_seen_mended_tried_on_one_and_then_run_again(shop: Scene, admin: Watched) -> None:
    refund = shop_app.refund.using(app=shop.app)
    edited, tried, *rest = (refund.enqueue(number, cents=995).id for number in range(5))
    wait_until(
        lambda: all(shop.state(id) is State.dead for id in (edited, tried, *rest)),
        timeout=60,
        what="five dead letters",
    )
    page = admin.page

    admin.goto("/ui/dead")
    page.get_by_role("row").filter(has_text="refunds nothing").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("PermissionError")

    page.locator("#ack-1 summary").click()
    acknowledging = page.locator("#ack-1 form")
    acknowledging.get_by_label("Owner").fill("ada@shop.example")
    acknowledging.get_by_label("Note").fill("the bank is asked")
    acknowledging.get_by_label("Reason").fill("seen at nine")
    acknowledging.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".flash")).to_be_visible()
    expect(page.locator(".badge").filter(has_text="acknowledged")).to_be_visible()
    expect(page.get_by_text("the bank is asked")).to_be_visible()

    shop.let("refund")
    page.locator(f"[data-row=letter-{edited}]").get_by_role("link", name="Edit").click()
    page.get_by_label("Arguments, as JSON").fill('{"order_id": 0, "cents": 500}')
    page.get_by_label("Reason").fill("it was the wrong sum")
    page.get_by_role("button", name="Run it so").click()
    expect(page.locator(".flash")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/jobs/\d+"))
    successor = int(re.findall(r"/ui/jobs/(\d+)", page.url)[0])
    wait_until(lambda: shop.state(successor) is State.completed, timeout=60, what="it ends well")
    assert shop.app.inspect.job(successor).job.result == b'"refunded 500"'

    admin.goto(f"/ui/dead/{shop.fingerprint(tried)}")
    page.locator(f"#one-{tried} summary").click()
    page.locator(f"#one-{tried}").get_by_label("Reason").fill("to see whether it works")
    page.locator(f"#one-{tried} form").get_by_role("button").click()
    expect(page.get_by_text("It ended well")).to_be_visible()
    look(admin, "triage-watched")

    page.locator("#rest-1 summary").click()
    page.locator("#rest-1").get_by_label("Reason").fill("the gateway refunds again")
    page.locator("#rest-1").get_by_role("button", name="Begin").click()
    expect(page.locator(".flash")).to_be_visible()
    wait_until(
        lambda: all(shop.state(id) is State.completed for id in (tried, *rest)), timeout=60, what="the rest"
    )
    assert shop.state(edited) is State.dead
    assert shop.app.inspect.job(successor).job.trigger == f"edited:{edited}"
    admin.fine()

    admin.goto("/ui/audit")
    for reason in (
        "seen at nine",
        "it was the wrong sum",
        "to see whether it works",
        "the gateway refunds again",
    ):
        expect(page.get_by_text(reason)).to_be_visible()


def test_a_group_that_is_marked_fixed_is_new_again_when_one_more_dies(shop: Scene, admin: Watched) -> None:
    weigh = shop_app.weigh.using(app=shop.app)
    first = weigh.enqueue("P-1").id
    wait_until(lambda: shop.state(first) is State.dead, timeout=60, what="a dead letter")
    admin.goto("/ui/dead")
    page = admin.page
    page.get_by_role("row").filter(has_text="weigh").get_by_role("link").first.click()
    page.locator("#fixed-1 summary").click()
    page.locator("#fixed-1").get_by_label("Reason").fill("the scales are there")
    page.locator("#fixed-1 form").get_by_role("button").click()
    expect(page.locator(".badge").filter(has_text=re.compile("^fixed"))).to_be_visible()

    second = weigh.enqueue("P-2").id
    wait_until(lambda: shop.state(second) is State.dead, timeout=60, what="another one")

    expect(page.get_by_text("Fixed, but")).to_be_visible()
    admin.fine()
