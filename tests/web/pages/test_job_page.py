"""One job: what its page says, what may be done there, and what an old page may not do."""

import html
from datetime import timedelta

import pytest

from duly import Secret
from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import told
from duly.core.job import Ended, JobId
from duly.core.lifecycle import Event, State
from duly.web.pages.job_view import story
from tests.web.conftest import Place
from tests.web.pages.conftest import browser_of
from tests.web.pages.populated import begin, complete, in_an_hour, kill, put


def test_a_dead_job_tells_its_whole_story(place: Place) -> None:
    (id,) = put(place, tenant="acme", tags=("vip",), correlation_id="order-7")
    store = place.app.store
    owner, (job,) = begin(place)
    policy = Policy(10, place.app.client.backoff, 10)
    error = told("SMTPError", "421 try later", "Traceback:\n  line 14\n")
    store.jobs.exchange(owner, [failed(job, Verdict("transient"), policy, 0.5, error, timedelta(0))], None)
    place.app.operate.run_now(id, reason="now")
    owner, (job,) = begin(place)
    snoozed = Ended(job.id, job.run, Event.snooze, State.scheduled, job.counters, delay=timedelta(hours=1))
    store.jobs.exchange(owner, [snoozed], None)
    place.app.operate.run_now(id, reason="now")
    owner, (job,) = begin(place)
    died = told("UnknownAccount", "no such account")
    store.jobs.exchange(owner, [failed(job, Verdict("permanent"), policy, 0.5, died, timedelta(0))], None)
    admin = browser_of(place, "admin")

    text = html.unescape(admin.get(f"/jobs/{id}").text)

    for said in (
        "run 1 failed",
        "run 2 snoozed",
        "run 3",
        "SMTPError",
        "line 14",
        "no such account",
        "acme",
        "vip",
        "order-7",
        '"order_id": 7',
        "Redrive",
        "Delete",
    ):
        assert said in text, said
    assert 'name="state" value="dead"' in text
    assert 'name="run" value="3"' in text


def test_a_waiting_job_says_why_it_waits(place: Place) -> None:
    (id,) = put(place)
    place.app.operate.pause("mail", reason="INC-311")
    admin = browser_of(place, "admin")

    text = html.unescape(admin.get(f"/jobs/{id}").text)

    assert "INC-311" in text
    assert "duly resume" in text


def test_a_page_of_a_job_that_is_not_there_says_so(place: Place) -> None:
    admin = browser_of(place, "admin")

    for path in ("/jobs/999999", f"/jobs/{2**64}", "/jobs/0", "/jobs/abc", "/jobs/1/nothing"):
        assert admin.get(path).status_code in {400, 404}, path


def test_what_is_planned_is_run_now_and_given_another_priority(place: Place) -> None:
    (id,) = put(place, run_at=in_an_hour())
    admin = browser_of(place, "admin")
    seen = {"state": "scheduled", "run": "0", "page": f"/jobs/{id}"}

    urgent = admin.post(f"/jobs/{id}/act/reprioritise", priority="5", reason="vip", **seen)
    wrong = admin.post(f"/jobs/{id}/act/reprioritise", priority="much", reason="vip", **seen)
    said = admin.followed(admin.post(f"/jobs/{id}/act/run_now", reason="vip", **seen))

    job = place.app.inspect.job(id).job
    assert (urgent.status_code, wrong.status_code) == (303, 422)
    assert (job.state, job.priority) == ("ready", 5)
    assert f"Job {id} was made ready" in said


def test_a_running_job_is_asked_to_stop(place: Place) -> None:
    (id,) = put(place)
    begin(place)
    admin = browser_of(place, "admin")

    answer = admin.post(
        f"/jobs/{id}/act/cancel", page=f"/jobs/{id}", state="running", run="1", reason="hangs"
    )

    assert f"Job {id} is asked to stop" in admin.followed(answer)
    assert place.app.inspect.job(id).job.cancel_wished


def test_an_old_page_does_nothing_to_a_job_that_has_moved_on(place: Place) -> None:
    (dead,) = kill(place)
    done = complete(place)
    admin = browser_of(place, "admin")
    page = f"/jobs/{dead}"
    shown = {"page": page, "state": "dead", "run": "1", "reason": "x"}

    redriven = admin.post(f"{page}/act/redrive", **shown)
    ready = admin.post(f"{page}/act/purge", **shown)
    begin(place)
    running = admin.post(f"{page}/act/purge", **shown)
    twice = admin.post(f"{page}/act/redrive", **shown)
    acked = admin.post(f"/jobs/{done}/act/cancel", page=page, state="running", run="1", reason="x")
    risen = admin.post(f"/jobs/{done}/act/redrive", page=page, state="completed", run="1", reason="x")

    assert redriven.status_code == 303
    assert [a.status_code for a in (ready, running, twice, acked, risen)] == [409] * 5
    assert "it is ready by now" in ready.text
    assert "it is running by now" in running.text
    assert "it is completed by now" in acked.text
    assert place.app.inspect.job(dead).job.state == "running"
    assert place.app.inspect.job(done).job.state == "completed"


def test_a_job_that_died_again_is_not_the_one_that_was_shown(place: Place) -> None:
    (id,) = kill(place)
    place.app.operate.redrive(id, reason="try")
    owner, (job,) = begin(place)
    policy = Policy(10, place.app.client.backoff, 10)
    end = failed(job, Verdict("permanent"), policy, 0.5, told("Other", "new"), timedelta(0))
    place.app.store.jobs.exchange(owner, [end], None)
    admin = browser_of(place, "admin")

    late = admin.post(f"/jobs/{id}/act/purge", page=f"/jobs/{id}", state="dead", run="1", reason="x")

    assert late.status_code == 409
    assert "dead again, in another run" in late.text
    assert place.app.inspect.job(id).job.state == "dead"


def test_deleting_leads_back_to_the_list(place: Place) -> None:
    (id,) = kill(place)
    admin = browser_of(place, "admin")

    answer = admin.post(f"/jobs/{id}/act/purge", page=f"/jobs/{id}", state="dead", run="1", reason="a test")

    assert f"Job {id} is deleted" in admin.followed(answer)
    assert place.app.inspect.lookup([id]) == (None,)


def test_a_get_on_an_act_changes_nothing(place: Place) -> None:
    (id,) = kill(place)
    admin = browser_of(place, "admin")

    answers = {
        admin.get(path).status_code
        for path in (
            f"/jobs/{id}/act/purge",
            "/jobs/act/selected",
            "/jobs/all/purge/act",
            "/queues/mail/act/pause",
        )
    }

    assert answers == {405}
    assert place.app.inspect.job(id).job.state == "dead"


def test_kin_are_named(place: Place) -> None:
    (mother,) = put(place, correlation_id="order-9")
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    (child,) = put(place, correlation_id="order-9", trigger=f"trace:{trace};job:{mother}")
    (other,) = put(place, correlation_id="order-9")
    admin = browser_of(place, "admin")

    of_mother, of_child = admin.get(f"/jobs/{mother}").text, admin.get(f"/jobs/{child}").text

    assert "It made" in of_mother
    assert f'/ui/jobs/{child}"' in of_mother
    assert f'/ui/jobs/{other}"' in of_mother
    assert "Made by" in of_child
    assert "trace:00-" not in of_child


def test_buttons_of_who_may_not_are_disabled_and_say_why(place: Place) -> None:
    (id,) = kill(place)
    reader = browser_of(place, "read:mail")

    text = reader.get(f"/jobs/{id}").text
    refused = reader.post(f"/jobs/{id}/act/purge", page=f"/jobs/{id}", state="dead", run="1", reason="x")

    assert 'aria-label="Redrive: needs the scope dead:mail"' in text
    assert "/act/purge" not in text
    assert refused.status_code == 403
    assert "This needs the scope dead:mail" in refused.text


@pytest.mark.parametrize("part", ["args", "result"])
def test_a_long_value_is_cut_and_shown_whole_as_text(place: Place, part: str) -> None:
    long = b'{"note": "' + b"x" * 200_000 + b'"}'
    id = complete(place, result=long, args=long)
    admin = browser_of(place, "admin")

    page = admin.get(f"/jobs/{id}")
    whole = admin.get(f"/jobs/{id}/{part}")

    assert len(page.text) < 60_000
    assert f'href="/ui/jobs/{id}/{part}"' in page.text
    assert len(whole.text) > 200_000
    assert whole.headers["content-type"].startswith("text/plain")
    assert whole.headers["x-content-type-options"] == "nosniff"


def test_the_story_of_a_job_that_ran_once_has_its_wait_its_run_and_its_end(place: Place) -> None:
    id = complete(place)
    detail = place.app.inspect.job(JobId(id))

    words = [moment.text for moment in story(detail.job, detail.attempts, place.app.inspect.now())]

    assert words[0] == "enqueued"
    assert "run 1 began" in words
    assert words[-1].startswith("completed after")


def test_what_is_secret_is_on_no_page_and_found_by_no_filter(place: Place) -> None:
    @place.app.task(queue="mail")
    async def log_in(user: str, password: Secret[str]) -> None: ...

    receipt = log_in.enqueue("ada", Secret("hunter2-hunter2"))
    admin = browser_of(place, "admin")

    page = html.unescape(admin.get(f"/jobs/{receipt.id}").text)
    whole = admin.get(f"/jobs/{receipt.id}/args").text
    guessed = admin.get("/jobs", q='args.password = "hunter2-hunter2"').text

    assert '"user": "ada"' in page
    assert "***" in page
    assert "hunter2" not in page + whole
    assert f"Select job {receipt.id}" not in guessed
