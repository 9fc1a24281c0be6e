"""Stored acts and the audit on pages: progress, holding and ending, who did what, and an audit that was touched."""

from __future__ import annotations

from duly.core.filters import Filter
from tests.web.pages.conftest import browser_of
from tests.web.pages.forms import form_of, forms_of
from tests.web.pages.scene import HOSTILE, Night, clean
from tests.web.pages.test_dead import letters


def begun(night: Night, reason: str = "INC-311") -> int:
    letters(night, 130)
    act = night.app.operate.redrive(Filter(queue="mail"), reason=reason, rate="10/s")
    assert act.operation is not None
    return act.operation.id


def test_an_operation_is_held_goes_on_and_is_ended(nights: Night) -> None:
    id = begun(nights)
    assert nights.app.store.operator.advance_operation(id, 20, 20, 0, False)
    visitor = browser_of(nights, "read", "dead:mail")
    page = visitor.get("/operations").text
    pause = form_of(page, "/operations/act/pause")
    cancel = form_of(page, "/operations/act/cancel")

    held = visitor.followed(visitor.post("/operations/act/pause", "/operations", **pause, reason="a look"))
    stale = visitor.post("/operations/act/cancel", "/operations", **cancel, reason="enough")
    resume = form_of(visitor.get("/operations").text, "/operations/act/resume")
    resumed = visitor.followed(visitor.post("/operations/act/resume", "/operations", **resume, reason="fine"))
    ended = visitor.followed(visitor.post("/operations/act/cancel", "/operations", **cancel, reason="enough"))
    late = visitor.post("/operations/act/pause", "/operations", **pause, reason="late")

    assert "20 of 130" in page
    assert '<progress class="meter" max="130" value="20">' in page
    assert "11 s" in page
    assert f"Operation {id} is held." in held
    assert stale.status_code == 409
    assert f"Operation {id} goes on." in resumed
    assert f"Operation {id} is over; what it did stays." in ended
    assert late.status_code == 409
    assert forms_of(visitor.get("/operations").text, "/operations/act/pause") == []
    assert nights.app.inspect.operation(id).state == "cancelled"
    assert [one[1:] for one in nights.acts() if one[1] == f"operation:{id}"][:3] == [
        (f"operation:{id}", "enough"),
        (f"operation:{id}", "fine"),
        (f"operation:{id}", "a look"),
    ]


def test_operations_of_other_queues_are_not_shown(one_night: Night) -> None:
    id = begun(one_night, HOSTILE)
    other, reader = browser_of(one_night, "read:sync", "dead:sync"), browser_of(one_night, "read:mail")

    hidden = other.get("/operations").text
    seen = reader.get("/operations").text
    refused = other.post("/operations/act/pause", id=str(id), state="running", reason="x")
    weak = reader.post("/operations/act/pause", id=str(id), state="running", reason="x")
    odd = browser_of(one_night, "admin").post("/operations/act/burn", id=str(id), state="running", reason="x")
    silent = browser_of(one_night, "admin").post("/operations/act/pause", id=str(id), state="running")

    assert "No act on so many jobs" in hidden
    assert "needs the scope dead:mail" in seen
    assert clean(seen)
    assert [one.status_code for one in (refused, weak, odd, silent)] == [404, 403, 422, 422]
    assert one_night.app.inspect.operation(id).state == "running"


def test_the_audit_is_read_by_who_may_operate_everywhere(nights: Night) -> None:
    app = nights.app
    app.operate.pause("mail", reason="INC-311")
    app.operate.resume("mail", reason="over")
    (id,) = letters(nights, 1)
    app.operate.redrive(id, reason="try")
    while app.store.audits.seal() is not None:
        pass
    visitor = browser_of(nights, "admin")

    page = visitor.get("/audit").text
    pauses = visitor.get("/audit", verb="pause", target="queue:mail").text
    verified = visitor.get("/audit", verify="1").text
    weak = browser_of(nights, "read", "operate:mail").get("/audit")

    assert "INC-311" in page
    assert f'<a href="/ui/jobs/{id}">' in page
    assert "Sealed up to entry" in page
    assert ("INC-311" in pauses, "over" in pauses) == (True, "over" in page.partition("<table>")[0])
    assert "Unbroken:" in verified
    assert (weak.status_code, "operate" in weak.text) == (403, True)


def test_a_touched_audit_says_so(one_night: Night, sqlite_url: str) -> None:
    import sqlite3

    one_night.app.operate.pause("mail", reason="INC-311")
    one_night.app.store.audits.seal()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    with connection:
        for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            if "audit" in name:
                connection.execute(f"drop trigger {name}")
        connection.execute("update duly_audit_entry set reason = 'nothing'")
    connection.close()

    page = browser_of(one_night, "admin").get("/audit", verify="1").text

    assert "The audit was touched" in page


def test_the_audit_is_read_page_by_page(one_night: Night) -> None:
    for number in range(60):
        one_night.app.operate.pause("mail", reason=f"reason-{number:02}")
    visitor = browser_of(one_night, "admin")

    first = visitor.get("/audit", verb="pause").text
    older = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = visitor.client.get(older).text

    assert ("reason-59" in first, "reason-09" in first) == (True, False)
    assert ("reason-09" in second, "reason-59" in second) == (True, False)
    assert 'rel="prev"' in second
