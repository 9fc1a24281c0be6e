"""What one producer knows of full queues and of a full store, by a clock and a store that stand still between steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, cast

import pytest

from duly import App, QueueFull
from duly.client.budget import BudgetGate
from duly.client.pressing import FREE, Pressing, Verdict
from duly.core.bounds import Fill
from duly.core.budget import Budget, StoreUse
from duly.stores.faults import Transient
from duly.telemetry.events import QueueWasFull


class Still:
    """A store whose queues hold what is said here; it counts what it is told while it answers."""

    def __init__(self) -> None:
        self.depth = 0
        self.bytes = 0
        self.answers = True
        self.refused: dict[str, int] = {}

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        return {queue: Fill(self.depth) for queue in queues}

    def turned_away(self, refused: Mapping[str, int]) -> None:
        if not self.answers:
            raise Transient("connection lost")
        self.refused |= refused

    def use(self, age: timedelta = timedelta(0)) -> StoreUse:
        return StoreUse(self.bytes)


class Producer:
    """What a process that enqueues into "mail", which holds two jobs, keeps of it."""

    def __init__(self, app: App) -> None:
        self.now = 100.0
        self.store = Still()
        self.told: list[QueueWasFull] = []
        app.queue("mail", max_depth=2, importance=200)
        app.queue("payments", importance=1)
        self.registry = app.client.registry
        self.pressing = Pressing(self.registry, lambda: self.store, self.told.append, lambda: self.now)
        self.pressing.look(["mail"])

    def bring(self) -> Verdict:
        return self.pressing.judge({"mail": 1}, strict=frozenset(), joined=False)

    def look_anew(self) -> None:
        self.now += 2
        self.pressing.look(["mail"])


@pytest.fixture
def producer() -> Iterator[Producer]:
    app = App("sqlite:///never-opened.db")
    yield Producer(app)
    app.close()


def test_the_places_that_a_loop_has_waited_for_are_its_own(producer: Producer) -> None:
    places = [producer.pressing.admit("mail") for _ in range(3)]

    assert places[:2] == [0.0, 0.0]
    assert places[2] > 0
    assert [producer.bring(), producer.bring()] == [FREE, FREE]
    with pytest.raises(QueueFull):
        producer.bring()


def test_places_that_a_loop_has_left_are_free_with_the_next_look(producer: Producer) -> None:
    for _ in range(2):
        producer.pressing.admit("mail")
    for _ in range(2):
        producer.pressing.leave("mail")

    producer.look_anew()

    assert [producer.pressing.admit("mail") for _ in range(2)] == [0.0, 0.0]


def test_refusals_that_the_store_did_not_take_are_told_the_next_time(producer: Producer) -> None:
    producer.store.depth = 2
    producer.look_anew()
    with pytest.raises(QueueFull):
        producer.bring()

    producer.store.answers = False
    producer.pressing.note()
    producer.store.answers = True
    producer.now += 2
    producer.pressing.note()

    assert producer.store.refused == {"mail": 1}


def test_who_gave_way_to_the_budget_is_let_in_again_some_way_below(producer: Producer) -> None:
    gate = BudgetGate(
        Budget(max_bytes=1_000),
        producer.registry,
        lambda: cast(Any, producer.store),
        producer.pressing,
        lambda: producer.now,
    )

    def takes() -> bool:
        gate.look()
        try:
            return producer.bring() == FREE
        except QueueFull:
            return False

    taken = []
    for size in (700, 810, 760, 740):
        producer.now += 2
        producer.store.bytes = size
        producer.look_anew()
        taken.append(takes())

    assert taken == [True, False, False, True]
