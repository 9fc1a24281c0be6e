"""Cases: alerts, whose changes are decided once and sent at least once, and silences."""

from functools import partial

from duly.core.operating import AlertRecord, AlertStateName

from .bench import DAY, HOUR, MINUTE, SECOND, Bench, together

RULE, TARGET = "dead_letter", "queue:mail"


def _change(
    bench: Bench, state: AlertStateName = "firing", expected: int = 0, *sinks: str, target: str = TARGET
) -> int:
    change = bench.store.alerts.change(RULE, target, expected, state, {"dead": 3}, sinks)
    assert change is not None, "the change was not decided"
    return change


def _record(bench: Bench) -> AlertRecord:
    records = bench.store.alerts.records()
    assert len(records) == 1, f"one rule should be kept, not {len(records)}"
    return records[0]


def one_caller_at_a_time_looks_at_the_rules(bench: Bench) -> None:
    other = bench.another()

    first = [bench.store.alerts.turn(5 * SECOND), other.alerts.turn(5 * SECOND)]
    bench.clock.advance(5 * SECOND)
    second = [other.alerts.turn(5 * SECOND), bench.store.alerts.turn(5 * SECOND)]

    assert (first, second) == ([True, False], [True, False])


def many_who_look_at_once_have_one_turn(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    for _ in range(5):
        bench.clock.advance(5 * SECOND)

        turns = together(*(partial(store.alerts.turn, 5 * SECOND) for store in stores))

        assert sorted(turns) == [False, False, False, True]


def what_was_seen_of_a_rule_is_kept_without_a_change(bench: Bench) -> None:
    since = bench.clock()
    bench.clock.advance(MINUTE)

    bench.store.alerts.watch(RULE, TARGET, since, {"dead": 3})

    assert _record(bench) == AlertRecord(RULE, TARGET, "clear", 0, since, None, {"dead": 3})
    bench.store.alerts.watch(RULE, TARGET, None, {"dead": 0})
    assert _record(bench) == AlertRecord(RULE, TARGET, "clear", 0, None, None, {"dead": 0})
    assert bench.store.alerts.changes() == []


def a_change_is_decided_with_what_is_owed_of_it(bench: Bench) -> None:
    bench.store.alerts.watch(RULE, TARGET, bench.clock(), {})
    bench.clock.advance(MINUTE)

    change = _change(bench, "firing", 0, "log", "webhook")

    record = _record(bench)
    assert (record.state, record.change, record.since, record.value) == ("firing", change, None, {"dead": 3})
    assert record.changed_at == bench.clock()
    (told,) = bench.store.alerts.changes()
    assert (told.id, told.rule, told.target, told.state, told.at) == (
        change,
        RULE,
        TARGET,
        "firing",
        bench.clock(),
    )
    assert told.value == {"dead": 3}
    assert [(one.sink, one.state, one.tries) for one in bench.store.alerts.deliveries(change)] == [
        ("log", "due", 0),
        ("webhook", "due", 0),
    ]


def a_change_is_decided_by_the_one_who_knows_the_last(bench: Bench) -> None:
    fired = _change(bench)
    change = bench.store.alerts.change

    assert change(RULE, TARGET, 0, "firing", {}, ["log"]) is None
    assert change(RULE, TARGET, 0, "clear", {}, ["log"]) is None
    assert change(RULE, TARGET, fired, "firing", {}, ["log"]) is None
    assert change("other", TARGET, 0, "clear", {}, ["log"]) is None
    cleared = _change(bench, "clear", fired)
    again = _change(bench, "firing", cleared)

    assert fired < cleared < again
    assert [one.state for one in bench.store.alerts.changes()] == ["firing", "clear", "firing"]
    assert bench.store.alerts.due(["log"]) == []


def many_who_decide_at_once_decide_once(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    for number in range(5):
        target = f"queue:{number}"

        answers = together(
            *(
                partial(store.alerts.change, RULE, target, 0, "firing", {"dead": 1}, ["log"])
                for store in stores
            )
        )

        assert len([one for one in answers if one is not None]) == 1
    assert len(bench.store.alerts.due(["log"])) == 5


def targets_stand_for_themselves(bench: Bench) -> None:
    _change(bench, target="queue:web")
    bench.store.alerts.watch(RULE, TARGET, None, {})
    bench.store.alerts.watch("no_worker", TARGET, None, {})

    records = bench.store.alerts.records()

    assert [(one.rule, one.target, one.state) for one in records] == [
        (RULE, TARGET, "clear"),
        (RULE, "queue:web", "firing"),
        ("no_worker", TARGET, "clear"),
    ]


def a_rule_can_be_dropped_and_its_changes_stay(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log")

    dropped = [bench.store.alerts.drop(RULE, TARGET) for _ in range(2)]

    assert dropped == [True, False]
    assert bench.store.alerts.records() == []
    assert [one.change.id for one in bench.store.alerts.due(["log"])] == [change]


def a_delivery_is_given_to_one_at_a_time(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log", "webhook")

    (taken,) = bench.store.alerts.due(["log"], MINUTE)

    assert (taken.change.id, taken.sink, taken.state, taken.tries) == (change, "log", "due", 1)
    assert taken.next_at == bench.clock() + MINUTE
    assert bench.another().alerts.due(["log"], MINUTE) == []
    assert [one.sink for one in bench.store.alerts.due(["webhook", "smtp"])] == ["webhook"]


def a_delivery_of_one_who_died_is_due_again(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log")
    bench.store.alerts.due(["log"], MINUTE)
    bench.clock.advance(MINUTE)

    (again,) = bench.another().alerts.due(["log"], MINUTE)

    assert (again.change.id, again.tries) == (change, 2)


def many_who_deliver_at_once_share_what_is_due(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    changes = [_change(bench, "firing", 0, "log", target=f"queue:{number}") for number in range(8)]

    taken = together(*(partial(store.alerts.due, ["log"], MINUTE, 2) for store in stores))

    told = [one.change.id for answer in taken for one in answer]
    # Whoever comes to rows that another one is at passes them by.
    assert sorted(told + [one.change.id for one in bench.store.alerts.due(["log"])]) == changes


def deliveries_come_in_the_order_of_their_changes(bench: Bench) -> None:
    fired = _change(bench, "firing", 0, "log")
    cleared = _change(bench, "clear", fired, "log")

    taken = bench.store.alerts.due(["log"], most=1) + bench.store.alerts.due(["log"])

    assert [one.change.id for one in taken] == [fired, cleared]
    assert [one.change.state for one in taken] == ["firing", "clear"]


def a_sent_delivery_is_settled(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log")
    bench.store.alerts.due(["log"])

    told = [bench.store.alerts.sent(change, "log") for _ in range(2)]

    assert told == [True, False]
    bench.clock.advance(HOUR)
    assert bench.store.alerts.due(["log"]) == []
    assert [one.state for one in bench.store.alerts.deliveries(change)] == ["sent"]
    assert not bench.store.alerts.sent(change, "smtp")


def a_failed_delivery_is_due_after_its_wait(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log")
    bench.store.alerts.due(["log"])

    assert bench.store.alerts.unsent(change, "log", "connection refused", 5 * MINUTE)

    (kept,) = bench.store.alerts.deliveries(change)
    assert (kept.state, kept.last_error) == ("due", "connection refused")
    bench.clock.advance(5 * MINUTE - SECOND)
    assert bench.store.alerts.due(["log"]) == []
    bench.clock.advance(SECOND)
    (again,) = bench.store.alerts.due(["log"])
    assert (again.tries, again.last_error) == (2, "connection refused")


def a_delivery_can_be_given_up(bench: Bench) -> None:
    change = _change(bench, "firing", 0, "log")
    bench.store.alerts.due(["log"])

    assert bench.store.alerts.unsent(change, "log", "gone", None)

    bench.clock.advance(DAY)
    assert bench.store.alerts.due(["log"]) == []
    assert [(one.state, one.last_error) for one in bench.store.alerts.deliveries(change)] == [
        ("given_up", "gone")
    ]
    assert not bench.store.alerts.unsent(change, "log", "gone", MINUTE)


def changes_are_read_page_by_page_and_kept_for_90_days(bench: Bench) -> None:
    old = _change(bench, "firing", 0, "log", target="queue:old")
    bench.clock.advance(89 * DAY)
    middle = _change(bench, "firing", 0, "log", target="queue:middle")
    kept = [one.id for one in bench.store.alerts.changes()]
    bench.clock.advance(2 * DAY)

    new = _change(bench, target="queue:new")

    assert kept == [middle, old]
    assert [one.id for one in bench.store.alerts.changes()] == [new, middle]
    assert [one.id for one in bench.store.alerts.changes(before=new, limit=1)] == [middle]
    assert bench.store.alerts.deliveries(old) == []
    assert [one.change.id for one in bench.store.alerts.due(["log"])] == [middle]


def a_silence_holds_until_its_end(bench: Bench) -> None:
    made = bench.store.alerts.silence(RULE, "*", HOUR, "ann", "a planned outage")

    assert (made.rule, made.target, made.by, made.reason) == (RULE, "*", "ann", "a planned outage")
    assert (made.at, made.until) == (bench.clock(), bench.clock() + HOUR)
    assert bench.another().alerts.silences() == [made]
    bench.clock.advance(HOUR)
    assert bench.store.alerts.silences() == []


def a_silence_can_be_ended_once(bench: Bench) -> None:
    first = bench.store.alerts.silence(RULE, "*", HOUR, "ann", "an outage")
    second = bench.store.alerts.silence(RULE, TARGET, HOUR, "ann", "an outage")
    both = bench.store.alerts.silences()

    ended = [bench.store.alerts.unsilence(id, "bob", "over") for id in (first.id, first.id, second.id + 9)]

    assert both == [second, first]
    assert ended == [True, False, False]
    assert bench.store.alerts.silences() == [second]
    said = [(one.verb, one.target, one.actor) for one in bench.store.audits.page()]
    assert said == [
        ("unsilence", "alert:dead_letter:*", "bob"),
        ("silence", "alert:dead_letter:queue:mail", "ann"),
        ("silence", "alert:dead_letter:*", "ann"),
    ]
