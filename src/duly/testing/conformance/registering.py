"""Cases: what releases of an App declare. Of one origin the release that was first seen last wins."""

from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from duly.core.errors import UsageError
from duly.core.registration import QueuePolicy, Registration, Schedule, ScheduleRecord, TaskPolicy
from duly.testing.clock import NOON

from .bench import DAY, HOUR, MINUTE, Bench, new_job, together
from .expect import raises

FIRST = NOON + HOUR
NIGHTLY = Schedule("nightly", every=DAY, job=new_job())
HOURLY = Schedule("hourly", every=HOUR, job=new_job())
MAIL = QueuePolicy("mail", owner="growth@shop")


def _registration(
    release: str = "1",
    *schedules: tuple[Schedule, datetime],
    origin: str = "shop:jobs",
    queues: tuple[QueuePolicy, ...] = (),
    tasks: tuple[TaskPolicy, ...] = (),
) -> Registration:
    return Registration(origin, release, queues, tasks, schedules)


def _declare(bench: Bench, *releases: Registration) -> list[bool]:
    """One after the other, each a minute after the one before."""
    answers = []
    for release in releases:
        bench.clock.advance(MINUTE)
        answers.append(bench.store.schema.declare(release))
    return answers


def _schedules(bench: Bench) -> dict[str, ScheduleRecord]:
    return {record.schedule.name: record for record in bench.store.schedules.all()}


def declared_queues_and_tasks_are_remembered(bench: Bench) -> None:
    schema = bench.store.schema
    assert schema.declared() == ({}, {})

    declared = _registration(
        queues=(MAIL, QueuePolicy("default", keep=HOUR, keep_dead=DAY)),
        tasks=(TaskPolicy("send", "mail", 7, timedelta(hours=2)), TaskPolicy("resize", "default", 100)),
    )

    assert schema.declare(declared)

    queues, tasks = bench.another().schema.declared()
    assert queues == {"mail": "growth@shop", "default": ""}
    assert tasks == {"send": "mail", "resize": "default"}


def a_later_release_adds_and_changes_and_removes_no_queue_or_task(bench: Bench) -> None:
    send = TaskPolicy("send", "mail", 100)
    first = _registration("1", queues=(MAIL,), tasks=(send, TaskPolicy("resize", "images", 100)))
    second = _registration(
        "2", queues=(replace(MAIL, owner="ops@shop"),), tasks=(replace(send, queue="post"),)
    )

    assert _declare(bench, first, second) == [True, True]

    queues, tasks = bench.store.schema.declared()
    assert queues["mail"] == "ops@shop"
    assert tasks == {"send": "post", "resize": "images"}


def the_same_release_again_is_accepted(bench: Bench) -> None:
    release = _registration("1", (NIGHTLY, FIRST), queues=(MAIL,))

    assert _declare(bench, release, release, release) == [True, True, True]

    assert bench.store.schema.declared()[0]["mail"] == "growth@shop"
    assert list(_schedules(bench)) == ["nightly"]


def a_release_that_was_seen_before_another_never_wins_back(bench: Bench) -> None:
    old = _registration("a", (NIGHTLY, FIRST), queues=(MAIL,), tasks=(TaskPolicy("send", "mail", 1),))
    new = _registration(
        "b", (HOURLY, FIRST), queues=(replace(MAIL, owner="ops"),), tasks=(TaskPolicy("send", "post", 1),)
    )

    assert _declare(bench, old, new, old, old, new, old) == [True, True, False, False, True, False]

    queues, tasks = bench.store.schema.declared()
    assert (queues["mail"], tasks["send"]) == ("ops", "post")
    assert list(_schedules(bench)) == ["hourly"]


def what_a_former_release_declares_changes_nothing(bench: Bench) -> None:
    old = _registration("1", (NIGHTLY, FIRST), queues=(MAIL,))
    _declare(bench, old, _registration("2", (NIGHTLY, FIRST)))
    before = bench.store.schema.declared(), bench.store.schedules.all()

    assert not bench.store.schema.declare(
        replace(
            old,
            schedules=((replace(NIGHTLY, every=HOUR), FIRST + DAY), (HOURLY, FIRST)),
            queues=(replace(MAIL, owner="x"), QueuePolicy("new")),
            tasks=(TaskPolicy("new", "new", 1),),
        )
    )

    assert (bench.store.schema.declared(), bench.store.schedules.all()) == before


def each_origin_has_releases_of_its_own(bench: Bench) -> None:
    shop = [_registration(release, (NIGHTLY, FIRST), origin="shop:jobs") for release in "12"]
    blog = [_registration(release, (HOURLY, FIRST), origin="blog:jobs") for release in "21"]

    answers = _declare(bench, shop[0], blog[0], shop[1], blog[1], shop[0], blog[0])

    assert answers == [True, True, True, True, False, False]
    assert {name: record.origin for name, record in _schedules(bench).items()} == {
        "nightly": "shop:jobs",
        "hourly": "blog:jobs",
    }


def a_schedule_that_is_declared_no_more_is_removed(bench: Bench) -> None:
    bench.store.schedules.put(replace(HOURLY, name="by hand"), FIRST)
    other = _registration("1", (replace(HOURLY, name="theirs"), FIRST), origin="blog:jobs")
    _declare(bench, other, _registration("1", (NIGHTLY, FIRST), (HOURLY, FIRST)))

    _declare(bench, _registration("2", (NIGHTLY, FIRST)))

    assert sorted(_schedules(bench)) == ["by hand", "nightly", "theirs"]
    bench.clock.advance(2 * HOUR)
    assert bench.store.schedules.fire("hourly", FIRST, FIRST + DAY, FIRST, [new_job()], 0) is None


def an_unchanged_schedule_keeps_its_due_time_and_its_pause(bench: Bench) -> None:
    schedules = bench.store.schedules
    _declare(bench, _registration("1", (NIGHTLY, FIRST), (HOURLY, FIRST)))
    schedules.fire("nightly", FIRST, FIRST + DAY, FIRST, [new_job()], 1)
    schedules.fail("hourly", FIRST, "no such table")
    schedules.pause("hourly", "ann", "incident")
    before = _schedules(bench)

    _declare(bench, _registration("2", (NIGHTLY, FIRST + 7 * DAY), (HOURLY, FIRST + 7 * DAY)))

    assert _schedules(bench) == before
    assert (before["hourly"].paused, before["hourly"].failures) == (True, 1)
    assert (before["nightly"].next_at, before["nightly"].fired) == (FIRST + DAY, 1)


def an_edited_schedule_goes_on_from_the_first_due_time_of_its_release(bench: Bench) -> None:
    _declare(bench, _registration("1", (NIGHTLY, FIRST)))
    bench.store.schedules.fail("nightly", FIRST, "no such table")
    bench.clock.advance(2 * DAY)
    edited, first = replace(NIGHTLY, every=2 * DAY), NOON + 4 * DAY

    _declare(bench, _registration("2", (edited, first)))

    record = _schedules(bench)["nightly"]
    assert (record.schedule, record.next_at) == (edited, first)
    assert (record.failure, record.failed_at, record.failures) == (None, None, 0)
    assert bench.store.schedules.due()[1] == []
    assert bench.store.schedules.fire("nightly", FIRST, FIRST + DAY, FIRST, [new_job()], 0) is None


def a_schedule_that_an_app_declares_is_not_replaced_at_run_time(bench: Bench) -> None:
    schedules = bench.store.schedules
    _declare(bench, _registration("1", (NIGHTLY, FIRST)))
    before = _schedules(bench)

    for wanted in (NIGHTLY, replace(NIGHTLY, every=HOUR)):
        with raises(UsageError) as told:
            schedules.put(wanted, FIRST + HOUR)
        assert "declared in code by shop:jobs" in str(told[0])

    assert _schedules(bench) == before
    _declare(bench, _registration("2"))
    assert schedules.put(NIGHTLY, FIRST + HOUR).origin == ""


def a_schedule_of_run_time_or_of_another_app_is_taken_over_by_the_app_that_declares_its_name(
    bench: Bench,
) -> None:
    bench.store.schedules.put(NIGHTLY, FIRST)
    _declare(bench, _registration("1", (HOURLY, FIRST), origin="blog:jobs"))
    edited = replace(HOURLY, every=DAY)

    _declare(bench, _registration("1", (NIGHTLY, FIRST + DAY), (edited, FIRST + DAY)))

    found = _schedules(bench)
    assert {name: (record.origin, record.next_at) for name, record in found.items()} == {
        "nightly": ("shop:jobs", FIRST),
        "hourly": ("shop:jobs", FIRST + DAY),
    }
    _declare(bench, _registration("2"))
    assert _schedules(bench) == {}


def releases_declared_by_many_at_once_leave_one_whole_release(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    releases = [
        _registration(
            str(number % 2),
            (replace(NIGHTLY, name=f"s{number % 2}"), FIRST),
            (HOURLY, FIRST),
            tasks=(TaskPolicy("send", f"q{number % 2}", 1), TaskPolicy("other", f"q{number % 2}", 1)),
            queues=tuple(QueuePolicy(name, owner=f"o{number % 2}") for name in ("a", "b", "c")),
        )
        for number in range(4)
    ]

    together(
        *(partial(store.schema.declare, release) for store, release in zip(stores, releases, strict=True))
    )

    queues, tasks = bench.store.schema.declared()
    (winner,) = {owner[1:] for owner in queues.values()}
    assert set(tasks.values()) == {f"q{winner}"}
    assert sorted(_schedules(bench)) == ["hourly", f"s{winner}"]
