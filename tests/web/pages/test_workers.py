"""Workers: their leases, what they hold, and how one is drained."""

from duly.core.job import Progress
from tests.web.pages.conftest import browser_of
from tests.web.pages.forms import form_of, forms_of
from tests.web.pages.scene import HOSTILE, Night, clean


def test_each_process_is_shown_with_its_lease_and_the_jobs_it_holds(nights: Night) -> None:
    app = nights.app
    (job,) = app.enqueue_many([app.find_task("send").draft(1)])
    owner = nights.worker("mail", "sync", host="vm-7")
    (claimed,) = nights.claim(owner, "mail")
    app.store.jobs.report(owner, [Progress(claimed.id, claimed.run, 3, 10, "pages")])
    idle = nights.worker("sync", host="vm-8")
    visitor = browser_of(nights, "read")

    page = visitor.get("/workers").text
    one = visitor.get(f"/workers/{owner}").text

    assert "2 processes" in page
    assert "1 of 20 slots in use" in page
    assert "vm-7:4711" in page
    assert "left of a lease of 30 s" in page
    assert f'href="/ui/workers/{idle}"' in page
    assert f'href="/ui/jobs/{job.id}"' in one
    assert "Time left" in one
    assert "3 of 10: pages" in one
    assert visitor.get("/workers/999999").status_code == 404
    assert visitor.get("/workers/x").status_code == 404


def test_a_worker_is_drained_once_by_whoever_may_in_all_its_queues(nights: Night) -> None:
    owner = nights.worker("mail", "sync")
    some = browser_of(nights, "read", "operate:mail")
    both = browser_of(nights, "read", "operate:mail", "operate:sync")
    fields = form_of(both.get("/workers").text, "/workers/act/drain")

    seen = some.get("/workers").text
    refused = some.post("/workers/act/drain", "/workers", **fields, reason="deploy")
    before = nights.app.inspect.workers()[0].draining
    done = both.followed(both.post("/workers/act/drain", "/workers", **fields, reason="deploy"))
    again = both.post("/workers/act/drain", "/workers", **fields, reason="deploy")

    assert forms_of(seen, "/workers/act/drain") == []
    assert "needs the scope operate:sync" in seen
    assert (refused.status_code, before) == (403, False)
    assert f"Worker {owner} at vm-1:4711 claims no more" in done
    assert (again.status_code, nights.app.inspect.workers()[0].draining) == (409, True)
    assert [(target, reason) for _, target, reason in nights.acts()] == [(f"worker:{owner}", "deploy")]


def test_a_worker_that_is_gone_is_told(one_night: Night) -> None:
    owner = one_night.worker("mail")
    visitor = browser_of(one_night, "admin")
    fields = form_of(visitor.get("/workers").text, "/workers/act/drain")
    one_night.app.store.leases.retire(owner)

    answer = visitor.post("/workers/act/drain", "/workers", **fields, reason="deploy")

    assert answer.status_code == 409
    assert "gone now" in answer.text
    assert visitor.get(f"/workers/{owner}").status_code == 404


def test_workers_of_other_queues_are_not_shown(one_night: Night) -> None:
    app = one_night.app
    app.enqueue_many([app.find_task("push").draft("acme")])
    mixed = one_night.worker("mail", "sync", host="vm-mixed")
    other = one_night.worker("sync", host="vm-other")
    one_night.claim(mixed, "sync")
    visitor = browser_of(one_night, "read:mail")

    page = visitor.get("/workers").text
    one = visitor.get(f"/workers/{mixed}").text

    assert "vm-mixed" in page
    assert "vm-other" not in page
    assert "and 1 that you may not see" in page
    assert "1 more in queues that you may not see" in one
    assert "push" not in one
    assert visitor.get(f"/workers/{other}").status_code == 404


def test_hosts_and_progress_are_harmless(nights: Night) -> None:
    app = nights.app
    app.enqueue_many([app.find_task("send").draft(1)])
    owner = nights.worker("mail", host=HOSTILE)
    (claimed,) = nights.claim(owner, "mail")
    app.store.jobs.report(owner, [Progress(claimed.id, claimed.run, 3, 10, HOSTILE)])
    visitor = browser_of(nights, "admin")

    page = visitor.get("/workers")
    one = visitor.get(f"/workers/{owner}")

    assert (page.status_code, one.status_code) == (200, 200)
    assert clean(page.text)
    assert clean(one.text)
    assert "\\u202e" in page.text
