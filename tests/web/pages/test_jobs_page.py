"""The list of jobs, its filter, completion, and acts on what was ticked or on all that fits."""

import html
from typing import Any

import pytest

from tests.web.conftest import Place
from tests.web.pages.conftest import Browser, browser_of
from tests.web.pages.populated import begin, complete, kill, put


def box(place: Place, id: int) -> str:
    job = place.app.inspect.job(id).job
    return f"{id}:{job.state}:{job.run}"


def states(place: Place, ids: list[int]) -> list[str]:
    return [str(job.state) if job else "gone" for job in place.app.inspect.lookup(ids)]


def test_the_list_shows_what_fits_newest_first_and_goes_on(place: Place) -> None:
    put(place, count=60)
    put(place, queue="reports", task="report", count=2)
    admin = browser_of(place, "admin")

    first = admin.get("/jobs", q="queue=mail state=ready")
    older = html.unescape(first.text).split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    second = admin.client.get(older)

    assert first.text.count('name="job"') == 50
    assert second.text.count('name="job"') == 10
    assert "reports" not in first.text.split("<tbody>")[1]
    assert "No job fits" in admin.get("/jobs", q="queue=nothing").text


def test_a_job_number_in_the_filter_opens_the_job(admin: Browser) -> None:
    assert admin.get("/jobs", q="17").headers["location"] == "/ui/jobs/17"


@pytest.mark.parametrize(
    ("text", "said"),
    [("quue=mail", "did you mean queue"), ("hello", "stands alone"), ("state=ded", "did you mean dead")],
)
def test_a_filter_that_cannot_be_meant_says_what_to_write(admin: Browser, text: str, said: str) -> None:
    answer = admin.get("/jobs", q=text)

    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert f'value="{text}"' in answer.text


def test_arguments_are_searched(place: Place) -> None:
    (wanted,) = put(place, args=b'{"order_id": 8}')
    put(place, count=3)
    admin = browser_of(place, "admin")

    text = admin.get("/jobs", q="args.order_id = 8").text

    assert text.count('name="job"') == 1
    assert f'value="{wanted}:ready:0"' in text


def test_a_long_search_says_how_far_back_it_got(small: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put(small, count=3)
    monkeypatch.setattr("duly.client.selection.SEARCH_BUDGET", -1.0)
    monkeypatch.setattr("duly.client.inspect.SEARCHED_AT_ONCE", 1)
    monkeypatch.setattr("duly.web.pages.jobs.PAGE", 1)
    admin = browser_of(small, "admin")

    text = admin.get("/jobs", q="args.order_id = 8").text

    assert "searched back to" in text
    assert 'rel="next"' in text


def test_completion_offers_names_of_the_store(place: Place) -> None:
    put(place)
    admin, reader = browser_of(place, "admin"), browser_of(place, "read:mail")

    def offered(browser: Browser, text: str) -> list[str]:
        found: list[dict[str, Any]] = browser.client.get("/ui/complete", params={"q": text}).json()["options"]
        return [one["text"] for one in found]

    assert offered(admin, "queue=m") == ["queue=mail "]
    assert offered(admin, "state=dead task=send") == ["state=dead task=send_receipt "]
    assert "state=" in offered(admin, "")
    assert offered(reader, "queue=") == ["queue=mail "]
    assert offered(browser_of(place, "read:mail"), "queue=rep") == []


def test_ticked_jobs_are_cancelled_and_named_in_the_audit(place: Place) -> None:
    ids = put(place, count=3)
    admin = browser_of(place, "admin")

    answer = admin.post(
        "/jobs/act/selected",
        page="/jobs",
        job=[box(place, id) for id in ids[:2]],
        verb="cancel",
        reason="INC-311",
        q="queue=mail",
    )

    assert "2 jobs were cancelled" in admin.followed(answer)
    assert answer.headers["location"] == "/ui/jobs?q=queue%3Dmail"
    assert states(place, ids) == ["cancelled", "cancelled", "ready"]
    entry = place.app.store.audits.page(limit=1)[0]
    assert (entry.verb, entry.reason, entry.actor[:5]) == ("cancel", "INC-311", "test-")


def test_jobs_that_have_moved_on_since_the_page_are_left_as_they_are(place: Place) -> None:
    dead = kill(place, 3)
    shown = [box(place, id) for id in dead]
    admin = browser_of(place, "admin")
    place.app.operate.redrive(dead[0], reason="in another tab")

    answer = admin.post("/jobs/act/selected", page="/jobs", job=shown, verb="purge", reason="test mails")
    said = admin.followed(answer)
    alone = admin.post("/jobs/act/selected", page="/jobs", job=shown[:1], verb="purge", reason="test mails")

    assert "2 jobs were deleted; 1 had moved on" in said
    assert states(place, dead) == ["ready", "gone", "gone"]
    assert alone.status_code == 409
    assert "has moved on: it is ready by now" in alone.text


def test_an_act_needs_a_reason_and_boxes(small: Place) -> None:
    ids = put(small)
    admin = browser_of(small, "admin")

    bare = admin.post("/jobs/act/selected", page="/jobs", job=box(small, ids[0]), verb="cancel", reason=" ")
    none = admin.followed(admin.post("/jobs/act/selected", page="/jobs", verb="cancel", reason="x"))
    other = admin.post("/jobs/act/selected", page="/jobs", job=box(small, ids[0]), verb="drop", reason="x")

    assert (bare.status_code, other.status_code) == (422, 422)
    assert "say why" in bare.text
    assert "Nothing was ticked" in none
    assert states(small, ids) == ["ready"]


def test_who_lacks_the_scope_is_told_which_one_and_changes_nothing(place: Place) -> None:
    dead, waiting = kill(place)[0], put(place)[0]
    reader = browser_of(place, "read", "dead:mail")

    page = reader.get("/jobs").text
    refused = reader.post(
        "/jobs/act/selected", page="/jobs", job=box(place, waiting), verb="cancel", reason="x"
    )
    allowed = reader.post(
        "/jobs/act/selected", page="/jobs", job=box(place, dead), verb="redrive", reason="x"
    )

    assert 'aria-label="Cancel selected: needs the scope operate"' in page
    assert refused.status_code == 403
    assert "This needs the scope operate:mail" in refused.text
    assert allowed.status_code == 303
    assert states(place, [dead, waiting]) == ["ready", "ready"]


def test_a_visitor_of_one_queue_sees_that_queue_alone(place: Place) -> None:
    put(place)
    (other,) = put(place, queue="reports", task="report")
    reader, two = browser_of(place, "read:mail"), browser_of(place, "read:mail", "read:x")

    assert reader.get("/jobs").text.count('name="job"') == 1
    assert two.get("/jobs").status_code == 403
    assert two.get("/jobs", q="queue=mail").status_code == 200
    assert reader.get("/jobs", q="queue=reports").status_code == 403
    assert reader.get(f"/jobs/{other}").status_code == 404
    assert reader.get("/queues/reports").status_code == 404


def test_all_that_fits_is_counted_before_anything_is_changed(place: Place) -> None:
    ids = kill(place, 3)
    admin = browser_of(place, "admin")

    page = admin.get("/jobs/all/redrive", q="queue=mail")
    assert "Redrive 3 jobs" in page.text
    assert states(place, ids) == ["dead"] * 3

    answer = admin.post(
        "/jobs/all/redrive/act", page="/jobs/all/redrive?q=queue=mail", q="queue=mail", reason="ok"
    )
    assert "3 jobs were made to run again" in admin.followed(answer)
    assert states(place, ids) == ["ready"] * 3


def test_many_jobs_become_an_operation_that_a_second_press_does_not_start_again(place: Place) -> None:
    kill(place, 101)
    admin = browser_of(place, "admin")
    where = "/jobs/all/redrive?q=queue=mail"

    page = admin.get("/jobs/all/redrive", q="queue=mail").text
    bare = admin.post("/jobs/all/redrive/act", page=where, q="queue=mail", reason="fixed in 41")
    first = admin.post("/jobs/all/redrive/act", page=where, q="queue=mail", reason="fixed in 41", rate="5/s")
    second = admin.post("/jobs/all/redrive/act", page=where, q="queue=mail", reason="fixed in 41", rate="5/s")

    assert "Redrive 101 jobs" in page
    assert 'name="rate"' in page
    assert bare.status_code == 422
    assert (first.status_code, second.status_code) == (303, 409)
    assert "is at this already" in second.text
    (operation,) = place.app.inspect.operations()
    assert (operation.total, operation.rate, operation.reason) == (101, 5.0, "fixed in 41")


def test_an_act_on_all_needs_its_scope_in_the_queue_and_moves_what_it_can(place: Place) -> None:
    kill(place)
    operator = browser_of(place, "read", "operate")

    page = operator.get("/jobs/all/purge", q="queue=mail")
    refused = operator.post("/jobs/all/purge/act", page="/jobs", q="queue=mail", reason="x")
    wrong = operator.get("/jobs/all/purge", q="state=ready")

    assert "dead:mail" in page.text
    assert refused.status_code == 403
    assert wrong.status_code == 422
    assert operator.get("/jobs/all/drop").status_code == 422


def test_counting_what_fits_ends_after_its_time(small: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put(small, count=5)
    monkeypatch.setattr("duly.web.pages.many.COUNTED", -1.0)
    admin = browser_of(small, "admin")

    assert "Cancel at least 1 job" in admin.get("/jobs/all/cancel", q="queue=mail").text


def test_completed_and_running_jobs_are_in_the_list(place: Place) -> None:
    complete(place)
    put(place)
    begin(place)
    admin = browser_of(place, "admin")

    text = admin.get("/jobs").text

    assert 'class="state running"' in text
    assert 'class="state completed"' in text
