"""The heart and the fence: who is told what, and when a process must stop by itself."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from duly.core.job import Incarnation, WorkerInfo
from duly.stores.faults import Transient
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.events import Happening, StoreAway, StoreBack
from duly.telemetry.hub import Hub
from duly.worker.board import Board
from duly.worker.heartbeat import BoardPatient, Fence, Heart
from tests.worker.doubles import Clock


class Patient:
    def __init__(self) -> None:
        self.renewals: list[float] = []
        self.is_gone = False
        self.drains = False

    def renewed(self, sent_at: float) -> None:
        self.renewals.append(sent_at)

    def gone(self) -> None:
        self.is_gone = True

    def drain(self) -> None:
        self.drains = True


class Away:
    """Leases of a store that does not answer."""

    def __init__(self, store: Store) -> None:
        self.real = store.leases
        self.away = True

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        if self.away:
            raise Transient("connection refused")
        return self.real.beat(incarnations)

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board.create(4)
    yield made
    made.close()


def register(store: Store) -> Incarnation:
    second = timedelta(seconds=1)
    return store.leases.register(WorkerInfo("h", 1, "h:1", ("default",), {}, 30 * second, 5 * second, 1, "0"))


def test_a_beat_renews_everyone_from_before_it_was_sent(store: Store) -> None:
    clock, first, second = Clock(), Patient(), Patient()
    heart = Heart(store.leases, store.operator, 5.0, Hub(), clock)
    heart.add(register(store), first)
    heart.add(register(store), second)

    pause = heart.beat()

    assert first.renewals == second.renewals == [1000.0]
    assert pause == pytest.approx(5.0, abs=0.1)


def test_whoever_has_no_row_any_more_is_told_so(store: Store) -> None:
    living, reaped = Patient(), Patient()
    heart = Heart(store.leases, store.operator, 5.0, Hub(), Clock())
    heart.add(register(store), living)
    lost = register(store)
    heart.add(lost, reaped)
    store.leases.retire(lost)

    heart.beat()

    assert reaped.is_gone
    assert not reaped.renewals
    assert not living.is_gone


def test_a_wish_to_drain_comes_with_the_next_beat(store: Store) -> None:
    patient = Patient()
    heart = Heart(store.leases, store.operator, 5.0, Hub(), Clock())
    incarnation = register(store)
    heart.add(incarnation, patient)
    store.operator.drain_worker(incarnation, "ann", "maintenance")

    heart.beat()

    assert patient.drains


def test_a_store_that_does_not_answer_is_asked_again_soon_and_reported_once(store: Store) -> None:
    hub, heard, patient = Hub(), list[Happening](), Patient()
    hub.listen(heard.append)
    leases = Away(store)
    heart = Heart(leases, store.operator, 5.0, hub, Clock())  # type: ignore[arg-type]
    heart.add(register(store), patient)

    pauses = [heart.beat(), heart.beat()]
    leases.away = False
    heart.beat()

    assert max(pauses) <= 0.3
    assert [type(event) for event in heard] == [StoreAway, StoreBack]
    assert len(patient.renewals) == 1


def test_nobody_is_beaten_for_after_removal(store: Store) -> None:
    patient = Patient()
    heart = Heart(store.leases, store.operator, 5.0, Hub(), Clock())
    incarnation = register(store)
    heart.add(incarnation, patient)

    heart.remove(incarnation)
    heart.beat()

    assert patient.renewals == []


def test_the_fence_falls_one_heartbeat_before_the_lease_ends(board: Board) -> None:
    fence = Fence(30.0, 5.0, board, 100.0)

    assert fence.may_start(124.9)
    assert not fence.may_start(125.0)
    assert not fence.lapsed(129.9)
    assert fence.lapsed(130.0)


def test_the_fence_stops_claims_after_two_missed_beats(board: Board) -> None:
    fence = Fence(30.0, 5.0, board, 100.0)

    assert fence.may_claim(112.0)
    assert not fence.may_claim(113.0)


def test_a_renewal_on_the_board_moves_the_fence(board: Board) -> None:
    fence = Fence(30.0, 5.0, board, 100.0)
    patient = BoardPatient(board)

    patient.renewed(120.0)

    # Nobody has refreshed it: the start itself looks again.
    assert fence.may_start(140.0)
    assert not fence.may_start(145.0)


def test_a_process_that_slept_through_its_lease_notices_before_it_starts_anything(board: Board) -> None:
    fence = Fence(30.0, 5.0, board, 100.0)
    fence.refresh(101.0)

    awake = 1000.0

    assert not fence.may_start(awake)
    assert fence.lapsed(awake)


def test_a_row_that_is_gone_ends_it_whatever_the_clock_says(board: Board) -> None:
    fence = Fence(30.0, 5.0, board, 100.0)
    BoardPatient(board).gone()

    assert not fence.refresh(101.0)
    assert not fence.may_start(101.0)
    assert fence.lapsed(101.0)


def test_a_closed_board_is_no_problem_for_a_late_beat() -> None:
    board = Board.create(4)
    patient = BoardPatient(board)
    board.close()

    patient.renewed(1.0)
    patient.gone()
    patient.drain()
