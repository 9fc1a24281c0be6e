"""What a worker counts of itself, how processes' counts add up, and how it is exposed."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from duly.telemetry.events import AttemptEnded, JobDied, StopAsked, StoreAway
from duly.telemetry.hub import Hub
from duly.telemetry.metrics import ALL, WORKER
from duly.telemetry.moves import JobsPromoted
from duly.telemetry.prometheus import WorkerFigures, worker_exposition
from duly.telemetry.totals import Counted, Totals

DONE = AttemptEnded(1, 1, "mail", "send", "complete", "completed", None, 0.015625)
SNOOZED = AttemptEnded(1, 1, "mail", "send", "snooze", "scheduled", None, 7.0)
UNSTARTED = AttemptEnded(2, 1, "mail", "send", "interrupt", "ready", "no slot", None)
DEAD = JobDied(3, 4, "mail", 'say "hi"\n', "fail", "dead", "gave up", 2000.0)


def counted(*events: AttemptEnded) -> Counted:
    totals = Totals()
    for event in events:
        totals(event)
    return totals.take()


def test_each_end_counts_once_by_task_and_outcome() -> None:
    found = counted(DONE, DONE, SNOOZED, UNSTARTED, DEAD)

    assert found.outcomes == {
        ("mail", "send", "complete"): 2,
        ("mail", "send", "snooze"): 1,
        ("mail", "send", "interrupt"): 1,
        ("mail", 'say "hi"\n', "fail"): 1,
    }
    assert found.dead == {("mail", 'say "hi"\n'): 1}
    assert sum(found.times["mail", "send"].counts) == 3


def test_what_was_taken_is_not_counted_again() -> None:
    totals = Totals()
    totals(DONE)

    assert totals.take()
    assert not totals.take()


def test_of_the_rest_only_warnings_and_errors_count() -> None:
    totals = Totals()
    for event in (StoreAway("exchange", "refused"), StopAsked("SIGTERM", 25.0), JobsPromoted(4)):
        totals(event)

    assert totals.take().events == {"StoreAway": 1}


def test_counts_of_processes_add_up_after_their_way_through_a_channel() -> None:
    totals = Totals()
    for one in (counted(DONE, DEAD), counted(DONE, SNOOZED)):
        totals.add(msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Counted))

    whole = totals.all()

    assert whole == counted(DONE, DEAD, DONE, SNOOZED)
    assert totals.all() == whole


def test_the_exposition_says_what_was_counted_and_nothing_beside_the_table() -> None:
    figures = WorkerFigures(
        "here:1", counted(DONE, DONE, SNOOZED, UNSTARTED, DEAD), {"claiming": 2}, 5, 0.5, True
    )
    text = worker_exposition(figures).decode()

    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families.values()
        for sample in family.samples
    }
    task = (("queue", "mail"), ("task", "send"))
    assert samples["duly_worker_attempts_total", (("outcome", "complete"), *task)] == 2
    assert samples["duly_worker_dead_total", (("queue", "mail"), ("task", 'say "hi"\n'))] == 1
    assert samples["duly_worker_attempt_seconds_count", task] == 3
    assert samples["duly_worker_attempt_seconds_sum", task] == 7.03125
    assert samples["duly_worker_attempt_seconds_bucket", (("le", "0.025"), *task)] == 2
    assert samples["duly_worker_attempt_seconds_bucket", (("le", "10.0"), *task)] == 3
    over = (("le", "+Inf"), ("queue", "mail"), ("task", 'say "hi"\n'))
    assert samples["duly_worker_attempt_seconds_bucket", over] == 1
    assert samples["duly_worker_held_jobs", ()] == 5
    allowed = {name for metric in WORKER for name in metric.samples}
    assert {name for name, _ in samples} <= allowed
    assert all(family.documentation for family in families.values())


def test_every_metric_of_the_table_has_a_name_and_a_sentence() -> None:
    assert all(name.startswith("duly_") and metric.help.endswith(".") for name, metric in ALL.items())


def test_a_hub_knows_who_wants_the_ends_and_who_wants_everything() -> None:
    ends, details = Hub(), Hub()
    ends.listen(Totals(), ends=True)
    details.listen(Totals(), details=True)

    assert (ends.ends, ends.details) == (True, False)
    assert (details.ends, details.details) == (True, True)
