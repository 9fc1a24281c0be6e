"""Every page of the dashboard as people see it: in both themes, on a desk and on a phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from duly.client.logins import make_login
from tests.browser.scene import Scene
from tests.browser.watched import Watched, look

PAGES: dict[str, Callable[[Scene], str]] = {
    "overview": lambda _: "/ui",
    "jobs": lambda _: "/ui/jobs",
    "jobs-dead": lambda _: "/ui/jobs?q=state%3Ddead+queue%3Dbilling",
    "queue": lambda _: "/ui/queues/mail",
    "queue-paused": lambda _: "/ui/queues/reports",
    "job-running": lambda shop: f"/ui/jobs/{shop.jobs.running}",
    "job-retrying": lambda shop: f"/ui/jobs/{shop.jobs.retrying}",
    "job-completed": lambda shop: f"/ui/jobs/{shop.jobs.order}",
    "job-dead": lambda shop: f"/ui/jobs/{shop.jobs.misspelt[0]}",
    "jobs-redrive-all": lambda _: "/ui/jobs/all/redrive?q=state%3Ddead+queue%3Dbilling",
    "dead": lambda _: "/ui/dead",
    "dead-group": lambda shop: f"/ui/dead/{shop.fingerprint(shop.jobs.broken[0])}",
    "dead-hostile": lambda shop: f"/ui/dead/{shop.fingerprint(shop.jobs.hostile)}",
    "dead-edit": lambda shop: f"/ui/dead/edit/{shop.jobs.misspelt[0]}",
    "operations": lambda _: "/ui/operations",
    "audit": lambda _: "/ui/audit",
    "tenants": lambda _: "/ui/tenants",
    "limits": lambda _: "/ui/limits",
    "schedules": lambda _: "/ui/schedules",
    "workers": lambda _: "/ui/workers",
    "worker": lambda shop: f"/ui/workers/{shop.app.inspect.workers()[0].incarnation}",
    "alerts": lambda _: "/ui/alerts",
    "trace": lambda _: "/ui/trace/order-77",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_legible_and_keeps_to_itself(name: str, shop: Scene, admin: Watched) -> None:
    admin.goto(PAGES[name](shop))

    expect(admin.page.get_by_role("heading", level=1)).to_be_visible()
    look(admin, name)


def test_every_place_of_the_navigation_is_looked_at(shop: Scene, admin: Watched) -> None:
    admin.goto("/ui")
    links = admin.page.get_by_role("navigation").get_by_role("link").all()

    found = {link.get_attribute("href") for link in links}

    assert found
    assert found <= {page(shop) for page in PAGES.values()}


def test_a_link_opens_the_dashboard_once(shop: Scene, stranger: Watched) -> None:
    code = make_login(shop.app.operate, shop.app.client).code
    stranger.expects(403)
    stranger.goto(f"/ui/login?code={code}")
    look(stranger, "login-link")

    stranger.page.get_by_role("button", name="Open the dashboard").click()

    expect(stranger.page.get_by_role("navigation")).to_be_visible()
    assert code not in stranger.page.url
    stranger.page.context.clear_cookies()
    stranger.goto(f"/ui/login?code={code}")
    stranger.page.get_by_role("button", name="Open the dashboard").click()
    expect(stranger.page.get_by_role("alert")).to_contain_text("used before")
    stranger.fine()


def test_whoever_is_not_signed_in_is_asked_to_and_led_back(shop: Scene, stranger: Watched) -> None:
    stranger.goto("/ui/workers")
    look(stranger, "login")

    stranger.page.get_by_label("Token").fill(shop.token("read"))
    stranger.page.get_by_role("button", name="Sign in").click()

    expect(stranger.page).to_have_url(f"{shop.url}/ui/workers")
    stranger.fine()
