"""Lease arithmetic: the reaper's watch, the holder's own view, and claims nobody remembers."""

from hypothesis import given
from hypothesis import strategies as st

from duly.core.job import Incarnation
from duly.core.leases import Beat, OwnLease, Watch, unknown_twice

LEASE, HEARTBEAT, GAP = 30.0, 5.0, 15.0
ONE = Incarnation(1)


def beat(number: int, age: float = 1.0, incarnation: Incarnation = ONE) -> Beat:
    return Beat(incarnation, number, LEASE, age)


def test_a_worker_seen_once_is_not_overdue_however_old_its_row() -> None:
    watch = Watch()

    assert watch.overdue([beat(7, age=299.0)], 0.0, GAP) == []


def test_a_worker_is_overdue_after_a_whole_lease_of_the_same_beat() -> None:
    watch = Watch()
    seen = beat(7)

    rounds = {now: watch.overdue([seen], now, GAP) for now in (0.0, 10.0, 20.0, 29.9, 30.0)}

    assert [now for now, overdue in rounds.items() if overdue] == [30.0]
    assert rounds[30.0] == [seen]


def test_a_beat_in_between_starts_the_lease_anew() -> None:
    watch = Watch()
    watch.overdue([beat(7)], 0.0, GAP)
    watch.overdue([beat(7)], 15.0, GAP)
    watch.overdue([beat(8)], 29.0, GAP)

    assert watch.overdue([beat(8)], 44.0, GAP) == []
    assert watch.overdue([beat(8)], 59.0, GAP) == [beat(8)]


def test_a_beat_that_steps_back_starts_the_lease_anew_too() -> None:
    watch = Watch()
    watch.overdue([beat(9)], 0.0, GAP)
    watch.overdue([beat(9)], 15.0, GAP)

    assert watch.overdue([beat(3)], 30.0, GAP) == []


def test_a_failed_round_makes_what_was_seen_worthless() -> None:
    watch = Watch()
    for now in (0.0, 10.0, 20.0):
        watch.overdue([beat(7)], now, GAP)

    watch.interrupted()

    assert watch.overdue([beat(7)], 30.0, GAP) == []
    assert watch.overdue([beat(7)], 45.0, GAP) == []
    assert watch.overdue([beat(7)], 60.0, GAP) == [beat(7)]


def test_a_gap_of_the_reaper_itself_makes_what_was_seen_worthless() -> None:
    watch = Watch()
    watch.overdue([beat(7)], 0.0, GAP)
    watch.overdue([beat(7)], 15.0, GAP)

    assert watch.overdue([beat(7)], 30.1, GAP) == []
    assert watch.overdue([beat(7)], 45.1, GAP) == []


def test_a_round_exactly_at_the_gap_still_counts() -> None:
    watch = Watch()
    for now in (0.0, 15.0):
        watch.overdue([beat(7)], now, GAP)

    assert watch.overdue([beat(7)], 30.0, GAP) == [beat(7)]


def test_a_row_ten_leases_old_is_overdue_at_first_sight() -> None:
    watch = Watch()

    assert watch.overdue([beat(7, age=300.0)], 0.0, GAP) == [beat(7, age=300.0)]


def test_a_worker_that_vanished_and_came_back_under_its_number_is_new() -> None:
    watch = Watch()
    watch.overdue([beat(7)], 0.0, GAP)
    watch.overdue([], 15.0, GAP)

    assert watch.overdue([beat(7)], 30.0, GAP) == []


def test_each_worker_is_watched_on_its_own() -> None:
    watch = Watch()
    two = Incarnation(2)
    for number, now in enumerate((0.0, 10.0, 20.0)):
        watch.overdue([beat(7), beat(number, incarnation=two)], now, GAP)

    overdue = watch.overdue([beat(7), beat(4, incarnation=two)], 30.0, GAP)

    assert overdue == [beat(7)]


def test_leases_of_different_lengths_stand_side_by_side() -> None:
    watch = Watch()
    short, long = Beat(ONE, 1, 10.0, 0.0), Beat(Incarnation(2), 1, 100.0, 0.0)
    watch.overdue([short, long], 0.0, GAP)

    assert watch.overdue([short, long], 10.0, GAP) == [short]


def test_a_holder_stops_one_heartbeat_before_its_lease_can_lapse() -> None:
    lease = OwnLease(LEASE, HEARTBEAT, 100.0)

    assert not lease.must_stop(124.9)
    assert lease.must_stop(125.0)


def test_a_confirmed_heartbeat_counts_from_before_it_was_sent() -> None:
    lease = OwnLease(LEASE, HEARTBEAT, 100.0)

    lease.renewed(110.0)

    assert not lease.must_stop(134.9)
    assert lease.must_stop(135.0)


def test_confirmations_out_of_order_never_shorten_the_lease() -> None:
    lease = OwnLease(LEASE, HEARTBEAT, 100.0)

    lease.renewed(120.0)
    lease.renewed(110.0)

    assert not lease.must_stop(144.9)


def test_a_holder_claims_nothing_after_two_missed_beats() -> None:
    lease = OwnLease(LEASE, HEARTBEAT, 100.0)

    assert lease.may_claim(105.0)
    assert lease.may_claim(112.4)
    assert not lease.may_claim(112.5)
    lease.renewed(110.0)
    assert lease.may_claim(112.5)


def test_the_shortest_lease_allowed_still_leaves_time_to_claim() -> None:
    lease = OwnLease(15.0, 5.0, 0.0)

    assert lease.may_claim(7.0)
    assert lease.must_stop(10.0)


@given(
    heartbeat=st.floats(0.01, 100.0),
    ratio=st.floats(3.0, 50.0),
    delays=st.lists(st.floats(0.0, 500.0), max_size=20),
)
def test_a_holder_always_stops_before_any_watch_may_reap_it(
    heartbeat: float, ratio: float, delays: list[float]
) -> None:
    lease = heartbeat * ratio
    own = OwnLease(lease, heartbeat, 0.0)
    watch, now, beats = Watch(), 0.0, 0

    for delay in delays:
        now += delay
        overdue = watch.overdue([Beat(ONE, beats, lease, 0.0)], now, lease / 2)

        # A watch saw the last beat at the earliest when it was sent.
        assert not overdue or own.must_stop(now)
        if not own.must_stop(now):
            own.renewed(now)
            beats += 1


def test_a_claim_unknown_in_one_round_is_only_suspected() -> None:
    suspected, strange = unknown_twice([(1, 1), (2, 1)], {(1, 1): "held"}, frozenset())

    assert (suspected, strange) == (frozenset({(2, 1)}), [])


def test_a_claim_unknown_in_two_rounds_running_goes_back() -> None:
    suspected, strange = unknown_twice([(3, 1), (2, 1)], {}, frozenset({(2, 1), (9, 9)}))

    assert (suspected, strange) == (frozenset({(2, 1), (3, 1)}), [(2, 1)])


def test_a_claim_that_was_only_late_is_cleared() -> None:
    suspected, strange = unknown_twice([(2, 1)], {(2, 1): "arrived"}, frozenset({(2, 1)}))

    assert (suspected, strange) == (frozenset(), [])


def test_another_run_of_a_suspected_job_is_a_new_suspicion() -> None:
    suspected, strange = unknown_twice([(2, 2)], {}, frozenset({(2, 1)}))

    assert (suspected, strange) == (frozenset({(2, 2)}), [])


def test_strange_claims_are_told_in_order() -> None:
    held = [(5, 1), (3, 2), (4, 1)]

    assert unknown_twice(held, {}, frozenset(held))[1] == [(3, 2), (4, 1), (5, 1)]
