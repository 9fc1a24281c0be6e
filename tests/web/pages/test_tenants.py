"""Tenants and ordering keys: what they use, what is stuck, and what a person does about it."""

from duly.core.lifecycle import State
from tests.web.pages.conftest import browser_of
from tests.web.pages.forms import form_of
from tests.web.pages.scene import HOSTILE, Night, clean


def stuck_key(night: Night, account: str = "acc-7") -> list[int]:
    """Three jobs of one key, the first of them dead."""
    task = night.app.find_task("apply")
    ids = [one.id for one in night.app.enqueue_many(task.draft(account, n) for n in range(3))]
    owner = night.worker("mail")
    night.die(owner, night.claim(owner, "mail"))
    night.app.store.leases.retire(owner)
    return list(ids)


def test_tenants_and_stuck_keys_are_shown_with_what_helps(nights: Night) -> None:
    ids = stuck_key(nights)
    push = nights.app.find_task("push")
    nights.app.enqueue_many(push.draft("acme") for _ in range(3))
    nights.app.operate.tenant("acme", weight=5, max_running=20, rate="600/min", reason="sold")
    visitor = browser_of(nights, "read", "operate")

    page = visitor.get("/tenants").text

    assert "weight 5, 20 running, 10/s" in page
    assert "acc-7" in page
    assert f'/ui/jobs/{ids[0]}"' in page
    assert 'class="badge bad">stuck</span>' in page
    assert "2 jobs wait behind job" in page
    assert "acc-7" not in visitor.get("/tenants", q="acme").text


def test_a_person_lets_a_key_go_on_behind_its_dead_head_once(nights: Night) -> None:
    ids = stuck_key(nights)
    visitor = browser_of(nights, "read", "operate:mail")
    fields = form_of(visitor.get("/tenants").text, "/tenants/act/key")

    done = visitor.followed(visitor.post("/tenants/act/key", "/tenants", **fields, reason="INC-311"))
    again = visitor.post("/tenants/act/key", "/tenants", **fields, reason="INC-311")

    assert "goes on without its head" in done
    assert nights.app.inspect.job(ids[1]).job.state is State.ready
    assert nights.app.inspect.job(ids[0]).job.state is State.dead
    assert again.status_code == 409
    assert "has changed since you looked" in again.text
    assert nights.acts("resume") == [("test-", "key acc-7 of mail", "INC-311")]


def test_a_plan_that_somebody_else_has_changed_is_not_overwritten(one_night: Night) -> None:
    app = one_night.app
    app.operate.tenant("acme", weight=2, reason="sold")
    visitor = browser_of(one_night, "read", "operate")
    fields = form_of(visitor.get("/tenants").text, "/tenants/act/plan", "what")
    app.operate.tenant("acme", weight=3, reason="sold more")
    wanted = {"weight": "9", "max_running": "", "rate": ""}

    stale = visitor.post("/tenants/act/plan", "/tenants", **{**fields, **wanted}, reason="INC-311")
    fresh = form_of(visitor.get("/tenants").text, "/tenants/act/plan", "what")
    done = visitor.followed(
        visitor.post("/tenants/act/plan", "/tenants", **{**fresh, **wanted}, reason="INC-311")
    )
    new = visitor.followed(
        visitor.post("/tenants/act/plan", "/tenants", tenant="globex", weight="4", reason="sold")
    )

    assert stale.status_code == 409
    assert "weight 9" in done
    assert "globex" in new
    plans = {plan.name: plan.weight for plan in app.store.control.plans()}
    assert plans == {"acme": 9, "globex": 4}


def test_a_tenant_is_bounded_for_a_time_in_one_queue_by_whoever_may(one_night: Night) -> None:
    one_night.app.enqueue_many(one_night.app.find_task("push").draft("acme") for _ in range(3))
    visitor = browser_of(one_night, "read", "operate:sync")
    fields = form_of(visitor.get("/tenants").text, "/tenants/act/bound")
    bound = {
        **fields,
        "queue": "sync",
        "max_running": "1",
        "rate": "none",
        "lasting": "2h",
        "reason": "flood",
    }

    done = visitor.followed(visitor.post("/tenants/act/bound", "/tenants", **bound))
    elsewhere = visitor.post("/tenants/act/bound", "/tenants", **{**bound, "queue": ""})
    endless = visitor.post("/tenants/act/bound", "/tenants", **{**bound, "lasting": ""})

    assert "max-running 1, rate none" in done
    (made,) = one_night.app.inspect.overrides()
    assert (made.target, made.reason) == ("tenant:sync=acme", "flood")
    assert (elsewhere.status_code, endless.status_code) == (403, 422)


def test_whoever_reads_one_queue_sees_nothing_of_others(one_night: Night) -> None:
    stuck_key(one_night)
    one_night.app.enqueue_many([one_night.app.find_task("push").draft("umbrella")])
    one_night.app.operate.tenant("globex", weight=2, reason="sold")

    of_mail = browser_of(one_night, "read:mail").get("/tenants").text
    of_sync = browser_of(one_night, "read:sync").get("/tenants").text

    assert "acc-7" in of_mail
    assert "umbrella" not in of_mail
    assert "umbrella" in of_sync
    assert "acc-7" not in of_sync
    assert "globex" not in of_mail + of_sync
    assert "disabled" in of_mail


def test_names_of_tenants_and_keys_are_harmless(nights: Night) -> None:
    stuck_key(nights, HOSTILE)
    nights.app.enqueue_many([nights.app.find_task("push").draft(HOSTILE)])
    nights.app.operate.tenant(HOSTILE, weight=2, reason=HOSTILE)
    visitor = browser_of(nights, "read", "operate")

    page = visitor.get("/tenants")
    fields = form_of(page.text, "/tenants/act/key")
    done = visitor.post("/tenants/act/key", "/tenants", **fields, reason=HOSTILE)
    found = visitor.get("/tenants", q=HOSTILE)

    assert page.status_code == 200
    assert clean(page.text)
    assert "\\u202e" in page.text
    assert clean(visitor.client.get(done.headers["location"]).text)
    assert found.status_code == 200
    assert visitor.get("/tenants", q="\x00" * 50).status_code == 200
