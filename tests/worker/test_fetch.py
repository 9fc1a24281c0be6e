"""What a worker asks the store for: as much as can start, fairly over its queues."""

from collections.abc import Sequence

from duly.client.queue import Queue
from duly.core.decide import completed
from duly.core.job import ClaimRequest
from duly.worker.attempt import Attempt
from duly.worker.fetch import Fetch
from duly.worker.run import handed_back
from tests.worker.doubles import a_mixed_app, a_plan, an_app, an_attempt, cards


def a_fetch(queues: dict[str, int | None], *, mixed: bool = False, **said: int) -> Fetch:
    app = a_mixed_app() if mixed else an_app()
    return Fetch(a_plan(queues=queues, **said), cards(app), poll=1.0)


def asked(request: ClaimRequest | None) -> dict[str, int]:
    return {} if request is None else {claim.queue: claim.most for claim in request.queues}


def claim(fetch: Fetch, task: str, many: int, first: int = 1) -> list[Attempt]:
    attempts = [an_attempt(fetch.cards[task], first + number) for number in range(many)]
    return [attempt for attempt in attempts if fetch.admit(attempt, 0.0)]


def finish(fetch: Fetch, attempts: Sequence[Attempt], elapsed: float, now: float) -> None:
    for attempt in attempts:
        attempt.begin(now - elapsed)
        attempt.ended = completed(attempt.job, None, attempt.elapsed(now))
        fetch.released(attempt, now)


def test_an_idle_worker_asks_for_as_many_as_it_has_slots() -> None:
    fetch = a_fetch({"default": None})

    request = fetch.request(0.0, riding=False)

    assert asked(request) == {"default": 10}
    assert request is not None
    assert request.most == 10


def test_what_is_held_is_not_asked_for_again() -> None:
    fetch = a_fetch({"default": None})
    claim(fetch, "on_loop", 7)

    assert asked(fetch.request(0.0, riding=False)) == {"default": 3}


def test_full_slots_ask_for_nothing() -> None:
    fetch = a_fetch({"default": None})
    claim(fetch, "on_loop", 10)

    assert fetch.request(0.0, riding=True) is None


def test_each_queue_keeps_a_slot_free_of_the_others() -> None:
    fetch = a_fetch({"default": None, "mail": None})
    claim(fetch, "on_loop", 9)

    assert asked(fetch.request(0.0, riding=False)) == {"mail": 1}


def test_a_queue_that_has_its_slot_leaves_the_rest_to_the_others() -> None:
    fetch = a_fetch({"default": None, "mail": None})
    claim(fetch, "letter", 1)

    assert asked(fetch.request(0.0, riding=False))["default"] == 9


def test_slots_of_its_own_bound_a_queue_and_are_kept_for_it() -> None:
    fetch = a_fetch({"mail": 3, "default": None})

    first = asked(fetch.request(0.0, riding=False))
    claim(fetch, "letter", 3)
    second = asked(fetch.request(0.0, riding=False))

    assert first == {"mail": 3, "default": 7}
    assert second == {"default": 7}


def test_queues_take_turns_at_being_first() -> None:
    fetch = a_fetch({"default": None, "mail": None})

    firsts = []
    for _ in range(4):
        request = fetch.request(0.0, riding=False)
        assert request is not None
        firsts.append(request.queues[0].queue)

    assert firsts == ["mail", "default", "mail", "default"]


def test_a_queue_of_more_weight_is_the_first_as_often_and_never_for_long_alone() -> None:
    declared = {"mail": Queue("mail", weight=3), "slow": Queue("slow", weight=1)}
    queues = dict.fromkeys(("default", "mail", "slow"))
    fetch = Fetch(a_plan(queues=queues), cards(an_app()), 1.0, declared)

    rounds = []
    for _ in range(20):
        request = fetch.request(0.0, riding=False)
        assert request is not None
        rounds.append([claim.queue for claim in request.queues])

    firsts = [order[0] for order in rounds]
    assert {name: firsts.count(name) for name in queues} == {"default": 4, "mail": 12, "slow": 4}
    assert all(set(firsts[start : start + 5]) == set(queues) for start in range(0, 20, 5))
    # Those that are not first are asked, too, so that no slot stays empty.
    assert all(sorted(order) == ["default", "mail", "slow"] for order in rounds)


def test_what_stands_behind_a_dead_one_is_the_queues_own_policy() -> None:
    fetch = Fetch(
        a_plan(queues={"default": None}), cards(an_app()), 1.0, {"mail": Queue("mail", ordering="skip_dead")}
    )

    assert (fetch.ordering("mail"), fetch.ordering("default")) == ("skip_dead", "wait")


def test_a_short_answer_waits_for_the_poll_and_a_full_one_asks_at_once() -> None:
    fetch = a_fetch({"default": None})
    request = fetch.request(0.0, riding=False)
    assert request is not None

    fetch.answered(request, 3, 0.0)
    short = fetch.due_in(0.0)
    fetch.answered(request, 10, 0.0)

    assert 0.8 <= short <= 1.2
    assert fetch.due_in(0.0) == 0.0


def test_a_ring_during_the_round_trip_is_not_forgotten() -> None:
    fetch = a_fetch({"default": None})
    request = fetch.request(0.0, riding=False)
    assert request is not None

    fetch.wake()
    fetch.answered(request, 0, 0.0)

    assert fetch.due_in(0.0) == 0.0


def test_a_claim_rides_on_every_acknowledgement() -> None:
    fetch = a_fetch({"default": None})
    request = fetch.request(0.0, riding=False)
    assert request is not None
    fetch.answered(request, 0, 0.0)

    assert fetch.request(0.1, riding=False) is None
    assert fetch.request(0.1, riding=True) is not None


def test_tiny_jobs_are_fetched_ahead_of_the_slots() -> None:
    fetch = a_fetch({"default": None})
    for turn in range(40):
        finish(fetch, claim(fetch, "on_loop", 10), 0.001, now=turn * 0.01)

    request = fetch.request(1.0, riding=False)

    assert request is not None
    assert 100 <= request.most <= 510


def test_few_tiny_jobs_are_fetched_ahead_where_tenants_take_turns() -> None:
    fetch = Fetch(
        a_plan(queues={"default": None}), cards(an_app()), 1.0, {"default": Queue("default", fair=True)}
    )
    for turn in range(40):
        finish(fetch, claim(fetch, "on_loop", 10), 0.001, now=turn * 0.01)

    request = fetch.request(1.0, riding=False)

    assert request is not None
    assert 10 < request.most <= 60


def test_long_jobs_are_never_fetched_ahead() -> None:
    fetch = a_fetch({"default": None})
    for turn in range(40):
        finish(fetch, claim(fetch, "on_loop", 10), 0.5, now=turn * 0.5)

    request = fetch.request(100.0, riding=False)

    assert request is not None
    assert request.most == 10


def test_a_full_kind_of_slot_lets_only_a_few_jobs_through_in_passing() -> None:
    fetch = a_fetch({"default": None}, mixed=True)
    claim(fetch, "in_thread", 4)

    request = fetch.request(0.0, riding=False)
    claim(fetch, "in_thread", 4, first=100)
    blocked = fetch.request(0.0, riding=False)

    assert request is not None
    assert asked(request)["default"] <= 4
    assert blocked is None


def test_a_loop_that_stands_still_leaves_its_jobs_to_others() -> None:
    fetch = a_fetch({"default": None})
    fetch.loop_turns = lambda: False

    assert fetch.request(0.0, riding=True) is None


def test_a_job_that_went_back_unstarted_frees_its_slot_once() -> None:
    fetch = a_fetch({"default": None})
    (attempt,) = claim(fetch, "on_loop", 1)
    attempt.ended = handed_back(attempt, "no slot")

    fetch.released(attempt, 0.0)
    fetch.released(attempt, 0.0)

    assert fetch.outstanding == 0


def test_a_quarantine_process_asks_for_one_suspect_at_a_time() -> None:
    fetch = Fetch(a_plan(quarantine=True), cards(an_app()), poll=1.0)

    request = fetch.request(0.0, riding=False)
    claim(fetch, "on_loop", 1)

    assert request is not None
    assert (request.suspects, request.most) == (True, 1)
    assert fetch.request(0.0, riding=True) is None


def test_a_job_beyond_the_slots_of_its_kind_is_not_let_in() -> None:
    fetch = a_fetch({"default": None}, mixed=True)

    let_in = claim(fetch, "on_loop", 14)

    assert len(let_in) == 10


def test_the_slot_kept_for_another_queue_is_not_given_away_to_a_queue_of_many_kinds() -> None:
    fetch = a_fetch({"default": None, "mail": None}, mixed=True)

    let_in = claim(fetch, "on_loop", 14)

    assert len(let_in) == 9


def test_looking_past_a_full_kind_gets_rarer_while_it_finds_nothing_else() -> None:
    fetch = a_fetch({"default": None}, mixed=True)
    claim(fetch, "on_loop", 10)
    assert asked(fetch.request(1.0, riding=True)) == {"default": 4}

    refused = an_attempt(fetch.cards["on_loop"], 99)

    assert not fetch.admit(refused, 1.0)
    assert fetch.request(1.5, riding=True) is None
    assert asked(fetch.request(2.5, riding=True)) == {"default": 4}
    assert not fetch.admit(refused, 2.5)
    assert fetch.request(4.0, riding=True) is None
