"""The budget of a whole store: who is refused at which fill, who makes room, and when it will be full."""

from datetime import timedelta

import pytest

from duly.core.budget import (
    Budget,
    Rank,
    StoreUse,
    described,
    fastest,
    fill,
    giving_way,
    look_again,
    making_room,
    refused,
    retry_after,
    starts,
    time_to_full,
)

MIB = 1024 * 1024


def test_a_budget_of_nothing_is_none() -> None:
    assert not Budget()
    assert Budget(max_bytes=1)
    assert Budget(min_free_disk=1)


@pytest.mark.parametrize(
    ("budget", "use", "filled"),
    [
        (Budget(), StoreUse(MIB, free_disk=0), 0.0),
        (Budget(max_bytes=4 * MIB), StoreUse(3 * MIB), 0.75),
        (Budget(min_free_disk=MIB), StoreUse(9 * MIB, free_disk=2 * MIB), 0.5),
        (Budget(min_free_disk=MIB), StoreUse(9 * MIB, free_disk=MIB), 1.0),
        (Budget(min_free_disk=MIB), StoreUse(9 * MIB), 0.0),
        (Budget(4 * MIB, MIB), StoreUse(MIB, free_disk=2 * MIB), 0.5),
        (Budget(4 * MIB, MIB), StoreUse(3 * MIB, free_disk=2 * MIB), 0.75),
    ],
)
def test_a_store_is_as_full_as_the_nearer_of_its_two_bounds_says(
    budget: Budget, use: StoreUse, filled: float
) -> None:
    assert fill(budget, use) == filled


def test_a_disk_without_any_space_is_full_beyond_measure() -> None:
    assert fill(Budget(min_free_disk=MIB), StoreUse(MIB, free_disk=0)) > 1000


def test_the_least_important_begin_and_the_most_important_are_never_refused() -> None:
    assert starts({1, 100, 150, 200}) == pytest.approx({200: 0.80, 150: 0.875, 100: 0.95})
    assert starts({1, 100}) == {100: 0.80}


def test_queues_of_one_importance_are_refused_together_at_the_budget() -> None:
    assert starts({100}) == {100: 1.0}
    assert refused({100}, 0.999) == frozenset()
    assert refused({100}, 1.0) == {100}


@pytest.mark.parametrize(
    ("filled", "who"),
    [(0.79, set()), (0.80, {200}), (0.94, {200}), (0.95, {200, 100}), (1.0, {200, 100}), (50.0, {200, 100})],
)
def test_the_fuller_the_store_the_more_are_refused(filled: float, who: set[int]) -> None:
    assert refused({1, 100, 200}, filled) == who


def test_who_was_refused_is_let_in_again_only_some_way_below() -> None:
    assert refused({1, 200}, 0.76, before={200}) == {200}
    assert refused({1, 200}, 0.76) == frozenset()
    assert refused({1, 200}, 0.74, before={200}) == frozenset()


def test_room_is_made_from_the_budget_down_to_some_way_below() -> None:
    assert not making_room(0.99, before=False)
    assert making_room(1.0, before=False)
    assert making_room(0.96, before=True)
    assert not making_room(0.94, before=True)


def test_the_least_important_queues_give_way_first_and_the_most_important_not_at_all() -> None:
    ranks = [Rank("payments", 1), Rank("mail"), Rank("analytics", 200, sheds=True), Rank("audit", 1)]

    assert [rank.queue for rank in giving_way(ranks)] == ["analytics", "mail"]
    assert giving_way([Rank("a"), Rank("b")]) == []
    assert giving_way([]) == []


def test_the_time_to_full_follows_the_trend() -> None:
    growing = [(float(at), StoreUse((100 + at) * MIB)) for at in range(0, 100, 10)]

    assert time_to_full(Budget(max_bytes=290 * MIB), growing) == timedelta(seconds=100)


def test_a_disk_that_others_fill_is_full_in_time_as_well() -> None:
    shrinking = [(float(at), StoreUse(MIB, free_disk=(200 - at) * MIB)) for at in range(0, 100, 10)]

    assert time_to_full(Budget(max_bytes=10 * MIB, min_free_disk=10 * MIB), shrinking) == timedelta(
        seconds=100
    )


def test_a_store_that_does_not_grow_is_never_full_and_a_full_one_is_so_now() -> None:
    steady = [(0.0, StoreUse(MIB)), (10.0, StoreUse(MIB))]

    assert time_to_full(Budget(max_bytes=2 * MIB), steady) is None
    assert time_to_full(Budget(max_bytes=2 * MIB), steady[:1]) is None
    assert time_to_full(Budget(max_bytes=2 * MIB), []) is None
    assert time_to_full(Budget(max_bytes=MIB), steady) == timedelta(0)


def test_a_refused_producer_waits_as_long_as_it_takes_to_make_the_room() -> None:
    assert retry_after(0.85, 0.80, -0.01) == timedelta(seconds=10)
    assert retry_after(0.85, 0.80, None) == timedelta(minutes=1)
    assert retry_after(0.85, 0.80, 0.01) == timedelta(minutes=1)
    assert retry_after(0.85, 0.80, -1.0) == timedelta(seconds=1)


def test_words_name_the_bound_that_is_nearer() -> None:
    budget = Budget(max_bytes=512 * MIB, min_free_disk=100 * MIB)

    assert described(budget, StoreUse(412 * MIB, free_disk=1000 * MIB)) == (
        "the store takes 412 MiB, 80 % of max_bytes=512MiB"
    )
    assert described(budget, StoreUse(12 * MIB, free_disk=110 * MIB)) == (
        "the disk of the store has 110 MiB free, min_free_disk=100MiB"
    )


def test_a_store_that_fills_fast_is_measured_more_often() -> None:
    budget = Budget(max_bytes=10_000 * MIB)

    def seconds(share: float, per_second: float | None) -> float:
        return look_again(budget, StoreUse(int(share * 10_000 * MIB)), {1, 200}, per_second)

    assert seconds(0.4, None) == 1.0
    assert seconds(0.4, 0.0) == 1.0
    assert seconds(0.4, 0.2) == pytest.approx(0.5)
    assert seconds(0.4, 10.0) == 0.05
    assert seconds(3.0, 10.0) == 1.0


def test_a_small_rest_is_measured_more_often_though_nobody_brings_anything_yet() -> None:
    def seconds(budget: Budget, use: StoreUse) -> float:
        return look_again(budget, use, {1, 200}, 0.0)

    assert seconds(Budget(max_bytes=20 * MIB), StoreUse(0)) == 0.5
    assert seconds(Budget(min_free_disk=4 * MIB), StoreUse(0, free_disk=21 * MIB)) == 0.5
    assert seconds(Budget(min_free_disk=4 * MIB), StoreUse(0, free_disk=6 * MIB)) == 0.05
    assert seconds(Budget(min_free_disk=4 * MIB), StoreUse(0)) == 1.0


def test_the_pace_is_that_of_the_fastest_rise() -> None:
    assert fastest([(0.0, 0.1), (1.0, 0.1), (1.5, 0.3), (2.5, 0.3)]) == pytest.approx(0.4)
    assert fastest([(0.0, 0.5), (1.0, 0.4)]) == pytest.approx(-0.1)
    assert fastest([(0.0, 0.5), (0.0, 0.6)]) is None
    assert fastest([]) is None
