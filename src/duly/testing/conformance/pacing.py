"""Cases: how often jobs may start: rates with a burst, holds after a 429, and breakers that open, probe and close."""

from datetime import timedelta

from duly.core.control import BreakerPolicy, Calls, LimitPolicy, LimitRecord, Rate, TaskLimit
from duly.core.job import ClaimRequest, Counters, Incarnation, JobId, QueueClaim
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import HOUR, MINUTE, SECOND, Bench, ended, new_job

API = "resource:api"
OF_API = TaskLimit("ok", API)
JUST = timedelta(milliseconds=1)
COOL = 30 * SECOND
BREAKER = BreakerPolicy(failures=0.5, min_calls=4, window=MINUTE, cool_down=COOL)


def _rate(bench: Bench, interval: float = 10, burst: int = 1, name: str = API) -> None:
    bench.declare(LimitPolicy(name, rate=Rate(interval, burst)), takes=[TaskLimit("ok", name)])


def _again(bench: Bench, worker: Incarnation) -> timedelta | None:
    """What an exchange that gives nothing says of the next one."""
    answer = bench.store.jobs.exchange(worker, [], ClaimRequest((QueueClaim("default", 10),), 10))
    assert answer.claimed == ()
    return answer.again


def _breaking(bench: Bench, policy: BreakerPolicy = BREAKER) -> None:
    bench.declare(LimitPolicy(API, breaker=policy), takes=[OF_API])


def _saw(bench: Bench, calls: int, failures: int) -> list[LimitRecord]:
    return bench.store.control.observe([Calls(API, calls, failures)])


def _breaker(bench: Bench) -> str | None:
    record = bench.limit(API)
    return None if record is None else record.breaker


# Rates


def no_more_start_than_a_rate_allows(bench: Bench) -> None:
    _rate(bench)
    worker, ids = bench.worker(), bench.put_many(3)

    assert bench.start_ids(worker) == ids[:1]
    bench.pass_time(9 * SECOND)
    assert bench.start_ids(worker) == []
    bench.pass_time(SECOND + JUST)
    assert bench.start_ids(worker) == ids[1:2]
    assert bench.state(ids[2]) is State.blocked


def a_burst_starts_at_once_and_then_one_by_one(bench: Bench) -> None:
    _rate(bench, burst=3)
    worker, ids = bench.worker(), bench.put_many(6)

    assert bench.start_ids(worker) == ids[:3]
    bench.pass_time(10 * SECOND + JUST)
    assert bench.start_ids(worker) == ids[3:4]
    bench.pass_time(20 * SECOND + JUST)
    assert bench.start_ids(worker) == ids[4:]


def a_pause_saves_no_more_than_one_burst(bench: Bench) -> None:
    _rate(bench, burst=2)
    worker = bench.worker()
    bench.put()
    bench.start(worker, 10)
    bench.pass_time(HOUR)
    ids = bench.put_many(5)

    assert bench.start_ids(worker) == ids[:2]


def a_rate_counts_starts_and_not_who_runs(bench: Bench) -> None:
    _rate(bench)
    worker, ids = bench.worker(), bench.put_many(3)
    (job,) = bench.start(worker, 10)
    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == []
    bench.pass_time(10 * SECOND + JUST)

    assert bench.start_ids(worker) == ids[1:2]


def a_rate_holds_for_the_whole_fleet_and_through_restarts(bench: Bench) -> None:
    _rate(bench, interval=12, burst=5)
    ids = bench.put_many(60)
    starts: list[float] = []
    # Five a minute: three workers, one of which is replaced now and then, look every other second.
    workers = [bench.worker() for _ in range(3)]
    for second in range(0, 300, 2):
        if second % 30 == 0:
            bench.store.leases.retire(workers.pop(0))
            workers.append(bench.worker())
        for worker in workers:
            for job in bench.start(worker, 10, store=bench.another() if second == 60 else None):
                starts.append(second)
                bench.end(worker, ended(job, Event.complete))
        bench.pass_time(2 * SECOND)

    assert bench.states(ids[:20]) == [State.completed] * 20
    for start in starts:
        assert sum(start <= other < start + 60 for other in starts) <= 10
    assert 25 <= len(starts) <= 30


def a_rate_says_when_it_opens(bench: Bench) -> None:
    _rate(bench)
    worker = bench.worker()
    bench.put_many(3)
    bench.start(worker, 10)
    bench.clock.advance(4 * SECOND)

    again = _again(bench, worker)

    assert again is not None
    assert timedelta(0) < again <= 6 * SECOND
    row = bench.limit(API)
    assert row is not None
    assert row.next_at == NOON + 10 * SECOND
    wait = bench.store.upkeep.promote()[1]
    assert wait is not None
    assert wait <= 6 * SECOND


def what_waits_for_nothing_says_nothing_of_time(bench: Bench) -> None:
    _rate(bench)
    worker = bench.worker()
    bench.put()
    bench.start(worker, 10)

    assert _again(bench, worker) is None
    assert bench.store.upkeep.promote() == (0, None)


def what_waits_for_another_to_end_says_nothing_of_time(bench: Bench) -> None:
    bench.declare(LimitPolicy(API, max_running=1), takes=[OF_API])
    worker = bench.worker()
    bench.put_many(3)
    bench.start(worker, 10)

    assert _again(bench, worker) is None


def a_queue_starts_no_more_than_its_rate_allows(bench: Bench) -> None:
    bench.declare(LimitPolicy("queue:default", rate=Rate(10, 2)))
    worker, ids = bench.worker(), bench.put_many(4)
    other = bench.put(queue="other")

    assert bench.start_ids(worker, queues=("default", "other")) == [*ids[:2], other]
    assert bench.states(ids[2:]) == [State.ready] * 2
    again = _again(bench, worker)
    assert again is not None
    assert timedelta(0) < again <= 10 * SECOND
    bench.pass_time(10 * SECOND + JUST)
    assert bench.start_ids(worker) == ids[2:3]


def one_value_of_an_argument_has_a_rate_of_its_own(bench: Bench) -> None:
    name = "task:ok#customer"
    bench.declare(LimitPolicy(name, rate=Rate(10)), takes=[TaskLimit("ok", name, "customer")])
    worker = bench.worker()
    ids = bench.put_all([new_job(args=b'{"customer":%d}' % customer) for customer in (1, 1, 2, 2)])

    assert bench.start_ids(worker) == [ids[0], ids[2]]
    bench.pass_time(10 * SECOND + JUST)
    assert sorted(bench.start_ids(worker)) == [ids[1], ids[3]]


def a_rate_and_a_cap_hold_together(bench: Bench) -> None:
    bench.declare(LimitPolicy(API, max_running=2, rate=Rate(10, 4)), takes=[OF_API])
    worker, ids = bench.worker(), bench.put_many(8)
    first, second = bench.start(worker, 10)

    ends = [ended(job, Event.complete) for job in (first, second)]
    assert bench.start_ids(worker, ends=ends) == ids[2:4]
    bench.pass_time(30 * SECOND + JUST)
    assert bench.start_ids(worker) == []


def a_job_that_is_refused_by_one_limit_uses_up_the_rate_of_no_other(bench: Bench) -> None:
    full = LimitPolicy("resource:full", max_running=1)
    takes = [TaskLimit("both", API), TaskLimit("both", full.name), TaskLimit("full", full.name), OF_API]
    bench.declare(LimitPolicy(API, rate=Rate(3600)), full, takes=takes)
    worker = bench.worker("ok", "both", "full")
    first = bench.put("full")
    bench.put_many(5, "both")
    assert bench.start_ids(worker) == [first]
    last = bench.put()

    assert bench.start_ids(worker) == [last]


# Holds


def nothing_of_a_resource_starts_while_it_is_held(bench: Bench) -> None:
    bench.declare(LimitPolicy(API), takes=[OF_API])
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 1)

    until = bench.store.control.hold(API, COOL, "ann", "429")

    assert until == NOON + COOL
    assert bench.start_ids(worker) == []
    row = bench.row(ids[1])
    assert (row.state, row.waits_for, row.counters) == (State.blocked, API, Counters())
    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == []
    bench.pass_time(COOL + JUST)
    assert bench.start_ids(worker) == ids[1:]


def a_longer_hold_stays(bench: Bench) -> None:
    bench.declare(LimitPolicy(API), takes=[OF_API])
    control = bench.store.control

    answers = [control.hold(API, wait * SECOND, "ann", "429") for wait in (20, 60, 5)]

    assert answers == [NOON + 20 * SECOND, NOON + MINUTE, NOON + MINUTE]
    record = bench.limit(API)
    assert record is not None
    assert (record.held_until, record.next_at) == (NOON + MINUTE, NOON + MINUTE)


def a_hold_names_its_author_and_reason(bench: Bench) -> None:
    bench.declare(LimitPolicy(API), takes=[OF_API])
    control = bench.store.control

    for wait, by, reason in ((20, "ann", "429"), (60, "task:send", "maintenance"), (5, "bob", "late")):
        control.hold(API, wait * SECOND, by, reason)

    record = bench.limit(API)
    assert record is not None
    assert (record.held_by, record.held_reason) == ("task:send", "maintenance")


def a_hold_says_when_it_ends(bench: Bench) -> None:
    bench.declare(LimitPolicy(API), takes=[OF_API])
    worker = bench.worker()
    bench.put()
    bench.store.control.hold(API, COOL, "ann", "429")
    bench.start(worker, 10)

    again = _again(bench, worker)

    assert again is not None
    assert 29 * SECOND < again <= COOL
    wait = bench.store.upkeep.promote()[1]
    assert wait is not None
    assert wait <= COOL


def a_hold_stops_no_other_task(bench: Bench) -> None:
    bench.declare(LimitPolicy(API), takes=[OF_API])
    worker = bench.worker("ok", "other")
    bench.put()
    other = bench.put("other")
    bench.store.control.hold(API, COOL, "ann", "429")

    assert bench.start_ids(worker) == [other]


# Breakers


def a_breaker_opens_on_its_share_of_failures(bench: Bench) -> None:
    _breaking(bench)
    worker, id = bench.worker(), bench.put()

    assert _saw(bench, 2, 0) == []
    (changed,) = _saw(bench, 2, 2)

    assert (changed.name, changed.breaker, changed.breaker_until) == (API, "open", NOON + COOL)
    assert bench.start_ids(worker) == []
    row = bench.row(id)
    assert (row.state, row.waits_for, row.counters, row.run) == (State.blocked, API, Counters(), 0)
    again = _again(bench, worker)
    assert again is not None
    assert timedelta(0) < again <= COOL


def a_few_calls_open_no_breaker(bench: Bench) -> None:
    _breaking(bench)

    assert _saw(bench, 3, 3) == []
    assert _breaker(bench) == "closed"


def a_small_share_of_failures_opens_no_breaker(bench: Bench) -> None:
    _breaking(bench)

    assert _saw(bench, 100, 49) == []
    assert _breaker(bench) == "closed"
    ids = bench.put_many(2)
    assert bench.start_ids(bench.worker()) == ids


def failures_of_another_window_count_no_more(bench: Bench) -> None:
    _breaking(bench)
    _saw(bench, 3, 3)
    bench.clock.advance(61 * SECOND)

    assert _saw(bench, 3, 3) == []
    assert len(_saw(bench, 1, 1)) == 1


def an_open_breaker_counts_no_calls(bench: Bench) -> None:
    _breaking(bench)
    _saw(bench, 4, 4)

    assert _saw(bench, 50, 0) == []
    assert _breaker(bench) == "open"


def after_its_cool_down_one_job_tries(bench: Bench) -> None:
    _breaking(bench)
    worker, ids = bench.worker(), bench.put_many(3)
    _saw(bench, 4, 4)
    assert bench.start_ids(worker) == []
    bench.pass_time(COOL + JUST)

    assert _breaker(bench) == "half-open"
    assert bench.start_ids(worker) == ids[:1]
    assert bench.start_ids(bench.worker()) == []


def a_good_probe_closes_the_breaker(bench: Bench) -> None:
    _breaking(bench)
    worker, ids = bench.worker(), bench.put_many(3)
    _saw(bench, 4, 4)
    bench.start(worker, 10)
    bench.pass_time(COOL + JUST)
    (probe,) = bench.start(worker, 10)

    (changed,) = _saw(bench, 1, 0)

    assert (changed.breaker, changed.breaker_until) == ("closed", None)
    assert bench.start_ids(worker, ends=[ended(probe, Event.complete)]) == ids[1:]
    assert _saw(bench, 3, 3) == []


def a_bad_probe_opens_the_breaker_again(bench: Bench) -> None:
    _breaking(bench)
    worker, ids = bench.worker(), bench.put_many(3)
    _saw(bench, 4, 4)
    bench.start(worker, 10)
    bench.pass_time(COOL + JUST)
    (probe,) = bench.start(worker, 10)
    assert probe.id == ids[0]

    (changed,) = _saw(bench, 1, 1)

    assert (changed.breaker, changed.breaker_until) == ("open", bench.clock() + COOL)
    assert bench.start_ids(worker, ends=[ended(probe, Event.complete)]) == []
    bench.pass_time(COOL + JUST)
    assert bench.start_ids(worker) == ids[1:2]


def a_probe_that_is_lost_leaves_the_try_to_another(bench: Bench) -> None:
    _breaking(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    _saw(bench, 4, 4)
    bench.start(worker, 10)
    bench.pass_time(COOL + JUST)
    bench.start(worker, 10)
    bench.reap(worker)

    assert bench.start_ids(bench.worker()) == ids[1:]


def a_breaker_that_is_open_by_hand_stays_open(bench: Bench) -> None:
    _breaking(bench)
    worker, ids = bench.worker(), bench.put_many(1)
    control = bench.store.control
    assert control.set_breaker(API, "open", "ann", "their incident")
    assert bench.start_ids(worker) == []
    bench.pass_time(HOUR)
    assert bench.start_ids(worker) == []
    assert _breaker(bench) == "open"

    assert control.set_breaker(API, None, "ann", "over")

    assert _breaker(bench) == "closed"
    assert bench.start_ids(worker) == ids


def a_breaker_that_is_closed_by_hand_never_opens(bench: Bench) -> None:
    _breaking(bench)
    _saw(bench, 4, 4)
    control = bench.store.control
    assert control.set_breaker(API, "closed", "ann", "we know")
    worker, ids = bench.worker(), bench.put_many(2)

    assert _saw(bench, 50, 50) == []
    assert bench.start_ids(worker) == ids
    assert control.set_breaker(API, None, "ann", "by itself again")
    assert len(_saw(bench, 4, 4)) == 1


def what_has_no_breaker_has_none_to_set(bench: Bench) -> None:
    bench.declare(LimitPolicy(API, max_running=1), takes=[OF_API])

    assert not bench.store.control.set_breaker(API, "open", "ann", "incident")
    assert not bench.store.control.set_breaker("resource:nobody", "open", "ann", "incident")
    assert _saw(bench, 50, 50) == []
    assert _breaker(bench) is None


def everything_that_waits_for_a_time_goes_on_by_itself(bench: Bench) -> None:
    _rate(bench, interval=10)
    worker, ids = bench.worker(), bench.put_many(4)
    order: list[JobId] = []
    # As a worker does that nobody rings: claim, sleep as long as the store says, promote, claim.
    for _ in range(20):
        answer = bench.store.jobs.exchange(worker, [], ClaimRequest((QueueClaim("default", 10),), 10))
        order += [job.id for job in answer.claimed]
        if answer.again is not None:
            bench.pass_time(answer.again + JUST)

    assert order == ids
