"""The commands that change bounds for a time: limit, block, overrides, tenants, and resume of a key."""

from __future__ import annotations

import pytest

from duly.core.control import LimitPolicy
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.testing.conformance.bench import BOOM, Bench, ended
from tests.cli.conftest import Terminal

WHY = ("--reason", "INC-311")


def test_a_limit_says_what_holds_until_when_and_how_to_undo_it(bench: Bench, duly: Terminal) -> None:
    answer = duly("limit", "default", "--max-running", "5", "--rate", "10/s", "--for", "2h", *WHY)

    (made,) = bench.store.control.overrides()
    assert answer.code == 0
    assert answer.out.startswith("override 1: queue:default, max-running 5, rate 10/s burst 10, until ")
    assert answer.out.endswith(" by ada@ops (INC-311). Undo: duly overrides lift 1\n")
    assert (made.target, made.by, made.reason) == ("queue:default", "ada@ops", "INC-311")


def test_a_resource_is_held_by_hand(bench: Bench, duly: Terminal) -> None:
    bench.declare(LimitPolicy("resource:api", 5))

    answer = duly("limit", "resource:api", "--hold", "--for", "10m", *WHY)

    limit = bench.limit("resource:api")
    assert limit is not None
    assert (limit.held_by, limit.held_reason) == ("ada@ops", "INC-311")
    assert answer.out.startswith("resource api is held until ")
    assert answer.out.endswith(" UTC, by ada@ops\n")
    assert "is held by ada@ops until" in duly("why", "resource:api").out
    assert duly("limit", "resource:apo", "--hold", "--for", "1m").code == 3


def test_overrides_are_listed_and_lifted_once(bench: Bench, duly: Terminal) -> None:
    duly("limit", "default", "--max-running", "none", "--for", "2h", *WHY)
    duly("block", "--queue", "default", "--where", "args.customer_id = 7", "--for", "30m")

    listed = duly("overrides", "list", "-q")
    rehearsed = duly("overrides", "lift", "1", "--dry-run")
    lifted = duly("overrides", "lift", "1")
    again = duly("overrides", "lift", "1")

    assert [line.split()[:2] for line in listed.lines] == [["2", "queue:default"], ["1", "queue:default"]]
    assert "block where=args.customer_id = 7" in listed.out
    assert "max-running none" in listed.out
    assert (rehearsed.code, lifted.out) == (0, "override 1 lifted\n")
    assert again.err == "error: override 1 is not in force; duly overrides list shows those that are\n"
    assert again.code == 4
    assert duly("overrides", "lift", "2").code == 0
    assert duly("overrides", "list").out == "nothing is overridden\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("limit", "default", "--max-running", "5"), "say for how long with --for"),
        (("limit", "default", "--for", "1h"), "give max_running, rate or weight"),
        (("limit", "default", "--max-running", "many", "--for", "1h"), "a whole number from 1, or none"),
        (("limit", "--max-running", "5", "--for", "1h"), "what is bounded?"),
        (("limit", "default", "--breaker", "open"), "a breaker is a resource's"),
        (("limit", "default", "--breaker", "open", "--for", "1h"), "--breaker stands alone"),
        (("limit", "--tenant", "acme"), "give --max-running, --rate or --weight"),
        (("limit", "resource:api", "--hold"), "--hold stands alone, with the time that it lasts"),
        (("limit", "resource:api", "--hold", "--rate", "1/s", "--for", "1h"), "--hold stands alone"),
        (("limit", "default", "--hold", "--for", "1h"), "what is held is a resource"),
        (("block", "--queue", "default", "--for", "1h"), "duly pause default"),
        (("block", "--all", "--for", "1h"), "duly pause QUEUE"),
        (("resume", "key:default"), "write key:QUEUE/KEY"),
        (("resume", "default", "--tenant", "acme"), "write key:QUEUE/KEY"),
    ],
)
def test_what_is_not_said_whole_is_refused(duly: Terminal, args: tuple[str, ...], said: str) -> None:
    answer = duly(*args)

    assert answer.code == 2
    assert said in answer.err


def test_limits_of_unknown_targets_are_not_found(duly: Terminal) -> None:
    answer = duly("limit", "resource:stripe", "--max-running", "5", "--for", "1h")

    assert (answer.code, answer.err) == (3, "error: no resource is named 'stripe'; known: \n")


def test_a_rehearsed_block_counts_what_would_wait(bench: Bench, duly: Terminal) -> None:
    bench.put(args=b'{"customer_id":7}')
    bench.put(args=b'{"customer_id":8}')

    answer = duly(
        "block", "--queue", "default", "--where", "args.customer_id = 7", "--for", "1h", "--dry-run"
    )

    assert answer.out == "1 of the newest jobs would wait; nothing was done\n"
    assert bench.store.control.overrides() == []


def test_a_tenant_alone_gets_a_plan_that_lasts(duly: Terminal) -> None:
    answer = duly("limit", "--tenant", "acme", "--weight", "5", "--max-running", "20", "--rate", "600/min")

    assert answer.out == "plan of tenant acme: weight 5, max-running 20, rate 10/s burst 10\n"
    assert duly("tenants", "list", "-q").out.split() == [
        "acme", "5", "20", "10/s", "burst", "10", "0", "0", "-", "-",
    ]  # fmt: skip
    assert duly("tenants", "show", "acme", "-q").out.split()[:3] == ["acme", "5", "20"]


def test_nobody_has_a_plan_at_first(duly: Terminal) -> None:
    assert (
        duly("tenants", "list").out
        == "no tenant has a plan, and nothing of any runs or waits in a fair queue\n"
    )


def test_a_key_behind_a_dead_job_is_resumed_by_its_name(bench: Bench, duly: Terminal) -> None:
    bench.store.schema.declare(Registration("app", "1", queues=(QueuePolicy("default"),), tasks=()))
    first, second = bench.put(ordering_key="order-7"), bench.put(ordering_key="order-7")
    worker = bench.worker()
    job = bench.claim_one(worker)
    bench.end(worker, ended(job, Event.bury, State.dead, error=BOOM, reason="boom"))
    assert bench.claim(worker, 10) == ()

    answer = duly("resume", "key:default/order-7", *WHY)

    assert answer.out == "key:default/order-7 resumed\n"
    assert [one.id for one in bench.claim(worker, 10)] == [second]
    assert bench.state(first) is State.dead
    assert duly("resume", "key:default/order-8").code == 4
