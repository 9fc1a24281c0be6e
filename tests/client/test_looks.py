"""How a client knows how full its queues are: when it asks, what it counts itself, and who is refused from outside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from duly import QueueFull
from duly.client.pressing import FREE, Pressing
from duly.client.queue import Queue
from duly.client.registry import Registry
from duly.core.bounds import Bound, Fill
from duly.core.control import WhenFull
from duly.stores.faults import Transient
from duly.telemetry.events import Happening
from tests.worker.doubles import Clock

AT = datetime(2030, 5, 1, tzinfo=UTC)
NOBODY: frozenset[str] = frozenset()


class Store:
    """Answers what it is told to, and counts the questions."""

    def __init__(self) -> None:
        self.fill = Fill(0)
        self.asked: list[dict[str, int]] = []
        self.heard: list[dict[str, int]] = []
        self.away = False
        self.takes = 0.0
        self.clock = Clock()

    def turned_away(self, refused: Mapping[str, int]) -> None:
        if self.away:
            raise Transient("gone")
        self.heard.append(dict(refused))

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        self.asked.append(dict(queues))
        self.clock.now += self.takes
        return dict.fromkeys(queues, self.fill)


class Producer:
    """Brings jobs as an enqueue does."""

    def __init__(self, when_full: WhenFull = "reject", max_depth: int = 10) -> None:
        self.store, self.told = Store(), list[Happening]()
        self.clock = self.store.clock
        self.registry = registry = Registry()
        registry.add_queue(Queue("mail", bound=Bound(max_depth, None, when_full), importance=50))
        registry.add_queue(Queue("news", bound=Bound(max_depth, None, when_full)))
        self.pressing = Pressing(registry, lambda: self.store, self.told.append, self.clock)

    def brings(self, jobs: int, queue: str = "mail", *, joined: bool = False) -> tuple[bool, float]:
        wanted = {queue: jobs}
        if self.pressing.wants_look(wanted):
            self.pressing.look(wanted)
        verdict = self.pressing.judge(wanted, strict=NOBODY, joined=joined)
        return queue in verdict.over, verdict.pause

    def is_refused(self, jobs: int, queue: str = "mail") -> bool:
        try:
            self.brings(jobs, queue)
        except QueueFull:
            return True
        return False


def test_the_store_is_asked_once_a_second_however_much_comes() -> None:
    producer = Producer(max_depth=1000)

    for _ in range(100):
        producer.brings(1)
        producer.clock.now += 0.02

    assert len(producer.store.asked) == 2


@pytest.mark.parametrize(("depth", "rest"), [(6 * 10**6, 10), (4 * 10**6, 40)])
def test_where_counting_takes_long_the_store_is_asked_less_often(depth: int, rest: int) -> None:
    producer = Producer(max_depth=10**7)
    producer.brings(1)
    producer.clock.now += 1
    producer.store.fill, producer.store.takes = Fill(depth), 0.2
    producer.brings(1)

    for _ in range(rest * 10 - 1):
        producer.clock.now += 0.1
        producer.brings(1)
    asked = len(producer.store.asked)
    producer.clock.now += 0.2
    producer.brings(1)

    assert (asked, len(producer.store.asked)) == (2, 3)


def test_how_old_jobs_are_is_asked_as_often_with_much_room() -> None:
    producer = Producer(max_depth=10**7)
    producer.registry.add_queue(Queue("aged", bound=Bound(10**7, timedelta(hours=1), "reject")))
    producer.brings(1, "aged")
    producer.clock.now += 1
    producer.store.fill, producer.store.takes = Fill(10**6), 0.2
    producer.brings(1, "aged")

    producer.clock.now += 11
    producer.brings(1, "aged")

    assert len(producer.store.asked) == 3


def test_one_question_is_about_all_queues_in_use() -> None:
    producer = Producer()
    producer.brings(1)
    producer.brings(1, "news")
    producer.clock.now += 1

    producer.brings(1)

    assert producer.store.asked == [{"mail": 10}, {"mail": 10, "news": 10}, {"mail": 10, "news": 10}]


def test_what_it_has_brought_itself_counts_between_two_looks() -> None:
    producer = Producer()
    producer.store.fill = Fill(4, at=AT)
    producer.brings(6)

    assert producer.is_refused(1)


def test_what_has_ended_meanwhile_makes_room_again() -> None:
    producer = Producer()
    producer.store.fill = Fill(4, out_per_s=10.0, at=AT)
    producer.brings(6)
    producer.clock.now += 0.5

    assert not producer.is_refused(5)
    assert producer.is_refused(1)


def test_a_count_that_is_the_stores_old_one_forgets_nothing_of_what_was_brought() -> None:
    producer = Producer()
    producer.store.fill = Fill(4, at=AT)
    producer.brings(5)
    producer.clock.now += 1.5

    assert producer.is_refused(2)
    assert len(producer.store.asked) == 2


def test_a_new_count_replaces_what_was_counted_here() -> None:
    producer = Producer()
    producer.store.fill = Fill(4, at=AT)
    producer.brings(5)
    producer.clock.now += 1.5
    producer.store.fill = Fill(2, at=AT + timedelta(seconds=1))

    assert not producer.is_refused(8)


def test_before_it_refuses_it_looks_again_where_the_store_counts_at_once() -> None:
    producer = Producer()
    producer.brings(10)
    producer.store.fill = Fill(3)

    assert not producer.is_refused(1)


def test_a_store_that_counts_for_all_is_asked_again_a_tenth_of_a_second_later() -> None:
    producer = Producer()
    producer.store.fill = Fill(10, at=AT)
    refused = producer.is_refused(1)
    producer.store.fill = Fill(3, at=AT + timedelta(seconds=0.1))

    producer.clock.now += 0.05
    soon = producer.is_refused(1)
    producer.clock.now += 0.06
    later = producer.is_refused(1)

    assert (refused, soon, later) == (True, True, False)


def test_queues_that_are_less_important_are_refused_from_outside() -> None:
    producer = Producer("slow")
    producer.pressing.refuse_below(50, "the store is full", timedelta(seconds=7))

    with pytest.raises(
        QueueFull, match=r"'news' gives way .* the store is full.* Try again in 7s"
    ) as refused:
        producer.brings(1, "news")

    assert refused.value.retry_after == timedelta(seconds=7)
    assert producer.brings(1, "mail") == (False, 0.0)
    assert producer.is_refused(0, "news"), "what is due later takes room in the store, too"
    assert producer.is_refused(1, "undeclared")
    assert producer.brings(1, "news", joined=True) == (True, 0.0)

    producer.pressing.refuse_below(None)

    assert producer.brings(1, "news") == (False, 0.0)


def test_who_refuses_from_outside_is_asked_with_each_look_and_needs_no_bound() -> None:
    looks: list[int] = []
    clock = Clock()
    pressing = Pressing(Registry(), Store, lambda _: None, clock)
    assert pressing.idle

    def look() -> float:
        looks.append(1)
        return 1.0

    pressing.on_look = look

    for _ in range(3):
        if pressing.wants_look({"mail": 1}):
            pressing.look({"mail": 1})
        assert pressing.judge({"mail": 1}, strict=NOBODY, joined=False) == FREE
        clock.now += 0.6

    assert not pressing.idle
    assert len(looks) == 2


def test_who_refuses_from_outside_may_ask_to_be_asked_sooner() -> None:
    looks: list[float] = []
    clock = Clock()
    pressing = Pressing(Registry(), Store, lambda _: None, clock)

    def look() -> float:
        looks.append(clock.now)
        return 0.1

    pressing.on_look = look

    for _ in range(5):
        if pressing.wants_look({"mail": 1}):
            pressing.look({"mail": 1})
        clock.now += 0.06

    assert len(looks) == 3


def test_a_place_that_was_kept_is_not_refused() -> None:
    producer = Producer(max_depth=1)
    producer.store.fill = Fill(0, at=AT)

    assert producer.pressing.admit("mail") == 0.0
    assert producer.pressing.admit("mail") > 0
    assert not producer.is_refused(1)
    assert producer.is_refused(1)


def test_a_place_that_is_left_is_not_kept() -> None:
    producer = Producer(max_depth=1)
    producer.store.fill = Fill(0, at=AT)
    producer.pressing.admit("mail")

    producer.pressing.leave("mail")

    assert producer.is_refused(1)


def test_the_store_hears_of_refusals_once_a_second_and_of_those_it_missed_later() -> None:
    producer = Producer()
    producer.store.fill = Fill(11, at=AT)
    producer.store.away = True
    producer.is_refused(1)
    producer.pressing.note()
    producer.store.away = False

    for _ in range(5):
        producer.clock.now += 0.5
        producer.is_refused(2)
        producer.pressing.note()

    assert producer.store.heard == [{"mail": 1 + 2 + 2}, {"mail": 4}]


def test_what_producers_meet_is_told_at_once_and_then_once_a_minute() -> None:
    producer = Producer()
    producer.store.fill = Fill(11, at=AT)

    for _ in range(150):
        producer.is_refused(1)
        producer.clock.now += 1

    assert [getattr(event, "jobs", None) for event in producer.told] == [1, 60, 60]
