"""Alerts: what fires and who was told, what is silent, and for how long."""

from datetime import timedelta

from tests.web.pages.conftest import browser_of
from tests.web.pages.forms import form_of, forms_of
from tests.web.pages.scene import HOSTILE, Night, clean


def fire(
    night: Night, rule: str, target: str, text: str = "it is late", sinks: tuple[str, ...] = ("hook",)
) -> int:
    change = night.app.store.alerts.change(rule, target, 0, "firing", {"text": text}, sinks)
    assert change is not None
    return change


def test_what_fires_is_shown_with_who_was_told(nights: Night) -> None:
    store = nights.app.store.alerts
    change = fire(nights, "late", "queue:mail", "mail waits for 3 min", ("hook", "mail"))
    (first, _) = store.due(("hook", "mail"))
    store.sent(first.change.id, "hook")
    store.unsent(change, "mail", "550 no such user", None)
    visitor = browser_of(nights, "read")

    page = visitor.get("/alerts").text

    assert "1 fires" in page
    assert "mail waits for 3 min" in page
    assert 'class="badge good">sent</span>' in page
    assert "given up after 1 try" in page
    assert "550 no such user" in page
    assert forms_of(page, "/alerts/act/silence") == []


def test_a_rule_is_silenced_for_a_while_and_told_again(nights: Night) -> None:
    fire(nights, "late", "queue:mail")
    visitor = browser_of(nights, "read", "operate:mail")
    fields = form_of(visitor.get("/alerts").text, "/alerts/act/silence", "what")

    done = visitor.followed(
        visitor.post("/alerts/act/silence", "/alerts", **fields, lasting="4h", reason="INC-311")
    )
    (made,) = nights.app.inspect.silences()
    ending = form_of(visitor.get("/alerts").text, "/alerts/act/unsilence")
    over = visitor.followed(visitor.post("/alerts/act/unsilence", "/alerts", **ending, reason="over"))
    again = visitor.post("/alerts/act/unsilence", "/alerts", **ending, reason="over")

    assert "Nobody is told of late for queue:mail until" in done
    assert f"silent, no. {made.id}" in done
    assert (made.rule, made.target, made.reason) == ("late", "queue:mail", "INC-311")
    assert made.until - made.at == timedelta(hours=4)
    assert f"Silence {made.id} is over" in over
    assert (again.status_code, nights.app.inspect.silences()) == (409, ())


def test_any_target_is_silenced_by_its_name(one_night: Night) -> None:
    visitor = browser_of(one_night, "read", "operate")

    answers = [
        visitor.post(
            "/alerts/act/silence", "/alerts", target=target, rule=rule, lasting="1h", reason="x"
        ).status_code
        for target, rule in (("store", "disk"), ("*", "*"), ("nothing", "*"), ("store", "what"))
    ]

    assert answers == [303, 303, 422, 422]
    assert {(one.target, one.rule) for one in one_night.app.inspect.silences()} == {
        ("store", "disk"),
        ("*", "*"),
    }


def test_only_alerts_of_the_visitors_queues_are_shown_and_silenced(one_night: Night) -> None:
    fire(one_night, "late", "queue:mail", "mail is late")
    fire(one_night, "late", "queue:sync", "sync is late")
    fire(one_night, "disk", "store", "the disk fills up")
    silence = one_night.app.operate.silence("queue:sync", lasting="1h", reason="known")
    visitor = browser_of(one_night, "read:mail", "operate:mail")

    page = visitor.get("/alerts").text
    answers = [
        visitor.post("/alerts/act/unsilence", "/alerts", id=silence.id, reason="x").status_code,
        *(
            visitor.post(
                "/alerts/act/silence", "/alerts", target=target, rule="*", lasting="1h", reason="x"
            ).status_code
            for target in ("queue:sync", "store", "*", "queue:mail")
        ),
    ]

    assert "mail is late" in page
    assert "sync is late" not in page
    assert "the disk fills up" not in page
    assert "known" not in page
    assert answers == [403, 403, 403, 403, 303]


def test_the_history_goes_on_page_by_page(one_night: Night) -> None:
    for number in range(23):
        fire(one_night, "late", f"queue:q{number}", f"late number {number}.")
    visitor = browser_of(one_night, "read")

    first = visitor.get("/alerts").text
    older = first.rpartition('rel="next"')[0].rpartition("before=")[2].partition('"')[0]
    second = visitor.get("/alerts", before=older).text

    history = [page.partition("<h2>History</h2>")[2] for page in (first, second)]
    assert "late number 22." in history[0]
    assert "late number 2." not in history[0]
    assert "late number 2." in history[1]
    assert 'rel="next"' not in second
    assert visitor.get("/alerts", before="x" * 30).status_code == 200


def test_what_alerts_say_is_harmless(nights: Night) -> None:
    store = nights.app.store.alerts
    change = fire(nights, "late", f"worker:{HOSTILE}", HOSTILE * 100)
    store.due(("hook",))
    store.unsent(change, "hook", HOSTILE, timedelta(minutes=1))
    nights.app.operate.silence(f"resource:{HOSTILE}", lasting="1h", reason=HOSTILE)
    visitor = browser_of(nights, "admin")

    page = visitor.get("/alerts")
    fields = form_of(page.text, "/alerts/act/silence", "what")
    done = visitor.post("/alerts/act/silence", "/alerts", **fields, lasting="1h", reason=HOSTILE)

    assert page.status_code == 200
    assert clean(page.text)
    assert done.status_code == 303
    assert clean(visitor.client.get(done.headers["location"]).text)
    assert {one.target for one in nights.app.inspect.silences()} == {
        f"worker:{HOSTILE}",
        f"resource:{HOSTILE}",
    }
