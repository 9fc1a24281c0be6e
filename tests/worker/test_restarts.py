"""Replacing dead children: at once the first time, later and later while they die young."""

from duly.worker.restarts import Restarts


def test_the_first_death_is_answered_at_once() -> None:
    restarts = Restarts()

    restarts.died(100.0, age=0.1)

    assert restarts.allowed(100.0)


def test_children_that_keep_dying_young_are_started_later_and_later_but_always_again() -> None:
    restarts, pauses = Restarts(), []
    now = 0.0

    for _ in range(12):
        restarts.died(now, age=0.1)
        pause = next(seconds / 4 for seconds in range(200) if restarts.allowed(now + seconds / 4))
        pauses.append(pause)
        now += pause

    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 30.0


def test_a_child_that_lived_for_a_while_starts_the_count_anew() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.died(0.0, age=0.1)

    restarts.died(100.0, age=60.0)

    assert restarts.allowed(100.0)
