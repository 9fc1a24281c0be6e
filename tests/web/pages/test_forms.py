"""Each act of these pages: from a page of the session alone, with a reason, and only by POST."""

import pytest

from duly.web.pages.packing import pack
from duly.web.pages.schedule_view import schedule_row
from tests.web.pages.conftest import Browser, browser_of
from tests.web.pages.scene import Night
from tests.web.pages.test_tenants import stuck_key

ACTS = (
    "/tenants/act/plan", "/tenants/act/bound", "/tenants/act/key", "/limits/act/lift", "/limits/act/bound",
    "/limits/act/breaker", "/limits/act/hold", "/schedules/act/run", "/schedules/act/pause", "/schedules/act/resume",
    "/workers/act/drain", "/alerts/act/silence", "/alerts/act/unsilence",
)  # fmt: skip


def whole(night: Night) -> dict[str, dict[str, str]]:
    """Fields with which each act would be done."""
    stuck_key(night)
    app = night.app
    override = app.operate.limit("mail", max_running=7, lasting="2h", reason="arranged")
    silence = app.operate.silence("queue:mail", lasting="1h", reason="arranged")
    owner = night.worker("mail")
    stands = schedule_row(app.inspect.schedule("digest")).stands
    app.schedule("held", app.find_task("digest").draft(), every="1h")
    app.operate.pause_schedule("held", reason="arranged")
    held = schedule_row(app.inspect.schedule("held")).stands
    (key,) = app.inspect.keys()
    return {
        "/tenants/act/plan": {"tenant": "acme", "weight": "2"},
        "/tenants/act/bound": {"what": pack("acme"), "max_running": "1", "lasting": "1h"},
        "/tenants/act/key": {"what": pack("mail", "", "acc-7", f"behind job {key.head}, dead")},
        "/limits/act/lift": {"id": str(override.id)},
        "/limits/act/bound": {"target": "mail", "max_running": "1", "lasting": "1h"},
        "/limits/act/breaker": {"what": pack("smtp", "closed"), "state": "open"},
        "/limits/act/hold": {"what": pack("smtp"), "lasting": "10m"},
        "/schedules/act/run": {"what": pack("digest", stands)},
        "/schedules/act/pause": {"what": pack("digest", stands)},
        "/schedules/act/resume": {"what": pack("held", held)},
        "/workers/act/drain": {"what": pack(str(owner), "vm-1:4711")},
        "/alerts/act/silence": {"target": "queue:mail", "rule": "*", "lasting": "1h"},
        "/alerts/act/unsilence": {"id": str(silence.id)},
    }


def test_no_act_is_done_without_the_mark_the_origin_the_scope_or_a_reason(one_night: Night) -> None:
    fields = whole(one_night)
    assert set(fields) == set(ACTS)
    admin, reader = browser_of(one_night, "admin"), browser_of(one_night, "read")
    stranger = browser_of(one_night)
    mark, weak = admin.mark(), reader.mark()
    before = one_night.acts()

    def send(who: Browser, path: str, origin: str | None = None, **more: str) -> int:
        data = {**fields[path], **more}
        return who.client.post(f"/ui{path}", data=data, headers={"Origin": origin or who.url}).status_code

    for path in ACTS:
        answers = {
            "no mark": send(admin, path, reason="x"),
            "another's mark": send(admin, path, form_mark=weak, reason="x"),
            "another site": send(admin, path, "https://evil.example", form_mark=mark, reason="x"),
            "signed out": send(stranger, path, form_mark=mark, reason="x"),
            "no scope": send(reader, path, form_mark=weak, reason="x"),
            "no reason": send(admin, path, form_mark=mark, reason="  "),
            "by GET": admin.get(path).status_code,
        }
        assert answers == {
            "no mark": 403,
            "another's mark": 403,
            "another site": 403,
            "signed out": 401,
            "no scope": 403,
            "no reason": 422,
            "by GET": 405,
        }, path
    assert one_night.acts() == before


@pytest.mark.parametrize("path", ACTS)
def test_what_no_page_has_made_is_refused(one_night: Night, path: str) -> None:
    visitor = browser_of(one_night, "admin")

    answers = [
        visitor.post(path, "/limits", what=what, id=what, target=what, tenant=what, lasting="1h", reason="x")
        for what in ("", "AAAA", "!!", "W10=", "\x00\u202e", "9" * 40)
    ]

    assert {answer.status_code for answer in answers} <= {400, 404, 409, 422}


def test_each_act_can_be_done(one_night: Night) -> None:
    """So that the refusals are for what is missing and for nothing else."""
    fields = whole(one_night)
    admin = browser_of(one_night, "admin")
    order = [path for path in ACTS if path != "/schedules/act/pause"] + ["/schedules/act/pause"]

    for path in order:
        answer = admin.post(path, "/limits", **fields[path], reason="INC-311")

        assert answer.status_code == 303, (path, answer.text)
