"""Jobs of one ordering key claimed together: one slot, one after another, and back at no cost where that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from duly.core.job import ClaimRequest, QueueClaim
from duly.core.lifecycle import Event, State
from duly.worker.attempt import Attempt, Chain, Phase
from duly.worker.board import Board
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor, Slot
from duly.worker.heartbeat import Fence
from duly.worker.pump import BEHIND
from duly.worker.run import handed_back, returned
from duly.worker.watch import Watch
from tests.worker.doubles import Acts, Clock, a_mixed_app, a_plan, an_app, an_attempt, cards, ids
from tests.worker.pump_bench import Bench
from tests.worker.test_fetch import finish
from tests.worker.test_pump import bench

__all__ = ["bench"]


def a_fetch(**said: Any) -> Fetch:
    return Fetch(a_plan(**said), cards(an_app()), poll=1.0)


def a_chain(fetch: Fetch, many: int) -> list[Attempt]:
    """A head and those behind it, as the pump takes them."""
    head = an_attempt(fetch.cards["on_loop"], 1)
    assert fetch.admit(head, 0.0)
    found = [head]
    for id in range(2, many + 1):
        follower = an_attempt(fetch.cards["on_loop"], id, follows=True)
        assert fetch.follow(follower, found[-1])
        found.append(follower)
    return found


@pytest.fixture
def floor() -> Iterator[Floor]:
    clock, board = Clock(), Board.create(10)
    board.renew(clock.now)
    floor = Floor(board, Fence(30.0, 5.0, board, clock.now), (), clock)
    floor.on_end = lambda _: None
    yield floor
    board.close()


def complete(floor: Floor, attempt: Attempt, slot: Slot) -> None:
    assert floor.begin(attempt, slot)
    floor.finish(attempt, returned(attempt, None, floor.clock()), slot)


def fail(floor: Floor, attempt: Attempt, slot: Slot) -> None:
    assert floor.begin(attempt, slot)
    floor.finish(attempt, handed_back(attempt, "it broke"), slot)


# What is asked for.


def test_chains_are_asked_for_only_while_jobs_take_next_to_no_time() -> None:
    fetch = a_fetch()
    before = fetch.request(0.0, riding=True)

    now = 0.0
    for _ in range(120):
        attempts = [an_attempt(fetch.cards["on_loop"], 1)]
        assert fetch.admit(attempts[0], now)
        now += 0.001
        finish(fetch, attempts, 0.0005, now)
    after = fetch.request(now, riding=True)

    assert before is not None
    assert after is not None
    assert before.chain == 1
    assert after.chain > 10


def test_a_fair_queue_asks_in_turns_and_keeps_its_reserve() -> None:
    app = an_app()
    app.queue("sync", fair=True, reserve="15%")
    fetch = Fetch(a_plan(queues={"sync": None}), cards(app), 1.0, app.queues)

    request = fetch.request(0.0, riding=False)

    assert request is not None
    # 15% of all 16 slots: it is not known yet of which kind its jobs are.
    assert request.queues == (QueueClaim("sync", 10, fair=True, reserved=3),)
    assert fetch.suspects().queues == (QueueClaim("sync", 1, fair=True),)


# When it asks again.


@pytest.mark.parametrize(("again", "due"), [(0.0, 0.0), (0.2, 0.2), (60.0, 1.2)])
def test_a_store_that_names_a_time_is_asked_again_then_and_at_the_poll_at_the_latest(
    again: float, due: float
) -> None:
    fetch = a_fetch()
    request = ClaimRequest((QueueClaim("default", 10),), 10)

    fetch.answered(request, 0, 100.0, timedelta(seconds=again))

    assert min(again, 0.8) - 1e-6 <= fetch.due_in(100.0) <= due + 1e-6


def test_without_a_word_of_the_store_the_poll_decides() -> None:
    fetch = a_fetch()

    fetch.answered(ClaimRequest((QueueClaim("default", 10),), 10), 0, 100.0)

    assert 0.8 <= fetch.due_in(100.0) <= 1.2


# One slot.


def test_a_chain_takes_one_slot_until_the_last_of_it_has_ended() -> None:
    fetch = a_fetch()
    chain = a_chain(fetch, 3)

    free = []
    for attempt in chain:
        request = fetch.request(0.0, riding=True)
        free.append(request.most if request is not None else 0)
        attempt.begin(0.0)
        attempt.ended = returned(attempt, None, 0.0)
        fetch.released(attempt, 0.0)

    assert free == [9, 9, 9]
    assert fetch.outstanding == 0
    request = fetch.request(0.0, riding=True)
    assert request is not None
    assert request.most == 10


def test_nothing_follows_what_is_acknowledged_first() -> None:
    app = a_mixed_app()

    @app.task(ack="start")
    async def at_most_once() -> None: ...

    fetch = Fetch(a_plan(), cards(app), 1.0)
    head = an_attempt(fetch.cards["at_most_once"], 1)

    assert not fetch.follow(an_attempt(fetch.cards["on_loop"], 2), head)
    assert not fetch.follow(an_attempt(fetch.cards["on_loop"], 2), None)


def test_the_slot_goes_on_with_the_next_when_the_one_before_has_completed(floor: Floor) -> None:
    head, second, third = a_chain(a_fetch(), 3)
    slot = Slot(0)

    complete(floor, head, slot)
    first = floor.follower(head, slot)
    complete(floor, second, slot)
    then = floor.follower(second, slot)
    fail(floor, third, slot)

    assert (first, then) == (second, third)
    assert floor.follower(third, slot) is None


def test_the_slot_takes_nothing_behind_one_that_did_not_complete(floor: Floor) -> None:
    head, second = a_chain(a_fetch(), 2)
    slot = Slot(0)

    fail(floor, head, slot)

    assert floor.follower(head, slot) is None
    assert head.chain is not None
    assert list(head.chain.waiting) == [second]


def test_a_given_up_slot_takes_nothing_more(floor: Floor) -> None:
    head, _ = a_chain(a_fetch(), 2)
    slot = Slot(0)

    complete(floor, head, slot)
    slot.abandoned = True

    assert floor.follower(head, slot) is None


def test_one_of_another_kind_is_delivered_to_its_own_slots(floor: Floor) -> None:
    known = cards(a_mixed_app())
    head, other = an_attempt(known["on_loop"], 1), an_attempt(known["in_thread"], 2)
    head.chain = other.chain = Chain(known["on_loop"].kind)
    head.chain.waiting.append(other)
    delivered: list[Attempt] = []
    floor.on_follow = delivered.append
    slot = Slot(0)

    complete(floor, head, slot)

    assert floor.follower(head, slot) is None
    assert ids(delivered) == [2]


# Back, at no cost.


def test_the_pump_hands_back_what_stands_behind_one_that_failed(bench: Bench) -> None:
    head, *behind = bench.claim(3)
    chain = head.chain = Chain(head.card.kind)
    for follower in behind:
        follower.chain = chain
        chain.waiting.append(follower)
        chain.left += 1
    fail(bench.floor, head, bench.slot)
    bench.pump.claiming = False

    bench.rounds(2)

    found = [bench.job(attempt.job.id) for attempt in (head, *behind)]
    assert [record.state for record in found] == [State.ready] * 3
    assert [record.counters.failed for record in found] == [0, 0, 0]
    assert [attempt.phase for attempt in behind] == [Phase.ended, Phase.ended]
    assert {(attempt.ended.event, attempt.ended.reason) for attempt in behind if attempt.ended} == {
        (Event.interrupt, BEHIND)
    }
    assert len(bench.reports.held) == 0


def test_what_stands_behind_a_long_one_goes_back_after_a_second(floor: Floor) -> None:
    head, _ = a_chain(a_fetch(), 2)
    slot, acts = Slot(0), Acts()
    group: Any = type("Group", (), {"slots": [slot], "unstarted": lambda self: [], "kind": 0})()
    nothing: Any = type("Nothing", (), {"unstarted": lambda self: []})()
    clock: Any = floor.clock
    hub: Any = None
    watch = Watch(a_plan(), floor, [group], nothing, acts, hub, floor.clock)
    assert floor.begin(head, slot)

    clock.advance(0.9)
    watch.round()
    early = list(acts.broken_chains)
    clock.advance(0.2)
    watch.round()

    assert early == []
    assert acts.broken_chains == [1]
