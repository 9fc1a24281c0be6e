"""Dead letters on pages: groups, one group, marks, from one redrive to all, and a letter with other arguments."""

from __future__ import annotations

import json

import pytest

from duly import App
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.web.pages.dead_view import args_text, changes_of
from tests.web.pages.conftest import browser_of
from tests.web.pages.forms import form_of, forms_of
from tests.web.pages.scene import HOSTILE, Night, clean


def letters(night: Night, count: int = 2, why: str = "no such account") -> list[int]:
    """So many have died in mail; many of a task without limits."""
    send, digest = night.app.find_task("send"), night.app.find_task("digest")
    drafts = [send.draft(order_id=number) if count <= 20 else digest.draft() for number in range(count)]
    ids = [one.id for one in night.app.enqueue_many(drafts)]
    owner = night.worker("mail")
    while claimed := night.claim(owner, "mail", 20):
        night.die(owner, claimed, why)
    return list(ids)


def only_group(app: App) -> str:
    (group,) = app.inspect.dead_groups()
    return group.fingerprint


def test_groups_are_listed_with_whose_they_are_and_how_far(nights: Night) -> None:
    letters(nights, 3)
    fingerprint = only_group(nights.app)
    nights.app.operate.acknowledge(fingerprint, owner="bob@ops", reason="seen")
    visitor = browser_of(nights, "read:mail")

    page = visitor.get("/dead").text
    elsewhere = browser_of(nights, "read:sync").get("/dead").text
    filtered = visitor.get("/dead", mark="new").text

    assert "3 letters in 1 group" in page
    assert "UnknownAccount" in page
    assert f'/ui/dead/{fingerprint}?queue=mail"' in page
    assert "bob@ops" in page
    assert 'class="badge warn">acknowledged</span>' in page
    assert "Nothing is dead, as far as you may see." in elsewhere
    assert "UnknownAccount" not in elsewhere
    assert "No dead letter fits." in filtered


def test_a_group_is_marked_from_its_page_under_the_visitors_name(nights: Night) -> None:
    letters(nights)
    where = f"/dead/{only_group(nights.app)}"
    visitor = browser_of(nights, "read:mail", "dead:mail")
    acks, assigns, fixes = forms_of(visitor.get(where, queue="mail").text, "/dead/act/mark")

    acked = visitor.followed(
        visitor.post(
            "/dead/act/mark", where + "?queue=mail", **{**acks, "note": "provider is down"}, reason="INC-311"
        )
    )
    stale = visitor.post(
        "/dead/act/mark", where + "?queue=mail", **{**assigns, "owner": "bob"}, reason="INC-311"
    )
    _, assigns, fixes = forms_of(visitor.get(where, queue="mail").text, "/dead/act/mark")
    assigned = visitor.followed(
        visitor.post("/dead/act/mark", where + "?queue=mail", **{**assigns, "owner": "bob"}, reason="INC-311")
    )
    _, _, fixes = forms_of(visitor.get(where, queue="mail").text, "/dead/act/mark")
    fixed = visitor.followed(
        visitor.post("/dead/act/mark", where + "?queue=mail", **fixes, reason="release 41")
    )

    assert "The group is acknowledged." in acked
    assert "provider is down" in acked
    # Somebody had said something of it since the page was made.
    assert stale.status_code == 409
    assert "The group is bob's." in assigned
    assert "it is new again as soon as another job dies of it" in fixed
    (mark,) = nights.app.store.triage.marks()
    assert (mark.state, mark.owner, mark.note, mark.by[:5]) == ("fixed", "bob", "provider is down", "test-")
    assert [reason for _, _, reason in nights.acts("mark")] == ["release 41", "INC-311", "INC-311"]


def test_one_is_tried_and_watched_then_the_rest_run_at_a_rate(nights: Night) -> None:
    ids = letters(nights, 130)
    fingerprint = only_group(nights.app)
    where = f"/dead/{fingerprint}?queue=mail"
    visitor = browser_of(nights, "read", "dead:mail")
    page = visitor.get(where.partition("?")[0], queue="mail").text
    one = next(form for form in forms_of(page, "/dead/act/one") if form["id"] == str(ids[-1]))
    rest = form_of(page, "/dead/act/rest")

    tried = visitor.followed(visitor.post("/dead/act/one", where, **one, reason="try"))
    twice = visitor.post("/dead/act/one", where, **one, reason="try")
    owner = nights.worker("mail")
    nights.die(owner, nights.claim(owner, "mail"))
    again = visitor.get(f"/dead/{fingerprint}", queue="mail", watch=str(ids[-1])).text
    unpaced = visitor.post("/dead/act/rest", where, **{**rest, "rate": ""}, reason="INC-311")
    begun = visitor.followed(visitor.post("/dead/act/rest", where, **rest, reason="INC-311"))
    second = visitor.post("/dead/act/rest", where, **rest, reason="INC-311")

    assert "130" in page
    assert f"Job {ids[-1]} runs again; watch it before the others." in tried
    assert "This page follows it." in tried
    assert twice.status_code == 409
    assert "It died again: look before the rest follows." in again
    assert (unpaced.status_code, "say how fast" in unpaced.text) == (422, True)
    assert "Operation 1 has begun: 130 letters, at priority 200." in begun
    assert second.status_code == 409
    (operation,) = nights.app.inspect.operations()
    assert (operation.rate, operation.reason, operation.filter.fingerprint) == (20.0, "INC-311", fingerprint)


def test_a_letter_is_edited_in_a_form(nights: Night) -> None:
    ids = letters(nights, 2)
    where = f"/dead/edit/{ids[0]}"
    visitor = browser_of(nights, "read:mail", "dead:mail")
    fields = form_of(visitor.get(where).text, "/dead/act/edit")
    text = json.dumps({"order_id": 7})

    bad = [
        visitor.post("/dead/act/edit", where, **{**fields, "args": wrong}, reason="typo").status_code
        for wrong in ("{", "[]", "{}", '{"order_id": 0}', '{"order_id": "seven"}', '{"order_id": 0, "x": 1}')
    ]
    done = visitor.followed(visitor.post("/dead/act/edit", where, **{**fields, "args": text}, reason="typo"))
    again = visitor.post("/dead/act/edit", where, **{**fields, "args": text}, reason="typo")
    gone = visitor.get(where)

    assert bad == [422] * 6
    (new,) = nights.app.inspect.jobs(Filter(state=State.ready)).jobs
    assert (new.args, new.trigger) == (b'{"order_id":7}', f"edited:{ids[0]}")
    assert f"Job {new.id} runs in the place of job {ids[0]}, with order_id changed." in done
    assert (again.status_code, gone.status_code) == (409, 409)
    assert f"it runs again as job {new.id}" in gone.text


def test_a_visitor_without_the_scope_sees_why_and_may_not_post(one_night: Night) -> None:
    (id,) = letters(one_night, 1)
    fingerprint = only_group(one_night.app)
    admin, reader = browser_of(one_night, "admin"), browser_of(one_night, "read")
    page = admin.get(f"/dead/{fingerprint}").text
    sent = {
        "/dead/act/mark": forms_of(page, "/dead/act/mark")[0],
        "/dead/act/one": form_of(page, "/dead/act/one"),
        "/dead/act/rest": form_of(page, "/dead/act/rest"),
        "/dead/act/edit": {**form_of(admin.get(f"/dead/edit/{id}").text, "/dead/act/edit"), "args": "{}"},
    }
    seen = reader.get(f"/dead/{fingerprint}").text
    edit = reader.get(f"/dead/edit/{id}").text
    before = one_night.acts()

    for path, fields in sent.items():
        assert reader.post(path, **fields, reason="x").status_code == 403, path
        unmarked = admin.client.post(
            f"/ui{path}", data={**fields, "reason": "x"}, headers={"Origin": admin.url}
        )
        foreign = admin.client.post(
            f"/ui{path}",
            data={**fields, "reason": "x", "form_mark": admin.mark()},
            headers={"Origin": "https://evil.example"},
        )
        silent = admin.post(path, **fields, reason=" ")
        assert (unmarked.status_code, foreign.status_code, silent.status_code) == (403, 403, 422), path
        assert admin.get(path).status_code == 405, path

    assert "needs the scope dead:mail" in seen
    assert forms_of(seen, "/dead/act/mark") == forms_of(edit, "/dead/act/edit") == []
    assert one_night.acts() == before
    assert browser_of(one_night, "read:sync").get(f"/dead/{fingerprint}").status_code == 404
    assert browser_of(one_night, "read:sync").get(f"/dead/{fingerprint}", queue="mail").status_code == 403


def test_hostile_text_stays_text(one_night: Night) -> None:
    app = one_night.app
    letters(one_night, 1, why=HOSTILE)
    fingerprint = only_group(app)
    app.store.triage.mark(
        fingerprint, "mail", "send", by=HOSTILE, reason="x", state="acknowledged", owner=HOSTILE, note=HOSTILE
    )
    visitor = browser_of(one_night, "admin")
    (job,) = app.inspect.jobs(Filter(state=State.dead)).jobs

    pages = [
        visitor.get("/dead"),
        visitor.get("/dead", owner=HOSTILE, queue="mail"),
        visitor.get(f"/dead/{fingerprint}", queue="mail", watch=str(job.id)),
        visitor.get(f"/dead/edit/{job.id}"),
        visitor.get(f"/dead/{HOSTILE.replace('/', '')}"),
        visitor.get("/dead", mark=HOSTILE),
        visitor.get("/audit"),
        visitor.get("/audit", by=HOSTILE, target=HOSTILE),
        visitor.get("/audit", since=HOSTILE),
    ]

    assert [page.status_code for page in pages] == [200, 200, 200, 200, 422, 422, 200, 200, 422]
    assert all(clean(page.text) for page in pages)
    assert "&lt;script&gt;alert" in pages[2].text


def test_letters_without_an_error_have_a_page_too(one_night: Night) -> None:
    app = one_night.app
    owner = one_night.worker("mail")
    app.find_task("send").enqueue()
    (job,) = one_night.claim(owner, "mail")
    app.store.triage.mark("", "mail", "send", by="ann", reason="x", note="buried by hand")
    from duly.core.lifecycle import Event
    from duly.testing.conformance.bench import ended

    app.store.jobs.exchange(owner, [ended(job, Event.bury, State.dead, reason="no use")], None)
    visitor = browser_of(one_night, "admin")

    page = visitor.get("/dead/-").text

    assert "buried by hand" in page
    assert forms_of(page, "/dead/act/rest") == []
    assert len(forms_of(page, "/dead/act/mark")) == 3


@pytest.mark.parametrize(
    ("args", "text", "changes"),
    [
        (b'{"n":1,"on":true}', '{"n": 1, "on": 1}', {"on": 1}),
        (b'{"n":12345678901234567890123}', '{"n": 12345678901234567890123}', {}),
        (b'{"a":{"b":[1]}}', '{"a": {"b": [1, 2]}, "c": null}', {"a": {"b": [1, 2]}, "c": None}),
    ],
)
def test_only_what_was_changed_is_changed(args: bytes, text: str, changes: dict[str, object]) -> None:
    assert changes_of(args, text) == changes
    shown = args_text(args)
    assert shown is not None
    assert changes_of(args, shown) == {}
