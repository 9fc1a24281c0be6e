"""The work of one correlation id: its tree, its moments, and what a visitor may see of it."""

from msgspec.structs import replace

from duly.client.encoding import new_job
from duly.core.trace import trigger_with
from tests.web.pages.conftest import browser_of
from tests.web.pages.scene import HOSTILE, Night, clean

SPAN = f"00-{'ab' * 16}-{'cd' * 8}-01"


def family(night: Night, correlation: str = "req-42") -> list[int]:
    """A job whose handler enqueues two, one of them on another queue; the parent is dead."""
    app = night.app
    parent = replace(
        new_job(app.find_task("send").draft(1), None, app.client),
        correlation_id=correlation,
        trigger=trigger_with(SPAN),
    )
    (first,) = app.store.jobs.enqueue([parent])
    by_parent = trigger_with(SPAN, first.id)
    child = replace(parent, trigger=by_parent)
    push = new_job(app.find_task("push").draft("acme"), None, app.client)
    other = replace(push, correlation_id=correlation, trigger=by_parent)
    stored = app.store.jobs.enqueue([child, other])
    owner = night.worker("mail")
    night.die(owner, [job for job in night.claim(owner, "mail", 2) if job.id == first.id], HOSTILE)
    return [first.id, *(one.id for one in stored)]


def test_the_whole_tree_is_shown_in_time_order(nights: Night) -> None:
    ids = family(nights)
    visitor = browser_of(nights, "read")

    page = visitor.get("/trace/req-42").text
    by_job = visitor.get(f"/trace/{ids[1]}").text
    asked = visitor.get("/trace", id="req-42").text

    assert "3 jobs within" in page
    assert "2 not ended" in page
    assert [page.index(f'data-row="job-{id}"') for id in ids] == sorted(
        page.index(f'data-row="job-{id}"') for id in ids
    )
    assert page.count('class="indent"') == 2
    assert f"enqueued by {ids[0]}" in page
    assert f"enqueued on sync by job {ids[0]}" in page
    assert "UnknownAccount" in page
    assert 'class="bad"' in page
    assert "<svg" in page
    assert clean(page)
    assert "3 jobs within" in by_job
    assert "3 jobs within" in asked


def test_jobs_of_other_queues_are_counted_and_not_shown(one_night: Night) -> None:
    ids = family(one_night)
    of_mail = browser_of(one_night, "read:mail").get("/trace/req-42").text
    of_reports = browser_of(one_night, "read:reports").get("/trace/req-42")

    assert "2 jobs within" in of_mail
    assert "1 more in queues that you may not see" in of_mail
    assert f'data-row="job-{ids[2]}"' not in of_mail
    assert "push" not in of_mail
    assert of_reports.status_code == 404


def test_a_long_trace_shows_its_first_jobs_and_says_so(one_night: Night) -> None:
    app = one_night.app
    job = replace(new_job(app.find_task("send").draft(1), None, app.client), correlation_id="long")
    app.store.jobs.enqueue([job] * 130)
    visitor = browser_of(one_night, "read")

    page = visitor.get("/trace/long").text
    more = visitor.get("/trace", id="long", more="1").text

    assert page.count('data-row="job-') == 100
    assert "there are more" in page
    assert more.count('data-row="job-') == 130
    assert "there are more" not in more


def test_whatever_is_asked_for_is_answered(nights: Night) -> None:
    family(nights, HOSTILE)
    visitor = browser_of(nights, "read")

    found = visitor.get("/trace", id=HOSTILE)
    nothing = [
        visitor.client.get(f"/ui/trace/{text}").status_code
        for text in ("%00", "%F0%9F%A6%80", "99999999999999999999", "a/b", "x" * 300, "%E2%80%AE")
    ]

    assert found.status_code == 200
    assert clean(found.text)
    assert nothing == [404] * 6
    assert visitor.get("/trace", id="\x00\x01").status_code == 404
    assert visitor.get("/trace").status_code == 200
