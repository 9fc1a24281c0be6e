"""The stories of the dashboard: long lists under change, bulk buttons, and pages that are older than their jobs."""

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest

from duly import App
from duly.client.operations import Pace, advance
from tests.web.conftest import Place, Serving, declare, new_token
from tests.web.pages.populated import begin, kill, put

_OLDER = re.compile(r'href="([^"]+)" rel="next"')
_BOX = re.compile(r'name="job" value="(\d+):')
_MARK = re.compile(r'name="form_mark" value="([0-9a-f]+)"')


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest) -> Iterator[Place]:
    app = App(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))
    declare(app)
    app.store.schema.migrate()
    web = app.asgi()
    with ExitStack() as stack, Serving(web) as serving:
        yield Place(app, serving, stack, web.state.site)
        stack.close()
    app.close()


def visitor(place: Place) -> httpx2.Client:
    client = httpx2.Client(base_url=place.serving.url, headers={"Origin": place.serving.url}, timeout=60)
    place.stack.enter_context(client)
    assert client.post("/ui/login", data={"token": new_token(place.app, "admin")}).status_code == 303
    return client


def send(client: httpx2.Client, page: str, path: str, **fields: object) -> httpx2.Response:
    found = _MARK.search(client.get(page).text)
    assert found is not None
    return client.post(path, data={"form_mark": found[1], **fields})


def states(place: Place, ids: list[int]) -> set[str]:
    return {str(job.state) for job in place.app.inspect.lookup(ids) if job is not None}


def test_a_long_list_is_walked_to_its_end_while_workers_go_on(shop: Place) -> None:
    theirs = kill(shop, 400, tenant="a")
    kill(shop, 100, tenant="b")
    client = visitor(shop)
    where: str | None = "/ui/jobs?q=state%3Ddead+tenant%3Da"
    seen: list[int] = []

    while where is not None:
        text = client.get(where).text
        seen += map(int, _BOX.findall(text))
        older = _OLDER.search(text)
        where = None if older is None else html.unescape(older[1])
        # Meanwhile the queue moves, and more die.
        put(shop, tenant="c", count=2)
        begin(shop)
        kill(shop, tenant="a")

    assert seen == sorted(theirs, reverse=True)


def test_all_that_fitted_at_the_click_is_redriven_once_and_no_other(shop: Place) -> None:
    theirs = kill(shop, 150, tenant="a")
    others = kill(shop, 20, tenant="b")
    client = visitor(shop)
    page, path = "/ui/jobs/all/redrive?q=tenant%3Da", "/ui/jobs/all/redrive/act"
    form = {"q": "tenant=a", "rate": "max", "reason": "fixed in 41"}

    shown = client.get(page).text
    first = send(client, page, path, **form)
    second = send(client, page, path, **form)
    later = kill(shop, 10, tenant="a")
    pace = Pace()
    while shop.app.inspect.operations()[0].state == "running":
        advance(shop.app.store, pace=pace)

    (operation,) = shop.app.inspect.operations()
    assert "Redrive 150 jobs" in shown
    assert (first.status_code, second.status_code) == (303, 409)
    assert (operation.total, operation.done) == (150, 150)
    assert states(shop, theirs) == {"ready"}
    assert states(shop, others) == states(shop, later) == {"dead"}


def test_a_button_on_an_old_page_does_nothing_to_a_job_that_has_moved_on(shop: Place) -> None:
    (id,) = kill(shop)
    one, two = visitor(shop), visitor(shop)
    page = f"/ui/jobs/{id}"
    old = {"state": "dead", "run": "1", "reason": "x"}
    two.get(page)

    redriven = send(one, page, f"{page}/act/redrive", **old)
    begin(shop)
    deleted = send(two, page, f"{page}/act/purge", **old)
    again = send(two, page, f"{page}/act/redrive", **old)
    ticked = send(two, page, "/ui/jobs/act/selected", job=f"{id}:dead:1", verb="purge", reason="x")

    assert redriven.status_code == 303
    assert [answer.status_code for answer in (deleted, again, ticked)] == [409, 409, 409]
    assert "it is running by now" in deleted.text
    assert states(shop, [id]) == {"running"}
