"""Cases: when a queue is late by its own target, and that each crossing of it is told once."""

from datetime import timedelta

from duly.core.lifecycle import State
from duly.core.registration import QueuePolicy

from .bench import HOUR, MINUTE, SECOND, Bench


def _target(bench: Bench, target: timedelta | None) -> None:
    bench.declare(queues=[QueuePolicy("default", wait_target=target), QueuePolicy("other")])


def _crossed(bench: Bench) -> list[tuple[str, bool]]:
    # At most once a second.
    bench.clock.advance(2 * SECOND)
    return [(one.queue, one.late) for one in bench.store.pressing.crossings()]


def a_queue_whose_oldest_job_waits_too_long_is_late_once(bench: Bench) -> None:
    _target(bench, MINUTE)
    bench.put()
    bench.put(queue="other")
    before = _crossed(bench)
    bench.clock.advance(MINUTE)

    told = bench.store.pressing.crossings()

    assert before == []
    assert [(one.queue, one.late, one.wait_target, one.oldest) for one in told] == [
        ("default", True, MINUTE, MINUTE + 2 * SECOND)
    ]
    bench.clock.advance(HOUR)
    assert _crossed(bench) == []


def a_queue_is_in_time_again_once_its_old_jobs_have_started(bench: Bench) -> None:
    _target(bench, MINUTE)
    bench.put()
    bench.clock.advance(HOUR)
    late = _crossed(bench)
    bench.claim_one(bench.worker())
    bench.put()

    assert late == [("default", True)]
    assert _crossed(bench) == [("default", False)]
    assert _crossed(bench) == []
    bench.clock.advance(HOUR)
    assert _crossed(bench) == [("default", True)]


def the_oldest_is_looked_for_among_all_priorities_and_tenants(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", wait_target=MINUTE, fair=True)])
    bench.put(tenant="zeta", fair=True, priority=900)
    bench.clock.advance(HOUR)
    for tenant in ("acme", "beta", "zeta", ""):
        bench.put(tenant=tenant, fair=True, priority=1)

    assert _crossed(bench) == [("default", True)]


def only_ready_jobs_make_a_queue_late(bench: Bench) -> None:
    _target(bench, MINUTE)
    bench.put("mystery")
    bench.put(delay=2 * HOUR)
    running = bench.put()
    bench.claim(bench.worker(), 5)
    bench.clock.advance(HOUR)

    assert bench.state(running) is State.running
    assert _crossed(bench) == []


def a_target_that_is_taken_back_makes_nothing_late(bench: Bench) -> None:
    _target(bench, MINUTE)
    bench.put()
    bench.clock.advance(HOUR)
    late = _crossed(bench)
    _target(bench, None)

    assert late == [("default", True)]
    assert _crossed(bench) == [("default", False)]


def a_crossing_is_told_to_one_of_those_who_ask(bench: Bench) -> None:
    _target(bench, MINUTE)
    bench.put()
    bench.clock.advance(HOUR)
    other = bench.another()

    told = [*bench.store.pressing.crossings(), *other.pressing.crossings()]

    assert len(told) == 1


def pressures_tell_the_target(bench: Bench) -> None:
    _target(bench, MINUTE)

    told = bench.store.pressing.pressures(["default", "other", "undeclared"])

    assert [told[name].wait_target for name in ("default", "other", "undeclared")] == [MINUTE, None, None]
