"""Limits, resources, breakers, holds and overrides: how they stand, and what a person does about them."""

from datetime import timedelta

from tests.web.pages.conftest import Answer, Browser, browser_of
from tests.web.pages.forms import form_of, forms_of
from tests.web.pages.scene import HOSTILE, Night, clean


def test_what_bounds_jobs_is_shown_with_who_changed_it_and_why(nights: Night) -> None:
    app = nights.app
    send = app.find_task("send")
    app.enqueue_many(send.draft(n) for n in range(6))
    owner = nights.worker("mail")
    nights.claim(owner, "mail", 6)
    app.operate.limit("mail", max_running=7, lasting="2h", reason="INC-311")
    app.operate.hold("smtp", "10m", reason="they asked for it")
    visitor = browser_of(nights, "read")

    page = visitor.get("/limits").text

    assert "max-running 7" in page
    assert "INC-311" in page
    assert "they asked for it" in page
    assert 'aria-label="4 of 4 in use"' in page
    assert "100/s burst 20" in page
    assert 'class="badge warn">held</span>' in page
    assert "endless" not in page
    assert "disabled" in page
    assert forms_of(page, "/limits/act/lift") == []


def test_an_override_that_never_ends_is_marked_as_bad(one_night: Night) -> None:
    one_night.app.store.control.override("queue:sync", "limit", {"max_running": 1}, None, "bob", "for now")
    visitor = browser_of(one_night, "read")

    page = visitor.get("/limits").text

    assert 'class="endless"' in page
    assert 'class="badge bad">never ends</span>' in page
    assert "1 change has no end" in page


def test_an_override_is_lifted_once(nights: Night) -> None:
    app = nights.app
    made = app.operate.limit("mail", max_running=7, lasting="2h", reason="INC-311")
    visitor = browser_of(nights, "read", "operate:mail")
    fields = form_of(visitor.get("/limits").text, "/limits/act/lift")

    done = visitor.followed(visitor.post("/limits/act/lift", "/limits", **fields, reason="over"))
    again = visitor.post("/limits/act/lift", "/limits", **fields, reason="over")

    assert f"Override {made.id} of queue:mail (max-running 7) is lifted" in done
    assert (again.status_code, app.inspect.overrides()) == (409, ())
    assert nights.acts("lift") == [("test-", "queue:mail", "over")]


def test_a_breaker_is_opened_closed_and_left_to_its_counts(one_night: Night) -> None:
    app = one_night.app
    visitor = browser_of(one_night, "read", "operate")

    def stands() -> str | None:
        return app.inspect.limits(["resource:smtp"])[0].breaker

    def form(state: str) -> dict[str, str]:
        found = forms_of(visitor.get("/limits").text, "/limits/act/breaker", "state")
        return next(fields for fields in found if fields["state"] == state)

    def send(fields: dict[str, str]) -> int:
        answer = visitor.post("/limits/act/breaker", "/limits", **fields, reason="their status page")
        return answer.status_code

    opening = form("open")
    opened = send(opening), stands()
    stale = send(opening), stands()
    closed = send(form("closed")), stands()
    app.operate.breaker("smtp", "open")
    counts = send(form("auto")), stands()
    odd = send({**form("auto"), "state": "ajar"})

    assert (opened, stale) == ((303, "open"), (409, "open"))
    assert (closed, counts, odd) == ((303, "closed"), (303, "closed"), 422)


def test_a_resource_is_held_and_a_queue_bounded_for_a_time(one_night: Night) -> None:
    app = one_night.app
    visitor = browser_of(one_night, "read", "operate")
    page = visitor.get("/limits").text

    held = visitor.followed(
        visitor.post(
            "/limits/act/hold",
            "/limits",
            **{**form_of(page, "/limits/act/hold"), "lasting": "10m"},
            reason="429",
        )
    )
    bounded = visitor.followed(_bound(visitor, target="sync", max_running="3", rate="5/s", lasting="1h"))
    wrong = [
        _bound(visitor, **fields).status_code
        for fields in (
            {"target": "sync", "max_running": "three", "lasting": "1h"},
            {"target": "sync", "max_running": "3", "lasting": ""},
            {"target": "sync", "lasting": "1h"},
            {"target": "snyc", "max_running": "3", "lasting": "1h"},
            {"target": "", "max_running": "3", "lasting": "1h"},
        )
    ]

    assert "Nobody begins to use smtp until" in held
    assert "queue:sync, max-running 3, rate 5/s" in bounded
    assert wrong == [422, 422, 422, 404, 422]
    assert app.inspect.limits(["resource:smtp"])[0].held_reason == "429"
    (made,) = app.inspect.overrides()
    assert made.until is not None
    assert made.until - made.at == timedelta(hours=1)


def test_of_a_queue_that_is_not_the_visitors_nothing_is_shown_or_changed(one_night: Night) -> None:
    app = one_night.app
    made = app.operate.limit("sync", max_running=7, lasting="2h", reason="INC-77")
    visitor = browser_of(one_night, "read:mail", "operate:mail")
    page = visitor.get("/limits").text

    answers = [
        visitor.post("/limits/act/lift", "/limits", id=made.id, reason="mine").status_code,
        _bound(visitor, target="sync", max_running="1", lasting="1h").status_code,
        _bound(visitor, target="resource:smtp", max_running="1", lasting="1h").status_code,
        _bound(visitor, target="queue:sync", max_running="1", lasting="1h").status_code,
        _bound(visitor, target="mail", max_running="1", lasting="1h").status_code,
    ]

    assert "INC-77" not in page
    assert "smtp" not in page
    assert answers == [403, 403, 403, 403, 303]
    assert {one.target for one in app.inspect.overrides()} == {"queue:sync", "queue:mail"}


def test_reasons_and_authors_are_harmless(nights: Night) -> None:
    app = nights.app
    app.operate.limit("mail", max_running=7, lasting="2h", reason=HOSTILE)
    app.operate.hold("smtp", "10m", reason=HOSTILE * 40)
    visitor = browser_of(nights, "read", "operate")

    page = visitor.get("/limits")
    wrong = _bound(visitor, target=HOSTILE, max_running="3", lasting="1h")

    assert page.status_code == 200
    assert clean(page.text)
    assert "alert(1)" in page.text
    assert wrong.status_code == 404
    assert clean(wrong.text)


def _bound(visitor: Browser, **fields: str) -> Answer:
    return visitor.post("/limits/act/bound", "/limits", **fields, reason="INC-312")
