"""The overview and a queue: what needs somebody comes first, and a pause is a form."""

import html
import re

from duly.client.inspect import QueueStatus
from duly.core.bounds import Pressure
from duly.stores.protocol import QueueCount
from duly.web.pages.standing import in_order, sentence
from tests.web.conftest import Place
from tests.web.pages.conftest import browser_of
from tests.web.pages.populated import complete, kill, put


def queue(name: str, *, workers: int = 1, late: str | None = None, **counts: int) -> QueueStatus:
    return QueueStatus(
        QueueCount(name, **counts),  # type: ignore[arg-type]
        None,
        workers,
        False,
        None,
        f"health of {name}",
        Pressure(),
        late=late,
    )


def test_the_worst_queue_comes_first_and_is_named_in_the_sentence() -> None:
    found = in_order(
        [
            queue("idle"),
            queue("graves", dead=2),
            queue("late", ready=5, late="40 s late"),
            queue("alone", ready=9, workers=0),
            queue("busy", ready=1, running=1),
        ]
    )

    assert [one.name for one in found] == ["alone", "late", "graves", "busy", "idle"]
    assert sentence(found) == ("bad", "alone: health of alone, and 1 more")
    assert sentence(found[2:]) == ("note", "all queues keep up; 2 dead letters wait for somebody")
    assert sentence(found[3:])[0] == "good"


def test_the_overview_puts_queues_with_problems_first(place: Place) -> None:
    put(place, count=2)
    admin = browser_of(place, "admin")

    text = html.unescape(admin.get("").text)

    assert "Need somebody" in text
    assert "no worker serves it: 2 jobs wait" in text
    assert text.index('data-row="queue-mail"') < text.index('data-row="queue-reports"')
    assert re.search(r'id="health"[^>]*>.*mail: no worker serves it', text)


def test_the_overview_shows_only_queues_that_may_be_read(place: Place) -> None:
    put(place, queue="reports", task="report")
    reader = browser_of(place, "read:mail")

    text = reader.get("").text

    assert "reports" not in text
    assert "queue-mail" in text


def test_a_queue_shows_its_last_hour(place: Place) -> None:
    complete(place)
    kill(place, 2)
    admin = browser_of(place, "admin")

    text = html.unescape(admin.get("/queues/mail").text)

    assert "Latest dead letters" in text
    assert "UnknownAccount: no such account" in text
    assert "growth@shop" in text


def test_a_queue_is_paused_and_resumed_with_reasons(place: Place) -> None:
    admin = browser_of(place, "admin")
    page = "/queues/mail"

    bare = admin.post(f"{page}/act/pause", page=page, lasting="30m", reason="")
    paused = admin.followed(admin.post(f"{page}/act/pause", page=page, lasting="30m", reason="INC-311"))
    wrong = admin.post(f"{page}/act/pause", page=page, lasting="soon", reason="x")
    resumed = admin.followed(admin.post(f"{page}/act/resume", page=page, reason="over"))
    again = admin.followed(admin.post(f"{page}/act/resume", page=page, reason="over"))

    assert (bare.status_code, wrong.status_code) == (422, 422)
    assert "mail is paused for 30m" in paused
    assert "INC-311" in paused
    assert ">Resume<" in paused
    assert ">Pause<" in resumed
    assert "mail goes on" in resumed
    assert "was not paused any more" in again


def test_a_queue_that_is_not_there_names_the_nearest(place: Place) -> None:
    admin = browser_of(place, "admin")

    answer = admin.get("/queues/mial")

    assert answer.status_code == 404
    assert "mail" in answer.text


def test_pausing_needs_operate_in_that_queue(place: Place) -> None:
    operator = browser_of(place, "read", "operate:reports")

    text = operator.get("/queues/mail").text
    refused = operator.post("/queues/mail/act/pause", page="/queues/reports", reason="x")

    assert "Pause: needs the scope operate:mail" in text
    assert refused.status_code == 403
    assert place.app.inspect.pauses() == ()
