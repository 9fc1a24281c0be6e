"""Signing in and out, forms of other sites, and what everybody is told who may not."""

from datetime import timedelta

import pytest

from duly.client.logins import PURPOSE, make_login, proof_text, read_proof
from duly.core.bearer import digest_of
from duly.web.pages import render
from tests.web.conftest import Place, new_token
from tests.web.pages.conftest import Browser, browser_of


def test_whoever_is_not_signed_in_is_sent_to_sign_in_and_back(small: Place) -> None:
    visitor = browser_of(small)
    token = new_token(small.app, "read")

    sent = visitor.get("", page="2")
    form = visitor.client.get(sent.headers["location"])
    back = visitor.client.post(
        "/ui/login", data={"token": token, "next": "?page=2"}, headers={"Origin": visitor.url}
    )
    inside = visitor.client.post(
        "/ui/login", data={"token": token, "next": "/jobs?q=x"}, headers={"Origin": visitor.url}
    )

    assert (sent.status_code, form.status_code) == (303, 200)
    assert back.headers["location"] == "/ui"
    assert inside.headers["location"] == "/ui/jobs?q=x"
    assert visitor.get("").status_code == 200


@pytest.mark.parametrize("where", ["//evil.test", "https://evil.test", "/\\evil.test", "/a\nb"])
def test_nobody_is_sent_elsewhere_after_signing_in(small: Place, where: str) -> None:
    visitor = browser_of(small)

    answer = visitor.client.post(
        "/ui/login",
        data={"token": new_token(small.app, "read"), "next": where},
        headers={"Origin": visitor.url},
    )

    assert answer.headers["location"] == "/ui"


def test_a_link_opens_the_dashboard_once_and_only_by_its_button(place: Place) -> None:
    login = make_login(place.app.operate, place.app.client, ["read", "operate:mail"])
    first, second = browser_of(place), browser_of(place)

    looked = [first.get("/login", code=login.code).status_code for _ in range(3)]
    opened = first.client.post("/ui/login", data={"code": login.code}, headers={"Origin": first.url})
    again = second.client.post("/ui/login", data={"code": login.code}, headers={"Origin": second.url})

    assert looked == [200, 200, 200]
    assert (opened.status_code, first.get("").status_code) == (303, 200)
    assert "used before" in again.text
    assert (again.status_code, second.get("").status_code) == (403, 303)
    assert login.record.name in first.get("").text


def test_a_session_ends_with_its_token(small: Place) -> None:
    login = make_login(small.app.operate, small.app.client)
    visitor = browser_of(small)
    visitor.client.post("/ui/login", data={"code": login.code}, headers={"Origin": visitor.url})

    before = visitor.get("").status_code
    small.app.operate.revoke_token(login.record.id, reason="left the company")
    small.site.auth.bearers._known.clear()  # as five seconds later

    assert (before, visitor.get("").status_code) == (200, 303)


def test_a_session_is_over_after_twelve_hours(small: Place) -> None:
    ring = small.app.client.signing.ring(PURPOSE)
    digest = digest_of(new_token(small.app, "read"))
    text = proof_text(ring, "session", digest, timedelta(hours=12), lambda: 1_000_000)

    def read(at: float) -> bool:
        return read_proof(small.app.client, text, "session", lambda: at) is not None

    assert [read(1_000_000 + 43_199), read(1_000_000 + 43_201)] == [True, False]
    assert read_proof(small.app.client, text, "code", lambda: 1_000_000) is None


def test_a_changed_cookie_is_none(small: Place) -> None:
    visitor = browser_of(small, "admin")
    cookie = visitor.client.cookies["duly_session"]

    answers = []
    for place_of_change in (0, 10, 40, len(cookie) - 3):
        other = "A" if cookie[place_of_change] != "A" else "B"
        visitor.client.cookies.clear()
        changed = cookie[:place_of_change] + other + cookie[place_of_change + 1 :]
        answers.append(visitor.client.get("/ui", headers={"Cookie": f"duly_session={changed}"}).status_code)

    assert answers == [303] * 4


def test_the_cookie_is_for_the_dashboard_alone(small: Place) -> None:
    visitor = browser_of(small)

    answer = visitor.client.post(
        "/ui/login", data={"token": new_token(small.app, "admin")}, headers={"Origin": visitor.url}
    )
    stolen = visitor.client.cookies["duly_session"]
    used = visitor.client.get("/v1/queues", headers={"Cookie": f"duly_session={stolen}"})

    words = answer.headers["set-cookie"].lower()
    assert all(word in words for word in ("httponly", "samesite=strict", "path=/ui", "max-age="))
    assert used.status_code == 401


def test_signing_out_ends_it(admin: Browser) -> None:
    answer = admin.post("/logout")

    assert answer.headers["location"] == "/ui/login"
    assert admin.get("").status_code == 303


def test_a_form_of_another_site_changes_nothing(small: Place) -> None:
    admin = browser_of(small, "admin")
    mark = admin.mark()

    def sent(mark: str, **headers: str) -> int:
        return admin.client.post("/ui/logout", data={"form_mark": mark}, headers=headers).status_code

    assert sent(mark, Origin="https://evil.test") == 403
    assert sent(mark, Origin="null") == 403
    assert sent(mark, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert sent("", Origin=admin.url) == 403
    assert sent("0" * 32, Origin=admin.url) == 403
    assert sent(browser_of(small, "admin").mark(), Origin=admin.url) == 403
    json = admin.client.post("/ui/logout", json={"form_mark": mark}, headers={"Origin": admin.url})
    assert json.status_code == 415
    assert admin.client.get("/ui/logout").status_code == 405
    assert admin.get("").status_code == 200
    assert sent(mark, Origin=admin.url) == 303


def test_tries_to_sign_in_are_limited(small: Place) -> None:
    visitor = browser_of(small)

    answers = {
        visitor.client.post("/ui/login", data={"token": "guess"}, headers={"Origin": visitor.url}).status_code
        for _ in range(30)
    }

    assert answers == {403, 429}


def test_what_may_not_be_seen_is_a_page_that_says_so(small: Place) -> None:
    visitor = browser_of(small, "enqueue:mail")

    answer = visitor.get("")

    assert answer.status_code == 403
    assert "This needs the scope read" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_what_is_no_page_says_so(admin: Browser) -> None:
    answer = admin.get("/nothing/<script>alert(1)</script>")

    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert "<script>alert" not in answer.text


def test_every_answer_keeps_scripts_of_others_out(small: Place) -> None:
    visitor, admin = browser_of(small), browser_of(small, "admin")

    answers = [visitor.get("/login"), visitor.get(""), admin.get(""), admin.get("/none"), admin.get("/login")]

    for answer in answers:
        assert answer.headers["content-security-policy"] == render.POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
    assert "unsafe" not in render.POLICY


def test_the_files_of_the_dashboard_are_its_own_and_may_be_kept(small: Place) -> None:
    visitor = browser_of(small)

    found = {name: visitor.get(f"/-/{render.version()}/{name}") for name in render.FILES}

    assert {answer.status_code for answer in found.values()} == {200}
    assert all("immutable" in answer.headers["cache-control"] for answer in found.values())
    assert found["ui.css"].headers["content-type"] == "text/css; charset=utf-8"
    assert "MIT" in found["uplot/LICENSE"].text
    assert visitor.get(f"/-/{render.version()}/..%2fserver.py").status_code == 404


def test_browsers_that_ask_for_the_root_are_shown_the_dashboard(small: Place) -> None:
    visitor = browser_of(small)

    shown = visitor.client.get("/", headers={"Accept": "text/html,*/*;q=0.1"})
    told = visitor.client.get("/", headers={"Accept": "application/json"})

    assert (shown.status_code, shown.headers["location"]) == (303, "/ui")
    assert told.status_code == 404
