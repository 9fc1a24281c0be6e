"""What the pages of limits, tenants, workers, schedules, alerts and traces say, from records alone."""

from datetime import UTC, datetime, timedelta

import pytest

from duly.client.control_reads import TenantStatus
from duly.client.worker_reads import WorkerLease
from duly.core.control import KeyRecord, LimitRecord, Override, Rate, TenantPlan, TenantWait
from duly.core.job import Incarnation
from duly.core.operating import AlertChange, AlertDelivery, AlertRecord, DeliveryState, Silence
from duly.core.registration import Schedule, ScheduleRecord
from duly.stores.protocol import WorkerRecord
from duly.web.pages.alert_view import alert_row, alerts_view
from duly.web.pages.control_view import limit_row, limits_view
from duly.web.pages.packing import pack, unpack
from duly.web.pages.schedule_view import schedules_view
from duly.web.pages.tenant_view import key_row, tenants_view
from duly.web.pages.worker_view import worker_row, workers_view
from duly.web.problems import Refused

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("limit", "word"),
    [
        (LimitRecord("queue:mail", 5, None, 4, 3), ""),
        (LimitRecord("queue:mail", 5, None, 5, 0), ""),
        (LimitRecord("queue:mail", 5, None, 5, 3), "full"),
        (LimitRecord("queue:mail", None, Rate(1.0), 0, 3, next_at=NOW + MINUTE), "at its rate"),
        (LimitRecord("queue:mail", None, Rate(1.0), 0, 3, next_at=NOW - MINUTE), ""),
        (LimitRecord("resource:x", 5, None, 5, 3, held_until=NOW + MINUTE), "held"),
        (LimitRecord("resource:x", None, None, 0, 3, held_until=NOW - MINUTE), ""),
        (LimitRecord("resource:x", None, None, 0, 0, breaker="open"), "breaker open"),
        (LimitRecord("resource:x", None, None, 1, 0, breaker="half-open"), "breaker tries one"),
        (LimitRecord("resource:x", None, None, 1, 0, breaker="closed"), ""),
    ],
)
def test_a_limit_says_in_a_word_why_nothing_starts(limit: LimitRecord, word: str) -> None:
    assert limit_row(limit, NOW).word == word


def test_what_holds_jobs_back_stands_first_and_resources_apart() -> None:
    limits = [
        LimitRecord("queue:b", 5, None, 1, 0),
        LimitRecord("task:t#customer=7", 1, None, 1, 20_000),
        LimitRecord("resource:smtp", 5, None, 1, 0),
        LimitRecord("tenant:sync=acme", 5, None, 5, 2),
    ]

    view = limits_view(limits, [], NOW, most=4)

    assert [row.name for row in view.limits] == ["task:t#customer=7", "tenant:sync=acme", "queue:b"]
    assert [row.about for row in view.limits] == ["t, customer = 7", "acme in sync", "b"]
    assert view.limits[0].waiting == "10,000 or more"
    assert [row.about for row in view.resources] == ["smtp"]
    assert view.more
    assert not limits_view(limits, [], NOW, most=5).more


def test_overrides_without_an_end_stand_first_and_are_counted() -> None:
    def made(id: int, until: datetime | None, target: str = "queue:mail") -> Override:
        return Override(id, target, "limit", {"max_running": 5}, "ann", "why", NOW, until)

    view = limits_view([], [made(3, NOW + HOUR), made(2, None), made(1, NOW + HOUR, "task:send")], NOW)
    of_mail = limits_view(
        [], [made(3, NOW + HOUR), made(1, None, "task:send")], NOW, allowed=frozenset({"mail"})
    )

    assert [row.id for row in view.overrides] == [2, 3, 1]
    assert view.endless == 1
    assert [row.id for row in of_mail.overrides] == [3]


def test_keys_that_need_a_person_stand_first() -> None:
    def key(
        name: str, waiting: int, *, state: str = "running", paused: bool = False, old: int = 0
    ) -> KeyRecord:
        return KeyRecord("mail", "", name, 7, state, waiting, NOW - old * HOUR, paused)

    keys = [
        key("calm is hot: x", 5),
        key("busy", 5_000),
        key("dead", 2, state="dead"),
        key("paused", 3, paused=True),
        key("slow", 1, old=2),
        key("alone", 0, state="dead"),
    ]

    view = tenants_view([], keys, [], NOW)

    assert [(row.key, row.health) for row in view.keys] == [
        ("paused", "stuck"),
        ("dead", "stuck"),
        ("slow", "stuck"),
        ("busy", "hot"),
        ("calm is hot: x", "moving"),
        ("alone", "moving"),
    ]
    assert {row.key for row in view.keys if row.can_skip} == {"paused", "dead", "alone"}
    assert view.troubled == 4
    assert all((row.trouble is None) == (row.health == "moving") for row in view.keys)
    assert key_row(keys[2], NOW).stands == "behind job 7, dead"


def test_of_a_tenant_only_what_the_visitor_may_see_is_added_up() -> None:
    one = TenantStatus(
        "acme",
        TenantPlan("acme", 5, 20, Rate(0.1, 20)),
        (LimitRecord("tenant:sync=acme", 5, None, 2, 0), LimitRecord("tenant:pull=acme", 5, None, 3, 0)),
        (TenantWait("sync", "acme", 7, MINUTE), TenantWait("pull", "acme", 1_001, HOUR)),
    )
    silent = TenantStatus("idle", TenantPlan("idle"))

    all_of_it = tenants_view([silent, one], [], [], NOW)
    of_sync = tenants_view([silent, one], [], [], NOW, allowed=frozenset({"sync"}))
    few = tenants_view([silent, one], [], [], NOW, most=1)

    (acme, idle) = all_of_it.tenants
    assert (acme.running, acme.ready, acme.oldest, acme.queues) == (5, "1,008", HOUR, ("pull", "sync"))
    assert (acme.weight, acme.rate, idle.stands) == (
        5,
        "10/s burst 20",
        "weight 1, no bound on running, no rate",
    )
    assert [(row.name, row.running, row.ready) for row in of_sync.tenants] == [("acme", 2, "7")]
    assert (few.hidden_tenants, len(few.tenants)) == (1, 1)


@pytest.mark.parametrize(
    ("left", "running", "progress", "draining", "word"),
    [
        (25, 3, 1, False, "works"),
        (25, 0, 1, False, "idle"),
        (25, 3, 700, False, "no progress"),
        (25, 0, 700, False, "idle"),
        (25, 3, 1, True, "draining"),
        (-1, 3, 1, True, "silent"),
        (25, 3, None, False, "works"),
    ],
)
def test_a_worker_says_in_a_word_how_it_is(
    left: int, running: int, progress: int | None, draining: bool, word: str
) -> None:
    row = worker_row(_lease(left, running, progress, draining))

    assert row is not None
    assert row.word == word
    assert 0 <= row.spent <= 1


def test_workers_that_need_somebody_stand_first() -> None:
    leases = [_lease(25, 1, 1, False), _lease(-5, 1, 1, False), _lease(25, 1, 700, False)]

    view = workers_view(leases)

    assert [row.word for row in view.workers] == ["silent", "no progress", "works"]
    assert (view.running, view.slots, view.troubled) == (3, 30, 2)
    assert workers_view(leases, allowed=frozenset({"other"})).workers == ()


def _lease(left: int, running: int, progress: int | None, draining: bool) -> WorkerLease:
    age = None if progress is None else progress * SECOND
    worker = WorkerRecord(
        Incarnation(7), "vm", 1, "vm:1", ("mail",), 10, running, NOW, (30 - left) * SECOND, age, "1", draining
    )
    return WorkerLease(worker, 30 * SECOND, left * SECOND)


def test_schedules_that_fail_stand_first_and_paused_ones_last() -> None:
    def record(
        name: str, minutes: int, *, paused: bool = False, failure: str | None = None
    ) -> ScheduleRecord:
        schedule = Schedule(name, cron="30 7 * * *", tz="Asia/Kolkata")
        return ScheduleRecord(schedule, "app", NOW + minutes * MINUTE, paused=paused, failure=failure)

    records = [record("a", 3), record("b", 1, paused=True), record("c", 2), record("d", 9, failure="no")]

    view = schedules_view(records, most=3)

    assert [row.name for row in view.rows] == ["d", "c", "a"]
    assert (view.total, view.failing, view.paused) == (4, 1, 1)
    assert [f"{at:%H:%M}" for at in view.rows[1].runs] == ["17:32", "07:30", "07:30"]
    assert view.rows[0].words == "every day at 07:30 Asia/Kolkata"


def test_what_fires_stands_first_and_what_is_over_is_left_out() -> None:
    records = [
        AlertRecord("late", "queue:a", "clear", 5, changed_at=NOW),
        AlertRecord("late", "queue:b", "clear", 0, since=NOW, value={"text": "soon"}),
        AlertRecord("disk", "store", "firing", 6, changed_at=NOW),
        AlertRecord("late", "queue:c", "firing", 7, since=NOW, changed_at=NOW - HOUR),
    ]

    view = alerts_view(records, [], [], {})
    of_b = alerts_view(records, [], [], {}, allowed=frozenset({"b"}))

    assert [(row.target, row.word) for row in view.alerts] == [
        ("store", "firing"),
        ("queue:c", "about to clear"),
        ("queue:b", "about to fire"),
    ]
    assert view.firing == 2
    assert [row.text for row in of_b.alerts] == ["soon"]


@pytest.mark.parametrize(
    ("rule", "target", "silent"),
    [("late", "queue:a", True), ("*", "queue:a", True), ("late", "*", True), ("disk", "queue:a", False)],
)
def test_a_silence_covers_a_rule_and_a_target(rule: str, target: str, silent: bool) -> None:
    record = AlertRecord("late", "queue:a", "firing", 5, changed_at=NOW)
    silence = Silence(9, rule, target, "ann", "why", NOW, NOW + HOUR)

    assert (alert_row(record, [silence]).silence == 9) is silent


@pytest.mark.parametrize(
    ("state", "tries", "word"),
    [
        ("due", 0, "on its way"),
        ("due", 2, "not sent yet, 2 tries"),
        ("sent", 1, "sent"),
        ("sent", 3, "sent after 3 tries"),
        ("given_up", 9, "given up after 9 tries"),
    ],
)
def test_a_delivery_says_how_far_it_got(state: DeliveryState, tries: int, word: str) -> None:
    change = AlertChange(4, "late", "queue:a", "firing", NOW, {"text": "late"})
    delivery = AlertDelivery(change, "hook", state, tries, NOW, "refused")

    view = alerts_view([], [], [change], {4: [delivery]}, page=1)

    (row,) = view.history
    assert [one.word for one in row.deliveries] == [word]
    assert (row.deliveries[0].error == "") is (state == "sent")
    assert view.older == 4


def test_a_form_gives_back_what_a_browser_would_change() -> None:
    texts = ["a\r\nb\n", "\u202e\ud800", " blanks ", ""]

    assert unpack(pack(*texts), 4) == texts
    for broken in ("", "AA", "!!!", pack("a"), pack("a") + "\u00e4"):
        with pytest.raises(Refused):
            unpack(broken, 2)
